//! Bill: what a session has spent in money, where it is known what its models' tokens cost.

use crate::{UsageReport, UsageRow};
use turnery_engine::{Price, Usage};

/// A report with what each row of it cost. Unit of money: millionths of whatever money prices are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bill {
    rows: Vec<(UsageRow, Option<u64>)>,
    usage: Usage,
}

impl Bill {
    /// The bill of a report; `price` knows models by their `provider/model`.
    #[must_use]
    pub fn of(report: &UsageReport, price: impl Fn(&str) -> Option<Price>) -> Self {
        let cost = |row: &UsageRow| price(&row.model).map(|price| price.of(&row.usage));
        let rows = report.rows().iter();
        Self {
            rows: rows.map(|row| (row.clone(), cost(row))).collect(),
            usage: report.total(),
        }
    }

    /// The rows of the report, each with its cost where the model's price is known.
    #[must_use]
    pub fn rows(&self) -> &[(UsageRow, Option<u64>)] {
        &self.rows
    }

    /// All tokens.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What all of it cost. A sum without what is unknown would pass for all.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.rows.iter().map(|(_, cost)| *cost).sum()
    }

    /// Whether anything of it is known.
    #[must_use]
    pub fn is_priced(&self) -> bool {
        self.rows.iter().any(|(_, cost)| cost.is_some())
    }
}

/// An amount of money out of its millionths.
#[must_use]
pub fn money(millionths: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact up to nine thousand millions"
    )]
    let millionths = millionths as f64;
    millionths / 1e6
}

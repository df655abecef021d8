//! Reports the cost of a session where the token prices of its models are known.

use crate::usage_report::{UsageReport, UsageRow};
use turnery_engine::{Price, Usage};

/// Usage report with the cost of each row. Unit: millionths of the currency of the prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostReport {
    rows: Vec<(UsageRow, Option<u64>)>,
    usage: Usage,
}

impl CostReport {
    /// Creates the cost report; `price` looks up models by `provider/model`.
    #[must_use]
    pub fn new(report: &UsageReport, price: impl Fn(&str) -> Option<Price>) -> Self {
        let cost = |row: &UsageRow| price(&row.model).map(|price| price.cost_of(&row.usage));
        let rows = report.rows().iter();
        Self {
            rows: rows.map(|row| (row.clone(), cost(row))).collect(),
            usage: report.total(),
        }
    }

    /// Returns the rows, each with its cost if the model's price is known.
    #[must_use]
    pub fn rows(&self) -> &[(UsageRow, Option<u64>)] {
        &self.rows
    }

    /// Returns the total token usage.
    #[must_use]
    pub fn total_usage(&self) -> Usage {
        self.usage
    }

    /// Returns the total cost; `None` if a price is unknown, since a partial sum would be misleading.
    #[must_use]
    pub fn total_cost(&self) -> Option<u64> {
        self.rows.iter().map(|(_, cost)| *cost).sum()
    }

    /// Returns true if the cost of any row is known.
    #[must_use]
    pub fn is_priced(&self) -> bool {
        self.rows.iter().any(|(_, cost)| cost.is_some())
    }
}

/// Converts millionths to currency units.
#[must_use]
pub fn millionths_to_units(millionths: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact up to nine thousand millions"
    )]
    let millionths = millionths as f64;
    millionths / 1e6
}

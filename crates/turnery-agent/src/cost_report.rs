//! Reports the cost of a session where the token prices of its models are known.

use crate::usage_report::{UsageReport, UsageRow, subtract_usage};
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
        let rows = report.rows_with_requests().map(|(row, requests)| {
            let cost = price(&row.model).map(|price| row_cost(row, requests, price));
            (row.clone(), cost)
        });
        Self {
            rows: rows.collect(),
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

/// Returns the cost of a row: that of each request at the price for its size, and the base price for usage that is known
/// only as a sum.
fn row_cost(row: &UsageRow, requests: &[Usage], price: Price) -> u64 {
    if price.tiers.is_empty() {
        return price.cost_of(&row.usage);
    }
    let costs = requests.iter().map(|usage| price.cost_of(usage));
    let known = requests.iter().fold(Usage::default(), |mut sum, usage| {
        sum += *usage;
        sum
    });
    let rest = price
        .without_tiers()
        .cost_of(&subtract_usage(row.usage, known));
    costs.fold(rest, u64::saturating_add)
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

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::{
        ChildUsage, ConfigSnapshot, LoopRecord, PriceTier, TurnId, TurnRecord, TurnTrigger, usage,
    };

    fn input(tokens: u64) -> Usage {
        Usage {
            input: tokens,
            ..Usage::default()
        }
    }

    /// Returns the record of a loop whose turns had these inputs, with a child session that used `child` tokens.
    fn record(inputs: &[u64], child: u64) -> LoopRecord {
        let at = chrono::DateTime::UNIX_EPOCH;
        let mut record = LoopRecord::new_running("s".into(), "s.m.1".into(), "a".to_owned(), at);
        record.config = Some(ConfigSnapshot {
            model: "m".to_owned(),
            provider: "p".to_owned(),
            ..ConfigSnapshot::default()
        });
        for (turn_index, tokens) in (0..).zip(inputs) {
            record.turns.push(TurnRecord {
                turn_id: TurnId {
                    loop_id: "s.m.1".into(),
                    turn_index,
                },
                triggered_by: TurnTrigger::User,
                usage: Some(input(*tokens)),
                input_messages: Vec::new(),
                output_message: None,
                tool_results: Vec::new(),
                started_at: at,
                ended_at: None,
            });
            record.usage += input(*tokens);
        }
        record.children_usage.push(ChildUsage {
            session_id: "child".into(),
            source: usage::source::SUBAGENT.to_owned(),
            model: "p/m".to_owned(),
            iteration: 0,
            usage: None,
            cumulative: input(child),
        });
        record
    }

    /// Each request has the price for its own size: a long session of short requests is not a long request, and usage
    /// that is known only as a sum has the base price.
    #[test]
    fn tiers_apply_to_requests_not_to_sums() {
        const TIERS: &[PriceTier] = &[PriceTier {
            above: 100,
            input: 3_000_000,
            output: 0,
            cache_read: 0,
            cache_write: 0,
        }];
        let price = Price {
            input: 1_000_000,
            tiers: TIERS,
            ..Price::default()
        };
        let report = UsageReport::from_records(&[record(&[60, 60, 200], 500)]);
        let bill = CostReport::new(&report, |_| Some(price));
        let costs: Vec<_> = bill
            .rows()
            .iter()
            .map(|(row, cost)| (&*row.source, *cost))
            .collect();
        assert_eq!(
            costs,
            [
                (usage::source::SUBAGENT, Some(500)),
                (usage::source::TURN, Some(60 + 60 + 600)),
            ]
        );
        assert_eq!(bill.total_cost(), Some(1_220));
    }
}

//! `/cost`: shows the tokens the session has used, by purpose and model (LASH-105), and their cost for models
//! with a configured price.

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    server::rpc_error::RpcError,
};
use std::fmt::Write as _;
use turnery_agent::{CostReport, millionths_to_units};
use turnery_engine::Usage;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "cost",
    description: "Show the tokens spent, by purpose and model",
    hint: None,
    needs_idle: false,
    run: |call| Box::pin(run(call)),
};

async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    let report = call.session.usage_report().await;
    let report = report.map_err(|error| RpcError::from_store(&error))?;
    if report.rows().is_empty() {
        return Ok(CommandOutcome::Text(
            "No tokens have been spent yet.".to_owned(),
        ));
    }
    let models = call.connection.agent.models();
    let bill = CostReport::new(&report, |model| models.recorded_price(model));
    Ok(CommandOutcome::Text(render_table(&bill)))
}

fn render_table(bill: &CostReport) -> String {
    let mut text = "| For | Model | In | Cache read | Cache write | Out |".to_owned();
    // Without prices only tokens are shown.
    let priced = bill.is_priced();
    text.push_str(if priced { " Cost |\n" } else { "\n" });
    text.push_str("|---|---|--:|--:|--:|--:|");
    text.push_str(if priced { "--:|\n" } else { "\n" });
    for (row, cost) in bill.rows() {
        let model = format!("`{}`", row.model);
        write_row(
            &mut text,
            &row.source,
            &model,
            row.usage,
            priced.then_some(*cost),
        );
    }
    let total = priced.then_some(bill.total_cost());
    write_row(&mut text, "**all**", "", bill.total_usage(), total);
    text
}

fn write_row(
    text: &mut String,
    source: &str,
    model: &str,
    usage: Usage,
    cost: Option<Option<u64>>,
) {
    let _ = write!(
        text,
        "| {source} | {model} | {} | {} | {} | {} |",
        usage.input, usage.cache_read, usage.cache_write, usage.output
    );
    let _ = match cost {
        Some(Some(cost)) => writeln!(text, " {:.6} |", millionths_to_units(cost)),
        Some(None) => writeln!(text, " unknown |"),
        None => writeln!(text),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_agent::UsageReport;
    use turnery_engine::{ConfigSnapshot, LoopRecord, Price};

    fn loop_record(number: u32, model: &str, input: u64) -> LoopRecord {
        let id = format!("s1.cfg.{number}");
        let at = chrono::DateTime::UNIX_EPOCH;
        let config = serde_json::json!({"provider": "openai", "model": model});
        let config: ConfigSnapshot = serde_json::from_value(config).expect("a model");
        LoopRecord {
            usage: Usage {
                input,
                ..Usage::default()
            },
            config: Some(config),
            ..LoopRecord::new_running("s1".into(), id.into(), "turnery".to_owned(), at)
        }
    }

    fn table_rows(price: impl Fn(&str) -> Option<Price>) -> Vec<String> {
        let records = [loop_record(1, "a", 1_000_000), loop_record(2, "b", 500_000)];
        let report = UsageReport::from_records(&records);
        let table = render_table(&CostReport::new(&report, price));
        table.lines().skip(2).map(str::to_owned).collect()
    }

    fn input_price() -> Option<Price> {
        Some(Price {
            input: 3_000_000,
            ..Price::default()
        })
    }

    /// Without prices only tokens are shown; a sum that lacks unknown costs would pass for the total.
    #[test]
    fn cost_column_appears_only_with_prices() {
        let tokens = [
            "| turn | `openai/a` | 1000000 | 0 | 0 | 0 |",
            "| turn | `openai/b` | 500000 | 0 | 0 | 0 |",
            "| **all** |  | 1500000 | 0 | 0 | 0 |",
        ];
        assert_eq!(table_rows(|_| None), tokens);
        let with = |costs: [&str; 3]| {
            let rows = tokens.iter().zip(costs);
            rows.map(|(row, cost)| format!("{row} {cost} |"))
                .collect::<Vec<_>>()
        };
        let one = table_rows(|model| input_price().filter(|_| model == "openai/a"));
        assert_eq!(one, with(["3.000000", "unknown", "unknown"]));
        assert_eq!(
            table_rows(|_| input_price()),
            with(["3.000000", "1.500000", "4.500000"])
        );
    }
}

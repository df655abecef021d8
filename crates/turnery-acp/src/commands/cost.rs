//! `/cost`: the tokens that the session has spent, for what and with which model (LASH-105), and what they
//! cost, where somebody said what a model's tokens cost.

use super::{Command, Reply, Typed};
use crate::fault::Fault;
use std::fmt::Write as _;
use turnery_agent::{Bill, money};
use turnery_engine::Usage;

pub(super) const COMMAND: Command = Command {
    name: "cost",
    about: "Show the tokens spent, by purpose and model",
    hint: None,
    needs_idle: false,
    run: |typed| Box::pin(run(typed)),
};

async fn run(typed: Typed) -> Result<Reply, Fault> {
    let report = typed.session.usage_report().await;
    let report = report.map_err(|error| Fault::store(&error))?;
    if report.rows().is_empty() {
        return Ok(Reply::Said("No tokens have been spent yet.".to_owned()));
    }
    let models = typed.connection.agent.models();
    let bill = Bill::of(&report, |model| models.price_of(model));
    Ok(Reply::Said(table(&bill)))
}

fn table(bill: &Bill) -> String {
    let mut text = "| For | Model | In | Cache read | Cache write | Out |".to_owned();
    // Who has said no price asks for tokens only.
    let priced = bill.is_priced();
    text.push_str(if priced { " Cost |\n" } else { "\n" });
    text.push_str("|---|---|--:|--:|--:|--:|");
    text.push_str(if priced { "--:|\n" } else { "\n" });
    for (row, cost) in bill.rows() {
        let model = format!("`{}`", row.model);
        line(
            &mut text,
            &row.source,
            &model,
            row.usage,
            priced.then_some(*cost),
        );
    }
    let total = priced.then_some(bill.total());
    line(&mut text, "**all**", "", bill.usage(), total);
    text
}

fn line(text: &mut String, source: &str, model: &str, usage: Usage, cost: Option<Option<u64>>) {
    let _ = write!(
        text,
        "| {source} | {model} | {} | {} | {} | {} |",
        usage.input, usage.cache_read, usage.cache_write, usage.output
    );
    let _ = match cost {
        Some(Some(cost)) => writeln!(text, " {:.6} |", money(cost)),
        Some(None) => writeln!(text, " unknown |"),
        None => writeln!(text),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_agent::UsageReport;
    use turnery_engine::{ConfigSnapshot, LoopRecord, Price};

    fn spent(number: u32, model: &str, input: u64) -> LoopRecord {
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
            ..LoopRecord::begun("s1".into(), id.into(), "turnery".to_owned(), at)
        }
    }

    fn lines(price: impl Fn(&str) -> Option<Price>) -> Vec<String> {
        let records = [spent(1, "a", 1_000_000), spent(2, "b", 500_000)];
        let report = UsageReport::of(&records);
        let table = table(&Bill::of(&report, price));
        table.lines().skip(2).map(str::to_owned).collect()
    }

    fn three() -> Option<Price> {
        Some(Price {
            input: 3_000_000,
            ..Price::default()
        })
    }

    /// Who has said no price is told of tokens; a sum without what is unknown would pass for all.
    #[test]
    fn money_is_told_where_it_is_known() {
        let tokens = [
            "| turn | `openai/a` | 1000000 | 0 | 0 | 0 |",
            "| turn | `openai/b` | 500000 | 0 | 0 | 0 |",
            "| **all** |  | 1500000 | 0 | 0 | 0 |",
        ];
        assert_eq!(lines(|_| None), tokens);
        let with = |costs: [&str; 3]| {
            let rows = tokens.iter().zip(costs);
            rows.map(|(row, cost)| format!("{row} {cost} |"))
                .collect::<Vec<_>>()
        };
        let one = lines(|model| three().filter(|_| model == "openai/a"));
        assert_eq!(one, with(["3.000000", "unknown", "unknown"]));
        assert_eq!(
            lines(|_| three()),
            with(["3.000000", "1.500000", "4.500000"])
        );
    }
}

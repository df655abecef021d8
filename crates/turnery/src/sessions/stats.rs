//! `turnery sessions stats`: tokens, cost, sessions and turns by model and by day.

use crate::{config::values::Since, terminal_text::first_line};
use serde::Serialize;
use std::{
    collections::{BTreeMap, HashSet},
    io::{self, Write},
    process::ExitCode,
};
use turnery_agent::millionths_to_units;
use turnery_engine::{Price, SessionId, Usage};
use turnery_store::{DailyUsage, Store};

/// Longest name of a model. Unit: characters.
const NAME_WIDTH: usize = 40;

/// Sums of usage.
#[derive(Default)]
struct Sum<'a> {
    sessions: HashSet<&'a SessionId>,
    turns: u64,
    usage: Usage,
    /// Unit: millionths.
    cost: u64,
    /// True if tokens were used whose price is unknown.
    has_unpriced: bool,
}

impl<'a> Sum<'a> {
    fn add(&mut self, row: &'a DailyUsage, cost: Option<u64>) {
        self.sessions.insert(&row.session_id);
        self.turns += row.turns;
        self.usage += row.usage;
        match cost {
            Some(cost) => self.cost = self.cost.saturating_add(cost),
            None => self.has_unpriced |= row.usage != Usage::default(),
        }
    }

    fn cost(&self) -> Option<f64> {
        (!self.has_unpriced).then(|| millionths_to_units(self.cost))
    }

    fn to_json(&self) -> SumJson {
        SumJson {
            sessions: self.sessions.len(),
            turns: self.turns,
            usage: self.usage,
            cost: self.cost(),
        }
    }
}

/// Output of `--json`.
#[derive(Serialize)]
struct StatsJson<'a> {
    #[serde(flatten)]
    total: SumJson,
    by_model: BTreeMap<&'a str, SumJson>,
    by_day: BTreeMap<&'a str, SumJson>,
}

#[derive(Serialize)]
struct SumJson {
    sessions: usize,
    turns: u64,
    usage: Usage,
    /// Cost; `null` unless the price of every model is known.
    cost: Option<f64>,
}

pub(super) async fn print_stats(
    store: &dyn Store,
    since: Option<Since>,
    price: impl Fn(&str) -> Option<Price>,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let since = since.map(|since| since.start()).transpose()?;
    let rows = store.daily_usage(since).await?;
    let mut total = Sum::default();
    let mut by_model: BTreeMap<&str, Sum<'_>> = BTreeMap::new();
    let mut by_day: BTreeMap<&str, Sum<'_>> = BTreeMap::new();
    for row in &rows {
        // The sizes of the single requests are not known here.
        let cost = price(&row.model).map(|price| price.without_tiers().cost_of(&row.usage));
        total.add(row, cost);
        by_model.entry(&row.model).or_default().add(row, cost);
        by_day.entry(&row.day).or_default().add(row, cost);
    }
    if json {
        let to_json = |sums: &BTreeMap<&'_ str, Sum<'_>>| -> Vec<SumJson> {
            sums.values().map(Sum::to_json).collect()
        };
        let stats = StatsJson {
            total: total.to_json(),
            by_model: by_model.keys().copied().zip(to_json(&by_model)).collect(),
            by_day: by_day.keys().copied().zip(to_json(&by_day)).collect(),
        };
        serde_json::to_writer_pretty(&mut *out, &stats)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    write_head(out)?;
    for (model, sum) in &by_model {
        write_row(sum, &first_line(model, NAME_WIDTH), out)?;
    }
    writeln!(out)?;
    for (day, sum) in &by_day {
        write_row(sum, day, out)?;
    }
    writeln!(out)?;
    write_row(&total, "all", out)?;
    Ok(ExitCode::SUCCESS)
}

fn write_head(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>8}  {:>7}  {:>11}  {:>11}  {:>12}  {:>11}  {:>12}",
        "sessions", "turns", "input", "output", "cache read", "cache write", "cost"
    )
}

fn write_row(sum: &Sum<'_>, name: &str, out: &mut impl Write) -> io::Result<()> {
    let cost = match sum.cost() {
        Some(cost) => format!("{cost:.4}"),
        None => "unknown".to_owned(),
    };
    writeln!(
        out,
        "{:>8}  {:>7}  {:>11}  {:>11}  {:>12}  {:>11}  {cost:>12}  {name}",
        sum.sessions.len(),
        sum.turns,
        sum.usage.input,
        sum.usage.output,
        sum.usage.cache_read,
        sum.usage.cache_write,
    )
}

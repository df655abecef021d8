//! `turnery sessions usage`: what a session has spent, for what and with which model (LASH-105), and what
//! that cost, where the configuration says what a model's tokens cost.

use crate::show::line;
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
};
use turnery_agent::{Bill, UsageReport, UsageRow, money};
use turnery_engine::{Price, SessionId, Usage};
use turnery_store::Store;

/// Longest name of a model. Unit: characters.
const MODEL: usize = 40;

/// What is printed with `--json`.
#[derive(Serialize)]
struct Told<'a> {
    rows: Vec<Row<'a>>,
    /// What all of it cost; `null` unless the price of every model in it is known.
    cost: Option<f64>,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    row: &'a UsageRow,
    /// `null` where the model's price is not known.
    cost: Option<f64>,
}

pub(super) async fn usage(
    store: &dyn Store,
    id: &SessionId,
    price: impl Fn(&str) -> Option<Price>,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    store.info(id).await?;
    let loops = store.loops(id, 0).await?;
    super::damage::tell(store, id).await?;
    let report = UsageReport::of(loops.iter().map(|record| &**record));
    let bill = Bill::of(&report, price);
    match json {
        true => {
            serde_json::to_writer_pretty(&mut *out, &told(&bill))?;
            writeln!(out)?;
        }
        false => table(&bill, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn told(bill: &Bill) -> Told<'_> {
    let rows = bill.rows().iter();
    Told {
        rows: rows
            .map(|(row, cost)| Row {
                row,
                cost: cost.map(money),
            })
            .collect(),
        cost: bill.total().map(money),
    }
}

fn table(bill: &Bill, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<10}  {:>9}  {:>9}  {:>10}  {:>11}  {:>9}  {:>10}  model",
        "for", "input", "output", "cache read", "cache write", "total", "cost"
    )?;
    for (row, cost) in bill.rows() {
        tokens(&row.source, row.usage, *cost, &line(&row.model, MODEL), out)?;
    }
    tokens("all", bill.usage(), bill.total(), "", out)
}

fn tokens(
    what: &str,
    usage: Usage,
    cost: Option<u64>,
    model: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let cost = cost.map_or_else(
        || "unknown".to_owned(),
        |cost| format!("{:.6}", money(cost)),
    );
    let row = format!(
        "{what:<10}  {:>9}  {:>9}  {:>10}  {:>11}  {:>9}  {cost:>10}  {model}",
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.total(),
    );
    writeln!(out, "{}", row.trim_end())
}

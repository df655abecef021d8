//! `turnery sessions usage`: prints the tokens of a session by purpose and model (LASH-105), and their cost
//! where a price is known.

use crate::terminal_text::first_line;
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
};
use turnery_agent::{CostReport, UsageReport, UsageRow, millionths_to_units};
use turnery_engine::{Price, SessionId, Usage};
use turnery_store::Store;

/// Longest name of a model. Unit: characters.
const MODEL_WIDTH: usize = 40;

/// Output of `--json`.
#[derive(Serialize)]
struct UsageJson<'a> {
    rows: Vec<PricedRow<'a>>,
    /// Total cost; `null` unless the price of every model is known.
    cost: Option<f64>,
}

#[derive(Serialize)]
struct PricedRow<'a> {
    #[serde(flatten)]
    row: &'a UsageRow,
    /// Cost of the row; `null` if the model's price is unknown.
    cost: Option<f64>,
}

pub(super) async fn print_usage(
    store: &dyn Store,
    id: &SessionId,
    price: impl Fn(&str) -> Option<Price>,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    store.info(id).await?;
    let loops = store.loops(id, 0).await?;
    super::damage::warn_of_damage(store, id).await?;
    let report = UsageReport::from_records(&loops);
    let bill = CostReport::new(&report, price);
    match json {
        true => {
            serde_json::to_writer_pretty(&mut *out, &to_json(&bill))?;
            writeln!(out)?;
        }
        false => write_table(&bill, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(bill: &CostReport) -> UsageJson<'_> {
    let rows = bill.rows().iter();
    UsageJson {
        rows: rows
            .map(|(row, cost)| PricedRow {
                row,
                cost: cost.map(millionths_to_units),
            })
            .collect(),
        cost: bill.total_cost().map(millionths_to_units),
    }
}

fn write_table(bill: &CostReport, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<10}  {:>9}  {:>9}  {:>10}  {:>11}  {:>9}  {:>10}  model",
        "for", "input", "output", "cache read", "cache write", "total", "cost"
    )?;
    for (row, cost) in bill.rows() {
        write_row(
            &row.source,
            row.usage,
            *cost,
            &first_line(&row.model, MODEL_WIDTH),
            out,
        )?;
    }
    write_row("all", bill.total_usage(), bill.total_cost(), "", out)
}

fn write_row(
    what: &str,
    usage: Usage,
    cost: Option<u64>,
    model: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let cost = cost.map_or_else(
        || "unknown".to_owned(),
        |cost| format!("{:.6}", millionths_to_units(cost)),
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

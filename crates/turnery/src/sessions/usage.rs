//! `turnery sessions usage`: what a session has spent, for what and with which model (LASH-105).

use crate::show::line;
use std::{
    io::{self, Write},
    process::ExitCode,
};
use turnery_agent::UsageReport;
use turnery_engine::{SessionId, Usage};
use turnery_store::Store;

/// Longest name of a model. Unit: characters.
const MODEL: usize = 40;

pub(super) async fn usage(
    store: &dyn Store,
    id: &SessionId,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    store.info(id).await?;
    let loops = store.loops(id, 0).await?;
    let report = UsageReport::of(loops.iter().map(|record| &**record));
    match json {
        true => {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            writeln!(out)?;
        }
        false => table(&report, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &UsageReport, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<10}  {:>9}  {:>9}  {:>10}  {:>11}  {:>9}  model",
        "for", "input", "output", "cache read", "cache write", "total"
    )?;
    for row in report.rows() {
        tokens(&row.source, row.usage, &line(&row.model, MODEL), out)?;
    }
    tokens("all", report.total(), "", out)
}

fn tokens(what: &str, usage: Usage, model: &str, out: &mut impl Write) -> io::Result<()> {
    let row = format!(
        "{what:<10}  {:>9}  {:>9}  {:>10}  {:>11}  {:>9}  {model}",
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.total(),
    );
    writeln!(out, "{}", row.trim_end())
}

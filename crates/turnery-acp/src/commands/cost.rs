//! `/cost`: the tokens that the session has spent, for what and with which model (LASH-105).

use super::{Command, Reply, Typed};
use crate::fault::Fault;
use std::fmt::Write as _;
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
    let mut text = "| For | Model | In | Cache read | Cache write | Out |\n\
                    |---|---|--:|--:|--:|--:|\n"
        .to_owned();
    for row in report.rows() {
        line(
            &mut text,
            &row.source,
            &format!("`{}`", row.model),
            row.usage,
        );
    }
    line(&mut text, "**all**", "", report.total());
    Ok(Reply::Said(text))
}

fn line(text: &mut String, source: &str, model: &str, usage: Usage) {
    let _ = writeln!(
        text,
        "| {source} | {model} | {} | {} | {} | {} |",
        usage.input, usage.cache_read, usage.cache_write, usage.output
    );
}

//! `/branch [LOOP PROMPT]`: goes on from an earlier point with another prompt (LOOP-20); alone it shows
//! the points that there are.

use super::{Command, Reply, Typed};
use crate::{fault::Fault, methods::refused};
use std::sync::Arc;
use turnery_agent::PromptOptions;
use turnery_engine::{Content, LoopId, LoopRecord, Message};

pub(super) const COMMAND: Command = Command {
    name: "branch",
    about: "Show the points to go back to, or go on from one with another prompt",
    hint: Some("[POINT PROMPT]"),
    needs_idle: true,
    run: |typed| Box::pin(run(typed)),
};

/// Queued at the first poll, as any prompt is, so that a cancel on the next line finds it (CANCEL-9).
async fn run(typed: Typed) -> Result<Reply, Fault> {
    let session = typed.session;
    let (point, text) = typed
        .args
        .split_once(char::is_whitespace)
        .unwrap_or((&typed.args, ""));
    if point.is_empty() {
        let loops = session.records().await;
        let loops = loops.map_err(|error| Fault::store(&error))?;
        return Ok(Reply::Said(points(&loops)));
    }
    let text = text.trim();
    let mut input = typed.rest;
    if !text.is_empty() {
        input.insert(0, Content::text(text));
    }
    if input.is_empty() {
        return Ok(Reply::Said(format!(
            "Say what to do from there: `/branch {point} PROMPT`."
        )));
    }
    let from = LoopId::from(format!("{}.{point}", session.id()));
    let options = PromptOptions::cancelled_by(typed.scope.cancel);
    match session.branch(from, input, options) {
        Ok(ticket) => Ok(Reply::Runs(ticket, |_| None)),
        Err(error) => Err(refused(&session, error)),
    }
}

/// A loop's id without its session, which all have in common.
fn short(id: &LoopId) -> &str {
    id.as_str().split_once('.').map_or("", |(_, rest)| rest)
}

fn points(loops: &[Arc<LoopRecord>]) -> String {
    let rows: String = loops
        .iter()
        .filter(|record| record.stands())
        .map(|record| format!("- `{}`: {}\n", short(&record.loop_id), prompt(record)))
        .collect();
    match rows.is_empty() {
        true => "There is nothing to go back to yet.".to_owned(),
        false => format!("After each of these, another prompt may follow:\n\n{rows}"),
    }
}

/// The longest line that is shown of a prompt. Unit: characters.
const WIDTH: usize = 80;

/// What was asked in a loop, on one line.
fn prompt(record: &LoopRecord) -> String {
    let asked = record.messages.iter().find_map(|it| match &it.message {
        Message::User { .. } => Some(it.message.text()),
        Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
    });
    let asked = asked.unwrap_or_else(|| "(nothing was said)".to_owned());
    let line = asked.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

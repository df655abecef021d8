//! `/branch [LOOP PROMPT]`: continues from an earlier point with another prompt (LOOP-20); without arguments
//! it lists the points.

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    methods::prompt_start::start_error,
    server::rpc_error::RpcError,
};
use std::sync::Arc;
use turnery_agent::PromptOptions;
use turnery_engine::{Content, LoopId, LoopRecord, Message};

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "branch",
    description: "Show the points to go back to, or continue from one with another prompt",
    hint: Some("[POINT PROMPT]"),
    needs_idle: true,
    run: |call| Box::pin(run(call)),
};

/// Queues its prompt at the first poll, so that a cancel on the next line finds it (CANCEL-9).
async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    let session = call.session;
    let (point, text) = call
        .args
        .split_once(char::is_whitespace)
        .unwrap_or((&call.args, ""));
    if point.is_empty() {
        let loops = session.records().await;
        let loops = loops.map_err(|error| RpcError::from_store(&error))?;
        return Ok(CommandOutcome::Text(render_points(&loops)));
    }
    let text = text.trim();
    let mut input = call.attachments;
    if !text.is_empty() {
        input.insert(0, Content::text(text));
    }
    if input.is_empty() {
        return Ok(CommandOutcome::Text(format!(
            "Add a prompt: `/branch {point} PROMPT`."
        )));
    }
    let from = LoopId::from(format!("{}.{point}", session.id()));
    let options = PromptOptions::cancelled_by(call.scope.cancel);
    match session.branch(from, input, options) {
        Ok(ticket) => Ok(CommandOutcome::Prompt(ticket, |_| None)),
        Err(error) => Err(start_error(&session, error)),
    }
}

/// Returns a loop id without the session id that all have in common.
fn short_id(id: &LoopId) -> &str {
    id.as_str().split_once('.').map_or("", |(_, rest)| rest)
}

fn render_points(loops: &[Arc<LoopRecord>]) -> String {
    let rows: String = loops
        .iter()
        .filter(|record| record.is_in_conversation())
        .map(|record| {
            format!(
                "- `{}`: {}\n",
                short_id(&record.loop_id),
                prompt_line(record)
            )
        })
        .collect();
    match rows.is_empty() {
        true => "There is nothing to go back to yet.".to_owned(),
        false => format!("You can continue after each of these with another prompt:\n\n{rows}"),
    }
}

/// Length to which prompts are cut. Unit: characters.
const PROMPT_LINE_LIMIT: usize = 80;

/// Returns the prompt of a loop on one line.
fn prompt_line(record: &LoopRecord) -> String {
    let prompt = record.messages.iter().find_map(|it| match &it.message {
        Message::User { .. } => Some(it.message.text()),
        Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
    });
    let prompt = prompt.unwrap_or_else(|| "(no text)".to_owned());
    let line = prompt.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(PROMPT_LINE_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

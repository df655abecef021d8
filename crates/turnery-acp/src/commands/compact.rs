//! `/compact`: summarises older messages now, before the context is full (LOOP-21).

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    methods::prompt_start::start_error,
    server::rpc_error::RpcError,
};
use turnery_agent::{PromptOptions, PromptResult};
use turnery_engine::EventKind;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "compact",
    description: "Summarise older messages",
    hint: None,
    needs_idle: true,
    run: |call| Box::pin(run(call)),
};

async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    let options = PromptOptions::cancelled_by(call.scope.cancel);
    match call.session.compact(options) {
        Ok(ticket) => Ok(CommandOutcome::Prompt(ticket, describe_result)),
        Err(error) => Err(start_error(&call.session, error)),
    }
}

fn describe_result(result: &PromptResult) -> Option<String> {
    let events = result.loops.iter().flat_map(|record| &record.events);
    let ended = events.rev().find_map(|event| {
        if let EventKind::CompactionEnded { block, failure, .. } = &event.kind {
            return Some((block, failure));
        }
        None
    })?;
    Some(match ended {
        (Some(_), _) => "Older messages were summarised.".to_owned(),
        (None, Some(why)) => format!("Nothing was summarised: {}.", why.trim_end_matches('.')),
        (None, None) => "Nothing was summarised.".to_owned(),
    })
}

//! `/rerun`: runs the last prompt again from where it began (LOOP-19).

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    methods::prompt_start::start_error,
    server::rpc_error::RpcError,
};
use turnery_agent::PromptOptions;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "rerun",
    description: "Run the last prompt again",
    hint: None,
    needs_idle: true,
    run: |call| Box::pin(run(call)),
};

async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    let options = PromptOptions::cancelled_by(call.scope.cancel);
    match call.session.rerun(None, options) {
        Ok(ticket) => Ok(CommandOutcome::Prompt(ticket, |_| None)),
        Err(error) => Err(start_error(&call.session, error)),
    }
}

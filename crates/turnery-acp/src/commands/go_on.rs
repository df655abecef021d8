//! `/continue`: lets the model go on where the last prompt stopped (LOOP-18), for instance after a crash.

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    methods::prompt_start::start_error,
    server::rpc_error::RpcError,
};
use turnery_agent::PromptOptions;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "continue",
    description: "Let the model go on where the last prompt stopped",
    hint: None,
    needs_idle: true,
    run: |call| Box::pin(run(call)),
};

async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    let options = PromptOptions::cancelled_by(call.scope.cancel);
    match call.session.continue_loop(options) {
        Ok(ticket) => Ok(CommandOutcome::Prompt(ticket, |_| None)),
        Err(error) => Err(start_error(&call.session, error)),
    }
}

//! `/model [NAME]`: shows the current model and the others, or selects another.

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    server::{rpc_error::RpcError, session_updates},
    transport::writer::send_line,
};
use turnery_agent::SetOptionError;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "model",
    description: "Show the models, or choose one",
    hint: Some("[NAME]"),
    needs_idle: false,
    run: |call| Box::pin(run(call)),
};

async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    if call.args.is_empty() {
        let now = call.session.options().model;
        let models = call.session.models();
        let rows = models.iter().map(|model| {
            let mark = if model.name == now.name {
                " (in use)"
            } else {
                ""
            };
            format!("- `{}`: {}{mark}\n", model.name, model.display_name)
        });
        return Ok(CommandOutcome::Text(rows.collect()));
    }
    match call.session.set_model(&call.args).await {
        Ok(()) => {}
        Err(SetOptionError::Model(error)) => return Ok(CommandOutcome::Text(format!("{error}."))),
        Err(error @ (SetOptionError::Store(_) | SetOptionError::Closed)) => {
            return Err(error.into());
        }
    }
    let line = session_updates::encode_model_change(call.connection.version(), &call.session);
    send_line(call.connection.peer.out(), line).await;
    let model = &call.session.options().model.name;
    Ok(CommandOutcome::Text(format!("Now using `{model}`.")))
}

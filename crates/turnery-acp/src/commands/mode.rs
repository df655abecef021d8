//! `/mode [NAME]`: shows how freely the agent acts, or changes it.

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    server::{rpc_error::RpcError, session_updates},
    transport::writer::send_line,
};
use turnery_tools::Mode;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "mode",
    description: "Show the modes, or choose one",
    hint: Some("[NAME]"),
    needs_idle: false,
    run: |call| Box::pin(run(call)),
};

async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    let session = &call.session;
    let Some(mode) = Mode::parse(&call.args) else {
        let known = render_modes(session.options().mode);
        return Ok(CommandOutcome::Text(match call.args.is_empty() {
            true => known,
            false => format!("There is no mode {:?}. There are:\n\n{known}", call.args),
        }));
    };
    session.set_mode(mode).await?;
    let lines = session_updates::encode_mode_change(call.connection.version(), session);
    send_line(call.connection.peer.out(), lines).await;
    let about = mode.description();
    Ok(CommandOutcome::Text(format!(
        "Mode `{}`. {about}.",
        mode.as_str()
    )))
}

fn render_modes(now: Mode) -> String {
    let rows = Mode::ALL.into_iter().map(|mode| {
        let mark = if mode == now { " (in use)" } else { "" };
        format!("- `{}`: {}{mark}\n", mode.as_str(), mode.description())
    });
    rows.collect()
}

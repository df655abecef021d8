//! `/mode [NAME]`: how freely the agent acts; or change it.

use super::{Command, Reply, Typed};
use crate::{fault::Fault, serve::send};
use turnery_tools::Mode;

pub(super) const COMMAND: Command = Command {
    name: "mode",
    about: "Show the modes, or choose one",
    hint: Some("[NAME]"),
    needs_idle: false,
    run: |typed| Box::pin(run(typed)),
};

async fn run(typed: Typed) -> Result<Reply, Fault> {
    let session = &typed.session;
    let chosen = Mode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == typed.args);
    let Some(mode) = chosen else {
        let known = rows(session.options().mode);
        return Ok(Reply::Said(match typed.args.is_empty() {
            true => known,
            false => format!("There is no mode {:?}. There are:\n\n{known}", typed.args),
        }));
    };
    session.set_mode(mode).await?;
    let lines = typed.connection.dialect().mode_changed(session);
    send(typed.connection.peer.out(), lines).await;
    let about = mode.description();
    Ok(Reply::Said(format!("Mode `{}`. {about}.", mode.as_str())))
}

fn rows(now: Mode) -> String {
    let rows = Mode::ALL.into_iter().map(|mode| {
        let mark = if mode == now { " (in use)" } else { "" };
        format!("- `{}`: {}{mark}\n", mode.as_str(), mode.description())
    });
    rows.collect()
}

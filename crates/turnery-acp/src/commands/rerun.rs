//! `/rerun`: the last prompt again, from where it began (LOOP-19).

use super::{Command, Reply, Typed};
use crate::{fault::Fault, methods::refused};
use turnery_agent::PromptOptions;

pub(super) const COMMAND: Command = Command {
    name: "rerun",
    about: "Run the last prompt again",
    hint: None,
    needs_idle: true,
    run: |typed| Box::pin(run(typed)),
};

async fn run(typed: Typed) -> Result<Reply, Fault> {
    let options = PromptOptions::cancelled_by(typed.scope.cancel);
    match typed.session.rerun(None, options) {
        Ok(ticket) => Ok(Reply::Runs(ticket, |_| None)),
        Err(error) => Err(refused(&typed.session, error)),
    }
}

//! `/model [NAME]`: which model answers, and which others there are; or choose another.

use super::{Command, Reply, Typed};
use crate::{fault::Fault, serve::send};
use turnery_agent::SetError;

pub(super) const COMMAND: Command = Command {
    name: "model",
    about: "Show the models, or choose one",
    hint: Some("[NAME]"),
    needs_idle: false,
    run: |typed| Box::pin(run(typed)),
};

async fn run(typed: Typed) -> Result<Reply, Fault> {
    if typed.args.is_empty() {
        let now = typed.session.options();
        let rows = now.models.iter().map(|model| {
            let mark = if model.name.to_string() == now.model {
                " (in use)"
            } else {
                ""
            };
            format!("- `{}`: {}{mark}\n", model.name, model.display_name)
        });
        return Ok(Reply::Said(rows.collect()));
    }
    match typed.session.set_model(&typed.args).await {
        Ok(()) => {}
        Err(SetError::Model(error)) => return Ok(Reply::Said(format!("{error}."))),
        Err(error @ (SetError::Store(_) | SetError::Closed)) => return Err(error.into()),
    }
    let line = typed.connection.dialect().model_changed(&typed.session);
    send(typed.connection.peer.out(), line).await;
    let model = typed.session.options().model;
    Ok(Reply::Said(format!("`{model}` answers from now on.")))
}

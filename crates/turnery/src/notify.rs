//! Runs the user's `notify` command for each notification that the model sends.

use crate::user_command::CommandPlace;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use std::{path::Path, sync::Arc, time::Duration};
use turnery_agent::{CommittedEffect, EffectHandler, NOTIFICATION_TYPE};
use turnery_engine::SessionId;

/// Time limit of the command, within that of a delivery.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The `notify` command, for the sessions of one folder.
pub(crate) struct NotifyCommand {
    words: Vec<String>,
    place: CommandPlace,
}

/// Input of the command: one JSON object on stdin, on one line.
#[derive(Serialize)]
struct NotifyInput<'a> {
    /// Key of the notification: the same if the command is run again for it, because it failed or turnery was killed.
    key: &'a str,
    /// Id of the session.
    session_id: &'a SessionId,
    title: &'a str,
    message: &'a str,
    /// Folder of the session, in which the command runs.
    cwd: &'a Path,
}

impl NotifyCommand {
    pub(crate) fn handler(words: Vec<String>, place: CommandPlace) -> Arc<dyn EffectHandler> {
        Arc::new(Self { words, place })
    }

    async fn run(&self, effect: CommittedEffect) -> Result<(), String> {
        let text = |name| effect.effect.get(name).and_then(Value::as_str);
        let (Some(NOTIFICATION_TYPE), Some(title), Some(message)) =
            (text("type"), text("title"), text("message"))
        else {
            return Err("this is no notification".to_owned());
        };
        let input = NotifyInput {
            key: &effect.key,
            session_id: &effect.session_id,
            title,
            message,
            cwd: self.place.cwd(),
        };
        let input = serde_json::to_vec(&input).map_err(|error| error.to_string())?;
        let words = [&*self.words, &[as_argument(message)]].concat();
        let output = self.place.run(&words, input, TIMEOUT).await?;
        output.failure().map_or(Ok(()), Err)
    }
}

impl EffectHandler for NotifyCommand {
    fn name(&self) -> &str {
        "the notify command"
    }

    fn deliver(&self, effect: CommittedEffect) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.run(effect))
    }
}

/// Returns the message as an argument that no program takes for an option or for the name of a file to read.
fn as_argument(message: &str) -> String {
    match message.starts_with(['-', '+', '@']) {
        true => format!(" {message}"),
        false => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_no_option() {
        for (message, argument) in [
            ("All 12 tests pass - at last", "All 12 tests pass - at last"),
            ("--exec=rm", " --exec=rm"),
            ("@/home/ann/.ssh/id_rsa", " @/home/ann/.ssh/id_rsa"),
        ] {
            assert_eq!(as_argument(message), argument);
        }
    }
}

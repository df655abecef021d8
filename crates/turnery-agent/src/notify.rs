//! Implements the `notify` tool, which sends the user a short message outside the conversation. The message is an
//! effect of the call: the host delivers it once the loop is stored.

use crate::{
    session::{Budget, MAX_NOTIFICATIONS, ParentSession},
    sub_agent::execution_error,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use turnery_engine::{CallDetail, ToolEnvelope, ToolError, ToolErrorKind};
use turnery_tools::{EffectKind, EffectPolicy, EmitLimits, ToolCx, TypedTool, Workspace};

/// Type of the `emit` effect of a notification. Its other fields are `title` and `message`.
pub const NOTIFICATION_TYPE: &str = "turnery.notification";

/// Maximum length of a message. Unit: characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// Maximum length of a title. Unit: characters.
const MAX_TITLE_CHARS: usize = 80;

/// Title of a message without one.
const DEFAULT_TITLE: &str = "turnery";

/// Returns a policy that keeps notifications and nothing else.
#[must_use]
pub fn notification_policy() -> EffectPolicy {
    EffectPolicy {
        emit: EmitLimits {
            types: Some([NOTIFICATION_TYPE.to_owned()].into()),
            ..EmitLimits::default()
        },
        ..EffectPolicy::allow_list([EffectKind::Emit])
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "a doc comment would become part of the schema that the model receives"
)]
pub struct NotifyArgs {
    /// One or two sentences, at most 500 characters.
    message: String,
    /// A few words, at most 80 characters.
    title: Option<String>,
}

/// The `notify` tool. Requests no permission, and works only inside a session. Offer it only in sessions whose
/// [`EffectHandler`](crate::EffectHandler) delivers effects of [`NOTIFICATION_TYPE`].
#[derive(Debug, Default)]
pub struct NotifyTool;

impl TypedTool for NotifyTool {
    type Args = NotifyArgs;
    const NAME: &'static str = "notify";
    const TITLE: &'static str = "Notify the user";
    const USES_SESSION: bool = true;

    fn description(&self) -> Cow<'static, str> {
        "Send the user a short message where they see it without looking here, for instance that a long \
         job is done or needs them. It arrives once this prompt has ended. Use it rarely, and never to \
         answer."
            .into()
    }

    fn describe(&self, args: &NotifyArgs, _workspace: &Workspace) -> CallDetail {
        let message = plain_text(&args.message);
        let start: String = message.chars().take(MAX_TITLE_CHARS).collect();
        CallDetail {
            title: format!("Notify: {start}"),
            kind: Self::KIND,
            ..CallDetail::default()
        }
    }

    async fn run(&self, args: NotifyArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let message = checked_text(&args.message, "message", MAX_MESSAGE_CHARS)?;
        let title = match &args.title {
            Some(title) => checked_text(title, "title", MAX_TITLE_CHARS)?,
            None => DEFAULT_TITLE.to_owned(),
        };
        let session = ParentSession::of(cx);
        let budget = session.as_ref().and_then(|it| it.env.budget.as_ref());
        let is_left = budget.map(Budget::take_notification).ok_or_else(|| {
            execution_error("a message to the user needs a session to belong to".to_owned())
        })?;
        if !is_left {
            return Err(execution_error(format!(
                "{MAX_NOTIFICATIONS} messages were sent in this prompt, and no more are: answer instead"
            )));
        }
        Ok(ToolEnvelope {
            effects: vec![json!({
                "kind": EffectKind::Emit,
                "type": NOTIFICATION_TYPE,
                "title": title,
                "message": message,
            })],
            ..ToolEnvelope::text("The user gets the message once this prompt has ended.")
        })
    }
}

/// Returns the text on one line, without control characters, which terminals obey.
fn plain_text(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

fn checked_text(text: &str, name: &str, most: usize) -> Result<String, ToolError> {
    let text = plain_text(text);
    match text.chars().count() {
        0 => Err(ToolError::new(
            ToolErrorKind::Validation,
            format!("{name} is empty"),
        )),
        length if length > most => Err(ToolError::new(
            ToolErrorKind::Validation,
            format!("{name} has {length} characters: shorten it to {most}"),
        )),
        _ => Ok(text),
    }
}

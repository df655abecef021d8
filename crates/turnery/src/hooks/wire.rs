//! JSON that a hook's command reads on stdin and writes to stdout.

use crate::{
    config::HookPoint,
    user_command::{CommandOutput, MAX_QUOTED_CHARS},
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::Path, sync::Arc};
use turnery_engine::{
    CallId, Content, ContextSize, HookRequest, LlmMessage, LoopId, LoopRecord, Message, SessionId,
    Usage,
};

/// Exit code for a stop, with the reason on stderr.
const EXIT_STOP: i32 = 2;

/// Input of a hook's command: one JSON object on stdin, on one line.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct HookInput<'a> {
    /// Id of the session; `turnery sessions show ID --json` prints what is stored of it.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(super) session_id: &'a SessionId,
    /// Id of the loop: one run of the agent for one prompt.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(super) loop_id: &'a LoopId,
    /// The session's folder, in which the command runs.
    pub(super) cwd: &'a Path,
    /// Event that the hook is for.
    #[serde(flatten)]
    pub(super) event: HookEvent<'a>,
}

/// Event, named by the `on` of the configuration, with its details.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "on", rename_all = "snake_case")]
pub(super) enum HookEvent<'a> {
    /// A prompt is about to begin.
    BeforeLoop {
        /// Text of the prompt; empty if the loop continues without a new prompt.
        text: String,
    },
    /// Text is about to be sent to the model.
    Input {
        /// The whole text.
        text: &'a str,
    },
    /// The model is about to be called.
    BeforeTurn {
        /// Number of the turn in its loop, from 0.
        turn: u32,
    },
    /// The model has answered, and the tools that it called have run.
    AfterTurn {
        /// Number of the turn in its loop, from 0.
        turn: u32,
        /// Tokens of the turn, if the provider reported them.
        usage: Option<Usage>,
    },
    /// A tool call is about to run.
    BeforeTool {
        /// Id of the call.
        #[cfg_attr(test, schemars(with = "String"))]
        call_id: &'a CallId,
        /// Name of the tool.
        tool: &'a str,
        /// Arguments of the call.
        args: &'a Value,
    },
    /// A tool call has ended.
    AfterTool {
        /// Id of the call.
        #[cfg_attr(test, schemars(with = "String"))]
        call_id: &'a CallId,
        /// Name of the tool.
        tool: &'a str,
        /// True if the call failed.
        failed: bool,
        /// Result or error that the model receives.
        text: String,
    },
    /// Older messages are about to be summarised.
    BeforeCompaction {
        /// Size of the next request without a summary.
        before: ContextSize,
    },
    /// Older messages were summarised.
    AfterCompaction {
        /// Size of the next request without the summary.
        before: ContextSize,
        /// Size of the next request with the summary.
        after: ContextSize,
    },
    /// The loop has failed, for example because the model could not be reached.
    OnError {
        /// Message of the error.
        message: &'a str,
    },
    /// The model has finished, and the loop is about to end.
    Checkpoint {
        /// Text of its last message.
        text: String,
    },
    /// A loop has ended and is stored.
    AfterLoop {
        /// `completed`, `rejected` or `aborted`.
        status: Value,
        /// Reason for the end, as in `turnery sessions show ID --json`.
        outcome: Value,
        /// Text of the model's last message.
        text: String,
        /// Tokens of all turns.
        usage: Usage,
    },
}

/// Output of a hook's command that exits with code 0: one JSON object on stdout, or nothing, which means `go`. Exit
/// code 2 means `stop`, with the reason on stderr. Any other exit code is a failure: a stop if the agent waits for
/// the hook, a warning if the event is already over.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct HookResponse {
    /// What the agent is to do.
    pub(super) verdict: HookAction,
    /// Reason of a stop, text of a warning, or text for the model.
    #[serde(default)]
    pub(super) text: Option<String>,
}

/// Instruction of a hook to the agent. One that does not suit the event means `go`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum HookAction {
    /// Continue.
    Go,
    /// Continue with a warning: for the model after `input`, in the log after `after_loop`.
    Warn,
    /// Stop what the event announces.
    Stop,
    /// Continue the loop with `text` as input; only for `checkpoint`.
    Inject,
}

impl HookEvent<'_> {
    /// Returns the name of the tool concerned.
    pub(super) fn tool_name(&self) -> Option<&str> {
        match self {
            Self::BeforeTool { tool, .. } | Self::AfterTool { tool, .. } => Some(tool),
            Self::BeforeLoop { .. }
            | Self::Input { .. }
            | Self::BeforeTurn { .. }
            | Self::AfterTurn { .. }
            | Self::BeforeCompaction { .. }
            | Self::AfterCompaction { .. }
            | Self::OnError { .. }
            | Self::Checkpoint { .. }
            | Self::AfterLoop { .. } => None,
        }
    }
}

/// Converts a request of the agent to its hook point and event.
pub(super) fn hook_event<'a>(
    hook: &'a HookRequest,
    messages: &[Arc<LlmMessage>],
) -> (HookPoint, HookEvent<'a>) {
    match hook {
        HookRequest::Input { text } => (HookPoint::Input, HookEvent::Input { text }),
        HookRequest::BeforeTurn { turn_index } => {
            let turn = *turn_index;
            (HookPoint::BeforeTurn, HookEvent::BeforeTurn { turn })
        }
        HookRequest::AfterTurn { turn_index, usage } => (
            HookPoint::AfterTurn,
            HookEvent::AfterTurn {
                turn: *turn_index,
                usage: *usage,
            },
        ),
        HookRequest::BeforeTool(call) => (
            HookPoint::BeforeTool,
            HookEvent::BeforeTool {
                call_id: &call.call_id,
                tool: &call.name,
                args: &call.args,
            },
        ),
        HookRequest::AfterTool {
            call_id,
            tool_name,
            envelope,
        } => (
            HookPoint::AfterTool,
            HookEvent::AfterTool {
                call_id,
                tool: tool_name,
                failed: envelope.result.is_err(),
                text: match &envelope.result {
                    Ok(content) => content_text(content),
                    Err(failure) => failure.message.clone(),
                },
            },
        ),
        HookRequest::BeforeCompaction(size) => {
            let before = *size;
            (
                HookPoint::BeforeCompaction,
                HookEvent::BeforeCompaction { before },
            )
        }
        HookRequest::AfterCompaction { before, after } => (
            HookPoint::AfterCompaction,
            HookEvent::AfterCompaction {
                before: *before,
                after: *after,
            },
        ),
        HookRequest::OnError { message } => (HookPoint::OnError, HookEvent::OnError { message }),
        HookRequest::Checkpoint => {
            let text = last_assistant_text(messages);
            (HookPoint::Checkpoint, HookEvent::Checkpoint { text })
        }
    }
}

/// Returns the event for a finished loop.
pub(super) fn after_loop_event<'a>(record: &LoopRecord) -> HookEvent<'a> {
    HookEvent::AfterLoop {
        status: serde_json::json!(record.status),
        outcome: serde_json::json!(record.outcome),
        text: last_assistant_text(&record.messages),
        usage: record.usage,
    }
}

/// Returns all text in `content`.
pub(super) fn content_text(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}

fn last_assistant_text(messages: &[Arc<LlmMessage>]) -> String {
    let said = |message: &Arc<LlmMessage>| match &message.message {
        Message::Assistant { content, .. } => Some(content_text(content)),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    };
    messages.iter().rev().find_map(said).unwrap_or_default()
}

/// Parses the response of a command that has exited.
pub(super) fn parse_response(ended: &CommandOutput) -> Result<HookResponse, String> {
    if ended.code == Some(EXIT_STOP) {
        return Ok(HookResponse {
            verdict: HookAction::Stop,
            text: ended.reason(),
        });
    }
    if let Some(failure) = ended.failure() {
        return Err(failure);
    }
    match ended.stdout.trim_ascii() {
        [] => Ok(HookResponse {
            verdict: HookAction::Go,
            text: None,
        }),
        said => serde_json::from_slice(said).map_err(|error| {
            let said = String::from_utf8_lossy(said);
            format!(
                "its answer is none ({error}): {}",
                crate::terminal_text::first_line(&said, MAX_QUOTED_CHARS)
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::tests::assert_schema_file;

    /// Input and output of the commands of `[[hooks]]` in turnery's config.toml.
    #[derive(JsonSchema)]
    #[schemars(title = "turnery hooks")]
    #[expect(dead_code, reason = "described, not made")]
    struct HookProtocol<'a> {
        /// Read from stdin.
        stdin: HookInput<'a>,
        /// Written to stdout.
        stdout: HookResponse,
    }

    #[test]
    fn hooks_schema_file_is_up_to_date() {
        let schema = schemars::schema_for!(HookProtocol<'_>);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        assert_schema_file("hooks.json", &text);
    }

    fn parse(code: Option<i32>, stdout: &str, stderr: &str) -> Result<HookResponse, String> {
        parse_response(&CommandOutput {
            code,
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }

    #[test]
    fn response_is_json_or_silence_or_exit_code_2() {
        let verdict = |verdict, text: Option<&str>| {
            let text = text.map(str::to_owned);
            Ok(HookResponse { verdict, text })
        };
        assert_eq!(
            parse(Some(0), " \n", "noise"),
            verdict(HookAction::Go, None)
        );
        let warned = "{\"verdict\": \"warn\", \"text\": \"careful\"}\n";
        assert_eq!(
            parse(Some(0), warned, ""),
            verdict(HookAction::Warn, Some("careful"))
        );
        assert_eq!(
            parse(Some(2), "ignored", "not on a Friday\n"),
            verdict(HookAction::Stop, Some("not on a Friday"))
        );
        assert_eq!(parse(Some(2), "", ""), verdict(HookAction::Stop, None));
    }

    #[test]
    fn any_other_output_is_a_failure() {
        assert_eq!(
            parse(Some(1), "{\"verdict\": \"go\"}", "no such file\n"),
            Err("exit code 1: no such file".to_owned())
        );
        assert_eq!(
            parse(None, "", ""),
            Err("it was killed by a signal".to_owned())
        );
        for nonsense in [
            "ok",
            "[]",
            "{}",
            "{\"verdict\": \"maybe\"}",
            "{\"verdict\": \"go\", \"txt\": \"\"}",
        ] {
            let failed = parse(Some(0), nonsense, "").unwrap_err();
            assert!(failed.starts_with("its answer is none ("), "{failed}");
        }
    }
}

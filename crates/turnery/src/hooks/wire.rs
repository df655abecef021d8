//! JSON that a hook's command reads on stdin and writes to stdout.

use super::process::Ended;
use crate::config::HookPoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::Path, sync::Arc};
use turnery_engine::{
    CallId, Content, HookRequest, LlmMessage, LoopId, LoopRecord, Message, SessionId, Usage,
};

/// Exit code for a stop, with the reason on stderr.
const EXIT_STOP: i32 = 2;
/// Longest quote of a command's output in messages. Unit: characters.
const MAX_QUOTED_CHARS: usize = 400;

/// What a hook's command reads: one JSON object on stdin, on one line.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Asked<'a> {
    /// The session; `turnery sessions show ID --json` tells what is stored of it.
    #[schemars(with = "String")]
    pub(super) session_id: &'a SessionId,
    /// The loop: one run of the agent for one prompt.
    #[schemars(with = "String")]
    pub(super) loop_id: &'a LoopId,
    /// The session's folder, in which the command runs.
    pub(super) cwd: &'a Path,
    /// What happens.
    #[serde(flatten)]
    pub(super) moment: Moment<'a>,
}

/// What happens: the `on` of the configuration, and what belongs to it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "on", rename_all = "snake_case")]
pub(super) enum Moment<'a> {
    /// A prompt wants to begin.
    BeforeLoop {
        /// What was asked; empty where nothing new is said.
        text: String,
    },
    /// Something is about to be said to the model.
    Input {
        /// All of it.
        text: &'a str,
    },
    /// The model is about to be called.
    BeforeTurn {
        /// The number of the turn in its loop, from 0.
        turn: u32,
    },
    /// The model was called, and the tools that it asked for.
    AfterTurn {
        /// The number of the turn in its loop, from 0.
        turn: u32,
        /// Tokens of the turn, if the provider said so.
        usage: Option<Tokens>,
    },
    /// A call of a tool is about to run.
    BeforeTool {
        /// The call.
        #[schemars(with = "String")]
        call_id: &'a CallId,
        /// The tool.
        tool: &'a str,
        /// Its arguments.
        args: &'a Value,
    },
    /// A call of a tool is over.
    AfterTool {
        /// The call.
        #[schemars(with = "String")]
        call_id: &'a CallId,
        /// The tool.
        tool: &'a str,
        /// Whether it failed.
        failed: bool,
        /// What the model is told of it.
        text: String,
    },
    /// Older messages are about to be summarised.
    BeforeCompaction {
        /// What the next request would hold.
        before: Size,
    },
    /// Older messages were summarised.
    AfterCompaction {
        /// What the next request would have held.
        before: Size,
        /// What it holds now.
        after: Size,
    },
    /// The model's answer ended in an error.
    OnError {
        /// What it says.
        message: &'a str,
    },
    /// The model has said all.
    Checkpoint {
        /// Its last words.
        text: String,
    },
    /// A loop is over and stored.
    AfterLoop {
        /// `completed`, `rejected` or `aborted`.
        status: Value,
        /// Why it ended, as in `turnery sessions show ID --json`.
        outcome: Value,
        /// The model's last words.
        text: String,
        /// Tokens of all its turns.
        usage: Tokens,
    },
}

/// Tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Tokens {
    /// Not from a cache.
    input: u64,
    /// Reasoning included.
    output: u64,
    /// The part of `output` spent on reasoning.
    reasoning: u64,
    /// Read from a cache.
    cache_read: u64,
    /// Written to a cache.
    cache_write: u64,
}

/// How much there is to read for the model.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Size {
    /// About so many tokens.
    tokens: u64,
    /// So many messages.
    messages: u64,
}

/// What a hook's command may write to stdout: one JSON object, or nothing, which means go. Exit code
/// 0. Exit code 2 says stop, with the reason on stderr. Any other is a failure: a stop where something
/// waits for the answer, a notice where it is over already.
#[derive(Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// What is to become of it.
    pub(super) verdict: Word,
    /// The reason, the warning, or what the model is to be told.
    #[serde(default)]
    pub(super) text: Option<String>,
}

/// What is to become of it. Where a word makes no sense, it means go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// Go on.
    Go,
    /// Go on, and warn: the model after an `input`.
    Warn,
    /// Do not.
    Stop,
    /// Go on working, with this text (`checkpoint`).
    Inject,
}

impl Moment<'_> {
    /// Returns the name of the tool concerned.
    pub(super) fn tool(&self) -> Option<&str> {
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

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            reasoning: usage.reasoning,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
        }
    }
}

impl From<turnery_engine::ContextSize> for Size {
    fn from(size: turnery_engine::ContextSize) -> Self {
        Self {
            tokens: size.tokens,
            messages: size.messages,
        }
    }
}

/// Converts a request of the agent to the hook point and the event.
pub(super) fn moment<'a>(
    hook: &'a HookRequest,
    messages: &[Arc<LlmMessage>],
) -> (HookPoint, Moment<'a>) {
    match hook {
        HookRequest::Input { text } => (HookPoint::Input, Moment::Input { text }),
        HookRequest::BeforeTurn { turn_index } => {
            let turn = *turn_index;
            (HookPoint::BeforeTurn, Moment::BeforeTurn { turn })
        }
        HookRequest::AfterTurn { turn_index, usage } => (
            HookPoint::AfterTurn,
            Moment::AfterTurn {
                turn: *turn_index,
                usage: usage.map(Tokens::from),
            },
        ),
        HookRequest::BeforeTool(call) => (
            HookPoint::BeforeTool,
            Moment::BeforeTool {
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
            Moment::AfterTool {
                call_id,
                tool: tool_name,
                failed: envelope.result.is_err(),
                text: match &envelope.result {
                    Ok(content) => text(content),
                    Err(failure) => failure.message.clone(),
                },
            },
        ),
        HookRequest::BeforeCompaction(size) => {
            let before = (*size).into();
            (
                HookPoint::BeforeCompaction,
                Moment::BeforeCompaction { before },
            )
        }
        HookRequest::AfterCompaction { before, after } => (
            HookPoint::AfterCompaction,
            Moment::AfterCompaction {
                before: (*before).into(),
                after: (*after).into(),
            },
        ),
        HookRequest::OnError { message } => (HookPoint::OnError, Moment::OnError { message }),
        HookRequest::Checkpoint => {
            let text = last_assistant_text(messages);
            (HookPoint::Checkpoint, Moment::Checkpoint { text })
        }
    }
}

/// Returns the event for a finished loop.
pub(super) fn after_loop_event<'a>(record: &LoopRecord) -> Moment<'a> {
    Moment::AfterLoop {
        status: serde_json::json!(record.status),
        outcome: serde_json::json!(record.outcome),
        text: last_assistant_text(&record.messages),
        usage: record.usage.into(),
    }
}

/// Returns all text in `content`.
pub(super) fn text(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}

fn last_assistant_text(messages: &[Arc<LlmMessage>]) -> String {
    let said = |message: &Arc<LlmMessage>| match &message.message {
        Message::Assistant { content, .. } => Some(text(content)),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    };
    messages.iter().rev().find_map(said).unwrap_or_default()
}

/// Parses the response of a command that has exited.
pub(super) fn parse_response(ended: &Ended) -> Result<Answer, String> {
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let reason = Some(stderr.trim()).filter(|text| !text.is_empty());
    match ended.code {
        Some(0) => {}
        Some(EXIT_STOP) => {
            return Ok(Answer {
                verdict: Word::Stop,
                text: reason.map(str::to_owned),
            });
        }
        Some(code) => return Err(with_reason(&format!("exit code {code}"), reason)),
        None => return Err(with_reason("it was killed by a signal", reason)),
    }
    match ended.stdout.trim_ascii() {
        [] => Ok(Answer {
            verdict: Word::Go,
            text: None,
        }),
        said => serde_json::from_slice(said).map_err(|error| {
            let said = String::from_utf8_lossy(said);
            format!(
                "its answer is none ({error}): {}",
                crate::terminal_text::line(&said, MAX_QUOTED_CHARS)
            )
        }),
    }
}

fn with_reason(what: &str, why: Option<&str>) -> String {
    match why {
        Some(why) => format!(
            "{what}: {}",
            why.chars().take(MAX_QUOTED_CHARS).collect::<String>()
        ),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::PathBuf};

    /// What a command of `[[hooks]]` in turnery's config.toml reads and writes.
    #[derive(JsonSchema)]
    #[schemars(title = "turnery hooks")]
    #[expect(dead_code, reason = "described, not made")]
    struct Protocol<'a> {
        /// What it reads on stdin.
        stdin: Asked<'a>,
        /// What it may write to stdout.
        stdout: Answer,
    }

    #[test]
    fn the_schema_file_is_up_to_date() {
        let file = PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../schemas/hooks.json"
        ));
        let schema = schemars::schema_for!(Protocol<'_>);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&file).unwrap_or_default(),
            text,
            "schemas/hooks.json is out of date: run `cargo xtask schemas`"
        );
    }

    fn said(code: Option<i32>, stdout: &str, stderr: &str) -> Result<Answer, String> {
        parse_response(&Ended {
            code,
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }

    #[test]
    fn response_is_json_or_silence_or_exit_code_2() {
        let verdict = |verdict, text: Option<&str>| {
            let text = text.map(str::to_owned);
            Ok(Answer { verdict, text })
        };
        assert_eq!(said(Some(0), " \n", "noise"), verdict(Word::Go, None));
        let warned = "{\"verdict\": \"warn\", \"text\": \"careful\"}\n";
        assert_eq!(
            said(Some(0), warned, ""),
            verdict(Word::Warn, Some("careful"))
        );
        assert_eq!(
            said(Some(2), "ignored", "not on a Friday\n"),
            verdict(Word::Stop, Some("not on a Friday"))
        );
        assert_eq!(said(Some(2), "", ""), verdict(Word::Stop, None));
    }

    #[test]
    fn any_other_output_is_a_failure() {
        assert_eq!(
            said(Some(1), "{\"verdict\": \"go\"}", "no such file\n"),
            Err("exit code 1: no such file".to_owned())
        );
        assert_eq!(
            said(None, "", ""),
            Err("it was killed by a signal".to_owned())
        );
        for nonsense in [
            "ok",
            "[]",
            "{}",
            "{\"verdict\": \"maybe\"}",
            "{\"verdict\": \"go\", \"txt\": \"\"}",
        ] {
            let failed = said(Some(0), nonsense, "").unwrap_err();
            assert!(failed.starts_with("its answer is none ("), "{failed}");
        }
    }
}

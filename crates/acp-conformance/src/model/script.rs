//! Parses scripts: the fake model's responses, written as text.
//!
//! ```text
//! think "Let me look."
//! text "I read it first. "
//! call read {"path": "$CWD/a.txt"}
//! ---
//! text "word " times 200
//! slow 5
//! ---
//! hang
//! ```
//!
//! A script has one response for each request of the conversation, in order, separated by `---`. Further
//! requests get the last response again, unless it calls a tool, which would never end. A script for prompts
//! with a certain text restarts with each such prompt. The words:
//!
//! | word | effect |
//! |---|---|
//! | `text "…" [times N]` | one delta of text for each time |
//! | `think "…" [times N]` | one delta of reasoning for each time |
//! | `call TOOL {…}` | calls a tool: `read {"path"}`, `write {"path", "text"}` and, over a file that is there, `"old"`, `edit {"path", "old", "new"}` of a file that was read, `shell {"command"}`, `mcp:NAME {…}` for a tool of an MCP server, `tool:NAME {…}` for exactly this name, offered or not; any other name is one that the profile knows, such as `plan` or `ask`, or that of an offered tool |
//! | `slow MS` | waits this long before each following delta and call; unit: milliseconds |
//! | `hang` | sends nothing until released, or until the agent closes the connection |
//! | `cut` | closes the connection in the middle of the response |
//! | `error STATUS ["…"]` | returns an HTTP error; after deltas, an error within the stream |
//! | `refuse ["…"]` | ends the response as a refusal |
//! | `length` | ends the response as cut off at the token limit |
//! | `usage IN OUT` | reports this token usage |

use serde_json::Value;
use std::{fmt, time::Duration};

/// Response of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedResponse {
    /// Actions, in order.
    pub actions: Vec<ScriptAction>,
    /// Finish reason.
    pub finish_reason: FinishReason,
    /// Reported token usage.
    pub usage: TokenUsage,
}

/// Action of the model.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptAction {
    /// Sends a delta of text.
    Text(String),
    /// Sends a delta of reasoning.
    Think(String),
    /// Sends a delta of a refusal.
    Refusal(String),
    /// Calls a tool: tool and arguments.
    Call(ScriptTool, Value),
    /// Sets the pause before each following delta and call.
    Slow(Duration),
    /// Waits until released.
    Hang,
    /// Closes the connection.
    Cut,
    /// Fails with an error: status and message.
    Error(u16, String),
}

/// Finish reason of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinishReason {
    /// Complete, or waiting for tool results.
    #[default]
    Finished,
    /// Cut off at the token limit.
    Length,
    /// Refused.
    Refused,
}

/// Token usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenUsage {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
}

impl Default for TokenUsage {
    fn default() -> Self {
        Self {
            input: 1200,
            output: 34,
        }
    }
}

/// Tool by its name in cases, independent of the agent's tool names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScriptTool {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Replaces a text in an existing file.
    Edit,
    /// Runs a command.
    Shell,
    /// Belongs to an MCP server, named as by the server.
    Mcp(String),
    /// Has exactly this name, offered or not.
    Named(String),
    /// Has candidates in the profile under this name, or else is offered under this name.
    Other(String),
}

impl From<&str> for ScriptTool {
    fn from(word: &str) -> Self {
        match word.split_once(':') {
            Some(("mcp", name)) if !name.is_empty() => Self::Mcp(name.to_owned()),
            Some(("tool", name)) if !name.is_empty() => Self::Named(name.to_owned()),
            Some(_) | None => match word {
                "read" => Self::Read,
                "write" => Self::Write,
                "edit" => Self::Edit,
                "shell" => Self::Shell,
                other => Self::Other(other.to_owned()),
            },
        }
    }
}

impl fmt::Display for ScriptTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Write => f.write_str("write"),
            Self::Edit => f.write_str("edit"),
            Self::Shell => f.write_str("shell"),
            Self::Mcp(name) => write!(f, "mcp:{name}"),
            Self::Named(name) => write!(f, "tool:{name}"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// Error in a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script: {reason}")]
pub struct ScriptError {
    /// 1-based line number within the script.
    pub line: usize,
    /// Description of the problem.
    pub reason: String,
}

/// Parses the responses of a script.
///
/// # Errors
/// If a line cannot be parsed; the error names the line.
pub fn parse_script(script: &str) -> Result<Vec<ScriptedResponse>, ScriptError> {
    let mut answers = vec![ScriptedResponse::default()];
    for (index, line) in script.lines().enumerate() {
        let line = line.trim();
        if line == "---" {
            answers.push(ScriptedResponse::default());
        } else if let Some(answer) = answers.last_mut()
            && !line.is_empty()
            && !line.starts_with('#')
        {
            answer.parse_line(line).map_err(|reason| ScriptError {
                line: index + 1,
                reason,
            })?;
        }
    }
    // A trailing `---` does not begin a response.
    if answers.last() == Some(&ScriptedResponse::default()) {
        answers.pop();
    }
    Ok(answers)
}

impl ScriptedResponse {
    /// Creates a response that consists of one text.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self {
            actions: vec![ScriptAction::Text(text.to_owned())],
            ..Self::default()
        }
    }

    /// Returns the response with `fill` applied to each text, such as to substitute captures.
    #[must_use]
    pub fn with_substitutions(&self, fill: &dyn Fn(&str) -> String) -> Self {
        let mut answer = self.clone();
        for piece in &mut answer.actions {
            match piece {
                ScriptAction::Text(text)
                | ScriptAction::Think(text)
                | ScriptAction::Refusal(text) => *text = fill(text),
                ScriptAction::Call(_, arguments) => fill_json(arguments, fill),
                ScriptAction::Slow(_)
                | ScriptAction::Hang
                | ScriptAction::Cut
                | ScriptAction::Error(..) => {}
            }
        }
        answer
    }

    /// Returns true if the response calls a tool.
    pub(super) fn has_tool_call(&self) -> bool {
        let mut pieces = self.actions.iter();
        pieces.any(|piece| matches!(piece, ScriptAction::Call(..)))
    }

    fn parse_line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "text" => self.parse_deltas(rest, ScriptAction::Text)?,
            "think" => self.parse_deltas(rest, ScriptAction::Think)?,
            "call" => {
                let (tool, arguments) =
                    rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
                let arguments: Value = serde_json::from_str(arguments)
                    .map_err(|error| format!("the arguments are not JSON: {error}"))?;
                if !arguments.is_object() {
                    return Err("the arguments of a call are an object".to_owned());
                }
                self.actions
                    .push(ScriptAction::Call(tool.into(), arguments));
            }
            "slow" => {
                let pause = parse_number(rest, "milliseconds")?;
                self.actions
                    .push(ScriptAction::Slow(Duration::from_millis(pause)));
            }
            "hang" => self.actions.push(ScriptAction::Hang),
            "cut" => self.actions.push(ScriptAction::Cut),
            "error" => self.parse_error(rest)?,
            "refuse" => {
                if !rest.is_empty() {
                    self.actions
                        .push(ScriptAction::Refusal(parse_single_string(rest)?));
                }
                self.finish_reason = FinishReason::Refused;
            }
            "length" => self.finish_reason = FinishReason::Length,
            "usage" => {
                let (input, output) = rest.split_once(' ').ok_or("say `usage IN OUT`")?;
                self.usage = TokenUsage {
                    input: parse_number(input, "tokens")?,
                    output: parse_number(output.trim(), "tokens")?,
                };
            }
            other => {
                return Err(format!(
                    "{other:?} is nothing a model does; there are text, think, call, slow, hang, cut, error, refuse, length and usage"
                ));
            }
        }
        Ok(())
    }

    fn parse_deltas(
        &mut self,
        rest: &str,
        piece: fn(String) -> ScriptAction,
    ) -> Result<(), String> {
        let (text, rest) = parse_string(rest)?;
        let times = match rest.split_once(' ') {
            Some(("times", count)) => parse_number(count.trim(), "times")?,
            None if rest.is_empty() => 1,
            _ => return Err(format!("behind the text may stand `times N`, not {rest:?}")),
        };
        self.actions.extend((0..times).map(|_| piece(text.clone())));
        Ok(())
    }

    fn parse_error(&mut self, rest: &str) -> Result<(), String> {
        let (status, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let status = parse_number(status, "an HTTP status")?;
        let status = u16::try_from(status)
            .ok()
            .filter(|status| (400..600).contains(status))
            .ok_or_else(|| format!("{status} is no HTTP error"))?;
        let message = match rest.trim() {
            "" => format!("scripted error {status}"),
            text => parse_single_string(text)?,
        };
        self.actions.push(ScriptAction::Error(status, message));
        Ok(())
    }
}

fn fill_json(value: &mut Value, fill: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = fill(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_json(item, fill)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill_json(field, fill)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn parse_number(word: &str, what: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("{word:?} is no number of {what}"))
}

/// Parses a JSON string that ends the line.
fn parse_single_string(rest: &str) -> Result<String, String> {
    match parse_string(rest)? {
        (text, "") => Ok(text),
        (_, more) => Err(format!(
            "nothing may stand behind the text, such as {more:?}"
        )),
    }
}

/// Parses a JSON string, and returns it with the rest of the line.
fn parse_string(rest: &str) -> Result<(String, &str), String> {
    let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    match strings.next() {
        Some(Ok(text)) => Ok((text, rest[strings.byte_offset()..].trim())),
        _ => Err(format!("{rest:?} does not begin with a text in quotes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn script_is_parsed_response_by_response() {
        let script = parse_script(
            "# first\nthink \"hm\"\ntext \"a \\\"b\\\" \" times 2\ncall write {\"path\": \"$CWD/x\"}\nusage 7 8\n---\n\nslow 20\nhang\n---\nrefuse \"no\"\n---\ntext \"a\"\nlength\n---\nerror 529\n---\n",
        )
        .unwrap();
        assert_eq!(script.len(), 5);
        assert_eq!(
            script[0],
            ScriptedResponse {
                actions: vec![
                    ScriptAction::Think("hm".to_owned()),
                    ScriptAction::Text("a \"b\" ".to_owned()),
                    ScriptAction::Text("a \"b\" ".to_owned()),
                    ScriptAction::Call(ScriptTool::Write, json!({"path": "$CWD/x"})),
                ],
                finish_reason: FinishReason::Finished,
                usage: TokenUsage {
                    input: 7,
                    output: 8
                },
            }
        );
        assert_eq!(
            script[1].actions,
            [
                ScriptAction::Slow(Duration::from_millis(20)),
                ScriptAction::Hang
            ]
        );
        assert_eq!(script[2].actions, [ScriptAction::Refusal("no".to_owned())]);
        assert_eq!(script[2].finish_reason, FinishReason::Refused);
        assert_eq!(script[3].finish_reason, FinishReason::Length);
        assert_eq!(
            script[4].actions,
            [ScriptAction::Error(529, "scripted error 529".to_owned())]
        );
        assert_eq!(parse_script("\n# nothing\n").unwrap(), []);
    }

    #[test]
    fn unknown_line_is_reported() {
        for (script, line) in [
            ("tetx \"a\"", 1),
            ("text a", 1),
            ("text \"a\" twice", 1),
            ("text \"a\"\n---\ncall read {", 3),
            ("call read [1]", 1),
            ("error 200", 1),
            ("error 500 always", 1),
            ("refuse \"a\" \"b\"", 1),
            ("slow down", 1),
            ("usage 3", 1),
        ] {
            assert_eq!(parse_script(script).unwrap_err().line, line, "{script}");
        }
    }

    #[test]
    fn captures_fill_texts_and_arguments() {
        let script =
            parse_script("text \"at $CWD\"\ncall mcp:echo {\"a\": [\"$CWD\", 1]}").unwrap();
        let filled = script[0].with_substitutions(&|text| text.replace("$CWD", "/p"));
        assert_eq!(
            filled.actions,
            [
                ScriptAction::Text("at /p".to_owned()),
                ScriptAction::Call(ScriptTool::Mcp("echo".to_owned()), json!({"a": ["/p", 1]})),
            ]
        );
    }

    #[test]
    fn tool_names_round_trip() {
        for word in [
            "read",
            "write",
            "edit",
            "shell",
            "mcp:echo",
            "tool:bash",
            "plan",
        ] {
            assert_eq!(ScriptTool::from(word).to_string(), word);
        }
        assert_eq!(
            ScriptTool::from("mcp:echo"),
            ScriptTool::Mcp("echo".to_owned())
        );
        assert_eq!(
            ScriptTool::from("tool:bash"),
            ScriptTool::Named("bash".to_owned())
        );
        assert_eq!(
            ScriptTool::from("plan"),
            ScriptTool::Other("plan".to_owned())
        );
    }
}

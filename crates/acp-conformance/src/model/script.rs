//! Script: what the fake model answers, written as text.
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
//! One answer for each request of the conversation, in their order, with `---` between two. Whoever asks once
//! more gets the last again, unless it calls a tool: that would never end. A script for prompts with a certain
//! text begins anew with each of them. The words:
//!
//! | word | what the model does |
//! |---|---|
//! | `text "…" [times N]` | one delta of text for each time |
//! | `think "…" [times N]` | the same with reasoning |
//! | `call TOOL {…}` | calls a tool: `read {"path"}`, `write {"path", "text"}` and, over a file that is there, `"old"`, `edit {"path", "old", "new"}` of a file that was read, `shell {"command"}`, `mcp:NAME {…}` for one of an MCP server, `tool:NAME {…}` for the very name, offered or not; any other name is one that the profile knows, such as `plan` or `ask`, or that of a tool on offer |
//! | `slow MS` | waits so long before each delta and call from here on |
//! | `hang` | says nothing more until released, or until the agent lets go of the connection |
//! | `cut` | closes the connection in the middle of the answer |
//! | `error STATUS ["…"]` | an HTTP error; after deltas, an error within the stream |
//! | `refuse ["…"]` | ends the answer as a refusal |
//! | `length` | ends the answer as cut off at the limit of tokens |
//! | `usage IN OUT` | how many tokens it says were spent |

use serde_json::Value;
use std::{fmt, time::Duration};

/// One answer of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What it does, in order.
    pub pieces: Vec<Piece>,
    /// How it ends.
    pub stop: Stop,
    /// The tokens it says were spent.
    pub usage: Usage,
}

/// One thing that the model does.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// A delta of text.
    Text(String),
    /// A delta of reasoning.
    Think(String),
    /// A delta of a refusal.
    Refusal(String),
    /// A call of a tool.
    Call(Tool, Value),
    /// From here on this long before each delta and call.
    Slow(Duration),
    /// Silence, until released.
    Hang,
    /// The end of the connection.
    Cut,
    /// An error: status and message.
    Error(u16, String),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// Said all, or waits for its calls.
    #[default]
    Finished,
    /// Cut off at the limit of tokens.
    Length,
    /// Refused.
    Refused,
}

/// Tokens spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input: 1200,
            output: 34,
        }
    }
}

/// A tool as a case names it, whatever the agent calls its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Changes a text in a file that is there.
    Edit,
    /// Runs a command.
    Shell,
    /// One of an MCP server, by the server's name for it.
    Mcp(String),
    /// By its very name, whether it was offered or not.
    Named(String),
    /// Any other that a profile has candidates for; else by its very name, if it is on offer.
    Other(String),
}

impl From<&str> for Tool {
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

impl fmt::Display for Tool {
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

/// A line that says nothing a model could do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script: {reason}")]
pub struct ScriptError {
    /// 1-based, within the script.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// Read the answers of a script.
///
/// # Errors
/// Names the first line that cannot be read.
pub fn answers(script: &str) -> Result<Vec<Answer>, ScriptError> {
    let mut answers = vec![Answer::default()];
    for (index, line) in script.lines().enumerate() {
        let line = line.trim();
        if line == "---" {
            answers.push(Answer::default());
        } else if let Some(answer) = answers.last_mut()
            && !line.is_empty()
            && !line.starts_with('#')
        {
            answer.read(line).map_err(|reason| ScriptError {
                line: index + 1,
                reason,
            })?;
        }
    }
    // A last `---` closes an answer and begins none.
    if answers.last() == Some(&Answer::default()) {
        answers.pop();
    }
    Ok(answers)
}

impl Answer {
    /// An answer of one text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            pieces: vec![Piece::Text(text.to_owned())],
            ..Self::default()
        }
    }

    /// The same answer with another text for each text in it, such as one with captures filled in.
    #[must_use]
    pub fn filled(&self, fill: &dyn Fn(&str) -> String) -> Self {
        let mut answer = self.clone();
        for piece in &mut answer.pieces {
            match piece {
                Piece::Text(text) | Piece::Think(text) | Piece::Refusal(text) => *text = fill(text),
                Piece::Call(_, arguments) => fill_value(arguments, fill),
                Piece::Slow(_) | Piece::Hang | Piece::Cut | Piece::Error(..) => {}
            }
        }
        answer
    }

    /// It calls a tool.
    pub(super) fn calls(&self) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| matches!(piece, Piece::Call(..)))
    }

    fn read(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "text" => self.deltas(rest, Piece::Text)?,
            "think" => self.deltas(rest, Piece::Think)?,
            "call" => {
                let (tool, arguments) =
                    rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
                let arguments: Value = serde_json::from_str(arguments)
                    .map_err(|error| format!("the arguments are not JSON: {error}"))?;
                if !arguments.is_object() {
                    return Err("the arguments of a call are an object".to_owned());
                }
                self.pieces.push(Piece::Call(tool.into(), arguments));
            }
            "slow" => {
                let pause = number(rest, "milliseconds")?;
                self.pieces.push(Piece::Slow(Duration::from_millis(pause)));
            }
            "hang" => self.pieces.push(Piece::Hang),
            "cut" => self.pieces.push(Piece::Cut),
            "error" => self.error(rest)?,
            "refuse" => {
                if !rest.is_empty() {
                    self.pieces.push(Piece::Refusal(alone(rest)?));
                }
                self.stop = Stop::Refused;
            }
            "length" => self.stop = Stop::Length,
            "usage" => {
                let (input, output) = rest.split_once(' ').ok_or("say `usage IN OUT`")?;
                self.usage = Usage {
                    input: number(input, "tokens")?,
                    output: number(output.trim(), "tokens")?,
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

    fn deltas(&mut self, rest: &str, piece: fn(String) -> Piece) -> Result<(), String> {
        let (text, rest) = quoted(rest)?;
        let times = match rest.split_once(' ') {
            Some(("times", count)) => number(count.trim(), "times")?,
            None if rest.is_empty() => 1,
            _ => return Err(format!("behind the text may stand `times N`, not {rest:?}")),
        };
        self.pieces.extend((0..times).map(|_| piece(text.clone())));
        Ok(())
    }

    fn error(&mut self, rest: &str) -> Result<(), String> {
        let (status, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let status = number(status, "an HTTP status")?;
        let status = u16::try_from(status)
            .ok()
            .filter(|status| (400..600).contains(status))
            .ok_or_else(|| format!("{status} is no HTTP error"))?;
        let message = match rest.trim() {
            "" => format!("scripted error {status}"),
            text => alone(text)?,
        };
        self.pieces.push(Piece::Error(status, message));
        Ok(())
    }
}

fn fill_value(value: &mut Value, fill: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = fill(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, fill)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| fill_value(field, fill)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn number(word: &str, what: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("{word:?} is no number of {what}"))
}

/// A JSON string with nothing behind it.
fn alone(rest: &str) -> Result<String, String> {
    match quoted(rest)? {
        (text, "") => Ok(text),
        (_, more) => Err(format!(
            "nothing may stand behind the text, such as {more:?}"
        )),
    }
}

/// A JSON string, and what stands behind it.
fn quoted(rest: &str) -> Result<(String, &str), String> {
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
    fn a_script_is_read_answer_by_answer() {
        let script = answers(
            "# first\nthink \"hm\"\ntext \"a \\\"b\\\" \" times 2\ncall write {\"path\": \"$CWD/x\"}\nusage 7 8\n---\n\nslow 20\nhang\n---\nrefuse \"no\"\n---\ntext \"a\"\nlength\n---\nerror 529\n---\n",
        )
        .unwrap();
        assert_eq!(script.len(), 5);
        assert_eq!(
            script[0],
            Answer {
                pieces: vec![
                    Piece::Think("hm".to_owned()),
                    Piece::Text("a \"b\" ".to_owned()),
                    Piece::Text("a \"b\" ".to_owned()),
                    Piece::Call(Tool::Write, json!({"path": "$CWD/x"})),
                ],
                stop: Stop::Finished,
                usage: Usage {
                    input: 7,
                    output: 8
                },
            }
        );
        assert_eq!(
            script[1].pieces,
            [Piece::Slow(Duration::from_millis(20)), Piece::Hang]
        );
        assert_eq!(script[2].pieces, [Piece::Refusal("no".to_owned())]);
        assert_eq!(script[2].stop, Stop::Refused);
        assert_eq!(script[3].stop, Stop::Length);
        assert_eq!(
            script[4].pieces,
            [Piece::Error(529, "scripted error 529".to_owned())]
        );
        assert_eq!(answers("\n# nothing\n").unwrap(), []);
    }

    #[test]
    fn a_line_that_is_nothing_is_named() {
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
            assert_eq!(answers(script).unwrap_err().line, line, "{script}");
        }
    }

    #[test]
    fn captures_are_filled_into_texts_and_arguments() {
        let script = answers("text \"at $CWD\"\ncall mcp:echo {\"a\": [\"$CWD\", 1]}").unwrap();
        let filled = script[0].filled(&|text| text.replace("$CWD", "/p"));
        assert_eq!(
            filled.pieces,
            [
                Piece::Text("at /p".to_owned()),
                Piece::Call(Tool::Mcp("echo".to_owned()), json!({"a": ["/p", 1]})),
            ]
        );
    }

    #[test]
    fn tools_are_written_as_they_are_read() {
        for word in [
            "read",
            "write",
            "edit",
            "shell",
            "mcp:echo",
            "tool:bash",
            "plan",
        ] {
            assert_eq!(Tool::from(word).to_string(), word);
        }
        assert_eq!(Tool::from("mcp:echo"), Tool::Mcp("echo".to_owned()));
        assert_eq!(Tool::from("tool:bash"), Tool::Named("bash".to_owned()));
        assert_eq!(Tool::from("plan"), Tool::Other("plan".to_owned()));
    }
}

//! Case: a text file of steps.
//!
//! ```text
//! # What the case shows, in a sentence.
//! file greeting.txt Hello, world
//! start
//! > {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
//! < {"id": 1, "result": {"protocolVersion": 1}}
//! <* {"method": "session/update", "params": {"update": {"sessionUpdate": "plan"}}}
//! no {"method": "session/update"}
//! eof
//! exit 0
//! ```
//!
//! `>` sends a line, `>+` sends it together with the next one in one write, `<` is the very next line
//! from the agent, `<*` is the next line that fits, whatever comes before it, `no` says that none of
//! the lines skipped by the `<*` before it fits. `read FILE TEXT` compares a file. A line from the
//! agent may hold more than the pattern says. `"$NAME"` in a pattern stands for any value, the same
//! each time; in a line that is sent it is filled in. `$CWD` is the folder of the case.

use serde_json::Value;

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What it shows.
    pub purpose: String,
    /// Its steps, each with its line in the file.
    pub steps: Vec<(usize, Step)>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Put a file into the folder.
    File(String, String),
    /// Start the agent, again if one has ended.
    Start,
    /// Send this line; `true`: together with the next one.
    Send(String, bool),
    /// The next line fits this.
    Next(Value),
    /// Some line to come fits this.
    Until(Value),
    /// None of the lines that the step before skipped fits this.
    None(Value),
    /// The file holds this text.
    Read(String, String),
    /// Close the agent's stdin.
    Eof,
    /// The agent ends with this code, having said nothing more.
    Exit(i32),
}

/// A line that is no step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct CaseError {
    /// 1-based.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

impl Case {
    /// Read a case from its text.
    ///
    /// # Errors
    /// Names the line that is no step.
    pub fn parse(text: &str) -> Result<Self, CaseError> {
        let mut purpose = String::new();
        let mut steps = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let line = line.trim();
            if let Some(comment) = line.strip_prefix('#') {
                if purpose.is_empty() {
                    comment.trim().clone_into(&mut purpose);
                }
            } else if !line.is_empty() {
                let step = step(line).map_err(|reason| CaseError {
                    line: line_number,
                    reason,
                })?;
                steps.push((line_number, step));
            }
        }
        if purpose.is_empty() {
            let reason = "a case begins with `# what it shows`".to_owned();
            return Err(CaseError { line: 1, reason });
        }
        Ok(Self { purpose, steps })
    }
}

fn step(line: &str) -> Result<Step, String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let pattern = || serde_json::from_str(rest).map_err(|error| format!("not JSON: {error}"));
    let named = || {
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        if name.is_empty() {
            return Err(format!("say which file: `{word} NAME TEXT`"));
        }
        Ok((name.to_owned(), text.replace("\\n", "\n")))
    };
    match word {
        "file" => named().map(|(name, text)| Step::File(name, text)),
        "read" => named().map(|(name, text)| Step::Read(name, text)),
        "start" => Ok(Step::Start),
        // What is sent may be broken on purpose.
        ">" => Ok(Step::Send(rest.to_owned(), false)),
        ">+" => Ok(Step::Send(rest.to_owned(), true)),
        "<" => pattern().map(Step::Next),
        "<*" => pattern().map(Step::Until),
        "no" => pattern().map(Step::None),
        "eof" => Ok(Step::Eof),
        "exit" => rest
            .parse()
            .map(Step::Exit)
            .map_err(|_| format!("{rest:?} is no exit code")),
        other => Err(format!(
            "{other:?} is no step; there are file, start, >, >+, <, <*, no, read, eof, exit"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_case_is_read_line_by_line() {
        let case = Case::parse(
            "# shows it\n\nfile a.txt one\\ntwo\nstart\n>+ {\"a\n< {\"id\": 1}\nexit 3\n",
        );
        let case = case.unwrap();
        assert_eq!(case.purpose, "shows it");
        assert_eq!(
            case.steps,
            [
                (3, Step::File("a.txt".to_owned(), "one\ntwo".to_owned())),
                (4, Step::Start),
                (5, Step::Send("{\"a".to_owned(), true)),
                (6, Step::Next(json!({"id": 1}))),
                (7, Step::Exit(3)),
            ]
        );
    }

    #[test]
    fn a_line_that_is_no_step_is_named() {
        for (text, line) in [
            ("start", 1),
            ("# x\nstrat", 2),
            ("# x\n< {", 2),
            ("# x\n\nexit now", 3),
            ("# x\nfile", 2),
        ] {
            assert_eq!(Case::parse(text).unwrap_err().line, line, "{text}");
        }
    }
}

//! Parses one line of a case, by its first word.

use super::{
    CaseLine, CaseStep, ChunkAuthor, CountRange, ElicitationAnswer, ExpectedResponse,
    LineCondition, Need, OutputPipe, PermissionAnswer, PromptContent, ResponseMode, StartOptions,
    ToolKind,
    cursor::{LineCursor, parse_bytes},
    validate::check_capability_path,
};
use serde_json::Value;
use std::time::Duration;

/// Parses one line.
pub(super) fn parse_line(number: usize, whole: &str) -> Result<CaseLine, String> {
    let (text, rules) = split_rules(whole)?;
    let mut cursor = LineCursor::new(text);
    let mut guards = Vec::new();
    let mut within = None;
    loop {
        if cursor.take_word("if") {
            guards.push(LineCondition::If(Need::parse_from(&mut cursor)?));
        } else if cursor.take_word("unless") {
            guards.push(LineCondition::Unless(Need::parse_from(&mut cursor)?));
        } else if cursor.take_word("within") {
            let number = cursor.expect_word("the number of milliseconds")?;
            within = Some(Duration::from_millis(parse_number(number)?));
        } else {
            break;
        }
    }
    let step = parse_step(&mut cursor)?;
    cursor.expect_end()?;
    Ok(CaseLine {
        number,
        text: whole.to_owned(),
        conditions: guards,
        patience: within,
        step,
        rules,
    })
}

/// Splits the rule ids off the end of a line.
fn split_rules(line: &str) -> Result<(&str, Vec<String>), String> {
    let Some((before, after)) = line.rsplit_once('@') else {
        return Ok((line, Vec::new()));
    };
    let is_apart = before.ends_with(char::is_whitespace);
    let words: Vec<String> = after.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() && is_apart {
        return Err("behind `@` the rule is missing".to_owned());
    }
    let capitals: Vec<String> = words.iter().map(|word| word.to_uppercase()).collect();
    if words.is_empty() || !capitals.iter().all(|word| is_rule_id(word)) {
        return Ok((line, Vec::new()));
    }
    let meant = capitals.join(" ");
    match (is_apart, after.starts_with(char::is_whitespace)) {
        (true, true) if words == capitals => Ok((before, words)),
        (true, true) => Err(format!(
            "ids of rules are in capitals: did you mean `@ {meant}`?"
        )),
        // An e-mail address in a text.
        (false, false) => Ok((line, Vec::new())),
        (true, false) | (false, true) => Err(format!(
            "`@` stands between blanks: did you mean ` @ {meant}`?"
        )),
    }
}

/// Returns true for ids such as `TR-1` and `V2-12`.
fn is_rule_id(word: &str) -> bool {
    let Some((group, number)) = word.split_once('-') else {
        return false;
    };
    group.starts_with(|letter: char| letter.is_ascii_uppercase())
        && group
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit())
        && !number.is_empty()
        && number.chars().all(|letter| letter.is_ascii_digit())
}

fn parse_number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    word.parse()
        .map_err(|_| format!("{word:?} is no whole number"))
}

impl Need {
    /// Parses a need from its text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut cursor = LineCursor::new(text);
        let need = Self::parse_from(&mut cursor)?;
        cursor.expect_end().map(|()| need)
    }

    fn parse_from(cursor: &mut LineCursor<'_>) -> Result<Self, String> {
        Ok(match cursor.expect_word("what is needed")? {
            "v2" => Self::V2,
            "profile" => Self::Profile,
            "model" => Self::Model,
            "keyless" => Self::Keyless,
            "tool" => {
                let word = cursor.expect_word("the tool")?;
                let tool = ToolKind::ALL.into_iter().find(|tool| tool.name() == word);
                Self::Tool(tool.ok_or_else(|| {
                    let names = ToolKind::ALL.map(ToolKind::name).join(", ");
                    format!("{word:?} is none of {names}")
                })?)
            }
            word if word.starts_with('$') => Self::Captured(word[1..].to_owned()),
            path => {
                check_capability_path(path)?;
                Self::Path(path.to_owned())
            }
        })
    }
}

fn parse_step(cursor: &mut LineCursor<'_>) -> Result<CaseStep, String> {
    let word = cursor.expect_word("a step")?;
    Ok(match word {
        "version" => CaseStep::Version(parse_number(cursor.expect_word("the version")?)?),
        "client" => CaseStep::Client(cursor.parse_json()?),
        "file" => CaseStep::File(parse_name(cursor)?, cursor.parse_text()?),
        "folder" => CaseStep::Folder(parse_name(cursor)?),
        "link" => CaseStep::Link(parse_name(cursor)?, parse_name(cursor)?),
        "buffer" => CaseStep::Buffer(parse_name(cursor)?, cursor.parse_text()?),
        "let" => CaseStep::Let(parse_name(cursor)?, cursor.parse_json()?),
        "repeat" => CaseStep::Repeat(
            parse_name(cursor)?,
            parse_number(cursor.expect_word("how many times")?)?,
            cursor.parse_string()?,
        ),
        "model" => {
            let prompt = if cursor.take_word("for") {
                Some(cursor.parse_string()?)
            } else {
                None
            };
            let answers = Vec::new();
            CaseStep::Model { prompt, answers }
        }
        "start" => CaseStep::Start(parse_start(cursor)?),
        "restart" => CaseStep::Restart(parse_start(cursor)?),
        "eof" => CaseStep::Eof,
        "exit" => CaseStep::Exit(parse_exit_code(cursor)?),
        "gone" => CaseStep::ExitUnprompted(parse_exit_code(cursor)?),
        "term" => CaseStep::Term,
        "kill" => CaseStep::Kill,
        "stop" => {
            expect_literal(cursor, "reading")?;
            CaseStep::StopReading(if cursor.take_word("stderr") {
                OutputPipe::Stderr
            } else {
                OutputPipe::Stdout
            })
        }
        "go" => {
            expect_literal(cursor, "on")?;
            match cursor.expect_word("`reading` or `talking`")? {
                "reading" => CaseStep::ResumeReading,
                "talking" => CaseStep::ReleaseModel,
                other => return Err(format!("{other:?} is neither `reading` nor `talking`")),
            }
        }
        "hang" => {
            expect_literal(cursor, "up")?;
            CaseStep::HangUp
        }
        "orphans" => {
            expect_literal(cursor, "none")?;
            CaseStep::NoOrphans
        }
        "stderr" => match cursor.expect_word("`has` or `lacks`")? {
            "has" => CaseStep::Stderr(true, cursor.parse_text()?),
            "lacks" => CaseStep::Stderr(false, cursor.parse_text()?),
            other => return Err(format!("{other:?} is neither `has` nor `lacks`")),
        },
        ">" | ">+" | ">!" | ">!+" => CaseStep::Send {
            text: cursor.take_rest().to_owned(),
            may_be_invalid: word.contains('!'),
            joins_next_write: word.contains('+'),
        },
        ">raw" | ">raw+" => CaseStep::Raw {
            bytes: parse_bytes(cursor.take_rest())?,
            joins_next_write: word.contains('+'),
        },
        "split" => match parse_number(cursor.expect_word("the number of bytes")?)? {
            0 => return Err("no piece has 0 bytes".to_owned()),
            size => CaseStep::Split(size),
        },
        "<" => CaseStep::Next(cursor.parse_json()?),
        "<*" => CaseStep::Until(cursor.parse_json()?),
        "mark" => CaseStep::Mark,
        "no" => CaseStep::No(cursor.parse_json()?),
        "some" => CaseStep::Some(cursor.parse_json()?),
        "maybe" => CaseStep::CaptureIfAny(cursor.parse_json()?),
        "count" => CaseStep::Count(parse_range(cursor)?, cursor.parse_json()?),
        "order" => match cursor.parse_json()? {
            Value::Array(patterns) => CaseStep::Order(patterns),
            other => return Err(format!("{other} is no list of patterns")),
        },
        "said" | "unsaid" => parse_message_text(cursor, word == "unsaid")?,
        "value" => CaseStep::Value(cursor.parse_json()?, cursor.parse_json()?),
        "read" => CaseStep::FileEquals(parse_name(cursor)?, cursor.parse_text()?),
        "holds" => CaseStep::FileContains(parse_name(cursor)?, cursor.parse_text()?),
        "same" => CaseStep::FileUnchanged(parse_name(cursor)?),
        "absent" => CaseStep::FileAbsent(parse_name(cursor)?),
        "permission" => CaseStep::Permission(parse_permission(cursor)?),
        "elicitation" => CaseStep::Elicitation(parse_elicitation(cursor)?),
        "answer" => CaseStep::Answer(parse_name(cursor)?, parse_response_mode(cursor)?),
        "saw" => CaseStep::ModelRequestText(true, cursor.parse_text()?),
        "unseen" => CaseStep::ModelRequestText(false, cursor.parse_text()?),
        "asked" => CaseStep::ModelRequestCount(parse_range(cursor)?),
        "dropped" => CaseStep::ModelStreamClosed,
        other => return parse_request_step(other, cursor),
    })
}

/// Parses the steps that send requests and notifications, and those that check responses.
fn parse_request_step(word: &str, cursor: &mut LineCursor<'_>) -> Result<CaseStep, String> {
    Ok(match word {
        "initialize" => CaseStep::Initialize(cursor.parse_optional_json()?),
        "session" => CaseStep::Session(parse_session(cursor), cursor.parse_optional_json()?),
        "load" => CaseStep::Load(parse_session(cursor), cursor.parse_optional_json()?),
        "resume" => CaseStep::Resume(parse_session(cursor), cursor.parse_optional_json()?),
        "cancel" => CaseStep::Cancel(parse_session(cursor)),
        "login" => CaseStep::Login,
        "probe" => CaseStep::Probe,
        "quiet" => CaseStep::Quiet,
        "prompt" | "prompt+" | "prompt!" | "prompt!+" => {
            let content = match cursor.parse_json()? {
                Value::String(text) => PromptContent::Text(text),
                blocks => PromptContent::Blocks(blocks),
            };
            CaseStep::Prompt {
                content,
                session: parse_optional_name(cursor, "in", "session")?,
                name: parse_optional_name(cursor, "as", "prompt")?,
                may_be_invalid: word.contains('!'),
                joins_next_write: word.contains('+'),
            }
        }
        "call" | "call!" => {
            let method = parse_name(cursor)?;
            let params = cursor.parse_json()?;
            let name = parse_optional_name(cursor, "as", "call")?;
            let then = if !cursor.take_word("->") {
                None
            } else if cursor.take_word("any") {
                Some(ExpectedResponse::Any)
            } else if cursor.take_word("error") {
                Some(ExpectedResponse::Error(cursor.parse_json()?))
            } else {
                Some(ExpectedResponse::Result(cursor.parse_json()?))
            };
            CaseStep::Call {
                method,
                params,
                name,
                may_be_invalid: word.contains('!'),
                expected: then,
            }
        }
        "tell" | "tell!" => CaseStep::Notify {
            method: parse_name(cursor)?,
            params: cursor.parse_optional_json()?.unwrap_or(Value::Null),
            may_be_invalid: word.contains('!'),
        },
        "answered" | "refused" | "ended" => {
            let expect = match word {
                "answered" => ExpectedResponse::Result(cursor.parse_json()?),
                "refused" => ExpectedResponse::Error(cursor.parse_json()?),
                _ => ExpectedResponse::Any,
            };
            CaseStep::ExpectResponse(parse_optional_name(cursor, "for", "prompt")?, expect)
        }
        other => return Err(format!("{other:?} is no step")),
    })
}

/// Parses an exit code; `any` is `None`.
fn parse_exit_code(cursor: &mut LineCursor<'_>) -> Result<Option<i32>, String> {
    match cursor.expect_word("the code, or `any`,")? {
        "any" => Ok(None),
        code => parse_number(code).map(Some),
    }
}

fn expect_literal(cursor: &mut LineCursor<'_>, word: &str) -> Result<(), String> {
    if cursor.take_word(word) {
        Ok(())
    } else {
        Err(format!("`{word}` is missing"))
    }
}

fn parse_name(cursor: &mut LineCursor<'_>) -> Result<String, String> {
    let word = cursor.expect_word("the name")?;
    Ok(word.to_owned())
}

/// Consumes the name of a session variable; `session` if the next word is not a name.
fn parse_session(cursor: &mut LineCursor<'_>) -> String {
    let word = cursor.peek();
    let is_name = word.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let word = if is_name { cursor.next_word() } else { None };
    word.unwrap_or("session").to_owned()
}

fn parse_optional_name(
    cursor: &mut LineCursor<'_>,
    word: &str,
    usual: &str,
) -> Result<String, String> {
    if cursor.take_word(word) {
        parse_name(cursor)
    } else {
        Ok(usual.to_owned())
    }
}

fn parse_start(cursor: &mut LineCursor<'_>) -> Result<StartOptions, String> {
    let mut start = StartOptions {
        is_keyless: cursor.take_word("keyless"),
        ..StartOptions::default()
    };
    if cursor.take_word("in") {
        start.folder = Some(parse_name(cursor)?);
    }
    while let Some(word) = cursor.next_word() {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| format!("{word:?} is no KEY=VALUE"))?;
        start.variables.push((name.to_owned(), value.to_owned()));
    }
    Ok(start)
}

fn parse_range(cursor: &mut LineCursor<'_>) -> Result<CountRange, String> {
    let word = cursor.expect_word("how many")?;
    let Some((from, to)) = word.split_once("..") else {
        let number = parse_number(word)?;
        return Ok(CountRange {
            min: number,
            max: Some(number),
        });
    };
    let bound = |word: &str| (!word.is_empty()).then(|| parse_number(word)).transpose();
    Ok(CountRange {
        min: bound(from)?.unwrap_or(0),
        max: bound(to)?,
    })
}

fn parse_message_text(cursor: &mut LineCursor<'_>, not: bool) -> Result<CaseStep, String> {
    let voice = if cursor.take_word("user") {
        ChunkAuthor::User
    } else if cursor.take_word("thought") {
        ChunkAuthor::Thought
    } else {
        ChunkAuthor::Agent
    };
    Ok(CaseStep::MessageText {
        author: voice,
        text: cursor.parse_string()?,
        session: parse_optional_name(cursor, "in", "session")?,
        is_negated: not,
    })
}

fn parse_permission(cursor: &mut LineCursor<'_>) -> Result<PermissionAnswer, String> {
    Ok(match cursor.take_rest().trim() {
        "allow_once" => PermissionAnswer::AllowOnce,
        "allow_always" => PermissionAnswer::AllowAlways,
        "reject_once" => PermissionAnswer::RejectOnce,
        "reject_always" => PermissionAnswer::RejectAlways,
        "cancelled" => PermissionAnswer::Cancelled,
        "unknown" => PermissionAnswer::UnknownOption,
        "strange" => PermissionAnswer::UnknownOutcome,
        "error" => PermissionAnswer::Error,
        "never" => PermissionAnswer::Never,
        "by hand" => PermissionAnswer::ByHand,
        other => return Err(format!("{other:?} is no way to give permission")),
    })
}

fn parse_elicitation(cursor: &mut LineCursor<'_>) -> Result<ElicitationAnswer, String> {
    if cursor.take_word("accept") {
        if cursor.take_word("each") {
            return cursor.parse_json().map(ElicitationAnswer::AcceptEach);
        }
        return cursor.parse_json().map(ElicitationAnswer::Accept);
    }
    Ok(match cursor.take_rest().trim() {
        "decline" => ElicitationAnswer::Decline,
        "cancel" => ElicitationAnswer::Cancel,
        "strange" => ElicitationAnswer::UnknownAction,
        "error" => ElicitationAnswer::Error,
        "by hand" => ElicitationAnswer::ByHand,
        other => return Err(format!("{other:?} is no way to answer an elicitation")),
    })
}

fn parse_response_mode(cursor: &mut LineCursor<'_>) -> Result<ResponseMode, String> {
    Ok(match cursor.expect_word("how")? {
        "by" => match cursor.expect_word("`hand` or `itself`")? {
            "hand" => ResponseMode::ByHand,
            "itself" => ResponseMode::ByItself,
            other => return Err(format!("{other:?} is neither `hand` nor `itself`")),
        },
        "error" => ResponseMode::Error(parse_number(cursor.expect_word("the code")?)?),
        "with" => ResponseMode::With(cursor.parse_json()?),
        other => return Err(format!("{other:?} is none of `by`, `error`, `with`")),
    })
}

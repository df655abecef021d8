//! Word: one line of a case, by its first word.

use super::{
    Content, Elicitation, Expect, Guard, How, Line, Need, Permission, Pipe, Range, Start, Step,
    Tool, Voice,
    cursor::{Cursor, bytes},
    slips::check_path,
};
use serde_json::Value;
use std::time::Duration;

/// Read one line.
pub(super) fn line(number: usize, whole: &str) -> Result<Line, String> {
    let (text, rules) = rules(whole)?;
    let mut cursor = Cursor::new(text);
    let mut guards = Vec::new();
    let mut within = None;
    loop {
        if cursor.take("if") {
            guards.push(Guard::If(Need::read(&mut cursor)?));
        } else if cursor.take("unless") {
            guards.push(Guard::Unless(Need::read(&mut cursor)?));
        } else if cursor.take("within") {
            let number = cursor.need("the number of milliseconds")?;
            within = Some(Duration::from_millis(whole_number(number)?));
        } else {
            break;
        }
    }
    let step = step(&mut cursor)?;
    cursor.end()?;
    Ok(Line {
        number,
        text: whole.to_owned(),
        guards,
        within,
        step,
        rules,
    })
}

/// The rules at the end of a line, and what is before them.
fn rules(line: &str) -> Result<(&str, Vec<String>), String> {
    let Some((before, after)) = line.rsplit_once('@') else {
        return Ok((line, Vec::new()));
    };
    let is_apart = before.ends_with(char::is_whitespace);
    let words: Vec<String> = after.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() && is_apart {
        return Err("behind `@` the rule is missing".to_owned());
    }
    let capitals: Vec<String> = words.iter().map(|word| word.to_uppercase()).collect();
    if words.is_empty() || !capitals.iter().all(|word| is_rule(word)) {
        return Ok((line, Vec::new()));
    }
    let meant = capitals.join(" ");
    match (is_apart, after.starts_with(char::is_whitespace)) {
        (true, true) if words == capitals => Ok((before, words)),
        (true, true) => Err(format!(
            "ids of rules are in capitals: did you mean `@ {meant}`?"
        )),
        // An address in a text.
        (false, false) => Ok((line, Vec::new())),
        (true, false) | (false, true) => Err(format!(
            "`@` stands between blanks: did you mean ` @ {meant}`?"
        )),
    }
}

/// `TR-1`, `V2-12`.
fn is_rule(word: &str) -> bool {
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

fn whole_number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    word.parse()
        .map_err(|_| format!("{word:?} is no whole number"))
}

impl Need {
    /// Read one from its text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut cursor = Cursor::new(text);
        let need = Self::read(&mut cursor)?;
        cursor.end().map(|()| need)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, String> {
        Ok(match cursor.need("what is needed")? {
            "v2" => Self::V2,
            "profile" => Self::Profile,
            "model" => Self::Model,
            "keyless" => Self::Keyless,
            "tool" => {
                let word = cursor.need("the tool")?;
                let tool = Tool::ALL.into_iter().find(|tool| tool.name() == word);
                Self::Tool(tool.ok_or_else(|| {
                    let names = Tool::ALL.map(Tool::name).join(", ");
                    format!("{word:?} is none of {names}")
                })?)
            }
            word if word.starts_with('$') => Self::Captured(word[1..].to_owned()),
            path => {
                check_path(path)?;
                Self::Path(path.to_owned())
            }
        })
    }
}

fn step(cursor: &mut Cursor<'_>) -> Result<Step, String> {
    let word = cursor.need("a step")?;
    Ok(match word {
        "version" => Step::Version(whole_number(cursor.need("the version")?)?),
        "client" => Step::Client(cursor.json()?),
        "file" => Step::File(name(cursor)?, cursor.text()?),
        "folder" => Step::Folder(name(cursor)?),
        "link" => Step::Link(name(cursor)?, name(cursor)?),
        "buffer" => Step::Buffer(name(cursor)?, cursor.text()?),
        "let" => Step::Let(name(cursor)?, cursor.json()?),
        "repeat" => Step::Repeat(
            name(cursor)?,
            whole_number(cursor.need("how many times")?)?,
            cursor.quoted()?,
        ),
        "model" => {
            let prompt = if cursor.take("for") {
                Some(cursor.quoted()?)
            } else {
                None
            };
            let answers = Vec::new();
            Step::Model { prompt, answers }
        }
        "start" => Step::Start(start(cursor)?),
        "restart" => Step::Restart(start(cursor)?),
        "eof" => Step::Eof,
        "exit" => Step::Exit(code(cursor)?),
        "gone" => Step::Gone(code(cursor)?),
        "term" => Step::Term,
        "kill" => Step::Kill,
        "stop" => {
            fixed(cursor, "reading")?;
            Step::StopReading(if cursor.take("stderr") {
                Pipe::Stderr
            } else {
                Pipe::Stdout
            })
        }
        "go" => {
            fixed(cursor, "on")?;
            match cursor.need("`reading` or `talking`")? {
                "reading" => Step::GoOnReading,
                "talking" => Step::GoOnTalking,
                other => return Err(format!("{other:?} is neither `reading` nor `talking`")),
            }
        }
        "hang" => {
            fixed(cursor, "up")?;
            Step::HangUp
        }
        "orphans" => {
            fixed(cursor, "none")?;
            Step::OrphansNone
        }
        "stderr" => match cursor.need("`has` or `lacks`")? {
            "has" => Step::Stderr(true, cursor.text()?),
            "lacks" => Step::Stderr(false, cursor.text()?),
            other => return Err(format!("{other:?} is neither `has` nor `lacks`")),
        },
        ">" | ">+" | ">!" | ">!+" => Step::Send {
            text: cursor.rest().to_owned(),
            broken: word.contains('!'),
            more: word.contains('+'),
        },
        ">raw" | ">raw+" => Step::Raw {
            bytes: bytes(cursor.rest())?,
            more: word.contains('+'),
        },
        "split" => match whole_number(cursor.need("the number of bytes")?)? {
            0 => return Err("no piece has 0 bytes".to_owned()),
            size => Step::Split(size),
        },
        "<" => Step::Next(cursor.json()?),
        "<*" => Step::Until(cursor.json()?),
        "mark" => Step::Mark,
        "no" => Step::No(cursor.json()?),
        "some" => Step::Some(cursor.json()?),
        "maybe" => Step::Maybe(cursor.json()?),
        "count" => Step::Count(range(cursor)?, cursor.json()?),
        "order" => match cursor.json()? {
            Value::Array(patterns) => Step::Order(patterns),
            other => return Err(format!("{other} is no list of patterns")),
        },
        "said" | "unsaid" => said(cursor, word == "unsaid")?,
        "value" => Step::Value(cursor.json()?, cursor.json()?),
        "read" => Step::Read(name(cursor)?, cursor.text()?),
        "holds" => Step::Holds(name(cursor)?, cursor.text()?),
        "same" => Step::Same(name(cursor)?),
        "absent" => Step::Absent(name(cursor)?),
        "permission" => Step::Permission(permission(cursor)?),
        "elicitation" => Step::Elicitation(elicitation(cursor)?),
        "answer" => Step::Answer(name(cursor)?, how(cursor)?),
        "saw" => Step::Saw(true, cursor.text()?),
        "unseen" => Step::Saw(false, cursor.text()?),
        "asked" => Step::Asked(range(cursor)?),
        "dropped" => Step::Dropped,
        other => return request(other, cursor),
    })
}

/// The steps that send requests and notifications, and their answers.
fn request(word: &str, cursor: &mut Cursor<'_>) -> Result<Step, String> {
    Ok(match word {
        "initialize" => Step::Initialize(cursor.more_json()?),
        "session" => Step::Session(session(cursor), cursor.more_json()?),
        "load" => Step::Load(session(cursor), cursor.more_json()?),
        "resume" => Step::Resume(session(cursor), cursor.more_json()?),
        "cancel" => Step::Cancel(session(cursor)),
        "login" => Step::Login,
        "probe" => Step::Probe,
        "quiet" => Step::Quiet,
        "prompt" | "prompt+" | "prompt!" | "prompt!+" => {
            let content = match cursor.json()? {
                Value::String(text) => Content::Text(text),
                blocks => Content::Blocks(blocks),
            };
            let session = if cursor.take("in") {
                name(cursor)?
            } else {
                "session".to_owned()
            };
            Step::Prompt {
                content,
                session,
                name: named(cursor, "as", "prompt")?,
                broken: word.contains('!'),
                more: word.contains('+'),
            }
        }
        "call" | "call!" => {
            let method = name(cursor)?;
            let params = cursor.json()?;
            let name = named(cursor, "as", "call")?;
            let then = if !cursor.take("->") {
                None
            } else if cursor.take("any") {
                Some(Expect::Any)
            } else if cursor.take("error") {
                Some(Expect::Error(cursor.json()?))
            } else {
                Some(Expect::Result(cursor.json()?))
            };
            Step::Call {
                method,
                params,
                name,
                broken: word.contains('!'),
                then,
            }
        }
        "tell" | "tell!" => Step::Tell {
            method: name(cursor)?,
            params: cursor.more_json()?.unwrap_or(Value::Null),
            broken: word.contains('!'),
        },
        "answered" => {
            let expect = Expect::Result(cursor.json()?);
            Step::Answered(named(cursor, "for", "prompt")?, expect)
        }
        "refused" => {
            let expect = Expect::Error(cursor.json()?);
            Step::Answered(named(cursor, "for", "prompt")?, expect)
        }
        "ended" => Step::Answered(named(cursor, "for", "prompt")?, Expect::Any),
        other => return Err(format!("{other:?} is no step")),
    })
}

/// How a process ends.
fn code(cursor: &mut Cursor<'_>) -> Result<Option<i32>, String> {
    match cursor.need("the code, or `any`,")? {
        "any" => Ok(None),
        code => whole_number(code).map(Some),
    }
}

fn fixed(cursor: &mut Cursor<'_>, word: &str) -> Result<(), String> {
    if cursor.take(word) {
        Ok(())
    } else {
        Err(format!("`{word}` is missing"))
    }
}

fn name(cursor: &mut Cursor<'_>) -> Result<String, String> {
    let word = cursor.need("the name")?;
    Ok(word.to_owned())
}

/// The variable of a session: the next word, if it is no JSON.
fn session(cursor: &mut Cursor<'_>) -> String {
    let word = cursor.peek();
    let is_name = word.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let word = if is_name { cursor.word() } else { None };
    word.unwrap_or("session").to_owned()
}

fn named(cursor: &mut Cursor<'_>, word: &str, usual: &str) -> Result<String, String> {
    if cursor.take(word) {
        name(cursor)
    } else {
        Ok(usual.to_owned())
    }
}

fn start(cursor: &mut Cursor<'_>) -> Result<Start, String> {
    let mut start = Start {
        is_keyless: cursor.take("keyless"),
        ..Start::default()
    };
    if cursor.take("in") {
        start.folder = Some(name(cursor)?);
    }
    while let Some(word) = cursor.word() {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| format!("{word:?} is no KEY=VALUE"))?;
        start.variables.push((name.to_owned(), value.to_owned()));
    }
    Ok(start)
}

fn range(cursor: &mut Cursor<'_>) -> Result<Range, String> {
    let word = cursor.need("how many")?;
    let Some((from, to)) = word.split_once("..") else {
        let number = whole_number(word)?;
        return Ok(Range {
            from: number,
            to: Some(number),
        });
    };
    let bound = |word: &str| (!word.is_empty()).then(|| whole_number(word)).transpose();
    Ok(Range {
        from: bound(from)?.unwrap_or(0),
        to: bound(to)?,
    })
}

fn said(cursor: &mut Cursor<'_>, not: bool) -> Result<Step, String> {
    let voice = if cursor.take("user") {
        Voice::User
    } else if cursor.take("thought") {
        Voice::Thought
    } else {
        Voice::Agent
    };
    Ok(Step::Said {
        voice,
        text: cursor.quoted()?,
        session: named(cursor, "in", "session")?,
        not,
    })
}

fn permission(cursor: &mut Cursor<'_>) -> Result<Permission, String> {
    Ok(match cursor.rest().trim() {
        "allow_once" => Permission::AllowOnce,
        "allow_always" => Permission::AllowAlways,
        "reject_once" => Permission::RejectOnce,
        "reject_always" => Permission::RejectAlways,
        "cancelled" => Permission::Cancelled,
        "unknown" => Permission::Unknown,
        "strange" => Permission::Strange,
        "error" => Permission::Error,
        "never" => Permission::Never,
        "by hand" => Permission::ByHand,
        other => return Err(format!("{other:?} is no way to give permission")),
    })
}

fn elicitation(cursor: &mut Cursor<'_>) -> Result<Elicitation, String> {
    if cursor.take("accept") {
        if cursor.take("each") {
            return cursor.json().map(Elicitation::AcceptEach);
        }
        return cursor.json().map(Elicitation::Accept);
    }
    Ok(match cursor.rest().trim() {
        "decline" => Elicitation::Decline,
        "cancel" => Elicitation::Cancel,
        "strange" => Elicitation::Strange,
        "error" => Elicitation::Error,
        "by hand" => Elicitation::ByHand,
        other => return Err(format!("{other:?} is no way to answer an elicitation")),
    })
}

fn how(cursor: &mut Cursor<'_>) -> Result<How, String> {
    Ok(match cursor.need("how")? {
        "by" => match cursor.need("`hand` or `itself`")? {
            "hand" => How::ByHand,
            "itself" => How::ByItself,
            other => return Err(format!("{other:?} is neither `hand` nor `itself`")),
        },
        "error" => How::Error(whole_number(cursor.need("the code")?)?),
        "with" => How::With(cursor.json()?),
        other => return Err(format!("{other:?} is none of `by`, `error`, `with`")),
    })
}

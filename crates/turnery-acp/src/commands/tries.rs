//! `/try MODEL,MODEL [--pick HOW] PROMPT`: puts a prompt to several models at once and goes on from one
//! of their answers (LOOP-70), which is shown like any other.

use super::{Command, Reply, Typed};
use crate::{fault::Fault, methods::refused};
use turnery_agent::{Candidate, Pick, PromptOptions, StartError};
use turnery_engine::Content;
use turnery_models::ModelName;

pub(super) const COMMAND: Command = Command {
    name: "try",
    about: "Put a prompt to several models at once and go on from one answer",
    hint: Some("MODEL,MODEL [--pick first|fewest-tokens|most-tokens|judge] PROMPT"),
    needs_idle: true,
    run: |typed| Box::pin(run(typed)),
};

/// What was asked for, as far as it was said.
struct Asked<'a> {
    candidates: Vec<Candidate>,
    pick: Pick,
    prompt: &'a str,
}

/// Queued at the first poll, as any prompt is, so that a cancel on the next line finds it (CANCEL-9).
async fn run(typed: Typed) -> Result<Reply, Fault> {
    let session = typed.session;
    let asked = match read(&typed.args) {
        Ok(asked) => asked,
        Err(why) => return Ok(Reply::Said(why)),
    };
    let mut input = typed.rest;
    if !asked.prompt.is_empty() {
        input.insert(0, Content::text(asked.prompt));
    }
    if asked.candidates.is_empty() || input.is_empty() {
        return Ok(Reply::Said(
            "Name the models, and say what they are to do: `/try MODEL,MODEL PROMPT`. \
             `/model` shows the models that there are."
                .to_owned(),
        ));
    }
    let options = PromptOptions::cancelled_by(typed.scope.cancel);
    match session.evaluate(input, asked.candidates, asked.pick, options) {
        Ok(ticket) => Ok(Reply::Runs(ticket, |_| None)),
        Err(error @ StartError::Candidates(_)) => Ok(Reply::Said(format!("{error}."))),
        Err(error @ (StartError::Full(_) | StartError::Closed)) => Err(refused(&session, error)),
    }
}

/// The first word and what follows it.
fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

fn read(args: &str) -> Result<Asked<'_>, String> {
    let mut asked = Asked {
        candidates: Vec::new(),
        pick: Pick::First,
        prompt: args,
    };
    loop {
        let (first, rest) = word(asked.prompt);
        if first == "--pick" {
            let (how, rest) = word(rest);
            asked.pick = pick(how)?;
            asked.prompt = rest;
        } else if asked.candidates.is_empty() && !first.is_empty() {
            let names = first.split(',').map(str::parse::<ModelName>);
            let names = names.map(|name| name.map(Candidate::from));
            let names: Result<Vec<_>, _> = names.collect();
            asked.candidates = names.map_err(|error| format!("{error}."))?;
            asked.prompt = rest;
        } else {
            return Ok(asked);
        }
    }
}

fn pick(how: &str) -> Result<Pick, String> {
    match how {
        "first" => Ok(Pick::First),
        "fewest-tokens" => Ok(Pick::FewestTokens),
        "most-tokens" => Ok(Pick::MostTokens),
        "judge" => Ok(Pick::Judge(None)),
        other => Err(format!(
            "{other:?} is no way to pick an answer; write `first`, `fewest-tokens`, `most-tokens` or `judge`."
        )),
    }
}

//! `/try MODEL,MODEL [--pick HOW] PROMPT`: sends a prompt to several models at once and continues from one of
//! their answers, which is shown like any other (LOOP-70). `MODEL=MODE` lets a model work in a permission mode, in a
//! folder of its own, and `--judge-command 'LINE'` runs a command there to choose.

use crate::{
    commands::slash_command::{CommandCall, CommandOutcome, SlashCommand},
    methods::prompt_start::start_error,
    server::rpc_error::RpcError,
};
use turnery_agent::{Candidate, JudgeCommand, PromptOptions, SelectionStrategy, StartError};
use turnery_engine::Content;
use turnery_models::ModelName;
use turnery_tools::Mode;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "try",
    description: "Send a prompt to several models at once and continue from one answer",
    hint: Some(
        "MODEL[=MODE],MODEL[=MODE] [--pick first|fewest-tokens|most-tokens|judge] [--judge-command 'LINE'] PROMPT",
    ),
    needs_idle: true,
    run: |call| Box::pin(run(call)),
};

/// Arguments of the command.
struct TryArgs<'a> {
    candidates: Vec<Candidate>,
    pick: SelectionStrategy,
    prompt: &'a str,
}

/// Queues its prompt at the first poll, so that a cancel on the next line finds it (CANCEL-9).
async fn run(call: CommandCall) -> Result<CommandOutcome, RpcError> {
    let session = call.session;
    let parsed = match parse_args(&call.args) {
        Ok(parsed) => parsed,
        Err(why) => return Ok(CommandOutcome::Text(why)),
    };
    let mut input = call.attachments;
    if !parsed.prompt.is_empty() {
        input.insert(0, Content::text(parsed.prompt));
    }
    if parsed.candidates.is_empty() || input.is_empty() {
        return Ok(CommandOutcome::Text(
            "Name the models and add a prompt: `/try MODEL,MODEL PROMPT`. \
             `/model` lists the models."
                .to_owned(),
        ));
    }
    let options = PromptOptions::cancelled_by(call.scope.cancel);
    match session.evaluate(input, parsed.candidates, parsed.pick, options) {
        Ok(ticket) => Ok(CommandOutcome::Prompt(ticket, |_| None)),
        Err(error @ StartError::Candidates(_)) => Ok(CommandOutcome::Text(format!("{error}."))),
        Err(error @ (StartError::Full(_) | StartError::Closed)) => {
            Err(start_error(&session, error))
        }
    }
}

/// Splits off the first word.
fn split_first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

fn parse_args(args: &str) -> Result<TryArgs<'_>, String> {
    let mut parsed = TryArgs {
        candidates: Vec::new(),
        pick: SelectionStrategy::First,
        prompt: args,
    };
    loop {
        let (first, rest) = split_first_word(parsed.prompt);
        if first == "--pick" {
            let (how, rest) = split_first_word(rest);
            parsed.pick = parse_pick(how)?;
            parsed.prompt = rest;
        } else if first == "--judge-command" {
            let (line, rest) = split_quoted(rest)?;
            parsed.pick = SelectionStrategy::Command(JudgeCommand::new(line));
            parsed.prompt = rest;
        } else if parsed.candidates.is_empty() && !first.is_empty() {
            let candidates = first.split(',').map(parse_candidate);
            parsed.candidates = candidates.collect::<Result<_, _>>()?;
            parsed.prompt = rest;
        } else {
            return Ok(parsed);
        }
    }
}

/// Parses `MODEL` or `MODEL=MODE`.
fn parse_candidate(text: &str) -> Result<Candidate, String> {
    let (name, mode) = match text.split_once('=') {
        Some((name, mode)) => (name, Some(mode)),
        None => (text, None),
    };
    let model: ModelName = name.parse().map_err(|error| format!("{error}."))?;
    let find = |mode: &str| {
        Mode::parse(mode)
            .ok_or_else(|| format!("{mode:?} is not a mode; use `ask`, `edit`, `plan` or `auto`."))
    };
    Ok(Candidate {
        mode: mode.map(find).transpose()?,
        ..Candidate::from(model)
    })
}

/// Splits off a command line in quotes.
fn split_quoted(text: &str) -> Result<(&str, &str), String> {
    let quoted = ['\'', '"'].into_iter().find_map(|quote| {
        let (line, rest) = text.strip_prefix(quote)?.split_once(quote)?;
        Some((line, rest.trim_start()))
    });
    quoted.ok_or_else(|| {
        "Put the judging command into quotes: `--judge-command 'cargo test'`.".to_owned()
    })
}

fn parse_pick(how: &str) -> Result<SelectionStrategy, String> {
    match how {
        "first" => Ok(SelectionStrategy::First),
        "fewest-tokens" => Ok(SelectionStrategy::FewestTokens),
        "most-tokens" => Ok(SelectionStrategy::MostTokens),
        "judge" => Ok(SelectionStrategy::Judge(None)),
        other => Err(format!(
            "{other:?} is not a way to pick an answer; use `first`, `fewest-tokens`, `most-tokens` or `judge`."
        )),
    }
}

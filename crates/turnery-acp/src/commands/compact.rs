//! `/compact`: summarises older messages now, before the context is full (LOOP-21).

use super::{Command, Reply, Typed};
use crate::{fault::Fault, methods::refused};
use turnery_agent::{PromptOptions, PromptResult};
use turnery_engine::EventKind;

pub(super) const COMMAND: Command = Command {
    name: "compact",
    about: "Summarise older messages",
    hint: None,
    needs_idle: true,
    run: |typed| Box::pin(run(typed)),
};

async fn run(typed: Typed) -> Result<Reply, Fault> {
    let options = PromptOptions::cancelled_by(typed.scope.cancel);
    match typed.session.compact(options) {
        Ok(ticket) => Ok(Reply::Runs(ticket, closing)),
        Err(error) => Err(refused(&typed.session, error)),
    }
}

fn closing(result: &PromptResult) -> Option<String> {
    let events = result.loops.iter().flat_map(|record| &record.events);
    let ended = events.rev().find_map(|event| {
        if let EventKind::CompactionEnded { block, failure, .. } = &event.kind {
            return Some((block, failure));
        }
        None
    })?;
    Some(match ended {
        (Some(_), _) => "Older messages were summarised.".to_owned(),
        (None, Some(why)) => format!("Nothing was summarised: {}.", why.trim_end_matches('.')),
        (None, None) => "Nothing was summarised.".to_owned(),
    })
}

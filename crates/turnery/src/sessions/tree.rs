//! Tree: the loops of a session, one a line: what each follows, how it ended, and what it took.

use crate::{
    run::{exit, number},
    show::line,
};
use serde_json::Value;
use std::{
    collections::HashSet,
    io::{self, Write},
    sync::Arc,
};
use turnery_agent::PromptResult;
use turnery_engine::{LoopId, LoopRecord, context::chain};

/// Longest name of a model. Unit: characters.
const MODEL: usize = 40;

/// Write the table. `*` is the loop that the next prompt follows; `-` are those that the model does not see.
pub(super) fn write(
    loops: &[Arc<LoopRecord>],
    tip: Option<&LoopId>,
    out: &mut impl Write,
) -> io::Result<()> {
    let seen = seen(loops, tip);
    writeln!(
        out,
        "\n  loop  after  kind        status     outcome         tokens  model"
    )?;
    for record in loops {
        let mark = match (tip == Some(&record.loop_id), seen.contains(&record.loop_id)) {
            (true, _) => '*',
            (false, true) => ' ',
            (false, false) => '-',
        };
        let parent = record.parent_loop_id.as_ref();
        writeln!(
            out,
            "{mark} {:>4}  {:>5}  {:<10}  {:<9}  {:<14}  {:>6}  {}",
            number(&record.loop_id),
            parent.map_or("", number),
            word(&record.continuation_kind),
            word(&record.status),
            outcome(record),
            record.usage.total(),
            line(&model(record), MODEL),
        )?;
    }
    Ok(())
}

/// The loops that the next prompt follows.
pub(super) fn seen(loops: &[Arc<LoopRecord>], tip: Option<&LoopId>) -> HashSet<LoopId> {
    let chain = chain(loops, tip);
    chain.iter().map(|it| it.loop_id.clone()).collect()
}

/// The word for it in records.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

fn outcome(record: &LoopRecord) -> &'static str {
    let outcome = record.outcome.clone();
    outcome.map_or("", |outcome| {
        exit::of(&PromptResult::new(outcome, record.detail.clone())).outcome
    })
}

fn model(record: &LoopRecord) -> String {
    match &record.config {
        Some(config) if config.model.is_empty() => config.provider.clone(),
        Some(config) => format!("{}/{}", config.provider, config.model),
        None => String::new(),
    }
}

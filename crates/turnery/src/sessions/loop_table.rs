//! Prints the loops of a session as a table: parent, outcome and usage.

use crate::{run::loop_number, terminal_text::first_line};
use serde_json::Value;
use std::{
    collections::HashSet,
    io::{self, Write},
    sync::Arc,
};
use turnery_engine::{LoopId, LoopRecord, Message, context::loop_chain};
use turnery_models::ModelName;

/// Longest name of a model. Unit: characters.
const MODEL_WIDTH: usize = 40;

/// Writes the table. `*` marks the loop that the next prompt follows, `-` loops that the model does not see.
pub(super) fn write_loop_table(
    loops: &[Arc<LoopRecord>],
    tip: Option<&LoopId>,
    out: &mut impl Write,
) -> io::Result<()> {
    let seen = visible_loops(loops, tip);
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
            loop_number(&record.loop_id),
            parent.map_or("", loop_number),
            serialized_name(&record.continuation_kind),
            serialized_name(&record.status),
            outcome_name(record),
            record.usage.total(),
            first_line(&model_name(record), MODEL_WIDTH),
        )?;
    }
    Ok(())
}

/// Returns the ids of the loops that the model sees: the loop at `tip` and those that it follows.
pub(super) fn visible_loops(loops: &[Arc<LoopRecord>], tip: Option<&LoopId>) -> HashSet<LoopId> {
    let chain = loop_chain(loops, tip);
    chain.iter().map(|it| it.loop_id.clone()).collect()
}

/// Returns the name that `value` has in stored records.
pub(super) fn serialized_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(serialized_name)) => serialized_name,
        Ok(_) | Err(_) => String::new(),
    }
}

fn outcome_name(record: &LoopRecord) -> &'static str {
    let outcome = record.outcome.as_ref();
    outcome.map_or("", |outcome| outcome.report().name)
}

/// Returns the model that gave the last answer of a loop, or that the loop was begun with if none did.
pub(crate) fn model_name(record: &LoopRecord) -> String {
    let answered = record.messages.iter().rev().find_map(|message| {
        let Message::Assistant {
            provider,
            request: Some(request),
            error: None,
            ..
        } = &message.message
        else {
            return None;
        };
        // The response may name a version of the model.
        Some(ModelName::new(provider, &request.model).to_string())
    });
    answered.unwrap_or_else(|| match &record.config {
        Some(config) if config.model.is_empty() => config.provider.clone(),
        Some(config) => format!("{}/{}", config.provider, config.model),
        None => String::new(),
    })
}

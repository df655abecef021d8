//! Usage report: what a session has spent so far, for what and with which model (LASH-105, I8 to I11).

use crate::Session;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use turnery_engine::{LoopId, LoopRecord, Message, MessageId, SessionId, Usage, usage::source};
use turnery_store::StoreError;

/// The model of what no record names one for.
const UNKNOWN: &str = "unknown";

/// What was spent for one purpose with one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    /// For what: see [`usage::source`](crate::usage::source).
    pub source: String,
    /// `provider/model`.
    pub model: String,
    /// Tokens.
    #[serde(flatten, serialize_with = "crate::activity::buckets")]
    pub usage: Usage,
}

/// What a session has spent so far: one row for each purpose and model, sorted. Each token is in one row
/// only, so the rows add up to the total, by purpose and by model alike (I8).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageReport {
    rows: Vec<UsageRow>,
}

impl UsageReport {
    /// The report of these loops: all of a session's, branches that were not chosen and refused ones too
    /// (I9). Loops that were copied with a session were paid for in their own, and are not counted again.
    #[must_use]
    pub fn of<'r>(records: impl IntoIterator<Item = &'r LoopRecord>) -> Self {
        let mut ledger = Ledger::default();
        let here = |record: &&LoopRecord| record.copied_from.is_none();
        for record in records.into_iter().filter(here) {
            ledger.add(record);
        }
        ledger.report()
    }

    /// The rows, sorted by purpose, then by model.
    #[must_use]
    pub fn rows(&self) -> &[UsageRow] {
        &self.rows
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> Usage {
        self.rows.iter().fold(Usage::default(), |mut total, row| {
            total += row.usage;
            total
        })
    }

    /// By purpose.
    #[must_use]
    pub fn by_source(&self) -> BTreeMap<&str, Usage> {
        self.sums(|row| &row.source)
    }

    /// By model.
    #[must_use]
    pub fn by_model(&self) -> BTreeMap<&str, Usage> {
        self.sums(|row| &row.model)
    }

    fn sums(&self, key: impl Fn(&UsageRow) -> &str) -> BTreeMap<&str, Usage> {
        let mut sums: BTreeMap<&str, Usage> = BTreeMap::new();
        for row in &self.rows {
            *sums.entry(key(row)).or_default() += row.usage;
        }
        sums
    }
}

/// What child sessions of these loops spent (I6).
pub(crate) fn children_usage<'r>(
    records: impl IntoIterator<Item = &'r LoopRecord>,
) -> Vec<UsageRow> {
    let mut ledger = Ledger::default();
    for record in records {
        ledger.children(record);
    }
    ledger.report().rows
}

impl Session {
    /// What the session has spent so far, from what is stored of it: the loop that runs now is not in it
    /// (LASH-105).
    pub async fn usage_report(&self) -> Result<UsageReport, StoreError> {
        let records = self.records().await?;
        Ok(UsageReport::of(records.iter().map(|record| &**record)))
    }
}

/// Sums in the making.
#[derive(Default)]
struct Ledger<'r> {
    rows: BTreeMap<(&'r str, String), Usage>,
    /// The last figure of each child session, purpose and model (I6): it counts on over all loops.
    children: HashMap<(&'r SessionId, &'r str, &'r str), Usage>,
    /// Parallel groups that have been counted: a judge is on the record of each branch (I10).
    judged: HashSet<&'r [LoopId]>,
}

impl<'r> Ledger<'r> {
    fn add(&mut self, record: &'r LoopRecord) {
        self.turns(record);
        self.children(record);
        if let Some(spent) = record.compaction_usage {
            self.spend(source::COMPACTION, asked_for(record), spent);
        }
        if let Some(group) = &record.parallel_group
            && self.judged.insert(&group.all_loop_ids)
        {
            self.spend(
                source::EVALUATION,
                group.judge.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
                group.evaluation_usage,
            );
        }
    }

    fn children(&mut self, record: &'r LoopRecord) {
        for child in &record.children_usage {
            let key = (&child.session_id, &*child.source, &*child.model);
            self.children.insert(key, child.cumulative);
        }
    }

    /// Each turn to the model that answered it: a session may change its model between two turns.
    fn turns(&mut self, record: &'r LoopRecord) {
        let answered: HashMap<&MessageId, String> = record
            .messages
            .iter()
            .filter_map(|message| match &message.message {
                Message::Assistant {
                    provider, model, ..
                } => Some((&message.message_id, format!("{provider}/{model}"))),
                Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
            })
            .collect();
        let mut attributed = Usage::default();
        for turn in &record.turns {
            let Some(spent) = turn.usage else {
                continue;
            };
            let model = turn.output_message.as_ref().and_then(|id| answered.get(id));
            let model = model.cloned().unwrap_or_else(|| asked_for(record));
            attributed += spent;
            self.spend(source::TURN, model, spent);
        }
        // Records from before there were turns (LOOP-61).
        let rest = less(record.usage, attributed);
        if rest != Usage::default() {
            self.spend(source::TURN, asked_for(record), rest);
        }
    }

    fn spend(&mut self, source: &'r str, model: String, spent: Usage) {
        if spent != Usage::default() {
            *self.rows.entry((source, model)).or_default() += spent;
        }
    }

    fn report(mut self) -> UsageReport {
        for ((_, source, model), spent) in std::mem::take(&mut self.children) {
            self.spend(source, model.to_owned(), spent);
        }
        let rows = self.rows.into_iter();
        UsageReport {
            rows: rows
                .map(|((source, model), usage)| UsageRow {
                    source: source.to_owned(),
                    model,
                    usage,
                })
                .collect(),
        }
    }
}

/// The model that a loop was started with.
fn asked_for(record: &LoopRecord) -> String {
    match &record.config {
        Some(config) => format!("{}/{}", config.provider, config.model),
        None => UNKNOWN.to_owned(),
    }
}

fn less(all: Usage, part: Usage) -> Usage {
    Usage {
        input: all.input.saturating_sub(part.input),
        output: all.output.saturating_sub(part.output),
        reasoning: all.reasoning.saturating_sub(part.reasoning),
        cache_read: all.cache_read.saturating_sub(part.cache_read),
        cache_write: all.cache_write.saturating_sub(part.cache_write),
    }
}

//! Reports the token usage of a session by purpose and model (LASH-105, I8 to I11).

use serde::Serialize;
use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap, HashSet},
};
use turnery_engine::{LoopId, LoopRecord, Message, MessageId, SessionId, Usage, usage::source};

/// Model name for usage without a recorded model.
const UNKNOWN_MODEL: &str = "unknown";

/// Token usage for one purpose and model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    /// Purpose: see [`usage::source`](crate::usage::source).
    pub source: String,
    /// `provider/model`.
    pub model: String,
    /// Token counts.
    #[serde(flatten, serialize_with = "crate::activity::serialize_usage")]
    pub usage: Usage,
}

/// Token usage of a session: one row for each purpose and model, sorted. Each token is in exactly one row, so
/// both purposes and models add up to the total (I8).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageReport {
    rows: Vec<UsageRow>,
    /// Usage of the single requests of each row, as far as they are known.
    #[serde(skip)]
    requests: Vec<Vec<Usage>>,
}

impl UsageReport {
    /// Creates the report of these loops: all loops of a session, including rejected ones and branches that
    /// were not chosen (I9). Loops copied from another session are skipped: they are counted there.
    #[must_use]
    pub fn from_records<'r, R: Borrow<LoopRecord> + 'r>(
        records: impl IntoIterator<Item = &'r R>,
    ) -> Self {
        let mut ledger = UsageLedger::default();
        let records = records.into_iter().map(R::borrow);
        for record in records.filter(|record| record.copied_from.is_none()) {
            ledger.add_record(record);
        }
        ledger.into_report()
    }

    /// Returns the rows, sorted by purpose, then by model.
    #[must_use]
    pub fn rows(&self) -> &[UsageRow] {
        &self.rows
    }

    /// Returns the rows, each with the usage of its requests as far as they are known one by one.
    pub(crate) fn rows_with_requests(&self) -> impl Iterator<Item = (&UsageRow, &[Usage])> {
        let requests = self.requests.iter().map(Vec::as_slice);
        self.rows.iter().zip(requests)
    }

    /// Returns the total usage.
    #[must_use]
    pub fn total(&self) -> Usage {
        self.rows.iter().fold(Usage::default(), |mut total, row| {
            total += row.usage;
            total
        })
    }

    /// Returns the usage by purpose.
    #[must_use]
    pub fn by_source(&self) -> BTreeMap<&str, Usage> {
        self.sum_by(|row| &row.source)
    }

    /// Returns the usage by model.
    #[must_use]
    pub fn by_model(&self) -> BTreeMap<&str, Usage> {
        self.sum_by(|row| &row.model)
    }

    fn sum_by(&self, key: impl Fn(&UsageRow) -> &str) -> BTreeMap<&str, Usage> {
        let mut sums: BTreeMap<&str, Usage> = BTreeMap::new();
        for row in &self.rows {
            *sums.entry(key(row)).or_default() += row.usage;
        }
        sums
    }
}

/// Returns the usage of the child sessions of these loops (I6).
pub(crate) fn child_usage_rows<'r>(
    records: impl IntoIterator<Item = &'r LoopRecord>,
) -> Vec<UsageRow> {
    let mut ledger = UsageLedger::default();
    for record in records {
        ledger.add_children(record);
    }
    ledger.into_report().rows
}

/// Accumulator of a [`UsageReport`].
#[derive(Default)]
struct UsageLedger<'r> {
    rows: BTreeMap<(&'r str, String), RowTotal>,
    /// Last cumulative usage of each child session, purpose and model (I6), across all loops.
    child_totals: HashMap<(&'r SessionId, &'r str, &'r str), Usage>,
    /// Parallel groups already counted: each branch's record carries the same judge (I10).
    counted_groups: HashSet<&'r [LoopId]>,
}

#[derive(Default)]
struct RowTotal {
    usage: Usage,
    requests: Vec<Usage>,
}

impl<'r> UsageLedger<'r> {
    fn add_record(&mut self, record: &'r LoopRecord) {
        self.add_turns(record);
        self.add_children(record);
        if let Some(spent) = record.compaction_usage {
            // A sum if a loop was compacted several times, which is rare.
            self.add_request(source::COMPACTION, configured_model(record), spent);
        }
        if let Some(group) = &record.parallel_group
            && self.counted_groups.insert(&group.all_loop_ids)
        {
            self.add_request(
                source::EVALUATION,
                group
                    .judge
                    .clone()
                    .unwrap_or_else(|| UNKNOWN_MODEL.to_owned()),
                group.evaluation_usage,
            );
        }
    }

    fn add_children(&mut self, record: &'r LoopRecord) {
        for child in &record.children_usage {
            let key = (&child.session_id, &*child.source, &*child.model);
            self.child_totals.insert(key, child.cumulative);
        }
    }

    /// Attributes each turn to the model that answered it: a session may change its model between turns.
    fn add_turns(&mut self, record: &'r LoopRecord) {
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
            let model = model.cloned().unwrap_or_else(|| configured_model(record));
            attributed += spent;
            self.add_request(source::TURN, model, spent);
        }
        // Usage of old records that store no turns (LOOP-61).
        let rest = subtract_usage(record.usage, attributed);
        if rest != Usage::default() {
            self.add_usage(source::TURN, configured_model(record), rest);
        }
    }

    /// Adds the usage of one request.
    fn add_request(&mut self, source: &'r str, model: String, spent: Usage) {
        if let Some(row) = self.add_usage(source, model, spent) {
            row.requests.push(spent);
        }
    }

    fn add_usage(&mut self, source: &'r str, model: String, spent: Usage) -> Option<&mut RowTotal> {
        if spent == Usage::default() {
            return None;
        }
        let row = self.rows.entry((source, model)).or_default();
        row.usage += spent;
        Some(row)
    }

    fn into_report(mut self) -> UsageReport {
        for ((_, source, model), spent) in std::mem::take(&mut self.child_totals) {
            self.add_usage(source, model.to_owned(), spent);
        }
        let rows = self.rows.into_iter().map(|((source, model), total)| {
            let row = UsageRow {
                source: source.to_owned(),
                model,
                usage: total.usage,
            };
            (row, total.requests)
        });
        let (rows, requests) = rows.unzip();
        UsageReport { rows, requests }
    }
}

/// Returns the model that a loop was started with.
fn configured_model(record: &LoopRecord) -> String {
    match &record.config {
        Some(config) => format!("{}/{}", config.provider, config.model),
        None => UNKNOWN_MODEL.to_owned(),
    }
}

pub(crate) fn subtract_usage(all: Usage, part: Usage) -> Usage {
    Usage {
        input: all.input.saturating_sub(part.input),
        output: all.output.saturating_sub(part.output),
        reasoning: all.reasoning.saturating_sub(part.reasoning),
        cache_read: all.cache_read.saturating_sub(part.cache_read),
        cache_write: all.cache_write.saturating_sub(part.cache_write),
    }
}

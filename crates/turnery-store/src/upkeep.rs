//! Data types that describe a store, and what its sessions have used.

use std::collections::BTreeMap;
use turnery_engine::{LoopRecord, SessionId, Timestamp, Usage};

/// Model of usage whose loop has no configuration.
const UNKNOWN_MODEL: &str = "unknown";

/// Facts of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreDescription {
    /// Kind of the store, for example `SQLite`.
    pub kind: &'static str,
    /// Place of the store without passwords, for example the path of its file.
    pub location: String,
    /// Size on disk with all that belongs to it; `None` if that is not known. Unit: bytes.
    pub bytes: Option<u64>,
    /// Space in it that deleted sessions have left. Unit: bytes.
    pub free_bytes: u64,
    /// Number of sessions, including archived ones and those of sub-agents.
    pub sessions: u64,
    /// Version of the format; `None` if there is only one.
    pub format: Option<u64>,
}

/// Result of [`Store::vacuum`](crate::Store::vacuum).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceReport {
    /// Size before. Unit: bytes.
    pub bytes_before: u64,
    /// Size after. Unit: bytes.
    pub bytes_after: u64,
    /// True if space is left that could not be given back, since others use the store.
    pub is_incomplete: bool,
}

/// Usage of the loops of one session on one day with one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DailyUsage {
    /// The session. Sub-agents have sessions of their own.
    pub session_id: SessionId,
    /// Day in UTC, as `2026-11-21`.
    pub day: String,
    /// Model as `provider/model`: the one that the loop was configured with, or a judge.
    pub model: String,
    /// Number of turns: requests to the model that it answered.
    pub turns: u64,
    /// Tokens of turns, summaries and judgements.
    pub usage: Usage,
}

/// Usage of a session by day and model.
#[derive(Debug, Default)]
pub(crate) struct UsageByDay(BTreeMap<(String, String), (u64, Usage)>);

impl UsageByDay {
    /// Adds what a loop has used at `since` or later. Loops copied from another session count there.
    pub(crate) fn add(&mut self, record: &LoopRecord, since: Option<Timestamp>) {
        if record.copied_from.is_some() {
            return;
        }
        let model = match &record.config {
            Some(config) if config.model.is_empty() => config.provider.clone(),
            Some(config) => format!("{}/{}", config.provider, config.model),
            None => UNKNOWN_MODEL.to_owned(),
        };
        let mut add = |model: &str, at: Timestamp, turns: u64, usage: Usage| {
            if since.is_none_or(|since| at >= since) {
                let day = at.format("%Y-%m-%d").to_string();
                let sum = self.0.entry((day, model.to_owned())).or_default();
                sum.0 += turns;
                sum.1 += usage;
            }
        };
        for turn in &record.turns {
            let at = turn.ended_at.unwrap_or(turn.started_at);
            add(&model, at, 1, turn.usage.unwrap_or_default());
        }
        let ended_at = record.ended_at.unwrap_or(record.started_at);
        if let Some(usage) = record.compaction_usage {
            add(&model, ended_at, 0, usage);
        }
        // Each branch of a group says what the judge has used.
        if let Some(group) = &record.parallel_group
            && group.is_selected
            && group.evaluation_usage != Usage::default()
        {
            let judge = group.judge.as_deref().unwrap_or(UNKNOWN_MODEL);
            add(judge, ended_at, 0, group.evaluation_usage);
        }
    }

    /// Returns the rows of a session, ordered by day, then model.
    pub(crate) fn into_rows(self, session_id: &SessionId) -> impl Iterator<Item = DailyUsage> {
        self.0
            .into_iter()
            .map(|((day, model), (turns, usage))| DailyUsage {
                session_id: session_id.clone(),
                day,
                model,
                turns,
                usage,
            })
    }
}

//! Collects all evidence of token usage that a session leaves behind, from every source.

use crate::{
    fixture::World,
    toy::{TestModel, ToyResponse},
};
use std::{collections::BTreeMap, sync::Arc};
use turnery_engine::{EventKind, LoopRecord, SessionId, Usage};
use turnery_sdk::{
    ModelCallAttempt, PromptActivity, PromptResult, UsageReport, UsageRow, usage::source,
};
use turnery_store::ListQuery;

/// Purpose and model.
pub(crate) type Row = (String, String);

/// Figures of a usage report.
#[derive(Clone, Debug)]
pub(crate) struct ReportFigures {
    pub(crate) rows: Vec<UsageRow>,
    pub(crate) total: Usage,
    pub(crate) by_source: BTreeMap<String, Usage>,
    pub(crate) by_model: BTreeMap<String, Usage>,
}

/// Result of a prompt.
#[derive(Clone, Debug)]
pub(crate) struct PromptFigures {
    pub(crate) result: PromptResult,
    pub(crate) children: Vec<UsageRow>,
    pub(crate) total: Usage,
}

/// StoredSession session.
#[derive(Clone, Debug)]
pub(crate) struct StoredSession {
    pub(crate) spawned_by: Option<SessionId>,
    pub(crate) records: Vec<LoopRecord>,
    pub(crate) report: ReportFigures,
}

#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    /// Session that the user sees.
    pub(crate) root: SessionId,
    /// The root session and its sub-agents' sessions.
    pub(crate) sessions: BTreeMap<SessionId, StoredSession>,
    pub(crate) prompts: Vec<PromptFigures>,
    /// All activities of the root.
    pub(crate) shown: Vec<PromptActivity>,
    /// Reports of the root, in order.
    pub(crate) reports: Vec<ReportFigures>,
    /// Records of the trace sink.
    pub(crate) calls: Vec<ModelCallAttempt>,
    /// Usage claimed by the test models themselves, independent of the code under test.
    pub(crate) answered: Vec<ToyResponse>,
    /// Number of failed attempts of model calls, counted by the test models.
    pub(crate) failed: usize,
    /// Usage of child sessions that are not in the store.
    pub(crate) hired: Usage,
}

impl From<&UsageReport> for ReportFigures {
    fn from(report: &UsageReport) -> Self {
        let owned = |sums: BTreeMap<&str, Usage>| {
            let owned = sums.into_iter();
            owned.map(|(key, usage)| (key.to_owned(), usage)).collect()
        };
        Self {
            rows: report.rows().to_vec(),
            total: report.total(),
            by_source: owned(report.by_source()),
            by_model: owned(report.by_model()),
        }
    }
}

impl From<PromptResult> for PromptFigures {
    fn from(result: PromptResult) -> Self {
        Self {
            children: result.children_usage(),
            total: result.total_usage(),
            result,
        }
    }
}

pub(crate) fn sum(parts: impl IntoIterator<Item = Usage>) -> Usage {
    parts.into_iter().fold(Usage::default(), |sum, part| Usage {
        input: sum.input + part.input,
        output: sum.output + part.output,
        reasoning: sum.reasoning + part.reasoning,
        cache_read: sum.cache_read + part.cache_read,
        cache_write: sum.cache_write + part.cache_write,
    })
}

/// Returns the nonzero sums by key.
pub(crate) fn sums<K: Ord>(parts: impl IntoIterator<Item = (K, Usage)>) -> BTreeMap<K, Usage> {
    let mut sums: BTreeMap<K, Usage> = BTreeMap::new();
    for (key, usage) in parts {
        let before = sums.remove(&key).unwrap_or_default();
        sums.insert(key, sum([before, usage]));
    }
    sums.retain(|_, sum| *sum != Usage::default());
    sums
}

pub(crate) fn rows(rows: &[UsageRow]) -> BTreeMap<Row, Usage> {
    sums(rows.iter().map(|row| (key(row), row.usage)))
}

pub(crate) fn key(row: &UsageRow) -> Row {
    (row.source.clone(), row.model.clone())
}

/// Normalizes claimed usage: reasoning is part of the output.
pub(crate) fn normalised_usage(claimed: Usage) -> Usage {
    Usage {
        reasoning: claimed.reasoning.min(claimed.output),
        ..claimed
    }
}

/// Returns the usage events of a loop: turn, usage of the turn, and cumulative usage.
pub(crate) fn reported_usages(record: &LoopRecord) -> Vec<(Option<u32>, Option<Usage>, Usage)> {
    let events = record.events.iter();
    events
        .filter_map(|event| match &event.kind {
            EventKind::UsageReported { usage, cumulative } => {
                Some((event.turn_index, *usage, *cumulative))
            }
            _ => None,
        })
        .collect()
}

impl Evidence {
    /// Collects everything once the session is closed and idle.
    pub(crate) async fn gather(
        world: &World,
        root: SessionId,
        prompts: Vec<PromptFigures>,
        shown: Vec<PromptActivity>,
        reports: Vec<ReportFigures>,
    ) -> Self {
        let all = ListQuery {
            spawned: true,
            limit: 1000,
            ..ListQuery::default()
        };
        let mut sessions = BTreeMap::new();
        for info in world.store.list(all).await.unwrap().sessions {
            let records = world.store.loops(&info.id, 0).await.unwrap();
            let stored = StoredSession {
                spawned_by: info.spawned_by.map(|call| call.session_id),
                report: ReportFigures::from(&UsageReport::from_records(&records)),
                records: records.into_iter().map(Arc::unwrap_or_clone).collect(),
            };
            sessions.insert(info.id, stored);
        }
        let toys = [&world.toy, &world.second];
        let answered = |toy: &Arc<TestModel>| toy.answered.lock().unwrap().clone();
        let failed = |toy: &Arc<TestModel>| *toy.failed.lock().unwrap();
        Self {
            root,
            sessions,
            prompts,
            shown,
            reports,
            calls: world.traced_calls(),
            answered: toys.into_iter().flat_map(answered).collect(),
            failed: toys.into_iter().map(failed).sum(),
            hired: *world.hired.lock().unwrap(),
        }
    }

    /// Iterates over the loops of all sessions.
    pub(crate) fn records(&self) -> impl Iterator<Item = &LoopRecord> {
        self.sessions.values().flat_map(|stored| &stored.records)
    }

    pub(crate) fn root(&self) -> &StoredSession {
        &self.sessions[&self.root]
    }

    pub(crate) fn root_mut(&mut self) -> &mut StoredSession {
        self.sessions.get_mut(&self.root).unwrap()
    }

    /// Returns the usage claimed by the models in a session for a purpose.
    pub(crate) fn responses_for<'a>(
        &'a self,
        session: &'a SessionId,
        purpose: &'a str,
    ) -> impl Iterator<Item = Usage> {
        let answered = self.answered.iter();
        let those = answered.filter(move |it| it.session_id == *session && it.source == purpose);
        those.filter_map(|it| it.usage.map(normalised_usage))
    }

    /// Returns true if `session` is `other` or one of its descendants.
    fn is_descendant(&self, session: &SessionId, other: &SessionId) -> bool {
        session == other
            || self.sessions[session]
                .spawned_by
                .as_ref()
                .is_some_and(|parent| self.is_descendant(parent, other))
    }

    /// Returns the usage of a session and its descendants as claimed by the models, by purpose and model.
    /// Turns of descendants count as `subagent`.
    pub(crate) fn expected_usage(&self, session: &SessionId) -> BTreeMap<Row, Usage> {
        let answered = self.answered.iter();
        let below = answered.filter(|it| self.is_descendant(&it.session_id, session));
        sums(below.filter_map(|it| {
            let purpose = match it.source == source::TURN && it.session_id != *session {
                true => source::SUBAGENT,
                false => it.source,
            };
            let row = (purpose.to_owned(), it.model.clone());
            it.usage.map(|usage| (row, normalised_usage(usage)))
        }))
    }
}

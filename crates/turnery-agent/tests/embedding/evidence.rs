//! Evidence: all that a session's life leaves behind that tells of tokens, from whoever told it.

use crate::{
    toy::{Answered, Toy},
    world::World,
};
use std::{collections::BTreeMap, sync::Arc};
use turnery_agent::{ModelCall, PromptResult, TurnActivity, UsageReport, UsageRow, usage::source};
use turnery_engine::{EventKind, LoopRecord, SessionId, Usage};
use turnery_store::ListQuery;

/// Purpose and model.
pub(crate) type Row = (String, String);

/// What a report says, each of its figures by itself.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) rows: Vec<UsageRow>,
    pub(crate) total: Usage,
    pub(crate) by_source: BTreeMap<String, Usage>,
    pub(crate) by_model: BTreeMap<String, Usage>,
}

/// What came of a prompt.
#[derive(Clone, Debug)]
pub(crate) struct Prompted {
    pub(crate) result: PromptResult,
    pub(crate) children: Vec<UsageRow>,
    pub(crate) total: Usage,
}

/// A session as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) spawned_by: Option<SessionId>,
    pub(crate) records: Vec<LoopRecord>,
    pub(crate) report: Told,
}

#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    /// The session that the person knows.
    pub(crate) root: SessionId,
    /// That one and its sub-agents'.
    pub(crate) sessions: BTreeMap<SessionId, Stored>,
    pub(crate) prompts: Vec<Prompted>,
    /// All activities of the root.
    pub(crate) shown: Vec<TurnActivity>,
    /// Of the root, one after another.
    pub(crate) reports: Vec<Told>,
    /// What the trace sink was told.
    pub(crate) calls: Vec<ModelCall>,
    /// What the models themselves say: nothing of it comes from the code under test.
    pub(crate) answered: Vec<Answered>,
    pub(crate) failed: usize,
    /// What children that are not in the store say.
    pub(crate) hired: Usage,
}

impl From<&UsageReport> for Told {
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

impl From<PromptResult> for Prompted {
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

/// Sums without those that are nothing.
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

/// How what an answer claims is to be understood: reasoning is part of the output.
pub(crate) fn understood(claimed: Usage) -> Usage {
    Usage {
        reasoning: claimed.reasoning.min(claimed.output),
        ..claimed
    }
}

/// What a loop's stream says of tokens, turn by turn: of the turn, and of the loop so far.
pub(crate) fn usages(record: &LoopRecord) -> Vec<(Option<u32>, Option<Usage>, Usage)> {
    let told = record.events.iter();
    told.filter_map(|event| match &event.kind {
        EventKind::UsageReported { usage, cumulative } => {
            Some((event.turn_index, *usage, *cumulative))
        }
        _ => None,
    })
    .collect()
}

impl Evidence {
    /// All that is known once the session is closed and nothing is at work any more.
    pub(crate) async fn gather(
        world: &World,
        root: SessionId,
        prompts: Vec<Prompted>,
        shown: Vec<TurnActivity>,
        reports: Vec<Told>,
    ) -> Self {
        let all = ListQuery {
            spawned: true,
            limit: 1000,
            ..ListQuery::default()
        };
        let mut sessions = BTreeMap::new();
        for info in world.store.list(all).await.unwrap().sessions {
            let records = world.store.loops(&info.id, 0).await.unwrap();
            let stored = Stored {
                spawned_by: info.spawned_by.map(|call| call.session_id),
                report: Told::from(&UsageReport::of(records.iter().map(|record| &**record))),
                records: records.into_iter().map(Arc::unwrap_or_clone).collect(),
            };
            sessions.insert(info.id, stored);
        }
        let toys = [&world.toy, &world.second];
        let answered = |toy: &Arc<Toy>| toy.answered.lock().unwrap().clone();
        let failed = |toy: &Arc<Toy>| *toy.failed.lock().unwrap();
        Self {
            root,
            sessions,
            prompts,
            shown,
            reports,
            calls: world.calls(),
            answered: toys.into_iter().flat_map(answered).collect(),
            failed: toys.into_iter().map(failed).sum(),
            hired: *world.hired.lock().unwrap(),
        }
    }

    /// Every loop of every session.
    pub(crate) fn records(&self) -> impl Iterator<Item = &LoopRecord> {
        self.sessions.values().flat_map(|stored| &stored.records)
    }

    pub(crate) fn root(&self) -> &Stored {
        &self.sessions[&self.root]
    }

    pub(crate) fn root_mut(&mut self) -> &mut Stored {
        self.sessions.get_mut(&self.root).unwrap()
    }

    /// What the models say they have spent in a session for a purpose.
    pub(crate) fn spent<'a>(
        &'a self,
        session: &'a SessionId,
        purpose: &'a str,
    ) -> impl Iterator<Item = Usage> {
        let answered = self.answered.iter();
        let those = answered.filter(move |it| it.session_id == *session && it.source == purpose);
        those.filter_map(|it| it.usage.map(understood))
    }

    /// Whether a session is another one, or was made for it, or for one that was.
    fn is_below(&self, session: &SessionId, other: &SessionId) -> bool {
        session == other
            || self.sessions[session]
                .spawned_by
                .as_ref()
                .is_some_and(|parent| self.is_below(parent, other))
    }

    /// The ledger of a session, as the models would write it.
    pub(crate) fn ledger(&self, session: &SessionId) -> BTreeMap<Row, Usage> {
        let answered = self.answered.iter();
        let below = answered.filter(|it| self.is_below(&it.session_id, session));
        sums(below.filter_map(|it| {
            let purpose = match it.source == source::TURN && it.session_id != *session {
                true => source::SUBAGENT,
                false => it.source,
            };
            let row = (purpose.to_owned(), it.model.clone());
            it.usage.map(|usage| (row, understood(usage)))
        }))
    }
}

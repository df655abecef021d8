//! Runs the battery against deliberately broken stores: it must detect each flaw.

use crate::{
    World, commits, effects, follow, listing, queued_prompts, recovery, replay, samples::*,
    sessions,
};
use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};
use turnery_engine::{Event, LoopId, LoopRecord, LoopStatus, PromptId, SessionId, Timestamp};
use turnery_store::{
    ChangeMark, ClaimedLane, Commit, DailyUsage, Damage, FollowFrom, FollowItem, FollowPage,
    FollowUpdate, History, Lane, ListPage, ListQuery, NewSession, NextEffect, Owner, PromptRemoval,
    QueuedPrompt, RepairReport, ReplayCursor, ReplayPage, SearchPage, SearchQuery, SessionInfo,
    SessionPatch, Store, StoreDescription, StoreFuture, TakenEffect, TranscriptNote,
};

/// Flaw of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// No flaw: the control.
    None,
    /// Every committer is treated as the holder of the lane.
    NoFence,
    /// Every expected head is treated as the current one.
    NoHead,
    /// The journal of a committed loop stays, and becomes an aborted loop.
    JournalKept,
    /// Each commit's title replaces the one before.
    TitleReplaced,
    /// A cursor counts sessions instead of naming one, and counts one too few.
    CursorByCount,
    /// A loop off the chain becomes the tip.
    TipOffChain,
    /// A repeated commit of a loop stores it again.
    RetryStoredTwice,
    /// An append after the loss of the lane is accepted.
    LostLaneJournals,
    /// The loops of a group are committed one by one.
    GroupSplit,
    /// The history contains all loops.
    HistoryHasAllLoops,
    /// History and replay are said to have all loops.
    ClaimsAllLoops,
    /// Transient events and rerun loops are replayed.
    ReplayHasAllEvents,
    /// The last event of a page with a successor is lost.
    ReplayDropsEvent,
    /// Child sessions are listed like others.
    ChildrenListed,
    /// Child sessions outlive their parents.
    ChildrenOutliveParent,
    /// Two owners get the same effect.
    EffectTakenTwice,
    /// The last effect of a commit is lost.
    EffectLost,
    /// A refused commit stores its effects.
    EffectWithoutCommit,
    /// A repeated commit stores its effects again.
    RetryStoresEffects,
    /// An effect that was taken is never free again.
    TakenForEver,
    /// A postponed effect is free at once.
    NeverPostponed,
    /// The prompt that was queued last is the first.
    QueueReversed,
    /// A queued prompt can be withdrawn after it was started.
    StartedWithdrawn,
    /// A queued prompt is handed out as an effect.
    PromptTakenAsEffect,
    /// A queued prompt is removed when it is started.
    StartRemovesPrompt,
    /// A follower's cursor is one event too far.
    FollowCursorTooFar,
    /// A follower's cursor is one event too early.
    FollowCursorTooEarly,
    /// A loop that was followed while it ran is sent again when it is stored.
    FollowStoredAgain,
    /// A follower is not told that a loop was given up.
    FollowNotWithdrawn,
}

/// A correct store behind a flaw.
struct FlawedStore {
    inner: Arc<dyn Store>,
    flaw: Flaw,
    state: Mutex<FlawState>,
}

#[derive(Default)]
struct FlawState {
    lanes: HashMap<SessionId, Lane>,
    journal: HashMap<LoopId, Vec<Event>>,
    tips: HashMap<SessionId, LoopId>,
    /// Effects that the next calls take before those of the store.
    effects: VecDeque<TakenEffect>,
    /// Items that followers have seen.
    followed: Vec<FollowItem>,
}

impl FlawedStore {
    fn world(flaw: Flaw) -> World {
        let mut world = World::memory();
        world.store = Arc::new(Self {
            inner: world.store.clone(),
            flaw,
            state: Mutex::default(),
        });
        world
    }

    fn with_state<T>(&self, what: impl FnOnce(&mut FlawState) -> T) -> T {
        what(&mut self.state.lock().expect("not poisoned"))
    }

    fn alter_info(&self, mut info: SessionInfo) -> SessionInfo {
        if self.flaw == Flaw::TipOffChain {
            let tip = self.with_state(|state| state.tips.get(&info.id).cloned());
            info.tip_loop_id = tip.or(info.tip_loop_id);
        }
        info
    }

    /// Returns the current lane, as the flaw requires.
    fn lane(&self, lane: &Lane, flaw: Flaw) -> Lane {
        let held = self.with_state(|state| state.lanes.get(&lane.session_id).cloned());
        held.filter(|_| self.flaw == flaw)
            .unwrap_or_else(|| lane.clone())
    }
}

impl Store for FlawedStore {
    fn create(&self, new: NewSession) -> StoreFuture<'_, SessionInfo> {
        let mut new = new;
        let spawned_by = new.spawned_by.clone();
        if self.flaw == Flaw::ChildrenOutliveParent {
            new.spawned_by = None;
        }
        let made = self.inner.create(new);
        Box::pin(async move {
            Ok(SessionInfo {
                spawned_by,
                ..made.await?
            })
        })
    }

    fn info(&self, id: &SessionId) -> StoreFuture<'_, SessionInfo> {
        let info = self.inner.info(id);
        Box::pin(async move { Ok(self.alter_info(info.await?)) })
    }

    fn list(&self, query: ListQuery) -> StoreFuture<'_, ListPage> {
        if self.flaw == Flaw::ChildrenListed {
            let all = ListQuery {
                spawned: true,
                ..query
            };
            return self.inner.list(all);
        }
        if self.flaw != Flaw::CursorByCount {
            return self.inner.list(query);
        }
        Box::pin(async move {
            let skip: usize = query
                .cursor
                .map_or(0, |cursor| cursor.parse().expect("ours"));
            let whole = ListQuery {
                cursor: None,
                limit: 1000,
                ..query
            };
            let mut page = self.inner.list(whole).await?;
            let end = (skip + query.limit).min(page.sessions.len());
            let more = end < page.sessions.len();
            page.next_cursor = more.then(|| (end - 1).to_string());
            page.sessions = page.sessions[skip..end].to_vec();
            Ok(page)
        })
    }

    fn delete(&self, id: &SessionId) -> StoreFuture<'_, bool> {
        self.inner.delete(id)
    }

    fn delete_in_use(&self, id: &SessionId) -> StoreFuture<'_, Option<Vec<String>>> {
        self.inner.delete_in_use(id)
    }

    fn check(&self, id: Option<&SessionId>) -> StoreFuture<'_, Vec<Damage>> {
        self.inner.check(id)
    }

    fn repair(&self, id: &SessionId) -> StoreFuture<'_, RepairReport> {
        self.inner.repair(id)
    }

    fn loops(&self, id: &SessionId, after: u64) -> StoreFuture<'_, Vec<Arc<LoopRecord>>> {
        self.inner.loops(id, after)
    }

    fn history(&self, id: &SessionId) -> StoreFuture<'_, History> {
        if self.flaw == Flaw::HistoryHasAllLoops {
            let all = self.inner.loops(id, 0);
            return Box::pin(async {
                Ok(History {
                    loops: all.await?,
                    ..History::default()
                })
            });
        }
        let history = self.inner.history(id);
        let claims_all = self.flaw == Flaw::ClaimsAllLoops;
        Box::pin(async move {
            let mut history = history.await?;
            history.has_all_loops |= claims_all;
            Ok(history)
        })
    }

    fn replay_page(
        &self,
        id: &SessionId,
        cursor: Option<ReplayCursor>,
    ) -> StoreFuture<'_, ReplayPage> {
        let page = self.inner.replay_page(id, cursor);
        let all = self.inner.loops(id, 0);
        Box::pin(async move {
            let mut page = page.await?;
            page.has_all_loops |= self.flaw == Flaw::ClaimsAllLoops;
            if self.flaw == Flaw::ReplayHasAllEvents {
                page.loops = all.await?;
                let loops = page.loops.iter();
                page.events = loops.flat_map(|record| record.events.clone()).collect();
            }
            if self.flaw == Flaw::ReplayDropsEvent && page.next_cursor.is_some() {
                page.events.pop();
            }
            Ok(page)
        })
    }

    fn follow_page(&self, id: &SessionId, from: FollowFrom) -> StoreFuture<'_, FollowPage> {
        let page = self.inner.follow_page(id, from.clone());
        let all = self.inner.follow_page(id, FollowFrom::Start);
        Box::pin(async move {
            let mut page = page.await?;
            let all = all.await?.items;
            let is_event = |item: &FollowItem| matches!(item.update, FollowUpdate::Event(_));
            match (self.flaw, &from) {
                (Flaw::FollowCursorTooFar, FollowFrom::After(_))
                    if page.items.first().is_some_and(is_event) =>
                {
                    page.items.remove(0);
                }
                (Flaw::FollowCursorTooEarly, FollowFrom::After(cursor)) => {
                    let seen = self.with_state(|state| state.followed.clone());
                    let seen = seen.into_iter().find(|item| item.cursor == *cursor);
                    page.items.splice(..0, seen.filter(is_event));
                }
                (Flaw::FollowStoredAgain, _) => {
                    let mut stored = page.items.iter().filter_map(|item| match &item.update {
                        FollowUpdate::LoopStored { loop_id, .. } => Some(loop_id.clone()),
                        _ => None,
                    });
                    if let Some(stored) = stored.next_back() {
                        let of_loop = |item: &FollowItem| matches!(&item.update, FollowUpdate::Event(event) if event.loop_id == stored);
                        page.items.retain(|item| !of_loop(item));
                        page.items.splice(..0, all.into_iter().filter(of_loop));
                    }
                }
                (Flaw::FollowNotWithdrawn, _) => page
                    .items
                    .retain(|item| !matches!(item.update, FollowUpdate::Withdrawn { .. })),
                _ => {}
            }
            self.with_state(|state| state.followed.extend(page.items.clone()));
            Ok(page)
        })
    }

    fn wait_for_change(
        &self,
        id: &SessionId,
        since: Option<ChangeMark>,
    ) -> StoreFuture<'_, ChangeMark> {
        self.inner.wait_for_change(id, since)
    }

    fn claim(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, ClaimedLane> {
        let claimed = self.inner.claim(id, owner);
        Box::pin(async move {
            let mut opened = claimed.await?;
            self.with_state(|state| {
                let id = opened.lane.session_id.clone();
                state.lanes.insert(id, opened.lane.clone());
            });
            let left = self.with_state(|state| std::mem::take(&mut state.journal));
            for (loop_id, events) in left {
                let record = LoopRecord {
                    loop_id: format!("{loop_id}0").into(),
                    status: LoopStatus::Aborted,
                    on_chain: false,
                    events,
                    ..record(opened.info.id.as_str(), 9, "Ghost")
                };
                let ghost = commit_of(&opened.lane, opened.info.head_version, &record.into());
                opened.info.head_version = self.inner.commit(ghost).await?;
            }
            opened.info = self.alter_info(opened.info);
            Ok(opened)
        })
    }

    fn recover(&self, id: &SessionId) -> StoreFuture<'_, Vec<Damage>> {
        self.inner.recover(id)
    }

    fn renew(&self, lane: &Lane) -> StoreFuture<'_, ()> {
        self.inner.renew(lane)
    }

    fn release(&self, lane: &Lane) -> StoreFuture<'_, ()> {
        self.inner.release(lane)
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        if self.flaw == Flaw::JournalKept {
            self.with_state(|state| state.journal.insert(loop_id.clone(), events.clone()));
        }
        let lane = self.lane(lane, Flaw::LostLaneJournals);
        self.inner.append(&lane, loop_id, events);
    }

    fn append_now(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) -> StoreFuture<'_, ()> {
        if self.flaw == Flaw::JournalKept {
            self.with_state(|state| state.journal.insert(loop_id.clone(), events.clone()));
        }
        let lane = self.lane(lane, Flaw::LostLaneJournals);
        self.inner.append_now(&lane, loop_id, events)
    }

    fn commit(&self, mut commit: Commit) -> StoreFuture<'_, u64> {
        let id = commit.lane.session_id.clone();
        commit.lane = self.lane(&commit.lane, Flaw::NoFence);
        Box::pin(async move {
            if self.flaw == Flaw::NoHead {
                commit.expected_head = self.inner.info(&id).await?.head_version;
            }
            if self.flaw == Flaw::RetryStoredTwice {
                let known = self.inner.loops(&id, 0).await?;
                if known
                    .iter()
                    .any(|known| known.loop_id == commit.records[0].loop_id)
                {
                    let again = Arc::make_mut(&mut commit.records[0]);
                    again.loop_id = format!("{}0", again.loop_id).into();
                }
            }
            if let Some(title) = commit.title.clone()
                && self.flaw == Flaw::TitleReplaced
            {
                let patch = SessionPatch {
                    title: Some(Some(title)),
                    ..SessionPatch::default()
                };
                self.inner.patch(&id, patch).await?;
            }
            if self.flaw == Flaw::GroupSplit {
                for record in commit.records.drain(..commit.records.len() - 1) {
                    let part = commit_of(&commit.lane, commit.expected_head, &record);
                    commit.expected_head = self.inner.commit(part).await?;
                }
            }
            if self.flaw == Flaw::EffectLost {
                commit.effects.pop();
            }
            let tip = commit.records[0].loop_id.clone();
            let known = self.inner.info(&id).await?.head_version;
            let effects = commit.effects.clone();
            let version = self.inner.commit(commit).await;
            let is_added = match version {
                Ok(version) => self.flaw == Flaw::RetryStoresEffects && version == known,
                Err(_) => self.flaw == Flaw::EffectWithoutCommit,
            };
            if is_added {
                let taken = |pending| TakenEffect {
                    pending,
                    attempt: 1,
                };
                self.with_state(|state| state.effects.extend(effects.into_iter().map(taken)));
            }
            let version = version?;
            self.with_state(|state| state.tips.insert(id, tip));
            Ok(version)
        })
    }

    fn queue_prompt(&self, id: &SessionId, prompt: QueuedPrompt) -> StoreFuture<'_, ()> {
        if self.flaw == Flaw::PromptTakenAsEffect {
            let pending = effects::effect(id.as_str(), 0);
            let taken = TakenEffect {
                pending,
                attempt: 1,
            };
            self.with_state(|state| state.effects.push_back(taken));
        }
        self.inner.queue_prompt(id, prompt)
    }

    fn queued_prompts(&self, id: &SessionId) -> StoreFuture<'_, Vec<QueuedPrompt>> {
        let prompts = self.inner.queued_prompts(id);
        Box::pin(async move {
            let mut prompts = prompts.await?;
            if self.flaw == Flaw::QueueReversed {
                prompts.reverse();
            }
            Ok(prompts)
        })
    }

    fn start_queued_prompt(&self, id: &SessionId, prompt: &PromptId) -> StoreFuture<'_, bool> {
        if self.flaw == Flaw::StartRemovesPrompt {
            let removal = PromptRemoval::Run;
            return self.inner.remove_queued_prompt(id, prompt, removal);
        }
        self.inner.start_queued_prompt(id, prompt)
    }

    fn remove_queued_prompt(
        &self,
        id: &SessionId,
        prompt: &PromptId,
        removal: PromptRemoval,
    ) -> StoreFuture<'_, bool> {
        let removal = match self.flaw == Flaw::StartedWithdrawn {
            true => PromptRemoval::Run,
            false => removal,
        };
        self.inner.remove_queued_prompt(id, prompt, removal)
    }

    fn take_effect(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, NextEffect> {
        let extra = self.with_state(|state| state.effects.pop_front());
        let next = self.inner.take_effect(id, owner);
        Box::pin(async move {
            if let Some(extra) = extra {
                return Ok(NextEffect::Taken(extra));
            }
            let next = next.await?;
            if let NextEffect::Taken(taken) = &next {
                if self.flaw == Flaw::EffectTakenTwice {
                    self.with_state(|state| state.effects.push_back(taken.clone()));
                }
                if self.flaw == Flaw::TakenForEver && taken.attempt > 1 {
                    return Ok(NextEffect::Later(Duration::from_secs(1)));
                }
            }
            Ok(next)
        })
    }

    fn finish_effect(&self, taken: &TakenEffect) -> StoreFuture<'_, ()> {
        self.inner.finish_effect(taken)
    }

    fn postpone_effect(&self, taken: &TakenEffect, delay: Duration) -> StoreFuture<'_, ()> {
        let delay = match self.flaw {
            Flaw::NeverPostponed => Duration::ZERO,
            _ => delay,
        };
        self.inner.postpone_effect(taken, delay)
    }

    fn patch(&self, id: &SessionId, patch: SessionPatch) -> StoreFuture<'_, SessionInfo> {
        self.inner.patch(id, patch)
    }

    fn add_notes(&self, id: &SessionId, notes: Vec<TranscriptNote>) -> StoreFuture<'_, ()> {
        self.inner.add_notes(id, notes)
    }

    fn notes(&self, id: &SessionId) -> StoreFuture<'_, Vec<TranscriptNote>> {
        self.inner.notes(id)
    }

    fn search(&self, query: SearchQuery) -> StoreFuture<'_, SearchPage> {
        self.inner.search(query)
    }

    fn daily_usage(&self, since: Option<Timestamp>) -> StoreFuture<'_, Vec<DailyUsage>> {
        self.inner.daily_usage(since)
    }

    fn session_size(&self, id: &SessionId) -> StoreFuture<'_, u64> {
        self.inner.session_size(id)
    }

    fn describe(&self) -> StoreFuture<'_, StoreDescription> {
        self.inner.describe()
    }
}

/// Returns true if a case of the battery passes.
async fn case_passes(case: impl Future<Output = ()>) -> bool {
    use futures_util::FutureExt;
    AssertUnwindSafe(case).catch_unwind().await.is_ok()
}

/// A case passes with the control and fails with its flaw.
macro_rules! found_out {
    ($($flaw:ident: $case:path),+ $(,)?) => {$(
        let (inner, flawed) = (FlawedStore::world(Flaw::None), FlawedStore::world(Flaw::$flaw));
        assert!(case_passes($case(&inner)).await, "the control fails");
        assert!(!case_passes($case(&flawed)).await, "{:?} is not found out", Flaw::$flaw);
    )+};
}

#[tokio::test]
async fn each_flaw_fails_its_case() {
    found_out! {
        NoFence: commits::lost_lane_changes_nothing,
        NoHead: commits::stale_head_changes_nothing,
        JournalKept: commits::a_committed_loop_leaves_no_journal,
        TitleReplaced: commits::first_title_is_kept,
        CursorByCount: listing::pages_show_each_session_once,
        TipOffChain: commits::loop_off_the_chain_keeps_the_tip,
        RetryStoredTwice: commits::retried_commit_returns_the_same_version,
        LostLaneJournals: recovery::lost_lane_cannot_journal,
        GroupSplit: commits::a_group_commits_once,
        HistoryHasAllLoops: commits::the_history_is_the_chain_without_events,
        ClaimsAllLoops: commits::the_history_is_the_chain_without_events,
        ClaimsAllLoops: replay::replay_is_the_chain_without_transient_events,
        ReplayHasAllEvents: replay::replay_is_the_chain_without_transient_events,
        ReplayDropsEvent: replay::long_loop_is_replayed_in_pages,
        ChildrenListed: sessions::child_session_has_its_parent_and_is_not_listed,
        ChildrenOutliveParent: sessions::delete_removes_child_sessions,
        EffectTakenTwice: effects::effects_are_taken_in_order_and_once,
        EffectLost: effects::effects_are_taken_in_order_and_once,
        EffectWithoutCommit: effects::refused_commit_stores_no_effect,
        RetryStoresEffects: effects::repeated_commit_stores_effects_once,
        TakenForEver: effects::taken_effect_is_free_after_the_lease,
        NeverPostponed: effects::postponed_effect_lets_others_pass,
        QueueReversed: queued_prompts::prompts_wait_in_their_order,
        StartedWithdrawn: queued_prompts::started_prompt_is_not_withdrawn,
        PromptTakenAsEffect: queued_prompts::waiting_prompt_is_no_effect,
        StartRemovesPrompt: queued_prompts::started_prompt_waits_until_it_has_run,
        FollowCursorTooFar: follow::follower_sees_each_event_once,
        FollowCursorTooEarly: follow::follower_sees_each_event_once,
        FollowStoredAgain: follow::follower_sees_each_event_once,
        FollowNotWithdrawn: follow::loop_begun_differently_is_withdrawn,
        FollowCursorTooFar: follow::random_reconnects_lose_nothing,
        FollowCursorTooEarly: follow::random_reconnects_lose_nothing,
        FollowStoredAgain: follow::random_reconnects_lose_nothing,
        FollowNotWithdrawn: follow::random_reconnects_lose_nothing,
    }
}

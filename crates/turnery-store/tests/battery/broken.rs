//! The battery is held against stores that are broken on purpose: it must find each of them out.

use crate::{World, commits, listing, recovery, samples::*, sessions, shown};
use futures_util::future::BoxFuture;
use std::{
    collections::HashMap,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};
use turnery_engine::{Event, LoopId, LoopRecord, LoopStatus, SessionId};
use turnery_store::{
    Commit, Damage, History, Lane, ListPage, ListQuery, NewSession, Opened, Owner, Page, Remark,
    Repair, Rest, SessionInfo, SessionPatch, Store, StoreError,
};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Nothing: the control.
    None,
    /// Whoever commits is taken for the holder of the lane.
    NoFence,
    /// Whatever head is expected is taken for the one that is there.
    NoHead,
    /// A committed loop's journal stays, and becomes an aborted loop.
    JournalStays,
    /// Each commit's title replaces the one before.
    TitleReplaced,
    /// A cursor counts sessions instead of naming one, and counts one too few.
    CursorSlips,
    /// A loop off the chain becomes the tip.
    TipFollowsAll,
    /// A second commit of the same loop is stored once more.
    RetryStored,
    /// An append of a loser is taken in.
    LoserJournals,
    /// The loops of a group are committed one by one.
    GroupInParts,
    /// The history is all loops there are.
    HistoryOfAll,
    /// What passes is shown again, and so are loops that were run again.
    AllShown,
    /// The last event of a page that has another behind it is lost.
    PageFalls,
    /// Child sessions are listed like others.
    ChildrenShown,
    /// Child sessions outlive their parents.
    ChildrenStay,
}

/// A sound store with a flaw in front of it.
struct Flawed {
    sound: Arc<dyn Store>,
    flaw: Flaw,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    lanes: HashMap<SessionId, Lane>,
    journal: HashMap<LoopId, Vec<Event>>,
    tips: HashMap<SessionId, LoopId>,
}

impl Flawed {
    fn world(flaw: Flaw) -> World {
        let mut world = World::memory();
        world.store = Arc::new(Self {
            sound: world.store.clone(),
            flaw,
            seen: Mutex::default(),
        });
        world
    }

    fn see<T>(&self, what: impl FnOnce(&mut Seen) -> T) -> T {
        what(&mut self.seen.lock().expect("not poisoned"))
    }

    fn shown(&self, mut info: SessionInfo) -> SessionInfo {
        if self.flaw == Flaw::TipFollowsAll {
            let tip = self.see(|seen| seen.tips.get(&info.id).cloned());
            info.tip_loop_id = tip.or(info.tip_loop_id);
        }
        info
    }

    /// The lane that is really held, as the flaw would have it.
    fn lane(&self, lane: &Lane, flaw: Flaw) -> Lane {
        let held = self.see(|seen| seen.lanes.get(&lane.session_id).cloned());
        held.filter(|_| self.flaw == flaw)
            .unwrap_or_else(|| lane.clone())
    }
}

impl Store for Flawed {
    fn create(&self, new: NewSession) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        let mut new = new;
        let spawned_by = new.spawned_by.clone();
        if self.flaw == Flaw::ChildrenStay {
            new.spawned_by = None;
        }
        let made = self.sound.create(new);
        Box::pin(async move {
            Ok(SessionInfo {
                spawned_by,
                ..made.await?
            })
        })
    }

    fn info(&self, id: &SessionId) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        let info = self.sound.info(id);
        Box::pin(async move { Ok(self.shown(info.await?)) })
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<ListPage, StoreError>> {
        if self.flaw == Flaw::ChildrenShown {
            let all = ListQuery {
                spawned: true,
                ..query
            };
            return self.sound.list(all);
        }
        if self.flaw != Flaw::CursorSlips {
            return self.sound.list(query);
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
            let mut page = self.sound.list(whole).await?;
            let end = (skip + query.limit).min(page.sessions.len());
            let more = end < page.sessions.len();
            page.next_cursor = more.then(|| (end - 1).to_string());
            page.sessions = page.sessions[skip..end].to_vec();
            Ok(page)
        })
    }

    fn delete(&self, id: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.sound.delete(id)
    }

    fn delete_in_use(
        &self,
        id: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Vec<String>>, StoreError>> {
        self.sound.delete_in_use(id)
    }

    fn check(&self, id: Option<&SessionId>) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>> {
        self.sound.check(id)
    }

    fn repair(&self, id: &SessionId) -> BoxFuture<'_, Result<Repair, StoreError>> {
        self.sound.repair(id)
    }

    fn loops(
        &self,
        id: &SessionId,
        after: u64,
    ) -> BoxFuture<'_, Result<Vec<Arc<LoopRecord>>, StoreError>> {
        self.sound.loops(id, after)
    }

    fn history(&self, id: &SessionId) -> BoxFuture<'_, Result<History, StoreError>> {
        if self.flaw == Flaw::HistoryOfAll {
            let all = self.sound.loops(id, 0);
            return Box::pin(async {
                Ok(History {
                    loops: all.await?,
                    damage: Vec::new(),
                })
            });
        }
        self.sound.history(id)
    }

    fn shown(&self, id: &SessionId, rest: Option<Rest>) -> BoxFuture<'_, Result<Page, StoreError>> {
        let page = self.sound.shown(id, rest);
        let all = self.sound.loops(id, 0);
        Box::pin(async move {
            let mut page = page.await?;
            if self.flaw == Flaw::AllShown {
                page.loops = all.await?;
                let loops = page.loops.iter();
                page.events = loops.flat_map(|record| record.events.clone()).collect();
            }
            if self.flaw == Flaw::PageFalls && page.rest.is_some() {
                page.events.pop();
            }
            Ok(page)
        })
    }

    fn claim(&self, id: &SessionId, owner: &Owner) -> BoxFuture<'_, Result<Opened, StoreError>> {
        let claimed = self.sound.claim(id, owner);
        Box::pin(async move {
            let mut opened = claimed.await?;
            self.see(|seen| {
                let id = opened.lane.session_id.clone();
                seen.lanes.insert(id, opened.lane.clone());
            });
            let left = self.see(|seen| std::mem::take(&mut seen.journal));
            for (loop_id, events) in left {
                let record = LoopRecord {
                    loop_id: format!("{loop_id}0").into(),
                    status: LoopStatus::Aborted,
                    on_chain: false,
                    events,
                    ..record(opened.info.id.as_str(), 9, "Ghost")
                };
                let ghost = commit(&opened.lane, opened.info.head_version, &record.into());
                opened.info.head_version = self.sound.commit(ghost).await?;
            }
            opened.info = self.shown(opened.info);
            Ok(opened)
        })
    }

    fn recover(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>> {
        self.sound.recover(id)
    }

    fn renew(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        self.sound.renew(lane)
    }

    fn release(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>> {
        self.sound.release(lane)
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        if self.flaw == Flaw::JournalStays {
            self.see(|seen| seen.journal.insert(loop_id.clone(), events.clone()));
        }
        let lane = self.lane(lane, Flaw::LoserJournals);
        self.sound.append(&lane, loop_id, events);
    }

    fn append_now(
        &self,
        lane: &Lane,
        loop_id: &LoopId,
        events: Vec<Event>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.append(lane, loop_id, events);
        Box::pin(std::future::ready(Ok(())))
    }

    fn commit(&self, mut commit: Commit) -> BoxFuture<'_, Result<u64, StoreError>> {
        let id = commit.lane.session_id.clone();
        commit.lane = self.lane(&commit.lane, Flaw::NoFence);
        Box::pin(async move {
            if self.flaw == Flaw::NoHead {
                commit.expected_head = self.sound.info(&id).await?.head_version;
            }
            if self.flaw == Flaw::RetryStored {
                let known = self.sound.loops(&id, 0).await?;
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
                self.sound.patch(&id, patch).await?;
            }
            if self.flaw == Flaw::GroupInParts {
                for record in commit.records.drain(..commit.records.len() - 1) {
                    let part = crate::samples::commit(&commit.lane, commit.expected_head, &record);
                    commit.expected_head = self.sound.commit(part).await?;
                }
            }
            let tip = commit.records[0].loop_id.clone();
            let version = self.sound.commit(commit).await?;
            self.see(|seen| seen.tips.insert(id, tip));
            Ok(version)
        })
    }

    fn patch(
        &self,
        id: &SessionId,
        patch: SessionPatch,
    ) -> BoxFuture<'_, Result<SessionInfo, StoreError>> {
        self.sound.patch(id, patch)
    }

    fn remark(&self, id: &SessionId, said: Vec<Remark>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.sound.remark(id, said)
    }

    fn remarks(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Remark>, StoreError>> {
        self.sound.remarks(id)
    }
}

/// Whether a case of the battery passes.
async fn passes(case: impl Future<Output = ()>) -> bool {
    use futures_util::FutureExt;
    AssertUnwindSafe(case).catch_unwind().await.is_ok()
}

/// A case passes with the control and fails with its flaw.
macro_rules! found_out {
    ($($flaw:ident: $case:path),+ $(,)?) => {$(
        let (sound, flawed) = (Flawed::world(Flaw::None), Flawed::world(Flaw::$flaw));
        assert!(passes($case(&sound)).await, "the control fails");
        assert!(!passes($case(&flawed)).await, "{:?} is not found out", Flaw::$flaw);
    )+};
}

#[tokio::test]
async fn each_flaw_is_found_out() {
    found_out! {
        NoFence: commits::a_lost_lane_changes_nothing,
        NoHead: commits::a_stale_head_changes_nothing,
        JournalStays: commits::a_committed_loop_leaves_no_journal,
        TitleReplaced: commits::the_first_title_stays,
        CursorSlips: listing::pages_show_each_session_once,
        TipFollowsAll: commits::a_loop_off_the_chain_leaves_the_tip,
        RetryStored: commits::a_retry_is_answered_like_the_first_time,
        LoserJournals: recovery::a_loser_cannot_journal_any_more,
        GroupInParts: commits::a_group_commits_once,
        HistoryOfAll: commits::the_history_is_the_chain_without_events,
        AllShown: shown::what_is_shown_is_the_chain_without_what_passes,
        PageFalls: shown::a_long_loop_is_shown_in_pages,
        ChildrenShown: sessions::a_child_session_says_who_made_it_and_is_hidden,
        ChildrenStay: sessions::deleting_takes_the_children_too,
    }
}

//! Laws of context: what holds however loops, blocks, frames and branches follow each other.

use super::record;
use crate::{
    CompactionSettings, ContinuationKind, FrameId, LoopId, LoopRecord, MessageId, Timestamp,
    compaction::plan,
    context::{View, before, chain},
    oracle,
    tests::compaction::talk::{Talk, lines, long},
};
use proptest::{collection::vec, prelude::*, sample::Index};
use std::sync::Arc;

/// One thing that happens in a session.
#[derive(Clone, Debug)]
enum Step {
    /// A loop: the calls of each of its turns, before which of them it is compacted, how it ends.
    Loop(Vec<usize>, Vec<(usize, Keep)>, End),
    /// A loop that does nothing but compact.
    Compact(Keep),
    /// The last loop is tried again.
    Again,
    /// Another branch begins after some loop.
    Branch(Index),
}

#[derive(Clone, Debug)]
enum End {
    Well,
    Refused,
    Lost,
    Switched,
}

#[derive(Clone, Copy, Debug)]
struct Keep {
    first: usize,
    recent: usize,
    room: u64,
}

fn keep() -> impl Strategy<Value = Keep> {
    let room = prop_oneof![Just(u64::MAX), 100..3_000u64];
    (0..3usize, 1..4usize, room).prop_map(|(first, recent, room)| Keep {
        first,
        recent,
        room,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        6 => Just(End::Well),
        2 => Just(End::Refused),
        2 => Just(End::Lost),
        1 => Just(End::Switched),
    ];
    let a_loop = (vec(0..3usize, 1..5), vec((0..5usize, keep()), 0..3), end);
    prop_oneof![
        10 => a_loop.prop_map(|(turns, compacted, end)| Step::Loop(turns, compacted, end)),
        2 => keep().prop_map(Step::Compact),
        1 => Just(Step::Again),
        1 => any::<Index>().prop_map(Step::Branch),
    ]
}

/// A session as its task holds it, and as the store does.
#[derive(Default)]
struct World {
    loops: Vec<Arc<LoopRecord>>,
    tip: Option<LoopId>,
    live: View,
    /// The frame that the tip is in.
    frame: Option<FrameId>,
    /// The frame that the next loop is to open.
    opens: Option<FrameId>,
    /// The loop that the next one runs again; the tip is back before it.
    again: Option<LoopId>,
    /// The messages of the frame, found by nothing but appending.
    said: Vec<MessageId>,
    compacted: usize,
    next: usize,
}

impl World {
    fn reload(&mut self) -> View {
        View::of(&chain(&self.loops, self.tip.as_ref()))
    }

    fn compact(&mut self, keep: Keep) -> Option<crate::CompactionBlock> {
        let settings = CompactionSettings {
            first_turns: keep.first,
            recent_turns: keep.recent,
            summary_tokens: 20,
            output_lines: 6,
            room: keep.room,
        };
        let messages = Arc::clone(self.live.messages());
        let before = self.live.size();
        let plan = plan(&messages, self.live.block(), &settings)?;
        if plan.summary_tokens() < 3 {
            return None;
        }
        let (block, after) = plan.block("so it went", Timestamp::UNIX_EPOCH);
        assert!(self.live.lay(&block), "{block:?}");
        assert_eq!(self.live.size(), after);
        assert!(after.tokens < before.tokens, "{after:?} {before:?}");
        self.compacted += 1;
        Some(block)
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Loop(turns, compacted, end) => self.run(&turns, &compacted, &end),
            Step::Compact(keep) => {
                self.again = None;
                self.live.mark();
                let block = self.compact(keep);
                let id = self.id();
                let record = record(&id, self.tip.as_ref().map(LoopId::as_str), Talk::of(&*id));
                self.keep(LoopRecord {
                    compaction_block: block,
                    frame_id: self.frame.clone(),
                    ..record
                });
            }
            Step::Again => {
                let Some(tip) = self.tip.clone() else {
                    return;
                };
                let is_tip = |record: &&Arc<LoopRecord>| record.loop_id == tip;
                let record = self.loops.iter().find(is_tip);
                let record = record.expect("the tip is stored");
                self.tip = before(&self.loops, record).cloned();
                self.elsewhere();
                self.again = Some(tip);
            }
            Step::Branch(index) => {
                let chain = chain(&self.loops, self.tip.as_ref());
                if !chain.is_empty() {
                    self.tip = Some(index.get(&chain).loop_id.clone());
                }
                self.elsewhere();
            }
        }
    }

    /// The tip has changed from outside: that is read anew.
    fn elsewhere(&mut self) {
        self.live = self.reload();
        (self.opens, self.again, self.frame) = (None, None, None);
        self.said.clear();
        for record in chain(&self.loops, self.tip.as_ref()) {
            if record.frame_id != self.frame {
                self.said.clear();
                self.frame.clone_from(&record.frame_id);
            }
            let ids = record.messages.iter().map(|m| m.message_id.clone());
            self.said.extend(ids);
        }
    }

    fn id(&mut self) -> String {
        self.next += 1;
        format!("s.c.{}", self.next)
    }

    fn keep(&mut self, record: LoopRecord) {
        if record.on_chain {
            self.tip = Some(record.loop_id.clone());
        }
        self.loops.push(Arc::new(record));
    }

    fn run(&mut self, turns: &[usize], compacted: &[(usize, Keep)], end: &End) {
        let id = self.id();
        let again = self.again.take();
        let kind = match again {
            Some(_) => ContinuationKind::Rerun,
            None => ContinuationKind::Default,
        };
        let parent = again.or_else(|| self.tip.clone());
        let opened = self.opens.take();
        self.live.mark();
        let aside = opened.is_some().then(|| std::mem::take(&mut self.live));
        let mut talk = Talk::of(&*id).user(long("prompt", 20));
        let mut block = None;
        let mut shown = 0;
        for (turn, calls) in turns.iter().enumerate() {
            talk.messages[shown..]
                .iter()
                .for_each(|m| self.live.push(Arc::clone(m)));
            shown = talk.messages.len();
            for (_, keep) in compacted.iter().filter(|(at, _)| *at == turn) {
                block = self.compact(*keep).or(block);
            }
            let output = lines("output", 3 * turn + 3);
            talk = talk.answer(&long("answer", 10), &vec![&*output; *calls]);
        }
        talk.messages[shown..]
            .iter()
            .for_each(|m| self.live.push(Arc::clone(m)));
        let ids: Vec<MessageId> = talk.messages.iter().map(|m| m.message_id.clone()).collect();
        let opens = opened.is_some();
        let mut record = LoopRecord {
            compaction_block: block,
            continuation_kind: kind,
            frame_id: opened.or_else(|| self.frame.clone()),
            ..record(&id, parent.as_ref().map(LoopId::as_str), talk)
        };
        match end {
            End::Well => {}
            End::Switched => self.opens = Some(FrameId::from(format!("{id}.frame"))),
            End::Refused => record.on_chain = false,
            End::Lost => return self.forget(aside),
        }
        if record.on_chain {
            if opens {
                self.said.clear();
            }
            self.said.extend(ids);
            self.frame.clone_from(&record.frame_id);
        } else {
            self.forget(aside);
        }
        self.keep(record);
    }

    fn forget(&mut self, aside: Option<View>) {
        match aside {
            Some(view) => self.live = view,
            None => self.live.rewind(),
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let loaded = self.reload();
        prop_assert_eq!(loaded.messages(), self.live.messages());
        prop_assert_eq!(loaded.size(), self.live.size());
        prop_assert_eq!(loaded.block(), self.live.block());
        prop_assert_eq!(oracle::check_history(loaded.messages()), Ok(()));
        let seen: Vec<MessageId> = loaded
            .messages()
            .iter()
            .map(|message| message.message_id.clone())
            .collect();
        match loaded.block() {
            None => prop_assert_eq!(&seen, &self.said),
            Some(block) => {
                let first = block.keep_first.len();
                prop_assert_eq!(&seen[..first], &self.said[..first]);
                let is_end = |id: &MessageId| *id == block.through;
                let end = self.said.iter().position(is_end).expect("it is there");
                let place = first + 1 + block.keep_recent.len();
                prop_assert_eq!(&seen[place..], &self.said[end + 1..]);
            }
        }
        Ok(())
    }
}

proptest! {
    /// Section 9, 10: the context of a reloaded session is the live one, whatever happened in it, and
    /// no call is parted from its results.
    // proves: UP-11, UP-12, C-14, LOOP-47, LOOP-48, LASH-12, UP-35, D-16
    #[test]
    fn a_reloaded_session_sees_what_the_live_one_does(steps in vec(step(), 1..12)) {
        let mut world = World::default();
        for step in steps {
            world.take(step);
            world.check()?;
        }
    }
}

/// The law above is about something: its sessions are compacted, also more than once.
#[test]
fn the_sessions_of_the_law_are_compacted() {
    let mut world = World::default();
    let keep = Keep {
        first: 1,
        recent: 2,
        room: u64::MAX,
    };
    for _ in 0..3 {
        world.take(Step::Loop(vec![2; 4], vec![(2, keep)], End::Well));
    }
    assert_eq!(world.compacted, 2, "the first loop is too short");
}

//! Property tests of context, for any sequence of loops, blocks, frames and branches.

use super::record;
use crate::{
    CompactionSettings, ContinuationKind, FrameId, LoopId, LoopRecord, MessageId, Timestamp,
    compaction::plan_compaction,
    context::{ContextView, loop_chain, previous_loop},
    oracle,
    tests::compaction::conversation::{ConversationBuilder, long_text, numbered_lines},
};
use proptest::{collection::vec, prelude::*, sample::Index};
use std::sync::Arc;

/// Step of a session.
#[derive(Clone, Debug)]
enum SessionStep {
    /// A loop: the calls of each turn, the turns before which it is compacted, and its ending.
    Loop(Vec<usize>, Vec<(usize, RetentionSpec)>, LoopEnding),
    /// A standalone compaction.
    Compact(RetentionSpec),
    /// A rerun of the last loop.
    Rerun,
    /// A branch from some loop.
    Branch(Index),
}

#[derive(Clone, Debug)]
enum LoopEnding {
    Finished,
    Refused,
    NotStored,
    SwitchedFrame,
}

#[derive(Clone, Copy, Debug)]
struct RetentionSpec {
    first: usize,
    recent: usize,
    room: u64,
}

fn any_retention() -> impl Strategy<Value = RetentionSpec> {
    let room = prop_oneof![Just(u64::MAX), 100..3_000u64];
    (0..3usize, 1..4usize, room).prop_map(|(first, recent, room)| RetentionSpec {
        first,
        recent,
        room,
    })
}

fn any_step() -> impl Strategy<Value = SessionStep> {
    let end = prop_oneof![
        6 => Just(LoopEnding::Finished),
        2 => Just(LoopEnding::Refused),
        2 => Just(LoopEnding::NotStored),
        1 => Just(LoopEnding::SwitchedFrame),
    ];
    let a_loop = (
        vec(0..3usize, 1..5),
        vec((0..5usize, any_retention()), 0..3),
        end,
    );
    prop_oneof![
        10 => a_loop.prop_map(|(turns, compacted, end)| SessionStep::Loop(turns, compacted, end)),
        2 => any_retention().prop_map(SessionStep::Compact),
        1 => Just(SessionStep::Rerun),
        1 => any::<Index>().prop_map(SessionStep::Branch),
    ]
}

/// A session, both live and as stored.
#[derive(Default)]
struct SessionModel {
    loops: Vec<Arc<LoopRecord>>,
    tip: Option<LoopId>,
    live_view: ContextView,
    /// Frame of the tip.
    frame: Option<FrameId>,
    /// Frame to be opened by the next loop.
    next_frame: Option<FrameId>,
    /// Loop that the next one reruns; the tip is before it.
    rerun_of: Option<LoopId>,
    /// Messages of the frame, tracked only by appending.
    frame_message_ids: Vec<MessageId>,
    compacted: usize,
    next: usize,
}

impl SessionModel {
    fn reload(&mut self) -> ContextView {
        ContextView::from_chain(&loop_chain(&self.loops, self.tip.as_ref()))
    }

    fn compact(&mut self, keep: RetentionSpec) -> Option<crate::CompactionBlock> {
        let settings = CompactionSettings {
            first_turns: keep.first,
            recent_turns: keep.recent,
            max_summary_tokens: 20,
            max_output_lines: 6,
            target_tokens: keep.room,
        };
        let messages = Arc::clone(self.live_view.messages());
        let before = self.live_view.size();
        let plan = plan_compaction(&messages, self.live_view.block(), &settings)?;
        if plan.max_summary_tokens() < 3 {
            return None;
        }
        let (block, after) = plan.into_block("so it went", Timestamp::UNIX_EPOCH);
        assert!(self.live_view.apply_block(&block), "{block:?}");
        assert_eq!(self.live_view.size(), after);
        assert!(after.tokens < before.tokens, "{after:?} {before:?}");
        self.compacted += 1;
        Some(block)
    }

    fn apply_step(&mut self, step: SessionStep) {
        match step {
            SessionStep::Loop(turns, compacted, end) => self.run_loop(&turns, &compacted, &end),
            SessionStep::Compact(keep) => {
                self.rerun_of = None;
                self.live_view.set_rewind_point();
                let block = self.compact(keep);
                let id = self.next_loop_id();
                let record = record(
                    &id,
                    self.tip.as_ref().map(LoopId::as_str),
                    ConversationBuilder::new(&*id),
                );
                self.store_record(LoopRecord {
                    compaction_block: block,
                    frame_id: self.frame.clone(),
                    ..record
                });
            }
            SessionStep::Rerun => {
                let Some(tip) = self.tip.clone() else {
                    return;
                };
                let is_tip = |record: &&Arc<LoopRecord>| record.loop_id == tip;
                let record = self.loops.iter().find(is_tip);
                let record = record.expect("the tip is stored");
                self.tip = previous_loop(&self.loops, record).cloned();
                self.follow_tip();
                self.rerun_of = Some(tip);
            }
            SessionStep::Branch(index) => {
                let chain = loop_chain(&self.loops, self.tip.as_ref());
                if !chain.is_empty() {
                    self.tip = Some(index.get(&chain).loop_id.clone());
                }
                self.follow_tip();
            }
        }
    }

    /// Reloads the view after the tip has moved.
    fn follow_tip(&mut self) {
        self.live_view = self.reload();
        (self.next_frame, self.rerun_of, self.frame) = (None, None, None);
        self.frame_message_ids.clear();
        for record in loop_chain(&self.loops, self.tip.as_ref()) {
            if record.frame_id != self.frame {
                self.frame_message_ids.clear();
                self.frame.clone_from(&record.frame_id);
            }
            let ids = record.messages.iter().map(|m| m.message_id.clone());
            self.frame_message_ids.extend(ids);
        }
    }

    fn next_loop_id(&mut self) -> String {
        self.next += 1;
        format!("s.c.{}", self.next)
    }

    fn store_record(&mut self, record: LoopRecord) {
        if record.on_chain {
            self.tip = Some(record.loop_id.clone());
        }
        self.loops.push(Arc::new(record));
    }

    fn run_loop(
        &mut self,
        turns: &[usize],
        compacted: &[(usize, RetentionSpec)],
        end: &LoopEnding,
    ) {
        let id = self.next_loop_id();
        let again = self.rerun_of.take();
        let kind = match again {
            Some(_) => ContinuationKind::Rerun,
            None => ContinuationKind::Default,
        };
        let parent = again.or_else(|| self.tip.clone());
        let opened = self.next_frame.take();
        self.live_view.set_rewind_point();
        let aside = opened
            .is_some()
            .then(|| std::mem::take(&mut self.live_view));
        let mut talk = ConversationBuilder::new(&*id).user(long_text("prompt", 20));
        let mut block = None;
        let mut shown = 0;
        for (turn, calls) in turns.iter().enumerate() {
            talk.messages[shown..]
                .iter()
                .for_each(|m| self.live_view.push(Arc::clone(m)));
            shown = talk.messages.len();
            for (_, keep) in compacted.iter().filter(|(at, _)| *at == turn) {
                block = self.compact(*keep).or(block);
            }
            let output = numbered_lines("output", 3 * turn + 3);
            talk = talk.answer(&long_text("answer", 10), &vec![&*output; *calls]);
        }
        talk.messages[shown..]
            .iter()
            .for_each(|m| self.live_view.push(Arc::clone(m)));
        let ids: Vec<MessageId> = talk.messages.iter().map(|m| m.message_id.clone()).collect();
        let opens = opened.is_some();
        let mut record = LoopRecord {
            compaction_block: block,
            continuation_kind: kind,
            frame_id: opened.or_else(|| self.frame.clone()),
            ..record(&id, parent.as_ref().map(LoopId::as_str), talk)
        };
        match end {
            LoopEnding::Finished => {}
            LoopEnding::SwitchedFrame => {
                self.next_frame = Some(FrameId::from(format!("{id}.frame")))
            }
            LoopEnding::Refused => record.on_chain = false,
            LoopEnding::NotStored => return self.discard_loop(aside),
        }
        if record.on_chain {
            if opens {
                self.frame_message_ids.clear();
            }
            self.frame_message_ids.extend(ids);
            self.frame.clone_from(&record.frame_id);
        } else {
            self.discard_loop(aside);
        }
        self.store_record(record);
    }

    fn discard_loop(&mut self, aside: Option<ContextView>) {
        match aside {
            Some(view) => self.live_view = view,
            None => self.live_view.rewind(),
        }
    }

    fn check_reload(&mut self) -> Result<(), TestCaseError> {
        let loaded = self.reload();
        prop_assert_eq!(loaded.messages(), self.live_view.messages());
        prop_assert_eq!(loaded.size(), self.live_view.size());
        prop_assert_eq!(loaded.request_size(9), self.live_view.request_size(9));
        prop_assert_eq!(loaded.block(), self.live_view.block());
        prop_assert_eq!(oracle::check_history(loaded.messages()), Ok(()));
        let seen: Vec<MessageId> = loaded
            .messages()
            .iter()
            .map(|message| message.message_id.clone())
            .collect();
        match loaded.block() {
            None => prop_assert_eq!(&seen, &self.frame_message_ids),
            Some(block) => {
                let first = block.keep_first.len();
                prop_assert_eq!(&seen[..first], &self.frame_message_ids[..first]);
                let is_end = |id: &MessageId| *id == block.through;
                let end = self
                    .frame_message_ids
                    .iter()
                    .position(is_end)
                    .expect("it is there");
                let place = first + 1 + block.keep_recent.len();
                prop_assert_eq!(&seen[place..], &self.frame_message_ids[end + 1..]);
            }
        }
        Ok(())
    }
}

proptest! {
    /// Sections 9 and 10: the context of a reloaded session equals the live one, and no call is separated
    /// from its results.
    // proves: UP-11, UP-12, C-14, LOOP-47, LOOP-48, LASH-12, UP-35, D-16, TURN-64
    #[test]
    fn reloaded_view_equals_live_view(steps in vec(any_step(), 1..12)) {
        let mut world = SessionModel::default();
        for step in steps {
            world.apply_step(step);
            world.check_reload()?;
        }
    }
}

/// The property above is not vacuous: its sessions are compacted, also more than once.
#[test]
fn session_model_compacts() {
    let mut world = SessionModel::default();
    let keep = RetentionSpec {
        first: 1,
        recent: 2,
        room: u64::MAX,
    };
    for _ in 0..3 {
        world.apply_step(SessionStep::Loop(
            vec![2; 4],
            vec![(2, keep)],
            LoopEnding::Finished,
        ));
    }
    assert_eq!(world.compacted, 2, "the first loop is too short");
}

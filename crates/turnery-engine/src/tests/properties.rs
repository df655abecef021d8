//! Property tests for any run with any inputs.

use super::{harness::fold_events, random_run::any_run};
use crate::{ContinuationKind, EventKind, LoopRecord, LoopStatus, Message, Usage, oracle};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Adds up each bucket on its own, without the addition under test.
fn sum(usages: &[Usage]) -> Usage {
    Usage {
        input: usages.iter().map(|usage| usage.input).sum(),
        output: usages.iter().map(|usage| usage.output).sum(),
        reasoning: usages.iter().map(|usage| usage.reasoning).sum(),
        cache_read: usages.iter().map(|usage| usage.cache_read).sum(),
        cache_write: usages.iter().map(|usage| usage.cache_write).sum(),
    }
}

fn replay(record: &LoopRecord) -> Option<LoopRecord> {
    fold_events(&record.events).into_record()
}

proptest! {
    /// R1 to R5, D-16, LOOP-80, UP-30: the grammar of the live and of the stored stream.
    // proves: TURN-7, TURN-8, TURN-9, TURN-49, TURN-57, TURN-66, LOOP-79, ACP-22, ACP-32, I2, I3
    // proves: I4, R1, R2, R5, D-3, D-16, C-25, UP-30, LOOP-60, UP-26, TURN-11, TURN-19, TURN-22, TURN-56
    #[test]
    fn any_run_satisfies_oracle(script in any_run()) {
        prop_assert!(script.machine.is_over());
        prop_assert_eq!(oracle::check_live(&script.published_events), Ok(()));
        let record = script.recorder.into_record().unwrap();
        prop_assert_eq!(oracle::check_stored(&record.events), Ok(()));
        prop_assert_eq!(oracle::check_history(&record.messages), Ok(()));
    }

    /// TURN-5: the live stream, the stored one, and the deserialized one give equal records.
    // proves: TURN-5, LOOP-9
    #[test]
    fn recording_is_a_pure_fold(script in any_run()) {
        let record = script.recorder.into_record().unwrap();
        prop_assert_eq!(replay(&record), Some(record.clone()));
        let json = serde_json::to_string(&record).unwrap();
        let read: LoopRecord = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &record);
        prop_assert_eq!(replay(&read), Some(record));
    }

    /// TURN-4, C-13: each start and end pair is a turn, and the messages are those that the turns refer to,
    /// in order.
    // proves: TURN-4, LOOP-60, C-13
    #[test]
    fn turns_and_messages_agree(script in any_run()) {
        let record = script.recorder.into_record().unwrap();
        let ends = record.events.iter().filter(|e| matches!(e.kind, EventKind::TurnEnd { .. }));
        prop_assert_eq!(ends.count(), record.turns.len());
        let of_turns = record.turns.iter().flat_map(|turn| {
            turn.input_messages.iter().chain(&turn.output_message).chain(&turn.tool_results)
        });
        let in_turns = record.messages.iter().filter(|message| message.turn_id.is_some());
        prop_assert!(of_turns.eq(in_turns.map(|message| &message.message_id)));
    }

    /// The messages, the turns and the loop agree on what was spent (I1 to I3).
    // proves: LOOP-45, I1, I2, I3
    #[test]
    fn usage_adds_up(script in any_run()) {
        let record = script.recorder.into_record().unwrap();
        let mut of_messages = Vec::new();
        for message in &record.messages {
            if let Message::Assistant { usage, .. } = &message.message {
                of_messages.push(*usage);
                if let Some(usage) = usage {
                    prop_assert!(usage.reasoning <= usage.output);
                    let parts = usage.input + usage.output + usage.cache_read + usage.cache_write;
                    prop_assert_eq!(usage.total(), parts);
                }
            }
        }
        let of_turns: Vec<_> = record.turns.iter().map(|turn| turn.usage).collect();
        prop_assert_eq!(&of_messages, &of_turns);
        let of_turns: Vec<Usage> = of_turns.into_iter().flatten().collect();
        prop_assert_eq!(sum(&of_turns), record.usage);
        prop_assert_eq!(script.machine.usage(), record.usage);
    }

    /// I13: a loop that called no model has no usage.
    // proves: I13
    #[test]
    fn no_usage_without_turn(script in any_run()) {
        let kind = script.machine.spec().continuation_kind;
        let record = script.recorder.into_record().unwrap();
        if record.status == LoopStatus::Rejected || kind == ContinuationKind::Compaction {
            prop_assert_eq!(record.turns.len(), 0);
        }
        if record.turns.is_empty() {
            prop_assert_eq!(record.usage, Usage::default());
        }
    }

    /// The record holds the latest total of every reported child session (UP-19).
    // proves: UP-19
    #[test]
    fn child_usage_is_counted_once(script in any_run()) {
        let mut latest = BTreeMap::new();
        for event in &script.published_events {
            if let EventKind::ChildUsageReported { child, .. } = &event.kind {
                latest.insert(child.session_id.to_string(), child.cumulative);
            }
        }
        let record = script.recorder.into_record().unwrap();
        let kept = record.children_usage.iter();
        let kept: BTreeMap<_, _> =
            kept.map(|child| (child.session_id.to_string(), child.cumulative)).collect();
        prop_assert_eq!(kept.len(), record.children_usage.len());
        prop_assert_eq!(kept, latest);
    }
}

//! Laws: what holds for any run, however the inputs fall.

use super::fixture::spec;
use super::script::{
    Script, allow, answer, asking, call, calls, ended, failed, prose, text, verdict,
};
use crate::{
    CommitFault, EventKind, FailureKind, FaultKind, Input, Limits, LoopRecord, Message, ModelStop,
    Recorder, ToolEnvelope, Usage, Verdict, oracle,
};
use proptest::prelude::*;
use std::ops::AddAssign;

/// A call of turn `n` is named after its place only, so each turn uses its own letters.
const IDS: [[&str; 2]; 4] = [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]];

fn id() -> impl Strategy<Value = &'static str> {
    (0..4usize, 0..2usize).prop_map(|(turn, place)| IDS[turn][place])
}

/// Anything at any time: most of it will not fit, which is the point.
fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => (0..3u32).prop_map(|block| text(block, "word ")),
        1 => Just(prose("done")),
        4 => id().prop_map(asking),
        8 => id().prop_map(allow),
        2 => id().prop_map(|id| verdict(id, Verdict::Deny("no".to_owned()))),
        8 => id().prop_map(|id| ended(id, ToolEnvelope::text("result"))),
        2 => id().prop_map(|id| ended(id, ToolEnvelope::failed(FailureKind::Timeout, "slow"))),
        1 => Just(answer(vec![call("z")], ModelStop::Length, Some((7, 7)))),
        1 => Just(failed(FaultKind::Overloaded)),
        1 => Just(Input::Cancel),
        1 => Just(Input::TimeUp),
        1 => Just(Input::GraceOver),
        1 => Just(Input::CommitFailed(CommitFault::HeadConflict)),
    ]
}

fn cost() -> impl Strategy<Value = Option<Usage>> {
    let bucket = || 0..1_000u64;
    let usage = (bucket(), bucket(), bucket(), bucket(), bucket()).prop_map(
        |(input, output, reasoning, cache_read, cache_write)| Usage {
            input,
            output,
            reasoning,
            cache_read,
            cache_write,
        },
    );
    proptest::option::of(usage)
}

fn with_cost(mut input: Input, cost: Option<Usage>) -> Input {
    if let Input::Answered { response, .. } = &mut input {
        response.usage = cost;
    }
    input
}

/// A run of up to four rounds of tools with anything in between, brought to its end.
fn run() -> impl Strategy<Value = Script> {
    let round = (proptest::collection::vec(input(), 0..25), cost());
    proptest::collection::vec(round, 1..5).prop_map(|rounds| {
        let mut script = Script::start(spec(Limits::default()));
        for ((noise, cost), ids) in rounds.into_iter().zip(IDS) {
            script.feed(with_cost(calls(&ids), cost));
            for input in noise {
                script.feed(with_cost(input, cost));
            }
            for id in ids {
                script.feed_all([allow(id), ended(id, ToolEnvelope::text("in the end"))]);
            }
        }
        script.feed_all([prose("end"), Input::Committed]);
        script
    })
}

fn sum(usages: impl Iterator<Item = Usage>) -> Usage {
    let mut total = Usage::default();
    usages.for_each(|usage| total.add_assign(usage));
    total
}

fn replay(record: &LoopRecord) -> Option<LoopRecord> {
    let mut recorder = Recorder::new();
    for event in &record.events {
        recorder.fold(event);
    }
    recorder.into_record()
}

proptest! {
    /// R1 to R5, D-16, LOOP-80, UP-30: the grammar of the live and of the stored stream.
    // proves: TURN-7, TURN-8, TURN-9, TURN-49, TURN-57, TURN-66, LOOP-79, ACP-22, ACP-32, I2, I3
    // proves: I4, R1, R2, R5, D-3, D-16, C-25, UP-30
    #[test]
    fn any_run_keeps_the_grammar(script in run()) {
        prop_assert!(script.machine.is_over());
        prop_assert_eq!(oracle::check(&script.shown), Ok(()));
        let record = script.recorder.into_record().unwrap();
        prop_assert_eq!(oracle::check_stored(&record.events), Ok(()));
        prop_assert_eq!(oracle::check_history(&record.messages), Ok(()));
    }

    /// TURN-5: the live stream, the stored one, and the one that was written and read give one record.
    // proves: TURN-5, LOOP-9
    #[test]
    fn recording_is_a_pure_fold(script in run()) {
        let record = script.recorder.into_record().unwrap();
        prop_assert_eq!(replay(&record), Some(record.clone()));
        let json = serde_json::to_string(&record).unwrap();
        let read: LoopRecord = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &record);
        prop_assert_eq!(replay(&read), Some(record));
    }

    /// TURN-4, C-13: pairs are turns, and messages are what the turns refer to, in order.
    // proves: TURN-4, LOOP-60, C-13
    #[test]
    fn turns_and_messages_agree(script in run()) {
        let record = script.recorder.into_record().unwrap();
        let ends = record.events.iter().filter(|e| matches!(e.kind, EventKind::TurnEnd { .. }));
        prop_assert_eq!(ends.count(), record.turns.len());
        let of_turns = record.turns.iter().flat_map(|turn| {
            turn.input_messages.iter().chain(&turn.output_message).chain(&turn.tool_results)
        });
        let in_turns = record.messages.iter().filter(|message| message.turn_id.is_some());
        prop_assert!(of_turns.eq(in_turns.map(|message| &message.message_id)));
    }

    /// I1 to I4: the message, the turn, the event and the loop agree on what was spent.
    // proves: LOOP-45, I1, I2, I3
    #[test]
    fn usage_adds_up(script in run()) {
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
        prop_assert_eq!(sum(of_turns.into_iter().flatten()), record.usage);
        prop_assert_eq!(script.machine.usage(), record.usage);
    }
}

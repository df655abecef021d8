//! Compacting: when history is summarised, and what becomes of the turn (UP-10, TURN-58, UP-13).

use super::fixture::prompt;
use super::script::{Script, allow, answer, call, ended, failed, go, no, prose, text};
use crate::{
    CompactionBlock, Context, ContextSize, ContinuationKind, Detail, FaultKind, Finish, HookSet,
    Input, LoopSpec, ModelStop, Outcome, Timestamp, ToolEnvelope, TurnStop, Usage,
};

fn block() -> CompactionBlock {
    CompactionBlock {
        keep_first: Vec::new(),
        keep_compacted: Vec::new(),
        keep_recent: Vec::new(),
        through: "s.cfg.0.m9".into(),
        created_at: Timestamp::default(),
    }
}

fn size(tokens: u64, messages: u64) -> ContextSize {
    ContextSize { tokens, messages }
}

fn compacted(tokens: u64) -> Input {
    Input::Compacted {
        block: Ok(block()),
        after: size(tokens, 2),
        usage: None,
    }
}

fn not_compacted() -> Input {
    Input::Compacted {
        block: Err("no model".to_owned()),
        after: size(1, 1),
        usage: None,
    }
}

/// A window of 1 000 tokens of which 90 percent may be used; the first request holds `tokens`.
fn holding(tokens: u64) -> LoopSpec {
    LoopSpec {
        context: Context {
            size: size(tokens, 5),
            window: Some(1_000),
            compact_at: 90,
        },
        ..prompt()
    }
}

fn hooked(spec: LoopSpec) -> LoopSpec {
    let hooks = HookSet {
        compaction: true,
        ..HookSet::default()
    };
    LoopSpec { hooks, ..spec }
}

/// A turn with one call; the provider says that the request and the answer held so many tokens.
fn turn(script: &mut Script, id: &str, tokens: u64) -> Vec<String> {
    script.feed(answer(
        vec![call(id)],
        ModelStop::ToolUse,
        Some((tokens, 0)),
    ));
    script.feed_all([allow(id), ended(id, ToolEnvelope::text("12345678"))]);
    script.lines()
}

/// The pair lies between the inputs and the answer, and the model is called on what is left.
// proves: TURN-57, TURN-58, TURN-71, UP-10
#[test]
fn a_full_context_is_compacted_inside_the_turn() {
    let mut script = Script::start(hooked(holding(900)));
    script.feed_all([go(), compacted(100), go(), prose("done"), Input::Committed]);
    let expected = [
        "loop begins",
        "turn begins User",
        "s.cfg.1.m0 begins",
        "s.cfg.1.m0 user: hello",
        "> hook before compaction of 900",
        "compacts 5",
        "> compact 5",
        "compacted true to 2",
        "> hook after compaction of 900 to 100",
        "> call model 0",
        "s.cfg.1.m1 begins",
        "s.cfg.1.m1 assistant Stop: done",
        "usage Some(7) of 7",
        "turn ends []",
    ];
    assert_eq!(script.lines()[..14], expected);
    let record = script.recorder.into_record().unwrap();
    assert_eq!(record.compaction_block, Some(block()), "LOOP-46");
    assert_eq!(record.messages.len(), 2, "LOOP-48");
}

/// Not at one token less, nor where the window is not known, nor where nobody wants it.
// proves: TURN-58
#[test]
fn a_context_with_room_is_left_alone() {
    let mut unknown = holding(5_000);
    unknown.context.window = None;
    let mut unwanted = holding(5_000);
    unwanted.context.compact_at = 0;
    for spec in [holding(899), unknown, unwanted] {
        let mut script = Script::start(spec);
        assert_eq!(script.lines().last().unwrap(), "> call model 0");
    }
}

/// What the provider counted, and four characters a token for what came since.
// proves: UP-10
#[test]
fn the_size_follows_from_the_last_usage() {
    // A result of 8 characters is 2 tokens, and 4 for the message.
    let mut script = Script::start(holding(10));
    assert_eq!(
        turn(&mut script, "a", 893).last().unwrap(),
        "> call model 1"
    );
    assert_eq!(turn(&mut script, "b", 894).last().unwrap(), "> compact 9");
}

/// A failure leaves all as it was, and is not tried again until there is a tenth more.
// proves: UP-10
#[test]
fn a_failed_compaction_is_tried_again_later() {
    let mut script = Script::start(holding(1_000));
    script.lines();
    script.feed(not_compacted());
    assert_eq!(script.lines(), ["compacted false to 5", "> call model 0"]);
    assert_eq!(
        turn(&mut script, "a", 1_093).last().unwrap(),
        "> call model 1"
    );
    assert_eq!(turn(&mut script, "b", 1_094).last().unwrap(), "> compact 9");
}

/// A hook that says no skips this time only.
#[test]
fn a_vetoed_compaction_is_asked_about_again() {
    let mut script = Script::start(hooked(holding(950)));
    script.lines();
    script.feed(no("not now"));
    assert_eq!(script.lines(), ["> call model 0"]);
    let asked = "> hook before compaction of 956";
    assert_eq!(turn(&mut script, "a", 950).last().unwrap(), asked);
}

/// A cancel drops the summary; the turn has its empty answer and its end.
// proves: R1
#[test]
fn a_cancel_stops_the_compaction() {
    let mut script = Script::start(holding(900));
    script.lines();
    script.feed_all([Input::Cancel, compacted(1), Input::Committed]);
    let expected = [
        "> stop compaction",
        "compacted false to 5",
        "s.cfg.1.m1 begins",
        "s.cfg.1.m1 assistant Aborted: ",
        "usage None of 0",
        "turn ends []",
        "> commit loop ends Stopped(Cancelled)",
        "publish loop ends Stopped(Cancelled)",
        "> done",
    ];
    assert_eq!(script.lines(), expected);
}

/// A request that does not fit is made once more with less; the client sees one answer.
// proves: R9
#[test]
fn an_overflow_makes_room_once() {
    let overflow = || failed(FaultKind::ContextOverflow);
    let mut script = Script::start(holding(10));
    script.lines();
    script.feed_all([overflow(), compacted(5), overflow(), Input::Committed]);
    let expected = [
        "compacts 5",
        "> compact 5",
        "compacted true to 2",
        "attempt 1 failed",
        "> call model 0",
        "s.cfg.1.m1 begins",
        "s.cfg.1.m1 assistant Error: ",
        "usage None of 0",
        "turn ends []",
        "> commit loop ends Stopped(ProviderError)",
    ];
    assert_eq!(script.lines()[..10], expected);
    let attempts = script.recorder.into_record().unwrap().attempts;
    assert_eq!((attempts.len(), attempts[0].attempt), (1, 1));
}

/// Without a summary, or after something was shown, an overflow is the provider's error as ever.
#[test]
fn an_overflow_that_cannot_be_mended_stops_the_loop() {
    let overflow = || failed(FaultKind::ContextOverflow);
    for inputs in [
        vec![overflow(), not_compacted()],
        vec![text(0, "shown"), overflow()],
    ] {
        let mut script = Script::start(holding(10));
        script.feed_all(inputs).feed(Input::Committed);
        script.lines();
        let finish = script.finish.clone();
        let Some(Finish::Done {
            outcome, detail, ..
        }) = finish
        else {
            panic!("not done: {finish:?}");
        };
        assert_eq!(outcome, Outcome::Stopped(TurnStop::ProviderError));
        let kind = FaultKind::ContextOverflow;
        let message = "it broke".to_owned();
        assert_eq!(detail, Some(Detail::Provider { kind, message }));
    }
}

fn standalone() -> LoopSpec {
    LoopSpec {
        continuation_kind: ContinuationKind::Compaction,
        input: Vec::new(),
        ..holding(500)
    }
}

/// UP-13: a pass of its own has no turn and costs no turn anything.
// proves: UP-13, I13, LOOP-21
#[test]
fn a_pass_of_its_own() {
    let mut script = Script::start(standalone());
    script.feed_all([compacted(70), Input::Committed]);
    let text = "History was summarised: about 70 tokens in 2 messages are left.";
    let expected = [
        "loop begins".to_owned(),
        "compacts 5".to_owned(),
        "> compact 5".to_owned(),
        "compacted true to 2".to_owned(),
        format!("> commit loop ends Finished(AssistantMessage {{ text: \"{text}\" }})"),
        format!("publish loop ends Finished(AssistantMessage {{ text: \"{text}\" }})"),
        "> done".to_owned(),
    ];
    assert_eq!(script.lines(), expected);
    let record = script.recorder.into_record().unwrap();
    assert_eq!((record.turns.len(), record.usage), (0, Usage::default()));
    assert_eq!(record.compaction_block, Some(block()));
    assert_eq!(record.loop_id, "s.cfg.1".into(), "an id of its own");
    assert!(record.on_chain);
}

// proves: LASH-24
#[test]
fn a_pass_of_its_own_may_fail() {
    let mut script = Script::start(standalone());
    script.feed_all([not_compacted(), Input::Committed]);
    script.lines();
    let message = "no model".to_owned();
    let finish = Finish::Done {
        outcome: Outcome::Stopped(TurnStop::RuntimeError),
        detail: Some(Detail::Runtime { message }),
        usage: Usage::default(),
    };
    assert_eq!(script.finish, Some(finish));
    let mut script = Script::start(hooked(standalone()));
    script.feed_all([no("not yours"), Input::Committed]);
    let lines = script.lines();
    assert_eq!(lines[2], "> commit loop ends Stopped(PluginAbort)");
}

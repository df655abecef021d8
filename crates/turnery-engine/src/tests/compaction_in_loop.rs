//! Tests of compaction in a loop: when it happens and how the turn continues (UP-10, TURN-58, UP-13).

use super::fixtures::prompt_spec;
use super::harness::{
    LoopHarness, allow, compaction_block, compaction_result, hook_continue, hook_stop,
    model_answered, model_failed, text_answer, text_delta, tool_call, tool_ended,
};
use crate::{
    ContextBudget, ContextSize, ContinuationKind, HookSet, Input, LoopFinish, LoopSpec,
    ModelErrorKind, ModelStop, Outcome, ProviderFailure, ToolEnvelope, TurnStop, Usage,
};

fn size(tokens: u64, messages: u64) -> ContextSize {
    ContextSize { tokens, messages }
}

fn compaction_succeeded(tokens: u64) -> Input {
    compaction_result(true, size(tokens, 2), None)
}

fn compaction_failed() -> Input {
    compaction_result(false, size(1, 1), None)
}

/// Returns a spec with a window of 1 000 tokens, a threshold of 90 percent, and a first request of `tokens`, of which
/// the prompt `hello` takes 6.
fn spec_with_context(tokens: u64) -> LoopSpec {
    LoopSpec {
        context: ContextBudget {
            size: size(tokens - 6, 4),
            window: Some(1_000),
            compact_at: 90,
        },
        ..prompt_spec()
    }
}

fn with_compaction_hooks(spec: LoopSpec) -> LoopSpec {
    let hooks = HookSet {
        compaction: true,
        ..HookSet::default()
    };
    LoopSpec { hooks, ..spec }
}

/// Runs a turn with one call, for which the provider reports `tokens` for request and response together.
fn run_turn(script: &mut LoopHarness, id: &str, tokens: u64) -> Vec<String> {
    script.feed(model_answered(
        vec![tool_call(id)],
        ModelStop::ToolUse,
        Some((tokens, 0)),
    ));
    script.feed_all([allow(id), tool_ended(id, ToolEnvelope::text("12345678"))]);
    script.lines()
}

/// Start and end of the compaction are between the inputs and the model call.
// proves: TURN-57, TURN-58, TURN-71, UP-10
#[test]
fn full_context_is_compacted_inside_turn() {
    let mut script = LoopHarness::start(with_compaction_hooks(spec_with_context(900)));
    script.feed_all([
        hook_continue(),
        compaction_succeeded(100),
        hook_continue(),
        text_answer("done"),
        Input::Committed,
    ]);
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
    assert_eq!(record.compaction_block, Some(compaction_block()), "LOOP-46");
    assert_eq!(record.messages.len(), 2, "LOOP-48");
}

/// No compaction one token below the threshold, with an unknown window, or when disabled.
// proves: TURN-58, UP-10
#[test]
fn context_below_threshold_is_not_compacted() {
    let mut unknown = spec_with_context(5_000);
    unknown.context.window = None;
    let mut unwanted = spec_with_context(5_000);
    unwanted.context.compact_at = 0;
    for spec in [spec_with_context(899), unknown, unwanted] {
        let mut script = LoopHarness::start(spec);
        assert_eq!(script.lines().last().unwrap(), "> call model 0");
    }
}

/// Size reported by the provider, plus four characters a token for later messages.
// proves: UP-10, TURN-58
#[test]
fn context_size_follows_last_usage() {
    // A result of 8 characters is 2 tokens, and 4 for the message.
    let mut script = LoopHarness::start(spec_with_context(10));
    assert_eq!(
        run_turn(&mut script, "a", 893).last().unwrap(),
        "> call model 1"
    );
    assert_eq!(
        run_turn(&mut script, "b", 894).last().unwrap(),
        "> compact 9"
    );
}

/// A failed compaction changes nothing and is not repeated until the context has grown by a tenth.
// proves: UP-10
#[test]
fn failed_compaction_is_retried_later() {
    let mut script = LoopHarness::start(spec_with_context(1_000));
    script.lines();
    script.feed(compaction_failed());
    assert_eq!(script.lines(), ["compacted false to 5", "> call model 0"]);
    assert_eq!(
        run_turn(&mut script, "a", 1_093).last().unwrap(),
        "> call model 1"
    );
    assert_eq!(
        run_turn(&mut script, "b", 1_094).last().unwrap(),
        "> compact 9"
    );
}

/// A veto skips only this compaction.
// proves: UP-10
#[test]
fn vetoed_compaction_is_asked_about_again() {
    let mut script = LoopHarness::start(with_compaction_hooks(spec_with_context(950)));
    script.lines();
    script.feed(hook_stop("not now"));
    assert_eq!(script.lines(), ["> call model 0"]);
    let asked = "> hook before compaction of 956";
    assert_eq!(run_turn(&mut script, "a", 950).last().unwrap(), asked);
}

/// A cancel drops the summary; the turn gets an empty response and its end.
// proves: R1
#[test]
fn cancel_stops_compaction() {
    let mut script = LoopHarness::start(spec_with_context(900));
    script.lines();
    script.feed_all([Input::Cancel, compaction_succeeded(1), Input::Committed]);
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

/// A request that overflows is repeated once after a compaction; the client sees one response.
// proves: TURN-58, R9
#[test]
fn overflow_compacts_once_per_turn() {
    let overflow = || model_failed(ModelErrorKind::ContextOverflow);
    let mut script = LoopHarness::start(spec_with_context(10));
    script.lines();
    script.feed_all([
        overflow(),
        compaction_succeeded(5),
        overflow(),
        Input::Committed,
    ]);
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

/// The output shown so far is kept, and another turn begins with a summary.
// proves: TURN-58
#[test]
fn overflow_in_response_compacts_in_next_turn() {
    let mut script = LoopHarness::start(spec_with_context(10));
    script.lines();
    script.feed_all([
        text_delta(0, "shown"),
        model_failed(ModelErrorKind::ContextOverflow),
        compaction_succeeded(5),
        text_answer("done"),
        Input::Committed,
    ]);
    let notice = "The context window was full, so your reply was cut off. Go on with the task.";
    let expected = [
        "s.cfg.1.m1 begins".to_owned(),
        "delta 0".to_owned(),
        "s.cfg.1.m1 assistant Length: shown".to_owned(),
        "usage None of 0".to_owned(),
        "turn ends []".to_owned(),
        "turn begins Continuation".to_owned(),
        "s.cfg.1.m2 begins".to_owned(),
        format!("s.cfg.1.m2 system: {notice}"),
        "compacts 7".to_owned(),
        "> compact 7".to_owned(),
        "compacted true to 2".to_owned(),
        "> call model 1".to_owned(),
    ];
    assert_eq!(script.lines()[..12], expected);
}

/// Without a summary, or a second time within a response, an overflow is a provider error.
#[test]
fn overflow_without_compaction_stops_loop() {
    let overflow = || model_failed(ModelErrorKind::ContextOverflow);
    for inputs in [
        vec![overflow(), compaction_failed()],
        vec![
            text_delta(0, "shown"),
            overflow(),
            compaction_succeeded(5),
            text_delta(0, "shown again"),
            overflow(),
        ],
    ] {
        let mut script = LoopHarness::start(spec_with_context(10));
        script.feed_all(inputs).feed(Input::Committed);
        script.lines();
        let finish = script.finish.clone();
        let Some(LoopFinish::Committed { outcome, .. }) = finish else {
            panic!("not done: {finish:?}");
        };
        let kind = ModelErrorKind::ContextOverflow;
        let message = "it broke".to_owned();
        let failure = ProviderFailure::Failed { kind, message };
        let stop = TurnStop::ProviderError(failure);
        assert_eq!(outcome, Outcome::Stopped(stop));
    }
}

fn standalone() -> LoopSpec {
    LoopSpec {
        continuation_kind: ContinuationKind::Compaction,
        input: Vec::new(),
        ..spec_with_context(506)
    }
}

/// UP-13: a standalone compaction has no turn and no turn usage.
// proves: UP-13, I13, LOOP-21
#[test]
fn standalone_compaction_finishes() {
    let mut script = LoopHarness::start(standalone());
    script.feed_all([compaction_succeeded(70), Input::Committed]);
    let text = "History was summarised: about 70 tokens in 2 messages are left.";
    let expected = [
        "loop begins".to_owned(),
        "compacts 4".to_owned(),
        "> compact 4".to_owned(),
        "compacted true to 2".to_owned(),
        format!("> commit loop ends Finished(AssistantMessage {{ text: \"{text}\" }})"),
        format!("publish loop ends Finished(AssistantMessage {{ text: \"{text}\" }})"),
        "> done".to_owned(),
    ];
    assert_eq!(script.lines(), expected);
    let record = script.recorder.into_record().unwrap();
    assert_eq!((record.turns.len(), record.usage), (0, Usage::default()));
    assert_eq!(record.compaction_block, Some(compaction_block()));
    assert_eq!(record.loop_id, "s.cfg.1".into(), "an id of its own");
    assert!(record.on_chain);
}

// proves: LASH-24
#[test]
fn standalone_compaction_can_fail() {
    let mut script = LoopHarness::start(standalone());
    script.feed_all([compaction_failed(), Input::Committed]);
    script.lines();
    let message = "no model".to_owned();
    let finish = LoopFinish::Committed {
        outcome: Outcome::Stopped(TurnStop::RuntimeError { message }),
        usage: Usage::default(),
    };
    assert_eq!(script.finish, Some(finish));
    let mut script = LoopHarness::start(with_compaction_hooks(standalone()));
    script.feed_all([hook_stop("not yours"), Input::Committed]);
    let lines = script.lines();
    assert_eq!(lines[2], "> commit loop ends Stopped(PluginAbort)");
}

//! Tests of hooks: their order, and the effect of vetoes.

use super::fixtures::{prompt_spec, spec_with_limits};
use super::harness::{
    LoopHarness, allow, calls_answer, follow_up, hook_continue, hook_stop, model_answered,
    model_failed, steer, text_answer, text_delta, tool_ended,
};
use crate::{
    Content, Event, EventKind, HookSet, HookVerdict, ImageData, Input, Limits, LoopFinish,
    LoopSpec, LoopStatus, Message, ModelErrorKind, ModelStop, Outcome, ToolEnvelope, TurnStop,
    Usage,
};

fn spec_with_hooks(hooks: HookSet) -> LoopSpec {
    LoopSpec {
        hooks,
        ..prompt_spec()
    }
}

fn spec_with_input_filter() -> LoopSpec {
    spec_with_hooks(HookSet {
        input: true,
        ..HookSet::default()
    })
}

fn spec_with_all_hooks() -> LoopSpec {
    spec_with_hooks(HookSet {
        input: true,
        before_turn: true,
        after_turn: true,
        before_tool: true,
        after_tool: true,
        compaction: true,
        on_error: true,
        checkpoint: true,
    })
}

/// Every hook of a prompt with one call, in order; absent hooks are not asked (LOOP-59).
// proves: TURN-23, TURN-24, TURN-25, TURN-27, TURN-28, TURN-57, C-27, TURN-56
#[test]
fn hooks_are_asked_in_order() {
    let mut script = LoopHarness::start(spec_with_all_hooks());
    script.feed_all([
        hook_continue(),
        hook_continue(),
        calls_answer(&["a"]),
        allow("a"),
        hook_continue(),
    ]);
    script.feed_all([
        tool_ended("a", ToolEnvelope::text("x")),
        hook_continue(),
        hook_continue(),
        hook_continue(),
    ]);
    script.feed_all([
        text_answer("done"),
        hook_continue(),
        hook_continue(),
        Input::Committed,
    ]);
    let expected = [
        "loop begins",
        "> hook input hello",
        "> hook before turn 0",
        "turn begins User",
        "s.cfg.1.m0 begins",
        "s.cfg.1.m0 user: hello",
        "> call model 0",
        "s.cfg.1.m1 begins",
        "s.cfg.1.m1 assistant ToolUse: ",
        "usage Some(13) of 13",
        "a requested: Use tool-a",
        "> gate a",
        "> hook before tool a",
        "a begins, runs true",
        "> run a",
        "a ends Executed",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error false: x",
        "> hook after tool a",
        "turn ends [\"s.cfg.1.m2\"]",
        "> hook after turn 0, Some(13)",
        "> hook before turn 1",
        "turn begins Continuation",
        "> call model 1",
        "s.cfg.1.m3 begins",
        "s.cfg.1.m3 assistant Stop: done",
        "usage Some(7) of 20",
        "turn ends []",
        "> hook after turn 1, Some(7)",
        "> hook checkpoint",
        "> commit loop ends Finished(AssistantMessage { text: \"done\" })",
        "publish loop ends Finished(AssistantMessage { text: \"done\" })",
        "> done",
    ];
    assert_eq!(script.lines(), expected);
    // Events have the numbers that the hooks get.
    let of_turn = |event: &&Event| {
        matches!(
            event.kind,
            EventKind::TurnStart { .. } | EventKind::TurnEnd { .. }
        )
    };
    let turns = script.published_events.iter().filter(of_turn);
    let numbers: Vec<_> = turns.map(|event| event.turn_index).collect();
    assert_eq!(numbers, [Some(0), Some(0), Some(1), Some(1)]);
}

/// While waiting for a hook, the loop ignores other inputs.
#[test]
fn loop_waits_for_hook() {
    let mut script = LoopHarness::start(spec_with_all_hooks());
    script.lines();
    script.feed_all([
        text_answer("x"),
        text_delta(0, "y"),
        allow("a"),
        Input::Committed,
    ]);
    assert!(script.lines().is_empty(), "R5");
    script.feed(hook_continue());
    assert_eq!(script.lines(), ["> hook before turn 0"]);
}

/// C-7, row 6a: a rejected prompt leaves no turn, no message and no usage, and is off the chain.
// proves: UP-7, LOOP-27, LOOP-53, LASH-16, C-7, I13
#[test]
fn refused_prompt_is_rejected() {
    let mut script = LoopHarness::start(spec_with_input_filter());
    script.feed_all([hook_stop("not here"), Input::Committed]);
    let expected = [
        "loop begins",
        "> hook input hello",
        "rejected not here",
        "> commit loop ends Stopped(InvalidInput)",
        "publish loop ends Stopped(InvalidInput)",
        "> done",
    ];
    assert_eq!(script.lines(), expected);
    let finish = LoopFinish::Committed {
        outcome: Outcome::Stopped(TurnStop::InvalidInput {
            reason: "not here".to_owned(),
        }),
        usage: Usage::default(),
    };
    assert_eq!(script.finish, Some(finish));
    let record = script.recorder.into_record().unwrap();
    assert_eq!(record.status, LoopStatus::Rejected);
    assert_eq!(record.rejection.as_deref(), Some("not here"));
    assert_eq!((record.turns.len(), record.messages.len()), (0, 0));
    assert_eq!((record.usage, record.on_chain), (Usage::default(), false));
}

/// A rejected steering or follow-up message is dropped; the loop continues.
// proves: UP-7, C-7, D-7
#[test]
fn refused_steering_drops_only_itself() {
    let mut script = LoopHarness::start(spec_with_input_filter());
    script.feed_all([hook_continue(), steer("be rude"), follow_up("be rude too")]);
    script.lines();
    script.feed_all([
        text_answer("done"),
        hook_stop("rude"),
        hook_stop("too rude"),
        Input::Committed,
    ]);
    let lines = script.lines();
    let expected = [
        "turn ends []",
        "> hook input be rude",
        "rejected rude",
        "> hook input be rude too",
        "rejected too rude",
        "> commit loop ends Finished(AssistantMessage { text: \"done\" })",
    ];
    assert_eq!(lines[3..9], expected);
    let record = script.recorder.into_record().unwrap();
    assert_eq!(
        (record.status, record.rejection),
        (LoopStatus::Completed, None)
    );
    assert!(record.on_chain);
}

/// The filter sees the texts of a message, joined, and none of its images.
// proves: UP-7
#[test]
fn input_filter_sees_joined_text() {
    let image = Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "aGVsbG8=".into(),
    });
    let input = vec![Content::text("look"), image, Content::text("at this")];
    let mut script = LoopHarness::start(LoopSpec {
        input: input.clone(),
        ..spec_with_input_filter()
    });
    assert_eq!(
        script.lines(),
        ["loop begins", "> hook input look\nat this"]
    );
    script.feed(hook_continue());
    let Message::User { content } = &script.messages()[0].message else {
        panic!("not a prompt");
    };
    assert_eq!(*content, input);
}

/// Rejected steering does not end a loop whose next turn is due.
// proves: D-7
#[test]
fn refused_steering_keeps_the_due_turn() {
    let mut script = LoopHarness::start(spec_with_input_filter());
    script.feed_all([
        hook_continue(),
        calls_answer(&["a"]),
        allow("a"),
        steer("be rude"),
    ]);
    script.feed(tool_ended("a", ToolEnvelope::text("r")));
    assert_eq!(script.lines().last().unwrap(), "> hook input be rude");
    script.feed(hook_stop("rude"));
    let expected = [
        "rejected rude",
        "turn begins Continuation",
        "> call model 1",
    ];
    assert_eq!(script.lines(), expected);
}

/// A warning is appended to the user's message.
// proves: UP-7
#[test]
fn warning_is_appended_to_message() {
    let mut script = LoopHarness::start(spec_with_input_filter());
    let warn = |text: &str| Input::HookAnswered(HookVerdict::Warn(text.to_owned()));
    script.feed_all([
        warn("no names"),
        steer("and you?"),
        text_answer("hi"),
        warn("brief"),
    ]);
    let messages = script.messages();
    assert_eq!(messages[0].message.text(), "hello\n[Warning: no names]");
    assert_eq!(messages[2].message.text(), "and you?\n[Warning: brief]");
}

/// A vetoed turn leaves no event; the loop ends, or it would ask forever (C-26). Row 11: off the chain.
// proves: TURN-26, LASH-23, C-26
#[test]
fn vetoed_turn_leaves_no_trace() {
    let mut script = LoopHarness::start(spec_with_hooks(HookSet {
        before_turn: true,
        after_turn: true,
        ..HookSet::default()
    }));
    script.feed(steer("wait"));
    script.feed_all([hook_stop("not now"), Input::Committed]);
    let expected = [
        "loop begins",
        "> hook before turn 0",
        "> return undelivered wait",
        "> commit loop ends Stopped(PluginAbort)",
        "publish loop ends Stopped(PluginAbort)",
        "> done",
    ];
    assert_eq!(script.lines(), expected);
    let record = script.recorder.into_record().unwrap();
    assert_eq!((record.turns.len(), record.on_chain), (0, false));
}

/// TURN-68: limits are checked before the hook is asked.
// proves: TURN-68
#[test]
fn hook_is_not_asked_if_turn_cannot_run() {
    for turns in [0, 1] {
        let limits = Limits {
            turns,
            ..Limits::default()
        };
        let hooks = HookSet {
            before_turn: true,
            ..HookSet::default()
        };
        let mut script = LoopHarness::start(LoopSpec {
            hooks,
            ..spec_with_limits(limits)
        });
        if turns == 1 {
            assert_eq!(script.lines().last().unwrap(), "> hook before turn 0");
            script.feed_all([hook_continue(), calls_answer(&["a"]), allow("a")]);
            script.feed(tool_ended("a", ToolEnvelope::text("x")));
        }
        let lines = script.lines();
        assert!(!lines.iter().any(|line| line.starts_with("> hook")));
        assert_eq!(
            lines.last().unwrap(),
            "> commit loop ends Stopped(MaxTurns)"
        );
    }
}

/// Reaching the time limit while the hook is asked about the last reply is not reported as a second limit.
// proves: UP-2
#[test]
fn limit_is_reported_once() {
    let limits = Limits {
        turns: 0,
        ..Limits::default()
    };
    let hooks = HookSet {
        before_turn: true,
        ..HookSet::default()
    };
    let mut script = LoopHarness::start(LoopSpec {
        hooks,
        forced_reply: true,
        ..spec_with_limits(limits)
    });
    assert_eq!(script.lines().last().unwrap(), "> hook before turn 0");
    script.feed(Input::TimeUp);
    let expected = ["> stop hook", "> commit loop ends Stopped(MaxTurns)"];
    assert_eq!(script.lines(), expected);
}

/// A vetoed call gets its start, end and result, and the next call is asked about.
// proves: D-9
#[test]
fn vetoed_call_is_skipped() {
    let mut script = LoopHarness::start(spec_with_hooks(HookSet {
        before_tool: true,
        after_tool: true,
        ..HookSet::default()
    }));
    script.feed_all([calls_answer(&["a", "b"]), allow("a")]);
    script.lines();
    script.feed_all([hook_stop("frozen"), allow("b"), hook_continue()]);
    let expected = [
        "a begins, runs false",
        "a ends Skipped",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 result a error true: frozen",
        "> gate b",
        "> hook before tool b",
        "b begins, runs true",
        "> run b",
    ];
    assert_eq!(script.lines(), expected);
}

/// Once per loop, inside the turn; a tool's failure is not an error of the loop.
// proves: LOOP-58, C-28, D-18
#[test]
fn model_error_is_reported_to_hook() {
    let mut script = LoopHarness::start(spec_with_hooks(HookSet {
        on_error: true,
        ..HookSet::default()
    }));
    let broken = ToolEnvelope::failed(crate::ToolErrorKind::Exception, "no");
    script.feed_all([calls_answer(&["a"]), allow("a"), tool_ended("a", broken)]);
    assert!(!script.lines().iter().any(|line| line.starts_with("> hook")));
    script.feed_all([
        model_failed(ModelErrorKind::Network),
        hook_continue(),
        Input::Committed,
    ]);
    let expected = [
        "s.cfg.1.m3 begins",
        "s.cfg.1.m3 assistant Error: ",
        "usage None of 13",
        "> hook error it broke",
        "turn ends []",
        "> commit loop ends Stopped(ProviderError)",
    ];
    assert_eq!(script.lines()[..6], expected);
    // An empty answer is an error as well.
    let mut script = LoopHarness::start(spec_with_hooks(HookSet {
        on_error: true,
        ..HookSet::default()
    }));
    script.feed(model_answered(Vec::new(), ModelStop::EndTurn, None));
    let lines = script.lines();
    let hook = lines.last().unwrap();
    let expected = "> hook error the model gave an empty answer;";
    assert!(hook.starts_with(expected), "{hook}");
}

/// Input injected by a checkpoint starts the next turn; a veto stops the loop.
// proves: LASH-23, TURN-67
#[test]
fn checkpoint_can_continue_loop() {
    let checkpoint = || {
        spec_with_hooks(HookSet {
            checkpoint: true,
            ..HookSet::default()
        })
    };
    let inject = || Input::HookAnswered(HookVerdict::Inject(vec![Content::text("run the tests")]));
    let mut script = LoopHarness::start(checkpoint());
    script.feed(text_answer("done"));
    script.lines();
    script.feed_all([inject(), text_answer("they pass"), hook_continue()]);
    let expected = [
        "turn begins Continuation",
        "s.cfg.1.m2 begins",
        "s.cfg.1.m2 user: run the tests",
        "> call model 1",
        "s.cfg.1.m3 begins",
        "s.cfg.1.m3 assistant Stop: they pass",
        "usage Some(7) of 14",
        "turn ends []",
        "> hook checkpoint",
        "> commit loop ends Finished(AssistantMessage { text: \"they pass\" })",
    ];
    assert_eq!(script.lines(), expected);
    let mut script = LoopHarness::start(checkpoint());
    script.feed_all([text_answer("done"), hook_stop("unsigned"), Input::Committed]);
    assert_eq!(
        script.lines().last_chunk::<3>().unwrap()[0],
        "> commit loop ends Stopped(PluginAbort)"
    );
    assert!(!script.recorder.into_record().unwrap().on_chain);
}

/// A cancel cancels any pending hook, and the loop is cancelled.
// proves: LASH-15, R1
#[test]
fn cancel_cancels_hook() {
    let answered = || {
        vec![
            hook_continue(),
            hook_continue(),
            calls_answer(&["a"]),
            allow("a"),
        ]
    };
    let done = || tool_ended("a", ToolEnvelope::text("x"));
    let cases = [
        (vec![], "input hello"),
        (vec![hook_continue()], "before turn 0"),
        (answered(), "before tool a"),
        (
            [answered(), vec![hook_continue(), done()]].concat(),
            "after tool a",
        ),
        (
            vec![hook_continue(), hook_continue(), text_answer("x")],
            "after turn 0, Some(7)",
        ),
        (
            vec![
                hook_continue(),
                hook_continue(),
                text_answer("x"),
                hook_continue(),
            ],
            "checkpoint",
        ),
        (
            vec![
                hook_continue(),
                hook_continue(),
                model_failed(ModelErrorKind::Auth),
            ],
            "error it broke",
        ),
    ];
    for (before, hook) in cases {
        let mut script = LoopHarness::start(spec_with_all_hooks());
        script.feed_all(before);
        assert_eq!(script.lines().last().unwrap(), &format!("> hook {hook}"));
        script.feed(Input::Cancel);
        assert_eq!(script.lines()[0], "> stop hook", "{hook}");
        script.feed_all([hook_continue(), Input::Committed]);
        let lines = script.lines();
        let end = "publish loop ends Stopped(Cancelled)".to_owned();
        assert!(lines.contains(&end), "{hook}: {lines:?}");
    }
}

/// After-turn hooks also run for cancelled turns, within the grace period.
// proves: R1
#[test]
fn cancelled_turn_runs_after_turn_hook() {
    let mut script = LoopHarness::start(spec_with_hooks(HookSet {
        after_turn: true,
        ..HookSet::default()
    }));
    script.lines();
    script.feed_all([Input::Cancel, Input::GraceOver, hook_continue()]);
    let expected = [
        "> stop model",
        "s.cfg.1.m1 begins",
        "s.cfg.1.m1 assistant Aborted: ",
        "usage None of 0",
        "turn ends []",
        "> hook after turn 0, None",
        "> grace",
        "> stop hook",
        "> commit loop ends Stopped(Cancelled)",
    ];
    assert_eq!(script.lines(), expected);
}

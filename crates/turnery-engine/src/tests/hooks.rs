//! Hooks: who is asked when, and what a no comes to (section 6.3).

use super::fixture::{prompt, spec};
use super::script::{Script, allow, calls, ended, failed, follow_up, go, no, prose, steer, text};
use crate::{
    Content, Detail, FaultKind, Finish, HookSet, HookVerdict, Input, Limits, LoopSpec, LoopStatus,
    Outcome, ToolEnvelope, TurnStop, Usage,
};

fn with(hooks: HookSet) -> LoopSpec {
    LoopSpec { hooks, ..prompt() }
}

fn all() -> LoopSpec {
    with(HookSet {
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

/// Every hook of a prompt with one call, in its place; nobody else is asked (LOOP-59).
// proves: TURN-23, TURN-24, TURN-25, TURN-27, TURN-28, TURN-57, C-27
#[test]
fn hooks_have_their_places() {
    let mut script = Script::start(all());
    script.feed_all([go(), go(), calls(&["a"]), allow("a"), go()]);
    script.feed_all([ended("a", ToolEnvelope::text("x")), go(), go(), go()]);
    script.feed_all([prose("done"), go(), go(), Input::Committed]);
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
        "a wanted: Use tool-a",
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
}

/// A stage that waits for a hook hears nothing else.
#[test]
fn nothing_goes_on_while_a_hook_is_asked() {
    let mut script = Script::start(all());
    script.lines();
    script.feed_all([prose("x"), text(0, "y"), allow("a"), Input::Committed]);
    assert!(script.lines().is_empty(), "R5");
    script.feed(go());
    assert_eq!(script.lines(), ["> hook before turn 0"]);
}

/// C-7, row 6a: a refused prompt leaves no turn, no message and no cost, and is off the chain.
// proves: UP-7, LOOP-27, LOOP-53, LASH-16, C-7, I13
#[test]
fn a_refused_prompt_is_rejected() {
    let mut script = Script::start(with(HookSet {
        input: true,
        ..HookSet::default()
    }));
    script.feed_all([no("not here"), Input::Committed]);
    let expected = [
        "loop begins",
        "> hook input hello",
        "rejected not here",
        "> commit loop ends Stopped(InvalidInput)",
        "publish loop ends Stopped(InvalidInput)",
        "> done",
    ];
    assert_eq!(script.lines(), expected);
    let finish = Finish::Done {
        outcome: Outcome::Stopped(TurnStop::InvalidInput),
        detail: Some(Detail::Rejection {
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

/// A refused steering or follow-up is dropped; the loop is not rejected.
// proves: UP-7, C-7, D-7
#[test]
fn a_refused_steering_drops_only_itself() {
    let mut script = Script::start(with(HookSet {
        input: true,
        ..HookSet::default()
    }));
    script.feed_all([go(), steer("be rude"), follow_up("be rude too")]);
    script.lines();
    script.feed_all([prose("done"), no("rude"), no("too rude"), Input::Committed]);
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

/// A warning is said to the model at the end of the person's own words.
// proves: UP-7
#[test]
fn a_warning_is_appended_to_the_message() {
    let mut script = Script::start(with(HookSet {
        input: true,
        ..HookSet::default()
    }));
    let warn = |text: &str| Input::Hooked(HookVerdict::Warn(text.to_owned()));
    script.feed_all([
        warn("no names"),
        steer("and you?"),
        prose("hi"),
        warn("brief"),
    ]);
    let messages = script.messages();
    assert_eq!(messages[0].message.text(), "hello\n[Warning: no names]");
    assert_eq!(messages[2].message.text(), "and you?\n[Warning: brief]");
}

/// A vetoed turn leaves no event; the loop ends, or it would ask for ever (C-26). Row 11: off the chain.
// proves: TURN-26, LASH-23, C-26
#[test]
fn a_vetoed_turn_leaves_no_trace() {
    let mut script = Script::start(with(HookSet {
        before_turn: true,
        after_turn: true,
        ..HookSet::default()
    }));
    script.feed(steer("wait"));
    script.feed_all([no("not now"), Input::Committed]);
    let expected = [
        "loop begins",
        "> hook before turn 0",
        "> unheard wait",
        "> commit loop ends Stopped(PluginAbort)",
        "publish loop ends Stopped(PluginAbort)",
        "> done",
    ];
    assert_eq!(script.lines(), expected);
    let record = script.recorder.into_record().unwrap();
    assert_eq!((record.turns.len(), record.on_chain), (0, false));
}

/// TURN-68: limits come before the hook.
// proves: TURN-68
#[test]
fn no_hook_is_asked_about_a_turn_that_cannot_run() {
    let limits = Limits {
        turns: 0,
        ..Limits::default()
    };
    let hooks = HookSet {
        before_turn: true,
        ..HookSet::default()
    };
    let mut script = Script::start(LoopSpec {
        hooks,
        ..spec(limits)
    });
    let lines = script.lines();
    assert!(!lines.iter().any(|line| line.starts_with("> hook")));
    assert_eq!(
        lines.last().unwrap(),
        "> commit loop ends Stopped(MaxTurns)"
    );
}

/// Time that runs out while the hook is asked about the last reply is no second limit.
// proves: UP-2
#[test]
fn a_limit_is_told_once() {
    let limits = Limits {
        turns: 0,
        ..Limits::default()
    };
    let hooks = HookSet {
        before_turn: true,
        ..HookSet::default()
    };
    let mut script = Script::start(LoopSpec {
        hooks,
        forced_reply: true,
        ..spec(limits)
    });
    assert_eq!(script.lines().last().unwrap(), "> hook before turn 0");
    script.feed(Input::TimeUp);
    let expected = ["> stop hook", "> commit loop ends Stopped(MaxTurns)"];
    assert_eq!(script.lines(), expected);
}

/// A vetoed call has its bracket and its result, and the next one is asked about.
// proves: D-9
#[test]
fn a_vetoed_call_is_skipped() {
    let mut script = Script::start(with(HookSet {
        before_tool: true,
        after_tool: true,
        ..HookSet::default()
    }));
    script.feed_all([calls(&["a", "b"]), allow("a")]);
    script.lines();
    script.feed_all([no("frozen"), allow("b"), go()]);
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
// proves: LOOP-58, C-28
#[test]
fn a_failed_answer_is_told_of() {
    let mut script = Script::start(with(HookSet {
        on_error: true,
        ..HookSet::default()
    }));
    let broken = ToolEnvelope::failed(crate::FailureKind::Exception, "no");
    script.feed_all([calls(&["a"]), allow("a"), ended("a", broken)]);
    assert!(!script.lines().iter().any(|line| line.starts_with("> hook")));
    script.feed_all([failed(FaultKind::Network), go(), Input::Committed]);
    let expected = [
        "s.cfg.1.m3 begins",
        "s.cfg.1.m3 assistant Error: ",
        "usage None of 13",
        "> hook error it broke",
        "turn ends []",
        "> commit loop ends Stopped(ProviderError)",
    ];
    assert_eq!(script.lines()[..6], expected);
}

/// What a checkpoint wants done is the next turn's input; its no refuses the loop.
// proves: LASH-23
#[test]
fn a_checkpoint_may_send_the_loop_on() {
    let checkpoint = || {
        with(HookSet {
            checkpoint: true,
            ..HookSet::default()
        })
    };
    let inject = || Input::Hooked(HookVerdict::Inject(vec![Content::text("run the tests")]));
    let mut script = Script::start(checkpoint());
    script.feed(prose("done"));
    script.lines();
    script.feed_all([inject(), prose("they pass"), go()]);
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
    let mut script = Script::start(checkpoint());
    script.feed_all([prose("done"), no("unsigned"), Input::Committed]);
    assert_eq!(
        script.lines().last_chunk::<3>().unwrap()[0],
        "> commit loop ends Stopped(PluginAbort)"
    );
    assert!(!script.recorder.into_record().unwrap().on_chain);
}

/// A cancel takes the question back, whatever it is, and the loop is cancelled.
// proves: LASH-15, R1
#[test]
fn a_cancel_takes_the_question_back() {
    let answered = || vec![go(), go(), calls(&["a"]), allow("a")];
    let done = || ended("a", ToolEnvelope::text("x"));
    let cases = [
        (vec![], "input hello"),
        (vec![go()], "before turn 0"),
        (answered(), "before tool a"),
        ([answered(), vec![go(), done()]].concat(), "after tool a"),
        (vec![go(), go(), prose("x")], "after turn 0, Some(7)"),
        (vec![go(), go(), prose("x"), go()], "checkpoint"),
        (vec![go(), go(), failed(FaultKind::Auth)], "error it broke"),
    ];
    for (before, hook) in cases {
        let mut script = Script::start(all());
        script.feed_all(before);
        assert_eq!(script.lines().last().unwrap(), &format!("> hook {hook}"));
        script.feed(Input::Cancel);
        assert_eq!(script.lines()[0], "> stop hook", "{hook}");
        script.feed_all([go(), Input::Committed]);
        let lines = script.lines();
        let end = "publish loop ends Stopped(Cancelled)".to_owned();
        assert!(lines.contains(&end), "{hook}: {lines:?}");
    }
}

/// A turn that began is told of also when it was cancelled, as long as the grace lasts.
// proves: R1
#[test]
fn a_cancelled_turn_is_told_of() {
    let mut script = Script::start(with(HookSet {
        after_turn: true,
        ..HookSet::default()
    }));
    script.lines();
    script.feed_all([Input::Cancel, Input::GraceOver, go()]);
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

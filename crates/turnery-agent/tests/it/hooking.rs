//! Hooks of the session and of one prompt: what they are asked, and what their no comes to.

use crate::world::{Act, ROOM, World, drain, live, say};
use futures_util::future::BoxFuture;
use std::{
    future::{pending, ready},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use turnery_agent::{CancellationToken, HookCx, Hooks, PromptOptions, PromptResult, Session};
use turnery_engine::{
    Content, Detail, Disposition, EventKind, Hook, HookSet, HookVerdict, LoopRecord, Outcome,
    TurnStop,
};

/// What a hook does before a loop.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Agrees,
    Refuses,
    Hangs,
    Breaks,
}

/// Writes down what it is asked, and answers as it was told.
struct Clerk {
    before: Before,
    set: HookSet,
    answer: fn(&Hook) -> HookVerdict,
    log: Mutex<Vec<String>>,
    asked: Notify,
}

impl Clerk {
    fn new(before: Before) -> Self {
        Self {
            before,
            set: HookSet::default(),
            answer: |_| HookVerdict::Go,
            log: Mutex::default(),
            asked: Notify::new(),
        }
    }

    fn answering(set: HookSet, answer: fn(&Hook) -> HookVerdict) -> Arc<Self> {
        Arc::new(Self {
            set,
            answer,
            ..Self::new(Before::Agrees)
        })
    }

    fn write(&self, line: String) {
        self.log.lock().unwrap().push(line);
        self.asked.notify_one();
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Hooks for Clerk {
    fn name(&self) -> &str {
        "clerk"
    }

    fn set(&self) -> HookSet {
        self.set
    }

    fn ask<'a>(&'a self, cx: &'a HookCx, hook: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        let line = match hook {
            Hook::BeforeTurn { turn_index } => {
                format!("before turn {turn_index}, {} messages", cx.messages.len())
            }
            Hook::AfterTurn { turn_index, .. } => {
                format!("after turn {turn_index}, {} messages", cx.messages.len())
            }
            Hook::BeforeTool(call) => format!("before {}", call.name),
            Hook::AfterTool { tool_name, .. } => format!("after {tool_name}"),
            other => format!("{other:?}"),
        };
        self.write(line);
        Box::pin(ready((self.answer)(hook)))
    }

    fn before_loop<'a>(
        &'a self,
        _: &'a HookCx,
        input: &'a [Content],
    ) -> BoxFuture<'a, Result<(), String>> {
        self.write(format!("before loop: {:?}", input[0].as_text().unwrap()));
        match self.before {
            Before::Agrees => Box::pin(ready(Ok(()))),
            Before::Refuses => Box::pin(ready(Err("not today".to_owned()))),
            Before::Hangs => Box::pin(pending()),
            Before::Breaks => panic!("clerk"),
        }
    }

    fn after_loop<'a>(&'a self, _: &'a HookCx, record: &'a LoopRecord) -> BoxFuture<'a, ()> {
        let (messages, tokens) = (record.messages.len(), record.usage.total());
        self.write(format!("after loop: {messages} messages, {tokens} tokens"));
        Box::pin(ready(()))
    }
}

async fn ask(session: &Session, hooks: Arc<Clerk>) -> PromptResult {
    let options = PromptOptions {
        hooks: vec![hooks],
        ..PromptOptions::default()
    };
    let ticket = session.prompt(vec![Content::text("hi")], options).unwrap();
    ticket.result().await.unwrap()
}

// proves: LOOP-55, UP-9, D-10, LASH-23
#[tokio::test(start_paused = true)]
pub(crate) async fn a_no_before_the_loop_leaves_neither_event_nor_record() {
    for (before, reason) in [
        (Before::Refuses, "not today"),
        (Before::Hangs, "the hook clerk did not answer within 60s"),
        (Before::Breaks, "the hook clerk broke"),
    ] {
        let world = World::new(&[&[Act::Say("hello")]]);
        let (session, mut seen) = world.session(ROOM).await;
        let result = ask(&session, Arc::new(Clerk::new(before))).await;
        assert_eq!(result.outcome, Outcome::Stopped(TurnStop::PluginAbort));
        let message = reason.to_owned();
        assert_eq!(result.detail, Some(Detail::Runtime { message }));
        assert_eq!(result.loops, []);
        assert!(drain(&mut seen).is_empty());
        assert_eq!(
            world.store.info(session.id()).await.unwrap().head_version,
            0
        );
        // The lane is free, and the prompt is not in the next context.
        say(&session, "again").result().await.unwrap();
        assert_eq!(world.puppet.request(0), ["again"]);
    }
}

// proves: LOOP-56, LOOP-57, LOOP-59
#[tokio::test(start_paused = true)]
async fn a_hook_is_told_of_a_loop_with_its_messages_and_its_usage_after_the_commit() {
    let world = World::new(&[&[Act::Say("hello"), Act::Spend(7, 2)], &[Act::Say("x")]]);
    let (session, _seen) = world.session(ROOM).await;
    let clerk = Arc::new(Clerk::new(Before::Agrees));
    ask(&session, clerk.clone()).await;
    let told = ["before loop: \"hi\"", "after loop: 2 messages, 9 tokens"];
    assert_eq!(clerk.log(), told);
    // The hooks of one prompt are not asked in the next.
    say(&session, "again").result().await.unwrap();
    assert_eq!(clerk.log(), told);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_takes_the_question_back_and_is_recorded() {
    let world = World::new(&[]);
    let (session, _seen) = world.session(ROOM).await;
    let clerk = Arc::new(Clerk::new(Before::Hangs));
    let cancel = CancellationToken::new();
    let options = PromptOptions {
        hooks: vec![clerk.clone()],
        ..PromptOptions::cancelled_by(cancel.clone())
    };
    let ticket = session.prompt(vec![Content::text("hi")], options).unwrap();
    clerk.asked.notified().await;
    let asked = Instant::now();
    cancel.cancel();
    let result = ticket.result().await.unwrap();
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(result.loops.len(), 1);
}

// proves: TURN-23, TURN-25, TURN-27
#[tokio::test(start_paused = true)]
async fn hooks_are_asked_around_turns_and_tools_with_what_the_model_sees() {
    let world = World::new(&[&[Act::Call("c", "look")], &[Act::Say("done")]]);
    let (session, _seen) = world.session(ROOM).await;
    let set = HookSet {
        before_turn: true,
        after_turn: true,
        before_tool: true,
        after_tool: true,
        ..HookSet::default()
    };
    let clerk = Clerk::answering(set, |_| HookVerdict::Go);
    ask(&session, clerk.clone()).await;
    assert_eq!(
        clerk.log()[1..],
        [
            "before turn 0, 0 messages",
            "before look",
            "after look",
            "after turn 0, 3 messages",
            "before turn 1, 3 messages",
            "after turn 1, 4 messages",
            "after loop: 4 messages, 0 tokens",
        ]
    );
}

// proves: TURN-26, C-26, LASH-23
#[tokio::test(start_paused = true)]
async fn a_no_before_a_turn_ends_the_prompt_and_keeps_it_out_of_the_context() {
    let world = World::new(&[&[Act::Call("c", "look")], &[Act::Say("second")]]);
    let (session, mut seen) = world.session(ROOM).await;
    let set = HookSet {
        before_turn: true,
        ..HookSet::default()
    };
    let clerk = Clerk::answering(set, |hook| match hook {
        Hook::BeforeTurn { turn_index: 1 } => HookVerdict::Stop("enough".to_owned()),
        _ => HookVerdict::Go,
    });
    let result = ask(&session, clerk).await;
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::PluginAbort));
    assert_eq!(result.loops[0].turns.len(), 1);
    let events = live(&drain(&mut seen));
    let turns = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::TurnStart { .. }));
    assert_eq!(turns.count(), 1);
    say(&session, "again").result().await.unwrap();
    assert_eq!(world.puppet.request(1), ["again"]);
}

// proves: D-9
#[tokio::test(start_paused = true)]
async fn a_no_before_a_tool_is_told_to_the_model_and_the_tool_does_not_run() {
    let world = World::new(&[&[Act::Call("c", "look")], &[Act::Say("well")]]);
    let (session, _seen) = world.session(ROOM).await;
    let set = HookSet {
        before_tool: true,
        ..HookSet::default()
    };
    let clerk = Clerk::answering(set, |_| HookVerdict::Stop("no looking".to_owned()));
    let result = ask(&session, clerk).await;
    assert!(world.ran.lock().unwrap().is_empty());
    assert_eq!(result.executions()[0].disposition, Disposition::Skipped);
    assert_eq!(world.puppet.request(1), ["hi", "", "no looking"]);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn a_hook_that_breaks_before_a_tool_is_a_no() {
    let world = World::new(&[&[Act::Call("c", "look")], &[Act::Say("well")]]);
    let (session, _seen) = world.session(ROOM).await;
    let set = HookSet {
        before_tool: true,
        ..HookSet::default()
    };
    ask(&session, Clerk::answering(set, |_| panic!("clerk"))).await;
    assert!(world.ran.lock().unwrap().is_empty());
    assert_eq!(world.puppet.request(1)[2], "the hook clerk broke");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_breaks_after_the_fact_is_an_issue_and_no_more() {
    let world = World::set(&[&[Act::Say("hello")]], |settings| {
        let set = HookSet {
            after_turn: true,
            ..HookSet::default()
        };
        let clerk = Clerk::answering(set, |_| panic!("clerk"));
        settings.hooks.push(clerk);
    });
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "hi").result().await.unwrap();
    assert!(matches!(result.outcome, Outcome::Finished(_)));
    let issues: Vec<&str> = result.issues().collect();
    assert_eq!(issues, ["the hook clerk broke"]);
}

//! Permission: nothing runs before a positive answer that was offered and means allow (PERM-1 to 6).

use crate::world::{Act, ROOM, World, live, say};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, mpsc};
use turnery_agent::{Answer, OptionKind, Session, Ticket};
use turnery_engine::{Event, EventKind, Outcome, ToolEnvelope, ToolFailure, ToolSpec, TurnStop};
use turnery_store::MemoryStore;
use turnery_tools::{Access, GitSettings, LineLimits, Mode, Prepared, Tool, ToolCx};

fn chose(id: &str) -> Answer {
    Answer::Chose(id.to_owned())
}

// proves: ACP-32, ACP-33, PERM-1, PERM-3
#[tokio::test(start_paused = true)]
async fn only_an_offered_option_that_means_allow_lets_a_call_run() {
    let table = [
        (chose("allow_once"), true),
        (chose("allow_always"), true),
        (chose("reject_once"), false),
        (chose("reject_always"), false),
        (chose("allow_sometimes"), false),
        (chose(""), false),
        (
            Answer::NoAnswer("the client answered with an error".to_owned()),
            false,
        ),
    ];
    for (answer, runs) in table {
        let world = World::new(&[&[Act::Call("r", "ring")], &[Act::Say("so be it")]])
            .answering(std::slice::from_ref(&answer));
        let (session, _seen) = world.session(ROOM).await;
        let result = say(&session, "ring").result().await.unwrap();
        assert_eq!(!world.ran.lock().unwrap().is_empty(), runs, "{answer:?}");
        // A refused call does not end the turn.
        assert!(matches!(result.outcome, Outcome::Finished(_)), "{answer:?}");
    }
}

// proves: ACP-31, PERM-2, PERM-5
#[tokio::test(start_paused = true)]
async fn every_option_is_offered_once() {
    let world = World::new(&[&[Act::Call("r", "ring")]]).answering(&[chose("reject_once")]);
    let (session, _seen) = world.session(ROOM).await;
    say(&session, "ring").result().await.unwrap();
    let asked = world.person.asked.lock().unwrap();
    let kinds: Vec<OptionKind> = asked[0].options.iter().map(|option| option.kind).collect();
    assert_eq!(
        kinds,
        [
            OptionKind::AllowOnce,
            OptionKind::AllowAlways,
            OptionKind::RejectOnce,
            OptionKind::RejectAlways
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn always_is_remembered_for_the_session() {
    for (answer, ran) in [("allow_always", 2), ("reject_always", 0)] {
        let world = World::new(&[
            &[Act::Call("a", "ring"), Act::Call("b", "ring")],
            &[Act::Say("done")],
        ])
        .answering(&[chose(answer)]);
        let (session, _seen) = world.session(ROOM).await;
        say(&session, "ring twice").result().await.unwrap();
        assert_eq!(world.person.asked.lock().unwrap().len(), 1, "{answer}");
        assert_eq!(world.ran.lock().unwrap().len(), ran, "{answer}");
    }
}

// proves: ACP-50, LASH-15
#[tokio::test(start_paused = true)]
async fn cancelling_the_question_cancels_the_prompt() {
    let world = World::new(&[&[Act::Call("r", "ring")]]).answering(&[Answer::Cancelled]);
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "ring").result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert!(world.ran.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_mode_set_in_mid_prompt_holds_for_the_next_call() {
    let signal = Arc::new(tokio::sync::Notify::new());
    let world = World::new(&[
        &[Act::Wait(signal.clone()), Act::Call("r", "ring")],
        &[Act::Say("rang")],
    ]);
    let (session, _seen) = world.session(ROOM).await;
    let ticket = say(&session, "ring");
    session.set_mode(Mode::Auto).await.unwrap();
    assert_eq!(session.options().mode, Mode::Auto);
    signal.notify_one();
    ticket.result().await.unwrap();
    assert_eq!(*world.ran.lock().unwrap(), ["ring"]);
    assert!(world.person.asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_person_takes_does_not_count() {
    let hour = std::time::Duration::from_secs(3600);
    let world = World::new(&[
        &[Act::Call("r", "ring")],
        &[
            Act::Pause(std::time::Duration::from_secs(590)),
            Act::Say("rang"),
        ],
        &[Act::Call("r", "ring")],
        &[Act::Hang],
    ])
    .answering(&[chose("allow_once"), chose("allow_once")]);
    *world.person.thinks.lock().unwrap() = hour;
    let (session, _seen) = world.session(ROOM).await;
    let result = say(&session, "ring").result().await.unwrap();
    assert!(matches!(result.outcome, Outcome::Finished(_)), "{result:?}");
    // The limit is still there.
    let begun = tokio::time::Instant::now();
    let result = say(&session, "hang").result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::MaxTurns));
    assert_eq!(begun.elapsed().as_secs(), 3600 + 600);
}

/// Runs `test` with a session whose first call is being judged on a thread that hangs until the sender is dropped.
fn while_judging_hangs(test: impl AsyncFnOnce(World, Session, Ticket, mpsc::Sender<()>)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = World::new(&[
            &[Act::Call("r", "ring")],
            &[Act::Say("the other session")],
            &[Act::Say("so be it")],
        ]);
        let (session, mut seen) = world.session(ROOM).await;
        let (other, _seen) = world.session(ROOM).await;
        let (release, held) = mpsc::channel();
        tokio::task::spawn_blocking(move || held.recv());
        let ticket = say(&session, "ring");
        let is_requested =
            |event: &Event| matches!(event.kind, EventKind::ToolCallRequested { .. });
        while !live(&[seen.recv().await.unwrap()]).iter().any(is_requested) {}
        let result = say(&other, "hello").result().await.unwrap();
        assert!(matches!(result.outcome, Outcome::Finished(_)), "{result:?}");
        test(world, session, ticket, release).await;
    });
}

#[test]
fn judging_that_hangs_delays_neither_cancel_nor_other_sessions() {
    while_judging_hangs(async |world, session, ticket, release| {
        assert_eq!(session.cancel_running_turns(), 1);
        let result = ticket.result().await.unwrap();
        assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
        assert!(world.person.asked.lock().unwrap().is_empty());
        assert!(world.ran.lock().unwrap().is_empty());
        drop(release);
    });
}

#[test]
fn a_mode_set_while_a_call_is_judged_holds_for_it() {
    while_judging_hangs(async |world, session, ticket, release| {
        session.set_mode(Mode::Plan).await.unwrap();
        drop(release);
        ticket.result().await.unwrap();
        assert!(world.person.asked.lock().unwrap().is_empty());
        assert!(world.ran.lock().unwrap().is_empty());
    });
}

#[test]
fn a_call_that_is_not_judged_in_time_is_asked_about() {
    while_judging_hangs(async |world, session, _ticket, release| {
        tokio::time::advance(std::time::Duration::from_secs(5)).await;
        world.person.called.notified().await;
        let kinds: Vec<OptionKind> = world.person.asked.lock().unwrap()[0]
            .options
            .iter()
            .map(|option| option.kind)
            .collect();
        assert_eq!(kinds, [OptionKind::AllowOnce, OptionKind::RejectOnce]);
        assert!(world.ran.lock().unwrap().is_empty());
        session.cancel_running_turns();
        drop(release);
    });
}

/// Would run a command line, and keeps the limits that it is given.
struct Runner {
    spec: ToolSpec,
    command: &'static str,
    limits: Arc<Mutex<Vec<LineLimits>>>,
}

impl Tool for Runner {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let prepared = Prepared {
            access: Access::Run {
                command: self.command.to_owned(),
                cwd: cx.workspace.cwd().to_owned(),
            },
            detail: self.describe(args, &cx.workspace),
        };
        Box::pin(async move { Ok(prepared) })
    }

    fn run<'a>(&'a self, _args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        self.limits.lock().unwrap().push(cx.line_limits);
        Box::pin(async { ToolEnvelope::text("ran") })
    }
}

/// The run keeps to what the judgement found; nobody judges a second time.
#[tokio::test(start_paused = true)]
async fn line_runs_within_the_limits_of_the_judgement_that_allowed_it() {
    let of = |only_reads, git| LineLimits {
        only_reads,
        runs_readers: only_reads,
        git,
    };
    for (command, expected) in [
        ("ls", of(true, GitSettings::Own)),
        ("git --version && ls", of(true, GitSettings::Hardened)),
        ("touch a", of(false, GitSettings::Own)),
    ] {
        let limits = Arc::default();
        let runner = Runner {
            spec: ToolSpec::new("runner", "", json!({"type": "object", "properties": {}})),
            command,
            limits: Arc::clone(&limits),
        };
        let script: &[&[Act]] = &[&[Act::Call("c", "runner")], &[Act::Say("so be it")]];
        let store = Arc::new(MemoryStore::new());
        let world = World::made(store, script, &[], |_| {}, |tools| tools.and(runner))
            .answering(&[chose("allow_once")]);
        let (session, _seen) = world.session(ROOM).await;
        say(&session, "run it").result().await.unwrap();
        let is_asked = !world.person.asked.lock().unwrap().is_empty();
        assert_eq!(is_asked, command == "touch a");
        assert_eq!(*limits.lock().unwrap(), [expected], "{command}");
    }
}

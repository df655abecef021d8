//! Tests that nothing runs before an offered, allowing answer (PERM-1 to 6).

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, choose, run_text, start_text, wait_for_event,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, mpsc};
use turnery_agent::{PermissionAnswer, PermissionChoiceKind, PromptHandle, Session};
use turnery_engine::{
    Disposition, EventKind, Outcome, ToolEnvelope, ToolError, ToolSpec, TurnStop,
};
use turnery_store::MemoryStore;
use turnery_tools::{Access, CommandLineLimits, GitSettings, Mode, PreparedCall, Tool, ToolCx};

// proves: ACP-32, ACP-33, PERM-1, PERM-3
#[tokio::test(start_paused = true)]
async fn only_offered_allow_option_runs_the_call() {
    let table = [
        (choose("allow_once"), true),
        (choose("allow_always"), true),
        (choose("reject_once"), false),
        (choose("reject_always"), false),
        (choose("allow_sometimes"), false),
        (choose(""), false),
        (
            PermissionAnswer::NoAnswer("the client answered with an error".to_owned()),
            false,
        ),
    ];
    for (answer, runs) in table {
        let world =
            EmbeddingFixture::new(&[&[ModelAct::Call("r", "ring")], &[ModelAct::Say("so be it")]])
                .with_answers(std::slice::from_ref(&answer));
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        let result = run_text(&session, "ring").await;
        assert_eq!(!world.ran.lock().unwrap().is_empty(), runs, "{answer:?}");
        // A refused call does not end the turn.
        assert!(
            matches!(result.outcome, Outcome::Finished(..)),
            "{answer:?}"
        );
    }
}

// proves: ACP-31, PERM-2, PERM-5, UP-38
#[tokio::test(start_paused = true)]
async fn each_permission_option_is_offered_once() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("r", "ring")]])
        .with_answers(&[choose("reject_once")]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "ring").await;
    let asked = world.client.asked.lock().unwrap();
    let kinds: Vec<PermissionChoiceKind> =
        asked[0].options.iter().map(|option| option.kind).collect();
    assert_eq!(
        kinds,
        [
            PermissionChoiceKind::AllowOnce,
            PermissionChoiceKind::AllowAlways,
            PermissionChoiceKind::RejectOnce,
            PermissionChoiceKind::RejectAlways
        ]
    );
}

// proves: THEME-6
#[tokio::test(start_paused = true)]
async fn allow_always_is_remembered_in_session() {
    for (answer, ran) in [("allow_always", 2), ("reject_always", 0)] {
        let world = EmbeddingFixture::new(&[
            &[ModelAct::Call("a", "ring"), ModelAct::Call("b", "ring")],
            &[ModelAct::Say("done")],
        ])
        .with_answers(&[choose(answer)]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "ring twice").await;
        assert_eq!(world.client.asked.lock().unwrap().len(), 1, "{answer}");
        assert_eq!(world.ran.lock().unwrap().len(), ran, "{answer}");
    }
}

// proves: ACP-50, LASH-15
#[tokio::test(start_paused = true)]
async fn cancelled_permission_cancels_the_prompt() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Call("r", "ring")]])
        .with_answers(&[PermissionAnswer::Cancelled]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "ring").await;
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert!(world.ran.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn mode_change_applies_to_next_call() {
    let signal = Arc::new(tokio::sync::Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Wait(signal.clone()), ModelAct::Call("r", "ring")],
        &[ModelAct::Say("rang")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = start_text(&session, "ring");
    session.set_mode(Mode::Auto).await.unwrap();
    assert_eq!(session.options().mode, Mode::Auto);
    signal.notify_one();
    ticket.result().await.unwrap();
    assert_eq!(*world.ran.lock().unwrap(), ["ring"]);
    assert!(world.client.asked.lock().unwrap().is_empty());
}

// proves: C-21, JIDO-69
#[tokio::test(start_paused = true)]
async fn permission_wait_does_not_count_as_time() {
    // Longer than the hour that the tool may take.
    let wait = std::time::Duration::from_secs(7200);
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("r", "ring")],
        &[
            ModelAct::Pause(std::time::Duration::from_secs(590)),
            ModelAct::Say("rang"),
        ],
        &[ModelAct::Call("r", "ring")],
        &[ModelAct::Hang],
    ])
    .with_answers(&[choose("allow_once"), choose("allow_once")]);
    *world.client.delay.lock().unwrap() = wait;
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run_text(&session, "ring").await;
    assert!(
        matches!(result.outcome, Outcome::Finished(..)),
        "{result:?}"
    );
    let ends = result.loops[0]
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolExecutionEnd { disposition, .. } => Some(*disposition),
            _ => None,
        });
    assert_eq!(ends.collect::<Vec<_>>(), [Disposition::Executed]);
    // The limit is still there.
    let begun = tokio::time::Instant::now();
    let result = run_text(&session, "hang").await;
    assert!(matches!(
        result.outcome,
        Outcome::Stopped(TurnStop::MaxTurns(_))
    ));
    assert_eq!(begun.elapsed().as_secs(), 7200 + 600);
}

/// Runs `test` with a session whose first call is being judged on a thread that hangs until the sender is dropped.
fn while_judging_hangs(
    test: impl AsyncFnOnce(EmbeddingFixture, Session, PromptHandle, mpsc::Sender<()>),
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = EmbeddingFixture::new(&[
            &[ModelAct::Call("r", "ring")],
            &[ModelAct::Say("the other session")],
            &[ModelAct::Say("so be it")],
        ]);
        let (session, mut seen) = world.session(LARGE_CAPACITY).await;
        let (other, _seen) = world.session(LARGE_CAPACITY).await;
        let (release, held) = mpsc::channel();
        tokio::task::spawn_blocking(move || held.recv());
        let ticket = start_text(&session, "ring");
        wait_for_event(&mut seen, |kind| {
            matches!(kind, EventKind::ToolCallRequested { .. })
        })
        .await;
        let result = run_text(&other, "hello").await;
        assert!(
            matches!(result.outcome, Outcome::Finished(..)),
            "{result:?}"
        );
        test(world, session, ticket, release).await;
    });
}

#[test]
fn hanging_judgement_does_not_delay_cancel() {
    while_judging_hangs(async |world, session, ticket, release| {
        assert_eq!(session.cancel_prompts(), 1);
        let result = ticket.result().await.unwrap();
        assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
        assert!(world.client.asked.lock().unwrap().is_empty());
        assert!(world.ran.lock().unwrap().is_empty());
        drop(release);
    });
}

#[test]
fn mode_change_applies_to_call_being_judged() {
    while_judging_hangs(async |world, session, ticket, release| {
        session.set_mode(Mode::Plan).await.unwrap();
        drop(release);
        ticket.result().await.unwrap();
        assert!(world.client.asked.lock().unwrap().is_empty());
        assert!(world.ran.lock().unwrap().is_empty());
    });
}

#[test]
fn unjudged_call_asks_for_permission() {
    while_judging_hangs(async |world, session, _ticket, release| {
        tokio::time::advance(std::time::Duration::from_secs(5)).await;
        world.client.was_asked.notified().await;
        let kinds: Vec<PermissionChoiceKind> = world.client.asked.lock().unwrap()[0]
            .options
            .iter()
            .map(|option| option.kind)
            .collect();
        assert_eq!(
            kinds,
            [
                PermissionChoiceKind::AllowOnce,
                PermissionChoiceKind::RejectOnce
            ]
        );
        assert!(world.ran.lock().unwrap().is_empty());
        session.cancel_prompts();
        drop(release);
    });
}

/// Tool that would run a command line, and records its limits.
struct CommandTool {
    spec: ToolSpec,
    command: &'static str,
    limits: Arc<Mutex<Vec<CommandLineLimits>>>,
}

impl Tool for CommandTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        let prepared = PreparedCall {
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

/// The run uses the limits found by the judgement, without judging again.
#[tokio::test(start_paused = true)]
async fn command_line_keeps_limits_of_its_judgement() {
    let of = |only_reads, git| CommandLineLimits {
        only_reads,
        loads_no_project_code: only_reads,
        git,
    };
    for (command, expected) in [
        ("ls", of(true, GitSettings::Unrestricted)),
        ("git --version && ls", of(true, GitSettings::Hardened)),
        ("touch a", of(false, GitSettings::Unrestricted)),
    ] {
        let limits = Arc::default();
        let runner = CommandTool {
            spec: ToolSpec::new("runner", "", json!({"type": "object", "properties": {}})),
            command,
            limits: Arc::clone(&limits),
        };
        let script: &[&[ModelAct]] = &[
            &[ModelAct::Call("c", "runner")],
            &[ModelAct::Say("so be it")],
        ];
        let store = Arc::new(MemoryStore::new());
        let world =
            EmbeddingFixture::build(store, script, &[], |_| {}, |tools| tools.with_tool(runner))
                .with_answers(&[choose("allow_once")]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "run it").await;
        let is_asked = !world.client.asked.lock().unwrap().is_empty();
        assert_eq!(is_asked, command == "touch a");
        assert_eq!(*limits.lock().unwrap(), [expected], "{command}");
    }
}

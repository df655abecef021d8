//! Tests of candidates that change files, each in a folder of its own, with real repositories.

use crate::{
    evaluation::{candidates, loop_ids_and_winner},
    fixture::{
        EmbeddingFixture, LARGE_CAPACITY, ModelAct, TestModel, choose, drain, live_events,
        run_text, yield_while,
    },
};
use std::{fs, path::PathBuf, process::Command, sync::Arc};
use tokio::sync::Notify;
use turnery_agent::{
    CancellationToken, Candidate, JudgeCommand, PromptError, PromptOptions, PromptResult, Protocol,
    SelectionStrategy, Session, WinnerChanges,
};
use turnery_engine::{Artifact, Content, EventKind, LoopRecord, Outcome, TurnStop, oracle};
use turnery_models::Thinking;
use turnery_store::{MemoryStore, Store};
use turnery_tools::{CandidateFoldersError, Mode, Toolbox};

/// Model that writes `FILE` with its own name as the text, then says "done".
pub(crate) fn writer(name: &'static str, file: &'static str) -> Arc<TestModel> {
    TestModel::new(
        name,
        &[
            &[ModelAct::CallWith(
                "w",
                "write_file",
                // The script is static, so the text is one of a few.
                match (name, file) {
                    ("a", "f") => r#"{"path": "f", "content": "a\n"}"#,
                    ("b", "f") => r#"{"path": "f", "content": "b\n"}"#,
                    _ => r#"{"path": "sub/new", "content": "new\n"}"#,
                },
            )],
            &[ModelAct::Say("done")],
        ],
    )
}

/// Creates a world with the real tools, whose folder is a repository with the file `f`.
pub(crate) fn repository(models: &[Arc<TestModel>], mode: Mode) -> EmbeddingFixture {
    repository_with_store(Arc::new(MemoryStore::new()), models, mode)
}

pub(crate) fn repository_with_store(
    store: Arc<dyn Store>,
    models: &[Arc<TestModel>],
    mode: Mode,
) -> EmbeddingFixture {
    let world = folder(store, models, mode);
    for args in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["commit", "--quiet", "-m", "first"],
    ] {
        git(&world, args);
    }
    world
}

fn folder(store: Arc<dyn Store>, models: &[Arc<TestModel>], mode: Mode) -> EmbeddingFixture {
    let set = |settings: &mut turnery_agent::Settings| settings.mode = mode;
    let tools = |_| Toolbox::coding();
    let world = EmbeddingFixture::build(store, &[], models, set, tools);
    fs::write(world.folder.path().join("f"), "first\n").unwrap();
    world
}

fn git(world: &EmbeddingFixture, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(args)
        .current_dir(world.folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn in_mode(models: &[&str], mode: Mode) -> Vec<Candidate> {
    let with_mode = |candidate| Candidate {
        mode: Some(mode),
        ..candidate
    };
    candidates(models).into_iter().map(with_mode).collect()
}

pub(crate) async fn evaluate(
    session: &Session,
    candidates: Vec<Candidate>,
    strategy: SelectionStrategy,
) -> Result<PromptResult, PromptError> {
    let input = vec![Content::text("fix it")];
    let handle = session.evaluate(input, candidates, strategy, PromptOptions::default());
    handle.unwrap().result().await
}

pub(crate) fn read(world: &EmbeddingFixture, file: &str) -> String {
    fs::read_to_string(world.folder.path().join(file)).unwrap_or_default()
}

/// Checks that nothing is left of the candidates' folders, in the repository or elsewhere.
pub(crate) fn assert_no_folders(world: &EmbeddingFixture, session: &Session) {
    let prefix = format!("turnery-candidates-{}-", session.id());
    let entries = fs::read_dir(std::env::temp_dir()).unwrap();
    let left = entries.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(&prefix)
    });
    assert_eq!(left.count(), 0);
    let records = world.folder.path().join(".git/worktrees");
    assert!(!records.exists());
}

fn applied(files: &[&str]) -> Option<WinnerChanges> {
    let files = files.iter().map(PathBuf::from).collect();
    Some(WinnerChanges::Applied { files })
}

/// Returns the call that applies the changes: its title, and the diffs as path, old and new text.
pub(crate) fn applied_edit(
    record: &LoopRecord,
) -> (String, Vec<(PathBuf, Option<String>, String)>) {
    let details = record.events.iter().find_map(|event| match &event.kind {
        EventKind::ToolCallRequested { call, detail } if call.name == "apply_changes" => {
            Some(detail)
        }
        _ => None,
    });
    let detail = details.unwrap();
    let diffs = detail
        .artifacts
        .iter()
        .filter_map(|artifact| match artifact {
            Artifact::Diff { path, old, new, .. } => Some((path.clone(), old.clone(), new.clone())),
            Artifact::Content(_) | Artifact::Terminal { .. } => None,
        });
    (detail.title.clone(), diffs.collect())
}

// proves: UP-17
#[tokio::test]
pub(crate) async fn winner_changes_are_applied_as_one_edit() {
    let world = repository(&[writer("a", "f"), writer("b", "f")], Mode::Edit);
    fs::write(world.folder.path().join("f"), "uncommitted\n").unwrap();
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let result = evaluate(
        &session,
        in_mode(&["b", "a"], Mode::Edit),
        SelectionStrategy::First,
    )
    .await
    .unwrap();
    assert_eq!(read(&world, "f"), "b\n");
    assert_eq!(result.changes, applied(&["f"]));
    let Outcome::Finished(finish, None) = &result.outcome else {
        panic!("{result:?}");
    };
    assert_eq!(format!("{finish:?}"), "AssistantMessage { text: \"done\" }");
    assert!(world.client.asked.lock().unwrap().is_empty());
    assert_no_folders(&world, &session);
    // Both candidates changed the file, each its own.
    let [b, a, apply] = &result.loops[..] else {
        panic!("{:?}", result.loops);
    };
    for record in [b, a] {
        let texts = record.messages.iter().map(|it| it.message.text());
        let texts: Vec<String> = texts.collect();
        assert!(texts[2].contains("Replaced f"), "{texts:?}");
    }
    // One edit is shown and stored.
    let (title, diffs) = applied_edit(apply);
    assert_eq!(title, "Apply the changes of candidate 1 (puppet/b): 1 file");
    let path = world.folder.path().canonicalize().unwrap().join("f");
    let change = (path, Some("uncommitted\n".to_owned()), "b\n".to_owned());
    assert_eq!(diffs, [change]);
    assert!(apply.on_chain && b.on_chain && !a.on_chain);
    assert_eq!(apply.parent_loop_id.as_ref(), Some(&b.loop_id));
    assert_eq!(world.loops(session.id()).await, result.loops);
    // The client sees the winner, then the loop that applies its changes.
    let events = live_events(&drain(&mut seen));
    let split = events
        .iter()
        .position(|event| event.loop_id == apply.loop_id);
    let (won, application) = events.split_at(split.unwrap());
    assert_eq!(oracle::check_live(won), Ok(()));
    assert_eq!(oracle::check_live(application), Ok(()));
    assert!(won.iter().all(|event| event.loop_id == b.loop_id));
    // The next prompt knows where the changes are, and goes on in the session's folder.
    run_text(&session, "next").await;
    let request = world.model.request(0);
    let [.., applied, next] = &request[..] else {
        panic!("{request:?}");
    };
    assert!(applied.contains("made in a copy, are now in"), "{applied}");
    assert_eq!(next, "next");
}

/// A candidate that changes nothing has nothing applied; a new file in a new folder is.
#[tokio::test]
async fn only_changes_are_applied() {
    let idle = TestModel::new("idle", &[&[ModelAct::Say("nothing to do")]]);
    for (first, expected) in [("idle", None), ("c", applied(&["sub/new"]))] {
        let world = folder(
            Arc::new(MemoryStore::new()),
            &[Arc::clone(&idle), writer("c", "new")],
            Mode::Auto,
        );
        idle.answer_next(&[ModelAct::Say("nothing to do")]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        let candidates = in_mode(&[first], Mode::Edit);
        let result = evaluate(&session, candidates, SelectionStrategy::First).await;
        let result = result.unwrap();
        assert_eq!(result.changes, expected);
        assert_eq!(read(&world, "sub/new") == "new\n", expected.is_some());
        assert_eq!(result.loops.len(), 1 + usize::from(expected.is_some()));
        assert_no_folders(&world, &session);
    }
}

/// Questions name the candidate; the change of the winner is one question more.
// proves: PERM-3
#[tokio::test]
async fn rejected_changes_are_kept_and_not_applied() {
    let world = repository(&[writer("a", "f"), writer("b", "f")], Mode::Ask);
    let answers = ["allow_once", "allow_once", "reject_once"].map(choose);
    let world = world.with_answers(&answers);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let candidates = in_mode(&["a", "b"], Mode::Ask);
    let result = evaluate(&session, candidates, SelectionStrategy::First).await;
    let result = result.unwrap();
    let asked: Vec<(String, String)> = world
        .client
        .asked
        .lock()
        .unwrap()
        .iter()
        .map(|it| (it.detail.title.clone(), it.call_id.to_string()))
        .collect();
    let mut titles: Vec<&str> = asked.iter().map(|(title, _)| &**title).collect();
    titles[..2].sort_unstable();
    assert_eq!(
        titles,
        [
            "candidate 1 (puppet/a): Write f",
            "candidate 2 (puppet/b): Write f",
            "Apply the changes of candidate 1 (puppet/a): 1 file",
        ]
    );
    assert_ne!(asked[0].1, asked[1].1, "both models use the same id");
    assert_eq!(read(&world, "f"), "first\n");
    assert!(matches!(result.outcome, Outcome::Finished(..)));
    let Some(WinnerChanges::NotApplied {
        files,
        reason,
        kept: Some(kept),
    }) = &result.changes
    else {
        panic!("{:?}", result.changes);
    };
    assert_eq!(files, &[PathBuf::from("f")]);
    assert_eq!(reason, "the user rejected this call");
    assert_eq!(fs::read_to_string(kept.join("files/f")).unwrap(), "a\n");
    let diff = fs::read_to_string(kept.join("changes.diff")).unwrap();
    assert!(diff.contains("-first\n+a\n"), "{diff}");
    fs::remove_dir_all(kept).unwrap();
    let last = result.loops[2].messages.last().unwrap().message.text();
    assert!(last.contains("were not applied"), "{last}");
    assert_no_folders(&world, &session);
}

/// The user changes the file while the candidates run.
#[tokio::test]
async fn changes_that_no_longer_apply_are_an_error() {
    let go = Arc::new(Notify::new());
    let write = ModelAct::CallWith("w", "write_file", r#"{"path": "f", "content": "a\n"}"#);
    let slow = TestModel::new(
        "a",
        &[
            &[write],
            &[ModelAct::Wait(Arc::clone(&go)), ModelAct::Say("done")],
        ],
    );
    let world = repository(&[Arc::clone(&slow)], Mode::Edit);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let running = evaluate(
        &session,
        in_mode(&["a"], Mode::Edit),
        SelectionStrategy::First,
    );
    let (result, ()) = tokio::join!(running, async {
        yield_while(|| slow.requests.lock().unwrap().len() < 2).await;
        fs::write(world.folder.path().join("f"), "by the user\n").unwrap();
        go.notify_one();
    });
    let result = result.unwrap();
    assert_eq!(read(&world, "f"), "by the user\n");
    let Some(WinnerChanges::NotApplied {
        reason,
        kept: Some(kept),
        ..
    }) = &result.changes
    else {
        panic!("{:?}", result.changes);
    };
    let place = kept.display();
    assert_eq!(
        *reason,
        format!(
            "the changes do not apply: these files have changed meanwhile: f; they are kept in {place}"
        )
    );
    assert_eq!(fs::read_to_string(kept.join("files/f")).unwrap(), "a\n");
    fs::remove_dir_all(kept).unwrap();
    assert!(matches!(result.outcome, Outcome::Finished(..)));
    assert_no_folders(&world, &session);
}

// proves: LASH-91
#[tokio::test]
async fn cancelled_candidates_leave_no_folder_and_no_change() {
    let write = ModelAct::CallWith("w", "write_file", r#"{"path": "f", "content": "a\n"}"#);
    let hang = TestModel::new("a", &[&[write], &[ModelAct::Hang]]);
    let world = repository(&[Arc::clone(&hang)], Mode::Edit);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let cancel = CancellationToken::new();
    let handle = session.evaluate(
        vec![Content::text("fix it")],
        in_mode(&["a"], Mode::Edit),
        SelectionStrategy::First,
        PromptOptions::cancelled_by(cancel.clone()),
    );
    let (result, ()) = tokio::join!(handle.unwrap().result(), async {
        yield_while(|| hang.requests.lock().unwrap().len() < 2).await;
        cancel.cancel();
    });
    let result = result.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(result.changes, None);
    assert_eq!(read(&world, "f"), "first\n");
    assert_no_folders(&world, &session);
    // The session goes on.
    run_text(&session, "next").await;
}

/// Errors come before anything has begun, and the session stays usable.
#[tokio::test]
async fn impossible_candidates_are_refused() {
    let world = repository(&[writer("a", "f")], Mode::Ask);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let with = |set: &dyn Fn(&mut Candidate)| {
        let mut candidates = in_mode(&["a", "a"], Mode::Ask);
        set(&mut candidates[1]);
        candidates
    };
    let refused =
        async |candidates, strategy| evaluate(&session, candidates, strategy).await.unwrap_err();
    let error = refused(
        with(&|it| it.mode = Some(Mode::Edit)),
        SelectionStrategy::First,
    );
    assert_eq!(
        error.await.to_string(),
        "candidate 2: mode edit allows more than the session's mode ask; set the session's mode first"
    );
    let error = refused(
        with(&|it| it.tools = Some(vec!["shell".to_owned(), "rm".to_owned()])),
        SelectionStrategy::First,
    );
    assert_eq!(
        error.await.to_string(),
        "candidate 2: the session has no tool rm"
    );
    let judge = SelectionStrategy::Command(JudgeCommand::new(" "));
    let error = refused(with(&|_| {}), judge).await;
    assert_eq!(error, PromptError::EmptyJudgeCommand);
    // A repository that git cannot read.
    fs::write(world.folder.path().join(".git/HEAD"), "nonsense").unwrap();
    let error = refused(with(&|_| {}), SelectionStrategy::First).await;
    assert!(
        matches!(&error, PromptError::Folders(CandidateFoldersError::Git(_))),
        "{error:?}"
    );
    assert_no_folders(&world, &session);
    assert_eq!(world.head(&session).await, 0);
    run_text(&session, "next").await;
}

/// Each part of a configuration reaches the model and the record.
// proves: LOOP-43
#[tokio::test]
async fn configuration_takes_effect_and_is_recorded() {
    let models = ["a", "b"].map(|name| TestModel::new(name, &[&[ModelAct::Say("hi")]]));
    let world = folder(Arc::new(MemoryStore::new()), &models, Mode::Edit);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let mut configs = candidates(&["a", "b"]);
    configs[1] = Candidate {
        temperature: Some(0.5),
        thinking: Some(Thinking::High),
        system: Some("be brief".into()),
        tools: Some(vec!["read_file".to_owned(), "write_file".to_owned()]),
        protocol: Some(Protocol::Tools),
        ..configs[1].clone()
    };
    let result = evaluate(&session, configs, SelectionStrategy::First)
        .await
        .unwrap();
    assert_eq!(loop_ids_and_winner(&result).1, 0);
    let [usual, changed] = [0, 1].map(|place| {
        let requests = models[place].requests.lock().unwrap();
        requests[0].clone()
    });
    assert_eq!(&*usual.system, "be good");
    assert_eq!(usual.temperature, None);
    assert!(usual.tools.iter().any(|tool| tool.name == "shell"));
    assert_eq!(&*changed.system, "be brief");
    assert_eq!(changed.temperature, Some(0.5));
    assert_eq!(changed.thinking, Thinking::High);
    let names: Vec<&str> = changed.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["read_file", "write_file"]);
    let [usual, changed] = [0, 1].map(|place| result.loops[place].config.clone().unwrap());
    assert_eq!((usual.temperature, changed.temperature), (None, Some(0.5)));
    assert_eq!(changed.thinking_level.as_deref(), Some("high"));
    assert_ne!(usual.system_hash, changed.system_hash);
    assert_ne!(usual.tools_hash, changed.tools_hash);
    // In plan mode all read the session's folder.
    assert!(result.changes.is_none());
}

/// A candidate cannot name another tool by itself.
#[tokio::test]
async fn excluded_tool_cannot_be_called() {
    let world = repository(&[writer("a", "f")], Mode::Edit);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let candidate = Candidate {
        tools: Some(vec!["read_file".to_owned()]),
        ..in_mode(&["a"], Mode::Edit).remove(0)
    };
    let result = evaluate(&session, vec![candidate], SelectionStrategy::First).await;
    let result = result.unwrap();
    assert_eq!(result.changes, None);
    let texts = result.messages().map(|it| it.message.text());
    assert!(
        texts
            .collect::<String>()
            .contains("there is no tool \"write_file\"")
    );
}

/// A mode that becomes stricter applies to candidates that run.
#[tokio::test]
async fn stricter_mode_applies_to_running_candidates() {
    let go = Arc::new(Notify::new());
    let write = ModelAct::CallWith("w", "write_file", r#"{"path": "f", "content": "a\n"}"#);
    let waits = TestModel::new(
        "a",
        &[
            &[ModelAct::Wait(Arc::clone(&go)), write],
            &[ModelAct::Say("I may not")],
        ],
    );
    let world = repository(&[Arc::clone(&waits)], Mode::Edit);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let running = evaluate(
        &session,
        in_mode(&["a"], Mode::Edit),
        SelectionStrategy::First,
    );
    let (result, ()) = tokio::join!(running, async {
        yield_while(|| *waits.active_calls.lock().unwrap() == 0).await;
        session.set_mode(Mode::Plan).await.unwrap();
        go.notify_one();
    });
    let result = result.unwrap();
    assert_eq!(result.changes, None);
    let denied = result.loops[0].messages[2].message.text();
    assert!(denied.contains("plan mode only reads"), "{denied}");
}

/// Rules about files of the session's folder apply to the copies as well.
#[tokio::test]
async fn deny_rule_about_session_folder_applies_to_copies() {
    let read = ModelAct::CallWith("r", "read_file", r#"{"path": "secret/key"}"#);
    let reader = TestModel::new("a", &[&[read], &[ModelAct::Say("done")]]);
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    let rule = format!("read({}/secret/**)", root.display());
    let mut world = EmbeddingFixture::build(
        Arc::new(MemoryStore::new()),
        &[],
        &[Arc::clone(&reader)],
        |settings| {
            settings.mode = Mode::Auto;
            settings.deny = vec![rule.parse().unwrap()];
        },
        |_| Toolbox::coding(),
    );
    fs::create_dir(root.join("secret")).unwrap();
    fs::write(root.join("secret/key"), "hidden words").unwrap();
    world.folder = home;
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    evaluate(
        &session,
        in_mode(&["a"], Mode::Edit),
        SelectionStrategy::First,
    )
    .await
    .unwrap();
    let answer = reader.request(1).concat();
    assert!(answer.contains("secret"), "{answer}");
    assert!(!answer.contains("hidden words"), "{answer}");
}

/// A message during the application is the next prompt, for a model that can answer it.
#[tokio::test]
async fn interjection_while_changes_are_applied_becomes_next_prompt() {
    let world = repository(&[writer("a", "f")], Mode::Ask);
    let world = world.with_answers(&[choose("allow_once")]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let candidates = in_mode(&["a"], Mode::Ask);
    let running = evaluate(&session, candidates, SelectionStrategy::First);
    let (result, ()) = tokio::join!(running, async {
        yield_while(|| world.client.asked.lock().unwrap().len() < 2).await;
        session.steer(vec![Content::text("and tests")]).unwrap();
        world.client.answer(choose("allow_once"));
    });
    let result = result.unwrap();
    assert_eq!(result.changes, applied(&["f"]));
    let texts = result.messages().map(|it| it.message.text());
    assert!(!texts.collect::<String>().contains("and tests"));
    run_text(&session, "last").await;
    let request = world.model.request(0);
    assert_eq!(request.last().map(String::as_str), Some("and tests"));
}

/// Cancelling while the user is asked applies nothing.
#[tokio::test]
async fn cancel_while_changes_are_asked_about_applies_none() {
    let world = repository(&[writer("a", "f")], Mode::Ask);
    let world = world.with_answers(&[choose("allow_once")]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let candidates = in_mode(&["a"], Mode::Ask);
    let running = evaluate(&session, candidates, SelectionStrategy::First);
    let (result, ()) = tokio::join!(running, async {
        yield_while(|| world.client.asked.lock().unwrap().len() < 2).await;
        session.cancel_prompts();
    });
    let result = result.unwrap();
    assert!(matches!(result.outcome, Outcome::Finished(..)));
    let Some(WinnerChanges::NotApplied {
        kept: Some(kept), ..
    }) = &result.changes
    else {
        panic!("{:?}", result.changes);
    };
    fs::remove_dir_all(kept).unwrap();
    assert_eq!(read(&world, "f"), "first\n");
    assert_no_folders(&world, &session);
}

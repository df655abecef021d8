//! Tests of the record of a prompt and of the messages of the next call.

use crate::fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct, run_text, start_text};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::sync::Notify;
use turnery_agent::{FinishRule, PromptOptions, Session, SubAgentTool};
use turnery_engine::{
    Content, ContinuationKind, EventKind, LoopRecord, LoopStatus, Outcome, SessionId, Timestamp,
    TurnFinish, TurnStop, TurnTrigger, Usage,
};
use turnery_models::Thinking;
use turnery_store::{Commit, MemoryStore, NewSession, Owner};

async fn records(world: &EmbeddingFixture, session: &Session) -> Vec<Arc<LoopRecord>> {
    world.loops(session.id()).await
}

/// The record of a running loop grows as it runs, and is the stored one once it has ended.
// proves: LOOP-26, LOOP-89
#[tokio::test(start_paused = true)]
async fn open_loop_can_be_queried() {
    let go = Arc::new(Notify::new());
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("1"), ModelAct::Call("l", "look")],
        &[ModelAct::Wait(Arc::clone(&go)), ModelAct::Say("2")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    assert_eq!(session.open_loop().await, None);
    let prompt = start_text(&session, "one");
    while world.model.requests.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    let open = session.open_loop().await.unwrap();
    assert_eq!((open.status, open.ended_at), (LoopStatus::Running, None));
    let texts: Vec<String> = open.messages.iter().map(|it| it.message.text()).collect();
    assert_eq!(texts, ["one", "1", "done"]);
    go.notify_one();
    let ended = prompt.result().await.unwrap();
    assert_eq!(ended.loops[0].loop_id, open.loop_id);
    assert_eq!(session.open_loop().await, None);
    session.close().await;
    assert_eq!(session.open_loop().await, None);
}

/// Loops and turns are stamped with the time of the clock on the wall, in UTC. A turn ends after its last call.
// proves: TURN-13, TURN-14, LOOP-25, LOOP-26
#[tokio::test]
async fn times_are_those_of_the_wall_clock() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("a", "look"), ModelAct::Call("b", "look")],
        &[ModelAct::Say("1")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let before = Timestamp::from(SystemTime::now());
    run_text(&session, "one").await;
    let after = Timestamp::from(SystemTime::now());
    let records = records(&world, &session).await;
    let record = &records[0];
    let [first, second] = &record.turns[..] else {
        panic!("two turns: {:?}", record.turns);
    };
    let ends = record.events.iter().filter_map(|event| match event.kind {
        EventKind::ToolExecutionEnd { .. } => Some(Some(event.at)),
        _ => None,
    });
    let ends: Vec<Option<Timestamp>> = ends.collect();
    assert_eq!(ends.len(), 2);
    // Stored times are cut to microseconds.
    let before = before - Duration::from_micros(1);
    let times = [
        &[
            Some(before),
            Some(record.started_at),
            Some(first.started_at),
        ][..],
        &ends,
        &[first.ended_at, Some(second.started_at), second.ended_at],
        &[record.ended_at, Some(after)],
    ];
    let times: Option<Vec<Timestamp>> = times.concat().into_iter().collect();
    let times = times.expect("all have ended");
    assert!(times.is_sorted(), "{times:?}");
}

// proves: LOOP-1, LOOP-2, LOOP-10, LOOP-11, LOOP-12, LOOP-13, LOOP-14, LOOP-35, LOOP-52, D-13, TURN-16
#[tokio::test(start_paused = true)]
async fn each_prompt_is_one_record_with_structured_id() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("1"), ModelAct::Call("l", "look")],
        &[ModelAct::Say("2")],
        &[ModelAct::Say("3")],
        &[ModelAct::Say("4")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    for text in ["one", "two", "three"] {
        run_text(&session, text).await;
    }
    let id = session.id().as_str();
    assert!(!id.contains('.'), "{id}");
    let records = records(&world, &session).await;
    let ids: Vec<&str> = records
        .iter()
        .map(|record| record.loop_id.as_str())
        .collect();
    let expected = [1, 2, 3].map(|n| format!("{id}.puppet-one.{n}"));
    assert_eq!(ids, expected);
    for record in &records {
        assert_eq!(&record.session_id, session.id());
        assert_eq!(record.agent_id, "turnery");
        assert_eq!(record.status, LoopStatus::Completed);
        assert_eq!(record.turns[0].triggered_by, TurnTrigger::User);
        let config = record.config.as_ref().unwrap();
        assert_eq!(config.config_id.as_deref(), Some("puppet-one"));
    }
}

// proves: LOOP-17, LOOP-22, LOOP-23, LOOP-84, LOOP-7
#[tokio::test(start_paused = true)]
async fn loop_parent_is_the_previous_loop() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("1")], &[ModelAct::Say("2")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "one").await;
    run_text(&session, "two").await;
    let records = records(&world, &session).await;
    assert_eq!(records[0].parent_loop_id, None);
    assert_eq!(records[0].continuation_kind, ContinuationKind::Initial);
    assert_eq!(records[1].parent_loop_id, Some(records[0].loop_id.clone()));
    assert_eq!(records[1].continuation_kind, ContinuationKind::Initial);
}

/// Creates a scripted model whose responses have usage.
fn scripted(world: &EmbeddingFixture, answers: Value) -> String {
    let path = world.folder.path().join("scenario.json");
    std::fs::write(&path, json!({"answers": answers}).to_string()).unwrap();
    format!("scripted:{}", path.display())
}

// proves: LOOP-4, LOOP-33, LOOP-34, LOOP-36, LOOP-37, LOOP-38, LOOP-39, LOOP-40, LOOP-41, LOOP-42, LOOP-44, LOOP-92, THEME-13
#[tokio::test(start_paused = true)]
async fn record_names_its_model() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("1")], &[ModelAct::Say("2")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "one").await;
    session.set_thinking(Thinking::High).await.unwrap();
    run_text(&session, "two").await;
    let word = json!({"steps": [{"text": "3"}]});
    let other = scripted(&world, json!([word, word, word]));
    session.set_model(&other).await.unwrap();
    run_text(&session, "three").await;
    let records = records(&world, &session).await;
    let configs: Vec<_> = records
        .iter()
        .map(|record| record.config.clone().unwrap())
        .collect();
    let first = &configs[0];
    assert_eq!((&*first.model, &*first.provider), ("one", "puppet"));
    assert_eq!(first.name.as_deref(), Some("Test model"));
    assert_eq!(first.api.as_deref(), Some("puppet"));
    assert_eq!(first.base_url, None);
    assert_eq!(first.reasoning, Some(false));
    assert_eq!(first.context_window, Some(1000));
    assert_eq!(first.max_tokens, Some(100));
    let levels: Vec<_> = configs
        .iter()
        .map(|config| config.thinking_level.as_deref().unwrap())
        .collect();
    assert_eq!(levels, ["default", "high", "high"]);
    assert_eq!(&*configs[1].provider, "puppet");
    assert_eq!(&*configs[2].provider, "scripted");
    assert_ne!(configs[2].config_id, first.config_id);
    assert_eq!(configs[2].reasoning, Some(true));
}

// proves: LOOP-5, LOOP-45, I3
#[tokio::test(start_paused = true)]
async fn result_and_record_agree_on_usage() {
    let world = EmbeddingFixture::new(&[]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let model = scripted(
        &world,
        json!([
            {"steps": [{"tool_call": {"name": "look", "args": {}}}],
                "usage": {"input": 100, "output": 10, "reasoning": 4, "cache_read": 30, "cache_write": 1000}},
            {"steps": [{"text": "done"}],
                "usage": {"input": 20, "output": 5, "reasoning": 3, "cache_read": 2000, "cache_write": 7}},
        ]),
    );
    session.set_model(&model).await.unwrap();
    let result = run_text(&session, "go").await;
    let spent = Usage {
        input: 120,
        output: 15,
        reasoning: 7,
        cache_read: 2030,
        cache_write: 1007,
    };
    assert_eq!(result.usage, spent);
    let record = &records(&world, &session).await[0];
    assert_eq!(record.usage, spent);
    let first = Usage {
        input: 100,
        output: 10,
        reasoning: 4,
        cache_read: 30,
        cache_write: 1000,
    };
    let second = Usage {
        input: 20,
        output: 5,
        reasoning: 3,
        cache_read: 2000,
        cache_write: 7,
    };
    let by_turn: Vec<_> = record.turns.iter().map(|turn| turn.usage).collect();
    assert_eq!(by_turn, [Some(first), Some(second)]);
}

// proves: TURN-37, TURN-47, TURN-48, LOOP-83
#[tokio::test(start_paused = true)]
async fn next_call_sees_recorded_messages() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("let me"), ModelAct::Call("l", "look")],
        &[ModelAct::Say("done")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    let record = &records(&world, &session).await[0];
    let requests = world.model.requests.lock().unwrap();
    // The prompt, the answer with its call, and the result; then the last answer.
    assert_eq!(*requests[1].messages, record.messages[..3]);
    // Models prepare the tools of a session once.
    assert!(Arc::ptr_eq(&requests[0].tools, &requests[1].tools));
    assert_eq!(record.messages.len(), 4);
    let turns: Vec<u32> = record
        .messages
        .iter()
        .map(|message| message.turn_id.as_ref().unwrap().turn_index)
        .collect();
    assert_eq!(turns, [0, 0, 0, 1]);
    assert_eq!(record.messages[1].message.calls().count(), 1);
}

// proves: TURN-64, TURN-65, LOOP-61, LOOP-83
#[tokio::test(start_paused = true)]
async fn session_without_turns_can_be_continued() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("hello")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    let mut old = LoopRecord::clone(&records(&world, &session).await[0]);
    old.turns.clear();

    let old_id = old.loop_id.clone();

    let world = EmbeddingFixture::new(&[&[ModelAct::Say("again")], &[ModelAct::Say("other")]]);
    let id: SessionId = session.id().clone();
    let new = NewSession {
        id: id.clone(),
        cwd: world.request().cwd,
        folder: None,
        roots: Vec::new(),
        model: "puppet/one".to_owned(),
        mode: "ask".to_owned(),
        at: old.started_at,
        spawned_by: None,
    };
    world.store.create(new).await.unwrap();
    let opened = world.store.claim(&id, &Owner::for_this_process()).await;
    let commit = Commit {
        lane: opened.unwrap().lane,
        expected_head: 0,
        records: vec![Arc::new(old)],
        tip: 0,
        title: None,
        release: true,
        effects: Vec::new(),
    };
    world.store.commit(commit).await.unwrap();
    let (session, _seen) = world.open(&id, false).await;
    run_text(&session, "go on").await;
    assert_eq!(world.model.request(0), ["hi", "hello", "go on"]);
    assert_eq!(records(&world, &session).await[0].turns, []);
    let branch = session.branch(
        old_id,
        vec![Content::text("else")],
        PromptOptions::default(),
    );
    branch.unwrap().result().await.unwrap();
    assert_eq!(world.model.request(1), ["hi", "hello", "else"]);
}

// proves: LASH-38, LASH-39
#[tokio::test(start_paused = true)]
async fn text_is_streamed_or_settled() {
    let world = EmbeddingFixture::new(&[&[ModelAct::Say("1")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let file = world.folder.path().join("main.rs");
    std::fs::write(&file, "fn main() {}").unwrap();
    let text = format!("see @main.rs and @{}", file.display());
    let input = vec![
        Content::text(text.as_str()),
        Content::Text {
            text: "and ~/x".to_owned(),
        },
    ];
    let cancel = turnery_agent::CancellationToken::new();
    let ticket = session.start(input, cancel).unwrap();
    ticket.result().await.unwrap();
    // Sent verbatim: resolving paths is up to the host.
    assert_eq!(world.model.request(0), [format!("{text}\nand ~/x")]);
}

// proves: LASH-36
#[tokio::test(start_paused = true)]
async fn outcome_match_is_exhaustive() {
    fn next_step(outcome: &Outcome) -> &'static str {
        match outcome {
            Outcome::Finished(
                TurnFinish::AssistantMessage { .. }
                | TurnFinish::FinalValue { .. }
                | TurnFinish::ToolValue { .. },
                _,
            ) => "keep it",
            Outcome::FrameSwitch { .. } => "note the border",
            Outcome::Stopped(TurnStop::Cancelled | TurnStop::InvalidInput { .. }) => "say so",
            Outcome::Stopped(TurnStop::Incomplete | TurnStop::ProviderError(_)) => "offer to retry",
            Outcome::Stopped(TurnStop::MaxTurns(_)) => "offer a higher limit",
            Outcome::Stopped(
                TurnStop::ToolFailure { .. }
                | TurnStop::PluginAbort { .. }
                | TurnStop::RuntimeError { .. }
                | TurnStop::SubmittedError { .. }
                | TurnStop::ToolError { .. },
            ) => "look into it",
        }
    }
    let world =
        EmbeddingFixture::new(&[&[ModelAct::Say("1")], &[ModelAct::Fail], &[ModelAct::Hang]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let mut steps = Vec::new();
    for text in ["one", "two", "three"] {
        let ticket = start_text(&session, text);
        if text == "three" {
            session.cancel_prompts();
        }
        steps.push(next_step(&ticket.result().await.unwrap().outcome));
    }
    assert_eq!(steps, ["keep it", "offer to retry", "say so"]);
}

/// Equal hashes tell a replay from a change of the system prompt or of the tools.
// proves: LOOP-92
#[tokio::test(start_paused = true)]
async fn record_identifies_system_prompt_and_tools() {
    let hashes = async |system: &'static str, has_task: bool, finish: FinishRule| {
        let store = Arc::new(MemoryStore::new());
        let script: &[&[ModelAct]] = &[&[ModelAct::CallWith("f", "finish", r#"{"value": 1}"#)]];
        let world = EmbeddingFixture::build(
            store,
            script,
            &[],
            |settings| settings.system = system.into(),
            |tools| match has_task {
                true => tools.with_tool(SubAgentTool),
                false => tools,
            },
        );
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        let options = PromptOptions {
            finish,
            ..PromptOptions::default()
        };
        let prompt = session.prompt(vec![Content::text("hi")], options).unwrap();
        let result = prompt.result().await.unwrap();
        let config = result.loops[0].config.clone().unwrap();
        (config.system_hash.unwrap(), config.tools_hash.unwrap())
    };
    let first = hashes("be good", false, FinishRule::Prose).await;
    assert_eq!(hashes("be good", false, FinishRule::Prose).await, first);
    let other_system = hashes("be bad", false, FinishRule::Prose).await;
    assert_ne!(other_system.0, first.0);
    assert_eq!(other_system.1, first.1);
    let other_tools = hashes("be good", true, FinishRule::Prose).await;
    assert_eq!(other_tools.0, first.0);
    assert_ne!(other_tools.1, first.1);
    let with_finish = hashes("be good", false, FinishRule::Value).await;
    assert_eq!(with_finish.0, first.0);
    assert_ne!(with_finish.1, first.1);
}

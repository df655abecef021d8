//! Tests of compaction in a session: when the context fills up, within a turn, live and after a load.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, live_events, run_text, start_text, usage_of,
    wait_for_event,
};
use std::sync::Arc;
use turnery_agent::Session;
use turnery_engine::{
    ContextSize, EventKind, LlmMessage, Message, Outcome, TurnStop, oracle, usage::source,
};
use turnery_store::SqliteStore;

/// About a hundred tokens.
fn long_text() -> &'static str {
    "word ".repeat(80).leak()
}

/// Returns the messages of the last model call.
fn last_request(world: &EmbeddingFixture) -> Vec<Arc<LlmMessage>> {
    let requests = world.model.requests.lock().unwrap();
    requests.last().unwrap().messages.to_vec()
}

async fn run_exchanges(session: &Session, count: usize) {
    for _ in 0..count {
        run_text(session, long_text()).await;
    }
}

fn without_ids(messages: &[Arc<LlmMessage>]) -> Vec<&Message> {
    messages.iter().map(|message| &message.message).collect()
}

/// The session's settings apply, not the engine's defaults: 40 tokens are about 30 words.
// proves: UP-11
#[tokio::test(start_paused = true)]
async fn compaction_keeps_what_settings_say() {
    let answer: &[ModelAct] = &[ModelAct::Say("so it went")];
    let world = EmbeddingFixture::with_settings(&[answer; 60], |settings| {
        settings.compaction.max_summary_tokens = 40;
    });
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_exchanges(&session, 20).await;
    let requests = world.model.requests.lock().unwrap();
    let asked: Vec<String> = requests
        .iter()
        .flat_map(|request| request.messages.iter())
        .map(|message| message.message.text())
        .filter(|text| text.starts_with("<conversation>"))
        .collect();
    assert!(!asked.is_empty());
    for text in asked {
        assert!(text.ends_with("in at most 30 words."), "{text}");
    }
}

/// A session that is compacted repeatedly stays within the context window, and a load restores the same
/// context from the real store.
// proves: UP-10, UP-11, UP-12, TURN-58, LOOP-46, LOOP-47, LOOP-48
// A paused clock would run on while the disk is waited for.
// proves: C-14, UP-14
#[tokio::test]
async fn loaded_session_sees_the_compacted_context() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db")));
    let answer: &[ModelAct] = &[ModelAct::Say("so it went")];
    let mut script = vec![answer; 60];
    script.insert(0, &[ModelAct::Call("c", "look")]);
    let world = EmbeddingFixture::with_store(store, &script);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    let mut compactions = 0;
    let mut before_compaction = Vec::new();
    for _ in 0..20 {
        if compactions == 0 {
            before_compaction = world.loops(session.id()).await;
        }
        run_exchanges(&session, 1).await;
        let request = last_request(&world);
        let size: ContextSize = request.iter().sum();
        assert!(size.tokens < 1_000, "{size:?}");
        assert_eq!(oracle::check_history(&request), Ok(()));
        let events = live_events(&drain(&mut seen));
        let blocks = events.iter().filter(|event| {
            matches!(
                event.kind,
                EventKind::CompactionEnded { block: Some(_), .. }
            )
        });
        compactions += blocks.count();
    }
    assert!(compactions > 1, "{compactions}");
    // A rejected prompt reveals the session's context and leaves nothing behind.
    world.model.answer_next(&[ModelAct::Refuse]);
    run_text(&session, "still there?").await;
    let before = last_request(&world);
    session.close().await;
    let (loaded, _seen) = world.open(session.id(), false).await;
    world.model.answer_next(&[ModelAct::Refuse]);
    run_text(&loaded, "still there?").await;
    let kept = world.loops(session.id()).await;
    assert!(!before_compaction.is_empty());
    assert_eq!(kept[..before_compaction.len()], before_compaction);
    let kept: Vec<String> = kept
        .iter()
        .flat_map(|record| &record.messages)
        .map(|message| message.message.text())
        .collect();
    let mut said = vec![long_text(), "", "done", "so it went"];
    said.extend([long_text(), "so it went"].repeat(19));
    said.extend(["still there?", ""].repeat(2));
    assert_eq!(kept, said, "all that was ever said");
    assert_eq!(without_ids(&last_request(&world)), without_ids(&before));
}

/// The compaction events lie within the turn and do not affect its number or usage.
// proves: TURN-57, TURN-58, TURN-71, UP-10, I10, TURN-8, TURN-56
#[tokio::test(start_paused = true)]
async fn compaction_runs_before_model_call() {
    let answer: &[ModelAct] = &[ModelAct::Say("so it went")];
    let mut script = vec![answer; 4];
    script.push(&[ModelAct::Call("c", "look"), ModelAct::Spend(900, 10)]);
    script.push(&[ModelAct::Say("much was said"), ModelAct::Spend(50, 5)]);
    script.push(&[ModelAct::Say("all done"), ModelAct::Spend(100, 20)]);
    let world = EmbeddingFixture::new(&script);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_exchanges(&session, 4).await;
    let result = run_text(&session, "look around").await;
    let record = &result.loops[0];
    assert_eq!(result.usage, usage_of(1_000, 30));
    assert_eq!(record.compaction_usage, Some(usage_of(50, 5)));
    let turns: Vec<_> = record
        .turns
        .iter()
        .map(|turn| (turn.turn_id.turn_index, turn.usage))
        .collect();
    assert_eq!(
        turns,
        [(0, Some(usage_of(900, 10))), (1, Some(usage_of(100, 20)))]
    );
    let of_second = record.events.iter().filter(|it| it.turn_index == Some(1));
    let kinds: Vec<&EventKind> = of_second.map(|event| &event.kind).collect();
    assert!(matches!(
        kinds[..4],
        [
            EventKind::TurnStart { .. },
            EventKind::CompactionStarted { .. },
            EventKind::CompactionEnded { block: Some(_), .. },
            EventKind::MessageStart { .. },
        ]
    ));
    let request = last_request(&world);
    assert_eq!(oracle::check_history(&request), Ok(()));
    let texts: Vec<String> = request.iter().map(|it| it.message.text()).collect();
    assert!(texts.iter().any(|text| text.contains("much was said")));
    assert_eq!(texts.last().map(String::as_str), Some("done"));
    let report = session.usage_report().await.unwrap();
    assert_eq!(report.by_source()[source::COMPACTION], usage_of(50, 5));
    assert_eq!(report.by_source()[source::TURN], usage_of(1_000, 30));
}

/// A failed summary still counts its usage, and the model is called with the full context.
// proves: LOOP-48, I10
#[tokio::test(start_paused = true)]
async fn failed_summary_leaves_history_unchanged() {
    let answer: &[ModelAct] = &[ModelAct::Say("so it went")];
    let mut script = vec![answer; 4];
    script.push(&[ModelAct::Call("c", "look"), ModelAct::Spend(900, 10)]);
    script.push(&[ModelAct::Spend(50, 0)]);
    script.push(&[ModelAct::Say("all done")]);
    let world = EmbeddingFixture::new(&script);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_exchanges(&session, 4).await;
    let result = run_text(&session, "look around").await;
    let record = &result.loops[0];
    assert_eq!(record.compaction_block, None);
    assert_eq!(record.compaction_usage, Some(usage_of(50, 0)));
    let why = record.events.iter().find_map(|event| {
        let EventKind::CompactionEnded { failure, .. } = &event.kind else {
            return None;
        };
        failure.clone()
    });
    let empty = "the model's summary was empty; try again, or take another model";
    assert_eq!(why.as_deref(), Some(empty));
    assert_eq!(last_request(&world).len(), 8 + 3);
}

/// A cancel during the summary drops the call at once and leaves the history unchanged.
// proves: ACP-51
#[tokio::test(start_paused = true)]
async fn cancel_drops_running_compaction() {
    let answer: &[ModelAct] = &[ModelAct::Say("so it went")];
    let mut script = vec![answer; 4];
    script.push(&[ModelAct::Call("c", "look"), ModelAct::Spend(900, 10)]);
    script.push(&[ModelAct::Hang]);
    script.push(&[ModelAct::Say("much was said")]);
    script.push(&[ModelAct::Say("back again")]);
    let world = EmbeddingFixture::new(&script);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_exchanges(&session, 4).await;
    let ticket = start_text(&session, "look around");
    wait_for_event(&mut seen, |kind| {
        matches!(kind, EventKind::CompactionStarted { .. })
    })
    .await;
    session.cancel_prompts();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(result.loops[0].compaction_block, None);
    assert_eq!(*world.model.active_calls.lock().unwrap(), 0);
    // The context is still full, so the next prompt makes the summary.
    run_text(&session, "go on").await;
    let asked = world.model.request(6).concat();
    assert!(asked.contains("<conversation>"), "{asked}");
    let request = last_request(&world);
    assert_eq!(oracle::check_history(&request), Ok(()));
    let texts = world.model.request(7);
    assert!(texts.iter().any(|text| text.contains("much was said")));
    assert_eq!(texts.last().map(String::as_str), Some("go on"));
}

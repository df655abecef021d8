//! Compaction in a session: when the context fills up, inside a turn, live and after a load.

use crate::world::{Act, ROOM, World, drain, live, say};
use std::sync::Arc;
use turnery_agent::Session;
use turnery_engine::{
    ContextSize, EventKind, LlmMessage, Message, Outcome, TurnStop, Usage, oracle, usage::source,
};
use turnery_store::SqliteStore;

fn spent(input: u64, output: u64) -> Usage {
    Usage {
        input,
        output,
        ..Usage::default()
    }
}

/// About a hundred tokens.
fn long() -> &'static str {
    "word ".repeat(80).leak()
}

/// What the model was sent in its last call.
fn last_request(world: &World) -> Vec<Arc<LlmMessage>> {
    let requests = world.puppet.requests.lock().unwrap();
    requests.last().unwrap().messages.to_vec()
}

async fn exchanges(session: &Session, count: usize) {
    for _ in 0..count {
        say(session, long()).result().await.unwrap();
    }
}

fn said(messages: &[Arc<LlmMessage>]) -> Vec<&Message> {
    messages.iter().map(|message| &message.message).collect()
}

/// The settings of the session hold, not the engine's own: 40 tokens are about 30 words.
// proves: UP-11
#[tokio::test(start_paused = true)]
async fn what_is_kept_is_as_the_settings_say() {
    let answer: &[Act] = &[Act::Say("so it went")];
    let world = World::set(&[answer; 60], |settings| {
        settings.compaction.summary_tokens = 40;
    });
    let (session, _seen) = world.session(ROOM).await;
    exchanges(&session, 20).await;
    let requests = world.puppet.requests.lock().unwrap();
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

/// Section 9, 10: compacted again and again, the context of a session stays within the model's window,
/// and after a load it is what it was before, with the real store.
// proves: UP-10, UP-11, UP-12, TURN-58, LOOP-46, LOOP-47, LOOP-48
// A paused clock would run on while the disk is waited for.
#[tokio::test]
async fn a_loaded_session_goes_on_from_what_the_live_one_saw() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db")));
    let answer: &[Act] = &[Act::Say("so it went")];
    let mut script = vec![answer; 60];
    script.insert(0, &[Act::Call("c", "look")]);
    let world = World::over(store, &script);
    let (session, mut seen) = world.session(ROOM).await;
    let mut compactions = 0;
    for _ in 0..20 {
        exchanges(&session, 1).await;
        let request = last_request(&world);
        let size: ContextSize = request.iter().sum();
        assert!(size.tokens < 1_000, "{size:?}");
        assert_eq!(oracle::check_history(&request), Ok(()));
        let events = live(&drain(&mut seen));
        let blocks = events.iter().filter(|event| {
            matches!(
                event.kind,
                EventKind::CompactionEnded { block: Some(_), .. }
            )
        });
        compactions += blocks.count();
    }
    assert!(compactions > 1, "{compactions}");
    // A refused prompt shows what the session sees, and leaves nothing behind.
    world.puppet.say_next(&[Act::Refuse]);
    say(&session, "still there?").result().await.unwrap();
    let before = last_request(&world);
    session.close().await;
    let (loaded, _seen) = world.open(session.id(), false).await;
    world.puppet.say_next(&[Act::Refuse]);
    say(&loaded, "still there?").result().await.unwrap();
    assert_eq!(said(&last_request(&world)), said(&before));
    let kept = world.store.loops(session.id(), 0).await.unwrap();
    let kept: usize = kept.iter().map(|record| record.messages.len()).sum();
    assert_eq!(kept, 2 * 20 + 2 + 2 * 2, "all that was ever said");
}

/// The pair of events lies inside the turn, whose number and usage know nothing of it.
// proves: TURN-57, TURN-58, TURN-71, UP-10, I10
#[tokio::test(start_paused = true)]
async fn a_turn_is_compacted_before_its_model_is_called() {
    let answer: &[Act] = &[Act::Say("so it went")];
    let mut script = vec![answer; 4];
    script.push(&[Act::Call("c", "look"), Act::Spend(900, 10)]);
    script.push(&[Act::Say("much was said"), Act::Spend(50, 5)]);
    script.push(&[Act::Say("all done"), Act::Spend(100, 20)]);
    let world = World::new(&script);
    let (session, _seen) = world.session(ROOM).await;
    exchanges(&session, 4).await;
    let result = say(&session, "look around").result().await.unwrap();
    let record = &result.loops[0];
    assert_eq!(result.usage, spent(1_000, 30));
    assert_eq!(record.compaction_usage, Some(spent(50, 5)));
    let turns: Vec<_> = record
        .turns
        .iter()
        .map(|turn| (turn.turn_id.turn_index, turn.usage))
        .collect();
    assert_eq!(
        turns,
        [(0, Some(spent(900, 10))), (1, Some(spent(100, 20)))]
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
    assert_eq!(report.by_source()[source::COMPACTION], spent(50, 5));
    assert_eq!(report.by_source()[source::TURN], spent(1_000, 30));
}

/// A summary that comes to nothing costs what it cost, and the model is called with all there is.
// proves: LOOP-48, I10
#[tokio::test(start_paused = true)]
async fn without_a_summary_all_stays_as_it_was() {
    let answer: &[Act] = &[Act::Say("so it went")];
    let mut script = vec![answer; 4];
    script.push(&[Act::Call("c", "look"), Act::Spend(900, 10)]);
    script.push(&[Act::Spend(50, 0)]);
    script.push(&[Act::Say("all done")]);
    let world = World::new(&script);
    let (session, _seen) = world.session(ROOM).await;
    exchanges(&session, 4).await;
    let result = say(&session, "look around").result().await.unwrap();
    let record = &result.loops[0];
    assert_eq!(record.compaction_block, None);
    assert_eq!(record.compaction_usage, Some(spent(50, 0)));
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

/// Cancelled while the summary is made: the call is dropped at once, and nothing is laid over history.
// proves: ACP-51
#[tokio::test(start_paused = true)]
async fn a_summary_in_the_making_is_dropped_with_its_prompt() {
    let answer: &[Act] = &[Act::Say("so it went")];
    let mut script = vec![answer; 4];
    script.push(&[Act::Call("c", "look"), Act::Spend(900, 10)]);
    script.push(&[Act::Hang]);
    script.push(&[Act::Say("back again")]);
    let world = World::new(&script);
    let (session, mut seen) = world.session(ROOM).await;
    exchanges(&session, 4).await;
    let ticket = say(&session, "look around");
    loop {
        let seen = seen.recv().await.unwrap();
        if live(&[seen])
            .iter()
            .any(|event| matches!(event.kind, EventKind::CompactionStarted { .. }))
        {
            break;
        }
    }
    session.cancel_running_turns();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert_eq!(result.loops[0].compaction_block, None);
    assert_eq!(*world.puppet.alive.lock().unwrap(), 0);
    say(&session, "go on").result().await.unwrap();
    let request = last_request(&world);
    assert_eq!(oracle::check_history(&request), Ok(()));
    assert_eq!(request[0].message.text(), long());
    assert!(
        !request
            .iter()
            .any(|it| it.message.text().contains("<summary>"))
    );
}

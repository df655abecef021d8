//! Tests that sessions stored before turns and events existed are listed, continued, reported and exported
//! like any other.

use crate::{
    blocking_store::ClockHoldingStore,
    fixture::{World, run_hello},
    toy::{ToyStep, usage_of},
};
use serde_json::Value;
use std::sync::Arc;
use turnery_sdk::usage::source;
use turnery_store::{ListQuery, SqliteStore, export};

/// Converts a document to the old form: no turns, no events, no turn ids on messages.
fn to_legacy_document(mut document: Value) -> Value {
    for record in document["loops"].as_array_mut().unwrap() {
        let fields = record.as_object_mut().unwrap();
        fields.remove("turns").unwrap();
        fields.remove("events").unwrap();
        for message in record["messages"].as_array_mut().unwrap() {
            message.as_object_mut().unwrap().remove("turn_id").unwrap();
        }
    }
    document
}

// proves: TURN-64, TURN-65, LOOP-61, LOOP-83
#[tokio::test(start_paused = true)]
async fn session_without_turns_and_events_still_works() {
    let folder = tempfile::tempdir().unwrap();
    let store = ClockHoldingStore::new(SqliteStore::open(folder.path().join("sessions.db")));
    let world = World::over(
        Arc::new(store),
        vec![
            vec![ToyStep::Spend(usage_of(1)), ToyStep::Call("c", "look")],
            vec![ToyStep::Spend(usage_of(2)), ToyStep::Say("well met")],
            vec![ToyStep::Spend(usage_of(4)), ToyStep::Say("again")],
        ],
        Vec::new(),
    );
    let session = world.session().await;
    let id = session.id().clone();
    run_hello(&session).await;
    session.close().await;
    let whole = export::export_session(&*world.store, &id).await.unwrap();
    let old = to_legacy_document(serde_json::to_value(&whole).unwrap());
    world.store.delete(&id).await.unwrap();
    let document = export::SessionDocument::parse(&old.to_string()).unwrap();
    export::import_session(&*world.store, document)
        .await
        .unwrap();

    let listed = world.agent.list(ListQuery::default()).await.unwrap();
    let listed: Vec<_> = listed
        .sessions
        .iter()
        .map(|info| (&info.id, info.title.as_deref(), &info.tip_loop_id))
        .collect();
    assert_eq!(listed, [(&id, Some("hello"), &whole.session.tip_loop_id)]);

    let session = world.open(&id).await;
    let output = run_hello(&session).await;
    let request = world.toy.requests.lock().unwrap()[2].clone();
    let request: Vec<String> = request
        .messages
        .iter()
        .map(|it| it.message.text())
        .collect();
    assert_eq!(request, ["hello", "", "done", "well met", "hello"]);
    let record = &output.result.loops[0];
    assert_eq!(record.parent_loop_id, whole.session.tip_loop_id);
    let report = session.usage_report().await.unwrap();
    assert_eq!(report.by_source()[source::TURN], usage_of(7));
    assert_eq!(report.by_model()["toy/one"], usage_of(7));

    let exported = export::export_session(&*world.store, &id).await.unwrap();
    assert_eq!(exported.loops.len(), 2);
    let [first, second] = [&exported.loops[0], &exported.loops[1]];
    assert_eq!((first.turns.len(), first.events.len()), (0, 0));
    let texts = first.messages.iter().map(|it| it.message.text());
    assert!(texts.eq(["hello", "", "done", "well met"]));
    assert_eq!(second, record);
    let text = serde_json::to_string(&exported).unwrap();
    assert_eq!(export::SessionDocument::parse(&text).unwrap(), exported);
}

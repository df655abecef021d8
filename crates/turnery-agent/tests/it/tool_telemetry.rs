//! Tests that a session's tools use the common tool interface and report the session as origin.

use crate::fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct, drain, live_events, run_text};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use turnery_tools::telemetry::CallStage;

fn record_telemetry(world: &EmbeddingFixture) -> mpsc::Receiver<Map<String, Value>> {
    let observe = world.agent.toolbox().telemetry();
    let (sender, events) = mpsc::channel(16);
    for stage in [CallStage::Start, CallStage::Stop] {
        let path = observe.event_path(stage).clone();
        let sender = sender.clone();
        let tell = move |_: &_, _: &_, about: &Map<String, Value>, _: &_| {
            sender.try_send(about.clone()).unwrap();
        };
        observe
            .attach(&path.to_string(), path, tell, Value::Null)
            .unwrap();
    }
    events
}

fn drain_events(events: &mut mpsc::Receiver<Map<String, Value>>) -> Vec<Value> {
    std::iter::from_fn(|| events.try_recv().ok())
        .map(Value::Object)
        .collect()
}

// proves: JIDO-55, JIDO-57, JIDO-59
#[tokio::test(start_paused = true)]
async fn tool_telemetry_names_loop_turn_and_session() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Call("c1", "look")],
        &[ModelAct::Call("c2", "look")],
        &[ModelAct::Say("done")],
    ]);
    let mut events = record_telemetry(&world);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    let loop_id = live_events(&drain(&mut seen))[0].loop_id.to_string();
    let events = drain_events(&mut events);
    assert_eq!(events.len(), 4);
    for ((n, call_id), pair) in [(0, "c1"), (1, "c2")].into_iter().zip(events.chunks(2)) {
        let [start, stop] = pair else {
            panic!("pairs");
        };
        assert_eq!(
            *start,
            json!({
                "tool_name": "look", "params": {}, "call_id": call_id, "run_id": loop_id,
                "agent_id": "turnery", "iteration": n
            })
        );
        assert_eq!(
            *stop,
            json!({
                "tool_name": "look", "result": {"ok": "done", "effects": []}, "call_id": call_id,
                "run_id": loop_id, "agent_id": "turnery", "thread_id": session.id()
            })
        );
    }
}

// proves: JIDO-55, UP-26
#[tokio::test(start_paused = true)]
async fn unknown_tool_call_is_observed_once() {
    let world =
        EmbeddingFixture::new(&[&[ModelAct::Call("c1", "nothing")], &[ModelAct::Say("done")]]);
    let mut events = record_telemetry(&world);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "hi").await;
    let events = drain_events(&mut events);
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["tool_name"], "nothing");
    assert_eq!(events[1]["result"]["error"]["type"], "not_found");
}

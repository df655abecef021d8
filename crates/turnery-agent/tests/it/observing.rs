//! A session's tools go through the same seam as all others, and say in whose name they run.

use crate::world::{Act, ROOM, World, drain, live, say};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use turnery_tools::observe::Stage;

fn listen(world: &World) -> mpsc::Receiver<Map<String, Value>> {
    let observe = world.agent.toolbox().observe();
    let (sender, told) = mpsc::channel(16);
    for stage in [Stage::Start, Stage::Stop] {
        let path = observe.tool_execute(stage).clone();
        let sender = sender.clone();
        let tell = move |_: &_, _: &_, about: &Map<String, Value>, _: &_| {
            sender.try_send(about.clone()).unwrap();
        };
        observe
            .attach(&path.to_string(), path, tell, Value::Null)
            .unwrap();
    }
    told
}

fn all(told: &mut mpsc::Receiver<Map<String, Value>>) -> Vec<Value> {
    std::iter::from_fn(|| told.try_recv().ok())
        .map(Value::Object)
        .collect()
}

// proves: JIDO-55, JIDO-57, JIDO-59
#[tokio::test(start_paused = true)]
async fn a_sessions_calls_are_observed_with_loop_turn_agent_and_session() {
    let world = World::new(&[
        &[Act::Call("c1", "look")],
        &[Act::Call("c2", "look")],
        &[Act::Say("done")],
    ]);
    let mut told = listen(&world);
    let (session, mut seen) = world.session(ROOM).await;
    say(&session, "hi").result().await.unwrap();
    let loop_id = live(&drain(&mut seen))[0].loop_id.to_string();
    let told = all(&mut told);
    assert_eq!(told.len(), 4);
    for ((n, call_id), pair) in [(0, "c1"), (1, "c2")].into_iter().zip(told.chunks(2)) {
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

// proves: JIDO-55
#[tokio::test(start_paused = true)]
async fn a_call_of_an_unknown_tool_is_observed_once_too() {
    let world = World::new(&[&[Act::Call("c1", "nothing")], &[Act::Say("done")]]);
    let mut told = listen(&world);
    let (session, _seen) = world.session(ROOM).await;
    say(&session, "hi").result().await.unwrap();
    let told = all(&mut told);
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["tool_name"], "nothing");
    assert_eq!(told[1]["result"]["error"]["type"], "not_found");
}

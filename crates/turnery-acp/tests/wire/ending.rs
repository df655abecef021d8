//! How a connection ends: end of input, a signal, a client that no longer reads (TR-6, TR-7, TR-11).

use crate::harness::{Client, World, prompt, result_of};
use serde_json::{Value, json};
use std::{io::Write as _, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe,
};
use turnery_acp::{ExitReason, Input, Output, ServeOptions, serve};
use turnery_agent::CancellationToken;

fn hangs() -> World {
    World::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]))
}

/// TR-7: `initialize` and `session/new`, then the end, all in one write.
#[test]
fn what_was_accepted_is_answered() {
    let world = World::silent();
    let mut client = world.connect();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    let new =
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": world.new_session()});
    client.note(&initialize);
    client.note(&new);
    client.raw(format!("{initialize}\n{new}"));
    let (reason, said) = client.leave();
    assert_eq!(reason, ExitReason::EndOfInput);
    let ids: Vec<&Value> = said.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2)]);
    assert!(result_of(&said[1])["sessionId"].is_string());
}

/// TR-6: in mid-prompt the prompt is answered with `cancelled`, and the agent ends.
#[test]
fn the_end_of_input_cancels() {
    let world = hangs();
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["method"] == "session/update");
    let (reason, said) = client.leave();
    assert_eq!(reason, ExitReason::EndOfInput);
    let answer = said
        .iter()
        .find(|message| message["id"] == asked)
        .expect("answered");
    assert_eq!(result_of(answer)["stopReason"], "cancelled");
}

/// A question that nobody can answer any more does not hold up the end.
// proves: PERM-3
#[test]
fn the_end_of_input_ends_questions() {
    let world = World::new(json!([{"steps": [{"tool_call": {"name": "change", "args": {}}}]}]));
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.asked("session/request_permission");
    let (_, said) = client.leave();
    let answer = said
        .iter()
        .find(|message| message["id"] == asked)
        .expect("answered");
    assert_eq!(result_of(answer)["stopReason"], "cancelled");
    assert_eq!(world.ran.all(), [] as [String; 0]);
}

#[test]
fn a_signal_ends_it_like_the_end_of_input() {
    let world = hangs();
    let stop = CancellationToken::new();
    let options = ServeOptions {
        stop: stop.clone(),
        ..ServeOptions::default()
    };
    let mut client = Client::connect(world.agent(), options);
    client.initialize(json!({}));
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["method"] == "session/update");
    stop.cancel();
    let (reason, said) = client.ended();
    assert_eq!(reason, ExitReason::Stopped);
    let answer = said
        .iter()
        .find(|message| message["id"] == asked)
        .expect("answered");
    assert_eq!(result_of(answer)["stopReason"], "cancelled");
}

#[test]
fn a_drain_lets_prompts_finish() {
    let world = World::new(json!([
        {"steps": [{"delay_ms": 30}, {"text": "one"}]},
        {"steps": [{"text": "two"}]},
    ]));
    let options = ServeOptions {
        drain: true,
        ..ServeOptions::default()
    };
    let mut client = Client::connect(world.agent(), options);
    client.initialize(json!({}));
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let asked = [(); 2].map(|()| client.ask("session/prompt", prompt(&id, "hi")));
    let (reason, said) = client.leave();
    assert_eq!(reason, ExitReason::EndOfInput);
    for id in asked {
        let answer = said
            .iter()
            .find(|message| message["id"] == id)
            .expect("answered");
        assert_eq!(result_of(answer)["stopReason"], "end_turn");
    }
}

/// TR-11.
// proves: TR-11
#[test]
fn a_client_that_hangs_up_ends_it_quietly() {
    let world = World::silent();
    let mut client = Client::connect_deaf(world.agent(), ServeOptions::default());
    client.hang_up();
    client.raw("nonsense\n");
    assert_eq!(client.ended().0, ExitReason::OutputClosed);
}

/// A client that does not read: the agent reads no more of its requests once answers wait, so what
/// it holds is bounded; and when the client reads again, nothing is lost.
#[test]
fn a_client_that_does_not_read_cannot_fill_the_memory() {
    let world = World::silent();
    let mut client = Client::connect_deaf(world.agent(), ServeOptions::default());
    let count = 20_000;
    let method = "m".repeat(100);
    let line = |n| format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"{method}\"}}\n");
    let lines: String = (0..count).map(line).collect();
    let mut input = client.split(lines.as_bytes());
    let writing = std::thread::spawn(move || {
        let written = input.write_all(lines.as_bytes());
        written.expect("the agent reads in the end");
    });
    client.listen();
    writing.join().expect("all was read");
    for n in 0..count {
        let answer = client.next().expect("an answer");
        assert_eq!(answer["id"], n);
    }
}

/// The client reads, but slowly: what it has not read when the input ends takes it several seconds. It gets
/// every answer all the same, since the end waits for as long as something advances.
// proves: TR-7
#[tokio::test(start_paused = true)]
async fn slow_reader_gets_every_answer_at_the_end() {
    const REQUESTS: usize = 800;
    let world = World::silent();
    let (mut input, agent_input) = pipe::pipe().expect("a pipe");
    let (agent_output, mut output) = pipe::pipe().expect("a pipe");
    let served = serve(
        world.agent(),
        Input::Pipe(agent_input),
        Output::Pipe(agent_output),
        ServeOptions::default(),
    );
    // Each answer has the name in it, so that those which wait are many bytes.
    let method = "m".repeat(4_000);
    let asked = async move {
        for id in 0..REQUESTS {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n");
            input.write_all(line.as_bytes()).await.expect("written");
        }
    };
    let read = async {
        let mut all = Vec::new();
        let mut part = vec![0; 64 << 10];
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            match output.read(&mut part).await.expect("read") {
                0 => return all,
                count => all.extend_from_slice(&part[..count]),
            }
        }
    };
    let (reason, (), all) = tokio::join!(served, asked, read);
    assert_eq!(reason.expect("served"), ExitReason::EndOfInput);
    let answers = all
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    assert_eq!(answers.count(), REQUESTS);
}

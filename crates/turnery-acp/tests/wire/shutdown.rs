//! Shutdown of a connection: end of input, a signal, a client that stops reading (TR-6, TR-7, TR-11).

use crate::harness::{TestClient, TestEnv, result_of};
use serde_json::{Value, json};
use std::{io::Write as _, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe,
};
use turnery_acp::{ExitReason, Input, Output, ServeOptions, serve};
use turnery_agent::CancellationToken;

fn hanging_env() -> TestEnv {
    TestEnv::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]))
}

/// TR-7: `initialize` and `session/new`, then the end, all in one write.
#[test]
fn accepted_requests_are_answered_at_end_of_input() {
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    let new = json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": world.new_session_params()});
    client.write_raw(format!("{initialize}\n{new}"));
    let (reason, said) = client.close_and_join();
    assert_eq!(reason, ExitReason::EndOfInput);
    let ids: Vec<&Value> = said.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2)]);
    assert!(result_of(&said[1])["sessionId"].is_string());
}

/// TR-6: a running prompt is answered with `cancelled`, and the agent exits.
#[test]
fn end_of_input_cancels_prompts() {
    let world = hanging_env();
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["method"] == "session/update");
    let (reason, said) = client.close_and_join();
    assert_eq!(reason, ExitReason::EndOfInput);
    let answer = said
        .iter()
        .find(|message| message["id"] == asked)
        .expect("answered");
    assert_eq!(result_of(answer)["stopReason"], "cancelled");
}

/// A pending permission request does not delay the exit.
// proves: PERM-3
#[test]
fn end_of_input_ends_questions() {
    let world = TestEnv::new(json!([{"steps": [{"tool_call": {"name": "change", "args": {}}}]}]));
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "hi");
    client.wait_for_request("session/request_permission");
    let (_, said) = client.close_and_join();
    let answer = said
        .iter()
        .find(|message| message["id"] == asked)
        .expect("answered");
    assert_eq!(result_of(answer)["stopReason"], "cancelled");
    assert_eq!(world.run_log.all(), [] as [String; 0]);
}

#[test]
fn stop_signal_ends_like_end_of_input() {
    let world = hanging_env();
    let stop = CancellationToken::new();
    let options = ServeOptions {
        stop: stop.clone(),
        ..ServeOptions::default()
    };
    let mut client = TestClient::connect(world.agent(), options);
    client.initialize(json!({}));
    let id = client.new_session(world.new_session_params());
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["method"] == "session/update");
    stop.cancel();
    let (reason, said) = client.join();
    assert_eq!(reason, ExitReason::Stopped);
    let answer = said
        .iter()
        .find(|message| message["id"] == asked)
        .expect("answered");
    assert_eq!(result_of(answer)["stopReason"], "cancelled");
}

#[test]
fn a_drain_lets_prompts_finish() {
    let world = TestEnv::new(json!([
        {"steps": [{"delay_ms": 30}, {"text": "one"}]},
        {"steps": [{"text": "two"}]},
    ]));
    let options = ServeOptions {
        drain: true,
        ..ServeOptions::default()
    };
    let mut client = TestClient::connect(world.agent(), options);
    client.initialize(json!({}));
    let id = client.new_session(world.new_session_params());
    let asked = [(); 2].map(|()| client.send_prompt(&id, "hi"));
    let (reason, said) = client.close_and_join();
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
fn closed_output_ends_the_connection() {
    let world = TestEnv::without_answers();
    let mut client = TestClient::connect_without_reading(world.agent(), ServeOptions::default());
    client.drop_output();
    client.write_raw("nonsense\n");
    assert_eq!(client.join().0, ExitReason::OutputClosed);
}

/// A client that writes 20,000 requests before it takes the first response gets all responses in order:
/// neither side waits forever for the other.
#[test]
fn late_reader_gets_every_response_in_order() {
    let world = TestEnv::without_answers();
    let mut client = TestClient::connect_without_reading(world.agent(), ServeOptions::default());
    let count = 20_000;
    let method = "m".repeat(100);
    let line = |n| format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"{method}\"}}\n");
    let lines: String = (0..count).map(line).collect();
    let mut input = client.take_input(lines.as_bytes());
    let writing = std::thread::spawn(move || {
        let written = input.write_all(lines.as_bytes());
        written.expect("the agent reads in the end");
    });
    client.start_reading();
    writing.join().expect("all was read");
    for n in 0..count {
        let answer = client.next_message().expect("an answer");
        assert_eq!(answer["id"], n);
    }
}

/// A slow client needs several seconds to read the remaining output. It gets every response, since the
/// shutdown waits while there is progress.
// proves: TR-7
#[tokio::test(start_paused = true)]
async fn slow_reader_gets_every_answer_at_the_end() {
    const REQUESTS: usize = 800;
    let world = TestEnv::without_answers();
    let (mut input, agent_input) = pipe::pipe().expect("a pipe");
    let (agent_output, mut output) = pipe::pipe().expect("a pipe");
    let served = serve(
        world.agent(),
        Input::Pipe(agent_input),
        Output::Pipe(agent_output),
        ServeOptions::default(),
    );
    // Each error response contains the method name, so waiting responses are large.
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

//! Many open sessions on one connection: an idle session must not hold shared resources.

use crate::harness::{TestEnv, prompt_params};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, PipeWriter, Write as _, pipe},
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};
use turnery_acp::{ExitReason, ServeOptions, serve};

/// Number of open sessions. The write queue has 256 places.
const SESSIONS: usize = 5_000;
/// Number of concurrent requests. A connection accepts 4,096.
const CONCURRENT_REQUESTS: usize = 1_000;
/// Time after which the agent counts as hung.
const HANG_TIMEOUT: Duration = Duration::from_secs(120);

/// Client without a judge, which is too slow for this many lines.
struct PlainClient {
    input: PipeWriter,
    /// All responses. Updates are read and dropped.
    answers: mpsc::Receiver<Value>,
    served: JoinHandle<ExitReason>,
    next_id: u64,
}

impl PlainClient {
    fn connect(world: &TestEnv) -> Self {
        let agent = world.agent();
        let (agent_input, input) = pipe().expect("a pipe");
        let (output, agent_output) = pipe().expect("a pipe");
        let served = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime
                .block_on(serve(
                    agent,
                    agent_input,
                    agent_output,
                    ServeOptions::default(),
                ))
                .expect("serves")
        });
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.expect("a line");
                if line.starts_with(r#"{"jsonrpc":"2.0","id":"#) {
                    let _ = sender.send(serde_json::from_str(&line).expect("JSON"));
                }
            }
        });
        Self {
            input,
            answers,
            served,
            next_id: 0,
        }
    }

    fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input, "{request}").expect("the agent reads");
        id
    }

    /// Waits for the responses to these requests.
    fn wait_for_responses(&mut self, ids: Vec<u64>) -> Vec<Value> {
        let mut answers = HashMap::new();
        while answers.len() < ids.len() {
            let answer = match self.answers.recv_timeout(HANG_TIMEOUT) {
                Ok(answer) => answer,
                Err(error) => panic!("{error} after {} of {} answers", answers.len(), ids.len()),
            };
            answers.insert(answer["id"].as_u64().expect("an id"), answer);
        }
        let of = |id| answers.remove(&id).expect("an answer to what was asked");
        ids.into_iter().map(of).collect()
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        self.wait_for_responses(vec![id]).remove(0)
    }

    /// Prompts each of these sessions, `AT_ONCE` at a time.
    fn prompt_all(&mut self, sessions: &[String]) {
        for some in sessions.chunks(CONCURRENT_REQUESTS) {
            let ask = |id: &String| self.send_request("session/prompt", &prompt_params(id, "hi"));
            let asked = some.iter().map(ask).collect();
            for answer in self.wait_for_responses(asked) {
                assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
            }
        }
    }
}

/// Regression: an idle session that had been prompted once kept a place in the write queue; with 256 such
/// sessions no response was sent any more.
// proves: D-15
#[test]
fn five_thousand_prompted_sessions_are_answered() {
    let world = TestEnv::new(json!([
        {"steps": [{"text": "one"}]},
        {"steps": [{"text": "two"}, {"wait_for_cancel": true}]},
    ]));
    let mut client = PlainClient::connect(&world);
    client.call("initialize", &json!({"protocolVersion": 1}));
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS / CONCURRENT_REQUESTS {
        let asked = (0..CONCURRENT_REQUESTS)
            .map(|_| client.send_request("session/new", &world.new_session_params()))
            .collect();
        for made in client.wait_for_responses(asked) {
            let id = made["result"]["sessionId"].as_str().expect("an id");
            sessions.push(id.to_owned());
        }
    }
    client.prompt_all(&sessions);

    let listed = client.call("session/list", &json!({}));
    assert!(listed["result"]["sessions"].is_array(), "{listed}");
    // Prompts and cancels still work.
    let last = sessions.last().expect("a session");
    let asked = client.send_request("session/prompt", &prompt_params(last, "hi"));
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": last}});
    writeln!(client.input, "{cancel}").expect("the agent reads");
    let answer = client.wait_for_responses(vec![asked]).remove(0);
    assert_eq!(answer["result"]["stopReason"], "cancelled");

    drop(client.input);
    let reason = client.served.join().expect("it ends");
    assert_eq!(reason, ExitReason::EndOfInput);
}

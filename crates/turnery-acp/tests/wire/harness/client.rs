//! The test client at the other end of the pipes.

use super::{Judge, prompt_params};
use acp_conformance::oracle::client_violation;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};
use turnery_acp::{ExitReason, ServeOptions, serve};
use turnery_agent::Agent;

/// Maximum time a test waits for a line; every test should need less than a hundredth of it.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(120);

/// Environment variable that runs every test with v2 enabled.
pub(crate) const V2_VARIABLE: &str = "TURNERY_WIRE_WITH_V2";

/// Client connected to an agent.
pub(crate) struct TestClient {
    input: Option<PipeWriter>,
    lines: Option<mpsc::Receiver<String>>,
    output: Option<PipeReader>,
    judge: Judge,
    buffered: VecDeque<Value>,
    /// Command updates of the agent, kept apart so that tests need not count them.
    command_offers: Vec<Value>,
    next_id: i64,
    /// Protocol version, from the last response to `initialize`.
    version: u64,
    agent: Option<JoinHandle<ExitReason>>,
}

impl TestClient {
    /// Connects without sending anything. Lines are read as they arrive.
    pub(crate) fn connect(agent: Arc<Agent>, options: ServeOptions) -> Self {
        let mut client = Self::connect_without_reading(agent, options);
        client.start_reading();
        client
    }

    /// Connects and initializes without capabilities.
    pub(crate) fn initialized(agent: Arc<Agent>) -> Self {
        let mut client = Self::connect(agent, ServeOptions::default());
        client.initialize(json!({}));
        client
    }

    /// Connects, and reads nothing until [`Self::start_reading`].
    pub(crate) fn connect_without_reading(agent: Arc<Agent>, mut options: ServeOptions) -> Self {
        options.v2 |= std::env::var_os(V2_VARIABLE).is_some();
        let (agent_input, input) = pipe().expect("a pipe");
        let (output, agent_output) = pipe().expect("a pipe");
        let served = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime
                .block_on(serve(agent, agent_input, agent_output, options))
                .expect("serves")
        });
        Self {
            input: Some(input),
            lines: None,
            output: Some(output),
            judge: Judge::default(),
            buffered: VecDeque::new(),
            command_offers: Vec::new(),
            next_id: 0,
            version: 1,
            agent: Some(served),
        }
    }

    /// Starts reading.
    pub(crate) fn start_reading(&mut self) {
        let (sender, lines) = mpsc::channel();
        self.read_lines(lines, move |line| sender.send(line).is_ok());
    }

    /// Reads only while the test waits for a message, except for a few lines.
    pub(crate) fn start_reading_on_demand(&mut self) {
        let (sender, lines) = mpsc::sync_channel(1);
        self.read_lines(lines, move |line| sender.send(line).is_ok());
    }

    fn read_lines(
        &mut self,
        lines: mpsc::Receiver<String>,
        mut send: impl FnMut(String) -> bool + Send + 'static,
    ) {
        let output = self.output.take().expect("not listening yet");
        thread::spawn(move || {
            let mut lines = BufReader::new(output).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(&mut send)) {}
        });
        self.lines = Some(lines);
    }

    /// Closes the output pipe of a client that has not started reading; the agent notices.
    pub(crate) fn drop_output(&mut self) {
        self.output = None;
    }

    /// Writes raw bytes.
    pub(crate) fn write_raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.judge.client_wrote(bytes.as_ref());
        let input = self.input.as_mut().expect("not closed");
        input.write_all(bytes.as_ref()).expect("the agent reads");
    }

    /// Returns the writing end to the caller, who will write these bytes.
    pub(crate) fn take_input(&mut self, bytes: &[u8]) -> PipeWriter {
        self.judge.client_wrote(bytes);
        self.input.take().expect("not closed")
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.write_raw(format!("{message}\n"));
    }

    /// Sends a request; returns its id.
    pub(crate) fn send_request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a notification.
    pub(crate) fn send_notification(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if self.version == 2 {
            assert_eq!(client_violation(2, &message, None), None);
        }
        self.send(&message);
    }

    /// Sends a request and waits for its response; earlier messages are buffered for [`Self::take_buffered`].
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        self.wait_for_response(&id)
    }

    /// Creates a session with these parameters; returns its id.
    pub(crate) fn new_session(&mut self, params: Value) -> String {
        let made = self.request("session/new", params);
        let id = result_of(&made)["sessionId"].as_str();
        id.expect("an id").to_owned()
    }

    /// Sends a prompt with one text; returns the id of the request.
    pub(crate) fn send_prompt(&mut self, session: &str, text: &str) -> Value {
        self.send_request("session/prompt", prompt_params(session, text))
    }

    /// Sends a prompt with one text and waits for its end; returns the stop reason.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Value {
        let asked = self.send_prompt(session, text);
        self.wait_for_stop_reason(&asked)
    }

    /// Waits for the end of a prompt; returns the stop reason.
    pub(crate) fn wait_for_stop_reason(&mut self, asked: &Value) -> Value {
        result_of(&self.wait_for_response(asked))["stopReason"].clone()
    }

    /// Cancels all prompts of a session.
    pub(crate) fn cancel(&mut self, session: &str) {
        self.send_notification("session/cancel", json!({"sessionId": session}));
    }

    /// Answers a permission request with this option.
    pub(crate) fn choose(&mut self, question: &Value, option: &str) {
        let outcome = json!({"outcome": "selected", "optionId": option});
        self.respond(question, json!({ "outcome": outcome }));
    }

    /// Waits for the response to a request.
    pub(crate) fn wait_for_response(&mut self, id: &Value) -> Value {
        let fits = |message: &Value| message.get("method").is_none() && &message["id"] == id;
        // It may have arrived during an earlier wait.
        match self.buffered.iter().position(fits) {
            Some(at) => self.buffered.remove(at).expect("it is there"),
            None => self.wait_for(fits),
        }
    }

    /// Waits for a request of the agent.
    pub(crate) fn wait_for_request(&mut self, method: &str) -> Value {
        self.wait_for(|message| message["method"] == method && message.get("id").is_some())
    }

    /// Responds to a request of the agent.
    pub(crate) fn respond(&mut self, asked: &Value, result: Value) {
        if self.version == 2 {
            let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
            assert_eq!(client_violation(2, &reply, asked["method"].as_str()), None);
        }
        self.respond_unchecked(asked, result);
    }

    /// Responds to a request of the agent without validating the result.
    pub(crate) fn respond_unchecked(&mut self, asked: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    }

    /// Waits for the next message that matches; others are buffered in order.
    pub(crate) fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next_message().expect("the agent still talks");
            if fits(&message) {
                return message;
            }
            self.buffered.push_back(message);
        }
    }

    /// Returns and clears the command updates so far.
    pub(crate) fn take_command_offers(&mut self) -> Vec<Value> {
        self.command_offers.drain(..).collect()
    }

    /// Returns the next message that is not a command update; `None` when the agent has closed its output.
    pub(crate) fn next_message(&mut self) -> Option<Value> {
        loop {
            let message = self.read_message()?;
            let update = &message["params"]["update"]["sessionUpdate"];
            if update != "available_commands_update" {
                return Some(message);
            }
            self.command_offers.push(message["params"].clone());
        }
    }

    fn read_message(&mut self) -> Option<Value> {
        let lines = self.lines.as_ref().expect("listening");
        let line = match lines.recv_timeout(RECEIVE_TIMEOUT) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("the agent says nothing: {:?}", self.buffered)
            }
        };
        let message = match self.judge.agent_wrote(&line) {
            Ok(message) => message,
            Err(why) => panic!("{why} after {:?}", self.buffered),
        };
        if let Some(version) = message["result"]["protocolVersion"].as_u64() {
            self.version = version;
        }
        Some(message)
    }

    /// Closes the input; returns the remaining lines of the agent.
    pub(crate) fn close_and_read_lines(mut self) -> Vec<String> {
        self.close_input();
        let lines: Vec<String> = self.lines.take().expect("listening").iter().collect();
        for line in &lines {
            self.judge.agent_wrote(line).expect("valid");
        }
        self.judge.agent_closed().expect("all is answered");
        lines
    }

    /// Returns and clears the buffered messages.
    pub(crate) fn take_buffered(&mut self) -> Vec<Value> {
        self.buffered.drain(..).collect()
    }

    /// Returns the updates among the buffered messages.
    pub(crate) fn take_updates(&mut self) -> Vec<Value> {
        self.take_buffered()
            .into_iter()
            .filter(|message| message["method"] == "session/update")
            .map(|message| message["params"]["update"].clone())
            .collect()
    }

    /// Returns the text of the agent's messages among the buffered updates, and clears the buffer.
    pub(crate) fn take_text(&mut self) -> String {
        let updates = self.take_updates();
        let said = updates
            .iter()
            .filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        said.filter_map(|update| update["content"]["text"].as_str())
            .collect()
    }

    /// Closes the input.
    pub(crate) fn close_input(&mut self) {
        self.judge.client_closed();
        self.input = None;
    }

    /// Closes the input; returns the exit reason and the remaining messages.
    pub(crate) fn close_and_join(mut self) -> (ExitReason, Vec<Value>) {
        self.close_input();
        self.join()
    }

    /// Waits for the agent to exit.
    pub(crate) fn join(mut self) -> (ExitReason, Vec<Value>) {
        if self.lines.is_some() {
            while let Some(message) = self.next_message() {
                self.buffered.push_back(message);
            }
            self.judge.agent_closed().expect("all is answered");
        }
        let served = self.agent.take().expect("once");
        (served.join().expect("no panic"), self.buffered.into())
    }

    /// Initializes as a v2 client.
    pub(crate) fn initialize_v2(&mut self) -> Value {
        let info = json!({"name": "test", "version": "1"});
        self.request("initialize", json!({"protocolVersion": 2, "info": info}))
    }

    /// Initializes with these capabilities.
    pub(crate) fn initialize(&mut self, abilities: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": abilities});
        self.request("initialize", params)
    }
}

/// Returns the result of a response; panics on an error.
pub(crate) fn result_of(answer: &Value) -> &Value {
    assert!(answer.get("error").is_none(), "{answer}");
    &answer["result"]
}

/// Returns the code of an error response.
pub(crate) fn error_code_of(answer: &Value) -> i64 {
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{answer}"))
}

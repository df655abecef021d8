//! Client: the other end of the pipes.

use super::{Oracle, grammar_v2::Grammar, schema_v2};
use serde_json::{Value, json};
use std::{
    collections::{HashSet, VecDeque},
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};
use turnery_acp::{ExitReason, ServeOptions, serve, witness::Witness};
use turnery_agent::Agent;

/// No test waits longer than this for a line; none is known to need a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Set to run every test with the draft of the second version switched on.
pub(crate) const WITH_V2: &str = "TURNERY_WIRE_WITH_V2";

/// A client, and the agent that it talks to.
pub(crate) struct Client {
    input: Option<PipeWriter>,
    lines: Option<mpsc::Receiver<String>>,
    output: Option<PipeReader>,
    witness: Witness,
    /// Requests that no client of the second version would send: none may get a result.
    wrong: HashSet<String>,
    grammar: Grammar,
    seen: VecDeque<Value>,
    /// What the agent offered as commands: beside everything else, so that tests need not count it.
    offers: Vec<Value>,
    next_id: i64,
    /// The version of the protocol that is spoken, by the last answer to `initialize`.
    version: u64,
    agent: Option<JoinHandle<ExitReason>>,
    /// Times that are to pass on the agent's clock.
    clock: tokio::sync::mpsc::Sender<(Duration, mpsc::Sender<()>)>,
    oracle: Oracle,
}

impl Client {
    /// Connect, without a word. Lines are read as they come.
    pub(crate) fn connect(agent: Arc<Agent>, options: ServeOptions) -> Self {
        let mut client = Self::connect_deaf(agent, options);
        client.listen();
        client
    }

    /// Connect, and read nothing until [`Self::listen`].
    pub(crate) fn connect_deaf(agent: Arc<Agent>, mut options: ServeOptions) -> Self {
        options.v2 |= std::env::var_os(WITH_V2).is_some();
        let (agent_input, input) = pipe().expect("a pipe");
        let (output, agent_output) = pipe().expect("a pipe");
        let (clock, mut times) = tokio::sync::mpsc::channel::<(Duration, mpsc::Sender<()>)>(1);
        let served = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.spawn(async move {
                while let Some((time, passed)) = times.recv().await {
                    tokio::time::pause();
                    tokio::time::sleep(time).await;
                    tokio::time::resume();
                    passed.send(()).expect("it is waited for");
                }
            });
            runtime
                .block_on(serve(agent, agent_input, agent_output, options))
                .expect("serves")
        });
        Self {
            input: Some(input),
            lines: None,
            output: Some(output),
            witness: Witness::default(),
            wrong: HashSet::new(),
            grammar: Grammar::default(),
            seen: VecDeque::new(),
            offers: Vec::new(),
            next_id: 0,
            version: 1,
            agent: Some(served),
            clock,
            oracle: Oracle::default(),
        }
    }

    /// Begin to read.
    pub(crate) fn listen(&mut self) {
        let output = self.output.take().expect("not listening yet");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        self.lines = Some(lines);
    }

    /// Never read again, and let the agent know.
    pub(crate) fn hang_up(&mut self) {
        self.output = None;
    }

    /// Write bytes as they are.
    pub(crate) fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.witness.sent(bytes.as_ref());
        let input = self.input.as_mut().expect("not closed");
        input.write_all(bytes.as_ref()).expect("the agent reads");
    }

    /// Hand the writing end to somebody else, who will write this.
    pub(crate) fn split(&mut self, bytes: &[u8]) -> PipeWriter {
        self.witness.sent(bytes);
        self.input.take().expect("not closed")
    }

    /// Show a message to the oracle that is then written as bytes.
    pub(crate) fn note(&mut self, message: &Value) {
        self.oracle.told(message);
        if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
            self.grammar.asks(id, method, &message["params"]);
            let known = self.version == 2 || message["params"]["protocolVersion"] == 2;
            match known && !schema_v2::may_ask(method, &message["params"]) {
                true => self.wrong.insert(id.to_string()),
                false => self.wrong.remove(&id.to_string()),
            };
        }
    }

    /// Write a message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.note(message);
        self.raw(format!("{message}\n"));
    }

    /// Send a request; gives its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Send a notification.
    pub(crate) fn tell(&mut self, method: &str, params: Value) {
        if self.version == 2 {
            schema_v2::check_told(method, &params);
        }
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Send a request and wait for its answer; what comes before it is kept for [`Self::seen`].
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(&id)
    }

    /// Wait for the answer to a request.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        let fits = |message: &Value| message.get("method").is_none() && &message["id"] == id;
        // It may have come while another one was waited for.
        match self.seen.iter().position(fits) {
            Some(at) => self.seen.remove(at).expect("it is there"),
            None => self.wait(fits),
        }
    }

    /// Wait for a request of the agent.
    pub(crate) fn asked(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method && message.get("id").is_some())
    }

    /// Answer a request of the agent.
    pub(crate) fn reply(&mut self, asked: &Value, result: Value) {
        if self.version == 2 {
            schema_v2::check_reply(asked, &result);
        }
        self.reply_anything(asked, result);
    }

    /// Answer a request of the agent with what no client would say.
    pub(crate) fn reply_anything(&mut self, asked: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    }

    /// The next message that fits; the others are kept, in order.
    pub(crate) fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().expect("the agent still talks");
            if fits(&message) {
                return message;
            }
            self.seen.push_back(message);
        }
    }

    /// The offers of commands so far, and forget them.
    pub(crate) fn offers(&mut self) -> Vec<Value> {
        self.offers.drain(..).collect()
    }

    /// The next message that is no offer of commands; `None` when the agent has closed its output.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            let message = self.heard()?;
            let update = &message["params"]["update"]["sessionUpdate"];
            if update != "available_commands_update" {
                return Some(message);
            }
            self.offers.push(message["params"].clone());
        }
    }

    fn heard(&mut self) -> Option<Value> {
        let lines = self.lines.as_ref().expect("listening");
        let line = match lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("the agent says nothing: {:?}", self.seen)
            }
        };
        let message = self.witness.heard(&line);
        let message = message.unwrap_or_else(|complaint| panic!("{complaint}"));
        if let Err(rule) = self.oracle.heard(&message) {
            panic!("{rule}: {message}");
        }
        if let Some(version) = message["result"]["protocolVersion"].as_u64() {
            self.version = version;
        }
        if self.version == 2 {
            if let Err(law) = self.grammar.said(&message) {
                panic!("{law}: {message} after {:?}", self.seen);
            }
            // One that cannot be read as v2 may still be answered with v1.
            let wrong = self.wrong.contains(&message["id"].to_string());
            let taken = wrong && message.get("result").is_some();
            assert!(!taken, "taken, though wrong: {message}");
        }
        if let Some(error) = message.get("error") {
            // A sentence, and what to do (RPC-13).
            let details = error["data"]["details"].as_str().expect("details");
            assert!(!details.is_empty(), "{error}");
        }
        Some(message)
    }

    /// All that the agent says by itself in this time, which passes on its clock and not on ours.
    pub(crate) fn silence(&mut self, time: Duration) -> Vec<Value> {
        self.offers.clear();
        let before = self.seen.len();
        // Lines keep their order: once this is answered, all that we sent was read.
        self.call("session/list", json!({}));
        let (passed, told) = mpsc::channel();
        self.clock.blocking_send((time, passed)).expect("it lives");
        told.recv_timeout(PATIENCE).expect("time passes");
        // And what was said by then comes before this answer.
        self.call("session/list", json!({}));
        let said = self.seen.split_off(before);
        said.into_iter().chain(self.offers()).collect()
    }

    /// End of input; gives all that the agent still said, as it said it.
    pub(crate) fn raw_lines(mut self) -> Vec<String> {
        self.close();
        let lines: Vec<String> = self.lines.take().expect("listening").iter().collect();
        for line in &lines {
            self.witness.heard(line).expect("valid");
        }
        self.witness.ended().expect("all is answered");
        lines
    }

    /// What came while something else was waited for, and forget it.
    pub(crate) fn seen(&mut self) -> Vec<Value> {
        self.seen.drain(..).collect()
    }

    /// The updates among what was seen.
    pub(crate) fn updates(&mut self) -> Vec<Value> {
        self.seen()
            .into_iter()
            .filter(|message| message["method"] == "session/update")
            .map(|message| message["params"]["update"].clone())
            .collect()
    }

    /// End of input.
    pub(crate) fn close(&mut self) {
        self.oracle.left();
        self.witness.closed();
        self.input = None;
    }

    /// End of input; gives why the agent ended, and all that it still said.
    pub(crate) fn leave(mut self) -> (ExitReason, Vec<Value>) {
        self.close();
        self.ended()
    }

    /// Wait for the agent's end.
    pub(crate) fn ended(mut self) -> (ExitReason, Vec<Value>) {
        if self.lines.is_some() {
            while let Some(message) = self.next() {
                self.seen.push_back(message);
            }
            self.witness.ended().expect("all is answered");
        }
        if self.lines.is_some()
            && let Err(rule) = self.oracle.over()
        {
            panic!("{rule}");
        }
        let served = self.agent.take().expect("once");
        (served.join().expect("no panic"), self.seen.into())
    }

    /// Introduce ourselves as a client of the second version.
    pub(crate) fn initialize_v2(&mut self) -> Value {
        let info = json!({"name": "test", "version": "1"});
        self.call("initialize", json!({"protocolVersion": 2, "info": info}))
    }

    /// Introduce ourselves as able to do these things.
    pub(crate) fn initialize(&mut self, abilities: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": abilities});
        self.call("initialize", params)
    }
}

/// The result of an answer that is one.
pub(crate) fn result_of(answer: &Value) -> &Value {
    assert!(answer.get("error").is_none(), "{answer}");
    &answer["result"]
}

/// The code of an answer that is an error.
pub(crate) fn error_of(answer: &Value) -> i64 {
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{answer}"))
}

//! Fake model: an HTTP server on loopback that replaces the agent's provider and plays the scripts of a case.
//!
//! The server speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini, streaming or
//! not; the path selects the API. The same script always gives the same bytes. Requests outside the
//! conversation (titles, summaries, probes) get a fixed response and do not advance the script.

mod anthropic;
mod chat;
mod encoder;
mod exchange;
mod gemini;
mod http;
mod playback;
mod request;
mod responses;
mod schema_instance;
mod script;
mod state;
mod tool_resolution;
mod wire_format;

pub use exchange::{Exchange, ExchangeRole, ExchangeState};
pub use request::{Api, ConversationMessage, MessageRole, ModelRequest, OfferedTool};
pub use script::{
    FinishReason, ScriptAction, ScriptError, ScriptTool, ScriptedResponse, TokenUsage, parse_script,
};
pub use state::{FakeModelConfig, RequestRules};
pub use tool_resolution::{ToolCandidate, ToolCandidates};

use state::{FakeModelState, SharedState};
use std::{collections::BTreeSet, io, sync::Arc};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, spawn},
};

/// Running fake model; dropping it stops the server.
#[derive(Debug)]
pub struct FakeModel {
    base_url: String,
    state: SharedState,
    server: AbortHandle,
}

impl FakeModel {
    /// Starts the server on a free loopback port, as a task of the current runtime.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start(config: FakeModelConfig) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let base = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(watch::Sender::new(FakeModelState::new(config)));
        let server = spawn(http::serve(listener, Arc::clone(&state))).abort_handle();
        Ok(Self {
            base_url: base,
            state,
            server,
        })
    }

    /// Returns the base URL, `http://127.0.0.1:PORT`, without a path.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Sets the responses for conversations whose newest prompt contains `prompt`, or for all others if
    /// `None`. Replaces the earlier script of the same `prompt`.
    pub fn set_script(&self, prompt: Option<&str>, answers: Vec<ScriptedResponse>) {
        self.state
            .send_modify(|state| state.set_script(prompt, answers));
    }

    /// Restarts the scripts whose prompt text satisfies `holds`, as a prompt is about to be sent.
    pub fn restart_scripts(&self, holds: impl Fn(&str) -> bool) {
        self.state.send_modify(|state| state.restart_scripts(holds));
    }

    /// Resumes hanging responses.
    pub fn release_hanging(&self) {
        self.state.send_modify(|state| state.release_count += 1);
    }

    /// Returns all requests so far.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.state.borrow().exchanges.clone()
    }

    /// Reads the requests so far without copying them, as each holds the schemas of all tools.
    pub(crate) fn read_exchanges<T>(&self, read: impl FnOnce(&[Exchange]) -> T) -> T {
        read(&self.state.borrow().exchanges)
    }

    /// Counts the requests of the conversation so far.
    pub(crate) fn count_conversation_exchanges(&self) -> usize {
        let is_main = |exchange: &&Exchange| exchange.is_main();
        self.read_exchanges(|exchanges| exchanges.iter().filter(is_main).count())
    }

    /// Returns the requests of the conversation so far.
    #[must_use]
    pub fn conversation_exchanges(&self) -> Vec<Exchange> {
        let state = self.state.borrow();
        let main = state.exchanges.iter().filter(|exchange| exchange.is_main());
        main.cloned().collect()
    }

    /// Returns the called script tools that have never matched an offered tool.
    #[must_use]
    pub fn missing_tools(&self) -> BTreeSet<ScriptTool> {
        let state = self.state.borrow();
        let exchanges = &state.exchanges;
        let served: BTreeSet<&ScriptTool> =
            exchanges.iter().flat_map(|one| &one.served_tools).collect();
        let missing = exchanges.iter().flat_map(|one| &one.missing_tools);
        missing
            .filter(|tool| !served.contains(tool))
            .cloned()
            .collect()
    }

    /// Returns the number of scripted responses that are still unused.
    #[must_use]
    pub fn unused_responses(&self) -> usize {
        let state = self.state.borrow();
        let left = |thread: &state::PromptScript| thread.responses.len() - thread.next_index;
        state.scripts.iter().map(left).sum()
    }

    /// Waits until the requests so far satisfy `wanted`.
    pub async fn wait_until(&self, mut wanted: impl FnMut(&[Exchange]) -> bool) {
        let mut state = self.state.subscribe();
        // `self` holds the sender, so `wait_for` cannot fail.
        let _ = state.wait_for(|state| wanted(&state.exchanges)).await;
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

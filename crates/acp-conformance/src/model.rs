//! The fake model: an HTTP server on loopback that agents take for their provider, and that says what a
//! case tells it to.
//!
//! It speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini, streaming or not;
//! which one is told by the path. The same script gives the same bytes, whatever the clock says. Requests
//! beside the conversation (titles, summaries, probes) get a fixed answer and take none of the script.

mod anthropic;
mod asked;
mod chat;
mod gemini;
mod http;
mod instance;
mod perform;
mod record;
mod responses;
mod script;
mod spoken;
mod stage;
mod tools;

pub use asked::{Api, Asked, Offered, Said, Voice};
pub use record::{Exchange, Fate, Role};
pub use script::{Answer, Piece, ScriptError, Stop, Tool, Usage, answers};
pub use stage::Rules;
pub use tools::{Candidate, Candidates};

use stage::{Shared, Stage};
use std::{collections::BTreeSet, io, sync::Arc};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, spawn},
};

/// A running fake model. It ends when this goes.
#[derive(Debug)]
pub struct FakeModel {
    base: String,
    stage: Shared,
    server: AbortHandle,
}

impl FakeModel {
    /// Listen on a free port of loopback. Runs as a task of the present runtime.
    ///
    /// # Errors
    /// No port can be had.
    pub async fn start(rules: Rules) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let base = format!("http://{}", listener.local_addr()?);
        let stage = Arc::new(watch::Sender::new(Stage::new(rules)));
        let server = spawn(http::serve(listener, Arc::clone(&stage))).abort_handle();
        Ok(Self {
            base,
            stage,
            server,
        })
    }

    /// Where it listens: `http://127.0.0.1:PORT`, without a path.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The answers to come: for the conversation whose newest prompt holds `prompt`, or for all that no
    /// other is for. What was set for the same before is forgotten.
    pub fn says(&self, prompt: Option<&str>, answers: Vec<Answer>) {
        self.stage.send_modify(|stage| stage.set(prompt, answers));
    }

    /// A prompt goes out: the answers for those that hold this text begin anew.
    pub fn prompted(&self, holds: impl Fn(&str) -> bool) {
        self.stage.send_modify(|stage| stage.prompted(holds));
    }

    /// What hangs goes on.
    pub fn release(&self) {
        self.stage.send_modify(|stage| stage.releases += 1);
    }

    /// All that was asked so far.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.stage.borrow().exchanges.clone()
    }

    /// Reads the requests so far without copying them: each holds the schemas of all tools.
    pub(crate) fn read_exchanges<T>(&self, read: impl FnOnce(&[Exchange]) -> T) -> T {
        read(&self.stage.borrow().exchanges)
    }

    /// Counts the requests of the conversation so far.
    pub(crate) fn count_conversation(&self) -> usize {
        let is_main = |exchange: &&Exchange| exchange.is_main();
        self.read_exchanges(|exchanges| exchanges.iter().filter(is_main).count())
    }

    /// The requests of the conversation so far.
    #[must_use]
    pub fn conversation(&self) -> Vec<Exchange> {
        let stage = self.stage.borrow();
        let main = stage.exchanges.iter().filter(|exchange| exchange.is_main());
        main.cloned().collect()
    }

    /// The tools of the script that the agent had nothing for whenever the model wanted to call them. One that it
    /// has had once is not among them.
    #[must_use]
    pub fn lacking(&self) -> BTreeSet<Tool> {
        let stage = self.stage.borrow();
        let exchanges = &stage.exchanges;
        let served: BTreeSet<&Tool> = exchanges.iter().flat_map(|one| &one.served).collect();
        let missing = exchanges.iter().flat_map(|one| &one.missing);
        missing
            .filter(|tool| !served.contains(tool))
            .cloned()
            .collect()
    }

    /// Answers of the script that nobody has asked for yet.
    #[must_use]
    pub fn unsaid(&self) -> usize {
        let stage = self.stage.borrow();
        let left = |thread: &stage::Thread| thread.answers.len() - thread.next;
        stage.threads.iter().map(left).sum()
    }

    /// Wait until what was asked is as wanted.
    pub async fn until(&self, mut wanted: impl FnMut(&[Exchange]) -> bool) {
        let mut stage = self.stage.subscribe();
        // The sender is held here, so this ends only when it fits.
        let _ = stage.wait_for(|stage| wanted(&stage.exchanges)).await;
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

//! Stage: the scripts, how far each has been said, and all that was asked.

use super::{
    asked::{Asked, Voice},
    instance::instance,
    record::{Exchange, Fate, Role},
    script::Answer,
    tools::Candidates,
};
use std::sync::Arc;
use tokio::sync::watch;

/// What is known of the agent before it asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Its tools.
    pub tools: Candidates,
    /// A request with one of these in its system prompt or its last message is beside the conversation.
    pub side: Vec<String>,
    /// It offers tools whenever it holds a conversation: a request without any is beside it.
    pub offers_tools: bool,
    /// The models that are listed.
    pub models: Vec<String>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            tools: Candidates::default(),
            side: Vec::new(),
            offers_tools: true,
            models: vec!["fake-model".to_owned()],
        }
    }
}

/// What a request beside the conversation is answered, where no schema asks for more.
pub(super) const SIDE_ANSWER: &str = "Conformance";
/// What is answered when the script has been said and its last answer cannot be said again.
pub(super) const BEYOND_ANSWER: &str = "The script is at its end.";

/// The answers for one conversation.
#[derive(Debug)]
pub(super) struct Thread {
    /// The text in a prompt that it is for; none: for all others.
    pub(super) prompt: Option<String>,
    pub(super) answers: Vec<Answer>,
    pub(super) next: usize,
}

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) rules: Rules,
    pub(super) threads: Vec<Thread>,
    pub(super) exchanges: Vec<Exchange>,
    /// How often what hangs has been released.
    pub(super) releases: u64,
}

/// The one lock around the stage, which tells of every change.
pub(super) type Shared = Arc<watch::Sender<Stage>>;

impl Stage {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            threads: Vec::new(),
            exchanges: Vec::new(),
            releases: 0,
        }
    }

    /// These are the answers for prompts with this text, from the first on.
    pub(super) fn set(&mut self, prompt: Option<&str>, answers: Vec<Answer>) {
        let prompt = prompt.map(str::to_owned);
        self.threads.retain(|thread| thread.prompt != prompt);
        self.threads.push(Thread {
            prompt,
            answers,
            next: 0,
        });
    }

    /// A prompt goes out.
    pub(super) fn prompted(&mut self, holds: impl Fn(&str) -> bool) {
        for thread in &mut self.threads {
            if thread.prompt.as_deref().is_some_and(&holds) {
                thread.next = 0;
            }
        }
    }

    /// The answer that is due, and with it the part that the request plays.
    pub(super) fn take(&mut self, asked: &Asked) -> (Role, Answer) {
        if self.is_side(asked) {
            let json = asked
                .schema
                .as_ref()
                .map(|schema| instance(schema).to_string());
            return (
                Role::Side,
                Answer::text(json.as_deref().unwrap_or(SIDE_ANSWER)),
            );
        }
        let Some(thread) = self.thread(asked) else {
            return (Role::Beyond, Answer::text(BEYOND_ANSWER));
        };
        if let Some(answer) = thread.answers.get(thread.next) {
            thread.next += 1;
            return (Role::Main(thread.next - 1), answer.clone());
        }
        let last = thread.answers.last().filter(|last| !last.calls());
        let again = || Answer::text(BEYOND_ANSWER);
        (Role::Beyond, last.cloned().unwrap_or_else(again))
    }

    fn is_side(&self, asked: &Asked) -> bool {
        let last = asked.said.last().filter(|said| said.by == Voice::User);
        let last = last.map_or("", |said| said.text.as_str());
        let known = |text: &String| asked.system.contains(text) || last.contains(text);
        asked.offered.is_empty() && self.rules.offers_tools || self.rules.side.iter().any(known)
    }

    /// The thread for the newest words of the user that one is for; else the one for all others.
    fn thread(&mut self, asked: &Asked) -> Option<&mut Thread> {
        // Agents may join a prompt to the one before it, so where in a text it stands counts too.
        let latest = |text: &str| {
            let found = self
                .threads
                .iter()
                .enumerate()
                .filter_map(|(index, thread)| {
                    let prompt = thread.prompt.as_ref()?;
                    Some((text.rfind(prompt.as_str())?, prompt.len(), index))
                });
            found.max().map(|(.., index)| index)
        };
        let texts: Vec<&str> = asked.user_texts().collect();
        let newest = texts.into_iter().rev().find_map(latest);
        let index = newest.or_else(|| self.threads.iter().position(|t| t.prompt.is_none()))?;
        self.threads.get_mut(index)
    }
}

/// Says once what became of a request: dropped, unless told otherwise before it goes.
#[derive(Debug)]
pub(super) struct Ticket {
    stage: Shared,
    number: usize,
    settled: bool,
}

impl Ticket {
    /// A ticket for a new exchange.
    pub(super) fn new(stage: &Shared, exchange: Exchange) -> Self {
        let mut number = 0;
        stage.send_modify(|stage| {
            number = stage.exchanges.len();
            stage.exchanges.push(exchange);
        });
        Self {
            stage: Arc::clone(stage),
            number,
            settled: false,
        }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn note(&self, note: impl FnOnce(&mut Exchange)) {
        self.stage.send_modify(|stage| {
            if let Some(exchange) = stage.exchanges.get_mut(self.number) {
                note(exchange);
            }
        });
    }

    pub(super) fn settle(&mut self, fate: Fate) {
        if !self.settled {
            self.settled = true;
            self.note(|exchange| exchange.fate = fate);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.settle(Fate::Dropped);
    }
}

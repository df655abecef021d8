//! Mail: all that can be asked of a session task.

use super::{Counter, Open, PromptError, PromptOptions, PromptResult, SetError};
use crate::{CancellationToken, Candidate, Pick, sink::Listener};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::oneshot;
use turnery_engine::{Content, LoopId, MessageId};
use turnery_models::{ModelName, Thinking};
use turnery_tools::Mode;

/// Room in a mailbox: all waiting prompts, all that may be said to one, and some settings besides.
pub(crate) const MAILBOX: usize = super::PROMPTS_WAITING + super::WORDS_WAITING + 16;

/// What can be asked of a session task.
pub(crate) enum Mail {
    /// Run this, after those before it.
    Prompt(Box<Prompt>),
    /// Tell the running prompt.
    Word(Word),
    /// Change a setting, now.
    Set {
        what: Set,
        reply: oneshot::Sender<Result<(), SetError>>,
    },
    /// End. What runs has been cancelled already.
    Close(oneshot::Sender<()>),
}

/// A setting.
pub(crate) enum Set {
    Mode(Mode),
    Model(ModelName),
    Thinking(Thinking),
    Title(String),
}

/// A prompt on its way.
pub(crate) struct Prompt {
    pub(crate) work: Work,
    /// What it is tried under, if that is not just how the session is set.
    pub(crate) tries: Option<Tries>,
    pub(crate) options: PromptOptions,
    /// The token of all prompts that were started when it was.
    pub(crate) cancel_all: CancellationToken,
    pub(crate) listener: Listener,
    /// Nobody waits for a prompt that was made of words that came too late.
    pub(crate) reply: Option<oneshot::Sender<Result<PromptResult, PromptError>>>,
    /// Who wants to know which message it became.
    pub(crate) inserted: Option<oneshot::Sender<MessageId>>,
    pub(crate) place: Place,
    pub(crate) open: Open,
}

impl Prompt {
    /// Take it out of the queue for good. False if it was taken back before.
    pub(crate) fn begins(&self) -> bool {
        let cancelled = self.options.cancel.is_cancelled() || self.cancel_all.is_cancelled();
        !(self.options.withdrawable && cancelled) && self.place.take()
    }
}

/// A prompt's place in the queue. It either begins or is taken back: whoever takes the place first has
/// decided that.
#[derive(Clone, Default)]
pub(crate) struct Place(Arc<AtomicBool>);

impl Place {
    /// True for the first who asks.
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// A prompt's candidates, and how one of them is chosen.
pub(crate) struct Tries {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) pick: Pick,
}

/// What a prompt is to do.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Say this to the model.
    Say(Vec<Content>),
    /// Say what an MCP server makes of one of its prompts.
    Server {
        /// The prompt's name as a command.
        command: String,
        /// Its arguments.
        typed: String,
        /// What is said besides.
        rest: Vec<Content>,
    },
    /// Let the model go on.
    Continue,
    /// Run a loop again: this one, or the last.
    Rerun(Option<LoopId>),
    /// Go on from an earlier loop with something else.
    Branch(LoopId, Vec<Content>),
    /// Summarise older messages.
    Compact,
}

/// Something said while a prompt runs.
pub(crate) struct Word {
    pub(crate) when: When,
    pub(crate) content: Vec<Content>,
    /// Told once it is heard, if somebody waits for that; dropped if it will not be.
    pub(crate) reply: Option<oneshot::Sender<()>>,
    pub(crate) is_heard: bool,
    /// The token of all prompts that were started when it was said.
    pub(crate) cancel_all: CancellationToken,
    /// Counts it as waiting.
    pub(crate) _room: Open,
    /// Where it is counted if it becomes a prompt of its own.
    pub(crate) prompts: Counter,
}

impl Word {
    /// The model gets to hear it.
    pub(crate) fn hear(&mut self) {
        self.is_heard = true;
        if let Some(reply) = self.reply.take() {
            // Whoever gave up waiting has said it all the same.
            let _ = reply.send(());
        }
    }

    /// The prompt that it becomes if none was there to hear it; none if somebody waits to know that.
    pub(crate) fn into_prompt(self, options: PromptOptions) -> Option<Prompt> {
        if self.reply.is_some() {
            return None;
        }
        Some(Prompt {
            work: Work::Say(self.content),
            tries: None,
            options,
            cancel_all: self.cancel_all,
            listener: Listener::default(),
            reply: None,
            inserted: None,
            place: Place::default(),
            open: self.prompts.open(),
        })
    }
}

/// When a word is to be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// As soon as possible: steering (UP-5).
    Soon,
    /// Once the loop would end: a follow-up (UP-6).
    AtTheEnd,
}

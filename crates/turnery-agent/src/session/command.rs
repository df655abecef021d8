//! Defines the commands that a session task receives.

use super::{
    PromptOptions, PromptResult,
    counter::{CounterGuard, SharedCounter},
    errors::{PromptError, SetOptionError},
    prompt_handle::QueueSlot,
};
use crate::{
    cancels::Cancels,
    code_mode::Protocol,
    evaluate::{Candidate, SelectionStrategy},
    sink::PromptSinks,
};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use turnery_engine::{Content, LoopId, LoopRecord, MessageId};
use turnery_models::{ModelName, Thinking};
use turnery_tools::Mode;

/// Maximum number of prompts queued in one session.
pub const MAX_QUEUED_PROMPTS: usize = 64;
/// Maximum number of pending steering messages and follow-ups in one session.
pub const MAX_PENDING_INTERJECTIONS: usize = 64;

/// Capacity of the mailbox: all queued prompts and interjections, and some settings.
pub(crate) const COMMAND_QUEUE_CAPACITY: usize =
    MAX_QUEUED_PROMPTS + MAX_PENDING_INTERJECTIONS + 16;

/// Command to a session task.
pub(crate) enum SessionCommand {
    /// Queues a prompt.
    Prompt(Box<QueuedPrompt>),
    /// Interjects into the running prompt.
    Interject(Interjection),
    /// Looks for prompts that wait in the store.
    FindQueued {
        /// True if another host holds the session, and is to look for them first.
        is_held: bool,
    },
    /// Changes an option at once.
    SetOption {
        change: OptionChange,
        reply: oneshot::Sender<Result<(), SetOptionError>>,
    },
    /// Requests the record so far of the running loop; `None` if no loop runs.
    OpenLoop(oneshot::Sender<Option<Arc<LoopRecord>>>),
    /// Closes the session; running prompts have been cancelled already.
    Close(oneshot::Sender<()>),
}

/// Option to change.
pub(crate) enum OptionChange {
    Mode(Mode),
    Model(ModelName),
    /// Looks the current model up again: its provider may have stated more about it.
    ReloadModel,
    Thinking(Thinking),
    Protocol(Protocol),
    Title(String),
}

/// Prompt in the queue.
pub(crate) struct QueuedPrompt {
    pub(crate) kind: PromptKind,
    /// Candidates, if the prompt is evaluated under several configurations.
    pub(crate) evaluation: Option<EvaluationRequest>,
    pub(crate) options: PromptOptions,
    /// Tokens that cancel the prompt; `cancels.prompt` is the token of its options.
    pub(crate) cancels: Cancels,
    /// `None` for a prompt made of undelivered interjections.
    pub(crate) reply: Option<oneshot::Sender<Result<PromptResult, PromptError>>>,
    /// Receives the id of the prompt's message.
    pub(crate) inserted: Option<oneshot::Sender<MessageId>>,
    pub(crate) slot: QueueSlot,
    pub(crate) active_guard: CounterGuard,
}

impl QueuedPrompt {
    /// Claims the prompt's queue slot; false if the prompt was withdrawn before.
    pub(crate) fn try_begin(&self) -> bool {
        !(self.options.discard_if_not_started && self.cancels.is_cancelled()) && self.slot.take()
    }
}

/// Candidates of a prompt and the rule that selects one.
pub(crate) struct EvaluationRequest {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) strategy: SelectionStrategy,
}

/// Kind of a prompt.
#[derive(Clone, Debug)]
pub(crate) enum PromptKind {
    /// Sends this content to the model.
    Input(Vec<Content>),
    /// Sends the content that an MCP server generates from one of its prompts.
    McpPrompt {
        /// Name of the MCP prompt as a command.
        command: String,
        /// Its arguments, as typed.
        args: String,
        /// Content appended to it.
        extra_content: Vec<Content>,
    },
    /// Continues without new input.
    Continue,
    /// Reruns this loop, or the last one.
    Rerun(Option<LoopId>),
    /// Branches off at the end of an earlier loop with new input.
    Branch(LoopId, Vec<Content>),
    /// Summarizes older messages.
    Compact,
}

/// Content sent to a running prompt.
pub(crate) struct Interjection {
    pub(crate) delivery: Delivery,
    pub(crate) content: Vec<Content>,
    /// Notified on delivery, if the sender waits for that; dropped if there will be none.
    pub(crate) reply: Option<oneshot::Sender<()>>,
    pub(crate) is_delivered: bool,
    /// Shared cancel token of all prompts when this was sent.
    pub(crate) cancel_all: CancellationToken,
    /// Counts the interjection as pending.
    pub(crate) _pending: CounterGuard,
    /// Counter of open prompts, used if the interjection becomes a prompt.
    pub(crate) active_prompts: SharedCounter,
}

impl Interjection {
    pub(crate) fn mark_delivered(&mut self) {
        self.is_delivered = true;
        if let Some(reply) = self.reply.take() {
            // The receiver may have stopped waiting.
            let _ = reply.send(());
        }
    }

    /// Converts an undelivered interjection to a prompt; `None` if the sender waits for its delivery.
    pub(crate) fn into_prompt(self, options: PromptOptions) -> Option<QueuedPrompt> {
        if self.reply.is_some() {
            return None;
        }
        Some(QueuedPrompt {
            kind: PromptKind::Input(self.content),
            evaluation: None,
            cancels: Cancels {
                prompt: options.cancel.clone(),
                session: self.cancel_all,
            },
            options: PromptOptions {
                sinks: PromptSinks::default(),
                queued: None,
                ..options
            },
            reply: None,
            inserted: None,
            slot: QueueSlot::default(),
            active_guard: self.active_prompts.increment(),
        })
    }
}

/// When an interjection is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// As soon as possible: steering (UP-5).
    Steering,
    /// Once the loop would end: a follow-up (UP-6).
    FollowUp,
}

//! Builds one prompt and runs it to its end, to a sink or as a stream (LASH-53).

use crate::{
    activity_stream::ActivityStream,
    channel_sink::ChannelSink,
    prompt_input::{ImageBlob, PromptInput},
};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::{future::ready, sync::Arc};
use turnery_agent::{
    ActivityLog, ActivitySink, CancellationToken, Candidate, FinishRule, HookCx, Hooks,
    PromptActivity, PromptError, PromptHandle, PromptOptions, PromptResult, PromptSinks, Protocol,
    SelectionStrategy, Session, StartError, ValueSchema, ValueSchemaError,
};
use turnery_engine::{
    Content, HookRequest, HookSet, HookVerdict, LoopId, Outcome, TurnFinish, render_value,
};

/// Activities buffered between a prompt and the reader of its stream.
const STREAM_CAPACITY: usize = 64;

/// Result of a prompt with its activities.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptOutput {
    /// Result of the prompt.
    pub result: PromptResult,
    /// All activities in order, even if the sink failed (LASH-86).
    pub activities: Vec<PromptActivity>,
}

impl PromptOutput {
    /// Returns the value that the prompt ended with, if it did.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match &self.result.outcome {
            Outcome::Finished(..) => self.result.outcome.value(),
            Outcome::FrameSwitch { .. } | Outcome::Stopped(_) => None,
        }
    }

    /// Returns the final text of the prompt, or its final value as text; `None` if it did not finish.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match &self.result.outcome {
            Outcome::Finished(TurnFinish::AssistantMessage { text }, _) => Some(text.to_string()),
            Outcome::Finished(..) | Outcome::FrameSwitch { .. } | Outcome::Stopped(_) => {
                self.value().map(render_value)
            }
        }
    }
}

/// Error of running a prompt, which then has no outcome. The loop that failed was not stored; earlier loops
/// of the same prompt, each in its own frame, were (LASH-33 to 35).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The prompt was not accepted.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The prompt did not begin, or could not be stored.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

/// Builder of a prompt.
#[must_use = "a prompt is started by `run`, `stream_to` or `stream`"]
pub struct PromptBuilder {
    session: Session,
    input: PromptInput,
    action: PromptAction,
    options: PromptOptions,
}

/// Kind of a prompt, with its parameters besides the input.
enum PromptAction {
    Prompt,
    Continue,
    Rerun(Option<LoopId>),
    Branch(LoopId),
    Evaluate(Vec<Candidate>, SelectionStrategy),
}

/// Builds prompts of a session.
pub trait SessionExt {
    /// Returns the builder of a prompt with this input.
    fn new_prompt(&self, input: impl Into<PromptInput>) -> PromptBuilder;

    /// Returns the builder of a prompt that continues without new input; see [`Session::continue_loop`].
    fn new_continuation(&self) -> PromptBuilder;

    /// Returns the builder of a prompt that reruns a loop, by default the last one; see [`Session::rerun`].
    fn new_rerun(&self, which: Option<LoopId>) -> PromptBuilder;

    /// Returns the builder of a prompt that follows an earlier loop; see [`Session::branch`].
    fn new_branch(&self, from: LoopId, input: impl Into<PromptInput>) -> PromptBuilder;

    /// Returns the builder of a prompt that several candidates answer; see [`Session::evaluate`].
    fn new_evaluation(
        &self,
        input: impl Into<PromptInput>,
        candidates: Vec<Candidate>,
        strategy: SelectionStrategy,
    ) -> PromptBuilder;
}

impl SessionExt for Session {
    fn new_prompt(&self, input: impl Into<PromptInput>) -> PromptBuilder {
        PromptBuilder::new(self, PromptAction::Prompt, input.into())
    }

    fn new_continuation(&self) -> PromptBuilder {
        PromptBuilder::new(self, PromptAction::Continue, PromptInput::default())
    }

    fn new_rerun(&self, which: Option<LoopId>) -> PromptBuilder {
        PromptBuilder::new(self, PromptAction::Rerun(which), PromptInput::default())
    }

    fn new_branch(&self, from: LoopId, input: impl Into<PromptInput>) -> PromptBuilder {
        PromptBuilder::new(self, PromptAction::Branch(from), input.into())
    }

    fn new_evaluation(
        &self,
        input: impl Into<PromptInput>,
        candidates: Vec<Candidate>,
        strategy: SelectionStrategy,
    ) -> PromptBuilder {
        let action = PromptAction::Evaluate(candidates, strategy);
        PromptBuilder::new(self, action, input.into())
    }
}

impl PromptBuilder {
    fn new(session: &Session, action: PromptAction, input: PromptInput) -> Self {
        Self {
            session: session.clone(),
            input,
            action,
            options: PromptOptions::default(),
        }
    }

    /// Appends an image to the input. Continuations and reruns have none.
    pub fn image(mut self, name: impl Into<String>, blob: ImageBlob) -> Self {
        self.input = self.input.image(name, blob);
        self
    }

    /// Sets a token that cancels the prompt, running or queued (LASH-91).
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.options.cancel = token;
        self
    }

    /// Sets how the model acts in this prompt: by tool calls, or by code (LASH-5). Code requires a program whose
    /// `main` begins with [`code::init`](crate::code::init); the prompt fails otherwise.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.options.protocol = Some(protocol);
        self
    }

    /// Requires the model to end the prompt with a value (LASH-117). See [`PromptOutput::value`].
    pub fn require_finish(mut self) -> Self {
        self.options.finish = FinishRule::Value;
        self
    }

    /// Requires the model to end the prompt with a value that this JSON Schema accepts (LASH-120). A value that it
    /// rejects goes back to the model with the reasons, within the limits of the prompt. Fails if the schema cannot be
    /// used.
    pub fn require_finish_schema(mut self, schema: Value) -> Result<Self, ValueSchemaError> {
        self.options.finish = FinishRule::ValueOf(Arc::new(ValueSchema::new(schema)?));
        Ok(self)
    }

    /// Lets the model end the prompt with prose or with a value (LASH-118).
    pub fn allow_prose_or_finish(mut self) -> Self {
        self.options.finish = FinishRule::ProseOrValue;
        self
    }

    /// Sets the options, including the cancel token and how the prompt may end.
    pub fn options(mut self, options: PromptOptions) -> Self {
        self.options = options;
        self
    }

    /// Runs the prompt to its end. Dropping the future does not cancel the prompt; its token does.
    pub async fn run(self) -> Result<PromptOutput, RunError> {
        self.start(None)?.wait_for_output().await
    }

    /// Runs the prompt to its end and passes each activity to `sink`. Dropping the future does not cancel the
    /// prompt; its token does.
    pub async fn stream_to(self, sink: Arc<dyn ActivitySink>) -> Result<PromptOutput, RunError> {
        self.start(Some(sink))?.wait_for_output().await
    }

    /// Starts the prompt and returns its activities as a stream. An unread stream blocks the prompt once 64
    /// activities are buffered; a dropped stream neither blocks nor cancels the prompt.
    pub fn stream(self) -> Result<ActivityStream, RunError> {
        let (sink, activities) = ChannelSink::new(STREAM_CAPACITY);
        let started = self.start(Some(Arc::new(sink)))?;
        Ok(ActivityStream::new(activities, started))
    }

    fn start(mut self, sink: Option<Arc<dyn ActivitySink>>) -> Result<StartedPrompt, RunError> {
        let (sinks, log) = PromptSinks::new(sink);
        let takes_input = match self.action {
            PromptAction::Prompt | PromptAction::Branch(_) | PromptAction::Evaluate(..) => true,
            PromptAction::Continue | PromptAction::Rerun(_) => false,
        };
        let content = match self.input.into_content() {
            Ok(content) => content,
            Err(_) if !takes_input => Vec::new(),
            Err(error) => {
                let reason = error.to_string();
                let reject = RejectInvalidInput { reason };
                self.options.hooks.insert(0, Arc::new(reject));
                vec![Content::text(String::new())]
            }
        };
        let (session, mut options) = (self.session, self.options);
        options.sinks = sinks;
        let handle = match self.action {
            PromptAction::Prompt => session.prompt(content, options),
            PromptAction::Continue => session.continue_loop(options),
            PromptAction::Rerun(which) => session.rerun(which, options),
            PromptAction::Branch(from) => session.branch(from, content, options),
            PromptAction::Evaluate(candidates, strategy) => {
                session.evaluate(content, candidates, strategy, options)
            }
        };
        Ok(StartedPrompt {
            handle: handle?,
            log,
        })
    }
}

/// Input hook that runs first and rejects input that could not be converted (C-7) in each loop of the prompt, so
/// that no model is called.
struct RejectInvalidInput {
    reason: String,
}

impl Hooks for RejectInvalidInput {
    fn name(&self) -> &str {
        "input"
    }

    fn hook_set(&self) -> HookSet {
        HookSet {
            input: true,
            ..HookSet::default()
        }
    }

    fn ask_hook<'a>(
        &'a self,
        _cx: &'a HookCx,
        _hook: &'a HookRequest,
    ) -> BoxFuture<'a, HookVerdict> {
        Box::pin(ready(HookVerdict::Stop(self.reason.clone())))
    }
}

/// Started prompt with its activity log.
pub(crate) struct StartedPrompt {
    handle: PromptHandle,
    log: ActivityLog,
}

impl StartedPrompt {
    pub(crate) async fn wait_for_output(self) -> Result<PromptOutput, RunError> {
        let result = self.handle.result().await?;
        Ok(PromptOutput {
            result,
            activities: self.log.take(),
        })
    }
}

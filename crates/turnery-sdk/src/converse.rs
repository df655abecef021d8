//! Runs a model with tools without a session: nothing is stored and no permission is requested.
//!
//! [`generate_text`] returns a text; [`converse`] runs tools until the model has a final answer. To write the
//! loop yourself, use the parts that these functions are made of: [`generate`] calls the model, [`Response`]
//! says whether tools are needed, [`run_tools`] runs them, and the response's messages go into the history
//! (see `examples/tool_loop.rs`).
//!
//! Related modules (JIDO-79): [`turnery_tools::execute`](mod@turnery_tools::execute) for calling tools,
//! [`turnery_engine::response`] and [`crate::Session`] for what a history holds and how messages are
//! projected into it, [`turnery_tools::telemetry`] for watching tools at work.

use std::sync::Arc;
use turnery_engine::{
    LlmMessage, Message, MessageId, ModelError, Response, ResponseLimits, SessionId, ToolSpec,
};
use turnery_models::{Model, ModelEventSender, ModelRequest, Thinking, ToolChoice};
use turnery_tools::{ExecuteOptions, ExecuteScope, Toolbox, run_tools};

/// Default for [`ConverseOptions::max_iterations`].
const MAX_ITERATIONS: u32 = 5;

/// Options of a conversation.
#[derive(Clone, Debug)]
pub struct ConverseOptions {
    /// Maximum number of model calls (JIDO-33).
    pub max_iterations: u32,
    /// Options of every tool call.
    pub tools: ExecuteOptions,
    /// Thinking level.
    pub thinking: Thinking,
}

impl Default for ConverseOptions {
    fn default() -> Self {
        Self {
            max_iterations: MAX_ITERATIONS,
            tools: ExecuteOptions::default(),
            thinking: Thinking::Default,
        }
    }
}

/// Result of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConverseOutput {
    /// Final response (JIDO-35).
    pub response: Response,
    /// Complete history including the final response; the next question can be appended.
    pub messages: Vec<Message>,
    /// Number of tool round trips.
    pub iterations: u32,
}

/// Error of a conversation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConverseError {
    /// The model still requested tools after the last allowed iteration.
    #[error(
        "max_iterations_reached: the model still wants tools after {max} round trips; allow more, \
         or ask for less"
    )]
    MaxIterationsReached {
        /// Allowed iterations.
        max: u32,
    },
    /// The model call failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The name of an offered tool is not in the toolbox.
    #[error("there is no tool {name:?} to offer to the model; the tools are {known}")]
    UnknownTool {
        /// Requested name.
        name: String,
        /// Known tools, comma-separated.
        known: String,
    },
    /// The scope's token was cancelled.
    #[error("the conversation was cancelled")]
    Cancelled,
}

/// Calls a model once with these messages and the named tools (JIDO-1). Leading system messages become its
/// instructions.
pub async fn generate(
    model: &dyn Model,
    messages: &[Message],
    tools: &Toolbox,
    names: &[&str],
) -> Result<Response, ConverseError> {
    let mut offered = Vec::with_capacity(names.len());
    for name in names {
        match tools.get(name) {
            Some(tool) => offered.push(tool.spec()),
            None => {
                let known: Vec<&str> = tools.names().collect();
                return Err(ConverseError::UnknownTool {
                    name: (*name).to_owned(),
                    known: known.join(", "),
                });
            }
        }
    }
    let history = ConverseHistory::from_messages(messages.to_vec());
    let request = history.request(offered.into(), Thinking::Default);
    Ok(call(model, request).await?)
}

/// Asks a model a question and returns the text of its response (JIDO-78).
pub async fn generate_text(model: &dyn Model, question: &str) -> Result<String, ConverseError> {
    let content = vec![turnery_engine::Content::text(question)];
    let messages = [Message::User { content }];
    let response = generate(model, &messages, &Toolbox::new(Vec::new()), &[]).await?;
    Ok(response.text())
}

/// Calls a model, runs the tools it requests and calls it again until it has a final answer (JIDO-78). The
/// tools are those of the options or of the scope. Iterations count from 0, one for each tool round trip
/// (JIDO-34).
pub async fn converse(
    model: &dyn Model,
    messages: Vec<Message>,
    scope: &ExecuteScope,
    options: &ConverseOptions,
) -> Result<ConverseOutput, ConverseError> {
    let specs = scope.select_toolbox(&options.tools).specs();
    let mut history = ConverseHistory::from_messages(messages);
    let mut scope = scope.clone();
    let max = options.max_iterations;
    for iteration in 0..max {
        let request = history.request(Arc::clone(&specs), options.thinking);
        let response = tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Err(ConverseError::Cancelled),
            answered = call(model, request) => answered?,
        };
        history.push(response.assistant_message());
        if !response.needs_tools() {
            return Ok(ConverseOutput {
                response,
                messages: history.into_messages(),
                iterations: iteration,
            });
        }
        scope.origin.iteration = Some(iteration);
        let executed = run_tools(&response, &scope, &options.tools).await;
        for message in executed.tool_messages() {
            history.push(message);
        }
    }
    Err(ConverseError::MaxIterationsReached { max })
}

async fn call(model: &dyn Model, request: ModelRequest) -> Result<Response, ModelError> {
    // The deltas have no reader: a sender without a receiver never waits.
    let (fragments, _) = ModelEventSender::new(1);
    model.call(request, fragments).await.map(Response::settled)
}

/// Messages of a conversation, in the form sent to a model.
struct ConverseHistory {
    session_id: SessionId,
    /// Texts of the leading system messages.
    system: Arc<str>,
    messages: Arc<Vec<Arc<LlmMessage>>>,
    /// Leading system messages, which are not among `messages`.
    instructions: Vec<Message>,
}

impl ConverseHistory {
    fn from_messages(messages: Vec<Message>) -> Self {
        let mut history = Self {
            session_id: turnery_store::new_uuid().to_string().into(),
            system: Arc::from(""),
            messages: Arc::default(),
            instructions: Vec::new(),
        };
        for message in messages {
            match message {
                Message::System { .. } if history.messages.is_empty() => {
                    history.instructions.push(message);
                }
                message => history.push(message),
            }
        }
        let system: Vec<_> = history.instructions.iter().map(Message::text).collect();
        history.system = system.join("\n\n").into();
        history
    }

    fn push(&mut self, message: Message) {
        let messages = Arc::make_mut(&mut self.messages);
        messages.push(Arc::new(LlmMessage {
            message_id: MessageId::from(format!("m{}", messages.len())),
            turn_id: None,
            message,
        }));
    }

    fn request(&self, tools: Arc<[ToolSpec]>, thinking: Thinking) -> ModelRequest {
        ModelRequest {
            session_id: self.session_id.clone(),
            system: Arc::clone(&self.system),
            messages: Arc::clone(&self.messages),
            tools,
            tool_choice: ToolChoice::Auto,
            thinking,
            temperature: None,
            answer_limits: ResponseLimits::default(),
        }
    }

    fn into_messages(self) -> Vec<Message> {
        let others = self.messages.iter().map(|it| it.message.clone());
        self.instructions.into_iter().chain(others).collect()
    }
}

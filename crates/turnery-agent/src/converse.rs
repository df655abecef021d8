//! Converse: a model with tools, without a session: nothing is stored, nobody is asked.
//!
//! [`ask`] is for a text, [`converse`] for an answer that may need tools. Whoever wants the loop in
//! his own hands writes it from the parts that these are made of: [`generate`] calls the model,
//! [`Response`] says whether tools are needed, [`run_tools`] runs them, and the response's messages
//! go into the history (`examples/tool_loop.rs` is such a loop).
//!
//! The neighbours (JIDO-79): [`turnery_tools::execute`](mod@turnery_tools::execute) for calling tools,
//! [`turnery_engine::response`] and [`crate::session`] for what a history holds and how messages are
//! projected into it, [`turnery_tools::observe`] for watching tools at work.

use std::sync::Arc;
use turnery_engine::{
    AnswerLimits, LlmMessage, Message, MessageId, ModelFault, Response, SessionId, ToolSpec,
};
use turnery_models::{DeltaSender, Model, ModelRequest, Thinking};
use turnery_tools::{Options, Scope, Toolbox, run_tools};

/// Tool round trips that a conversation may have unless somebody says otherwise.
const MAX_ITERATIONS: u32 = 5;

/// How a conversation runs.
#[derive(Clone, Debug)]
pub struct ConverseOptions {
    /// How often the model is called at most (JIDO-33).
    pub max_iterations: u32,
    /// For every call of a tool.
    pub tools: Options,
    /// How much the model is to think.
    pub thinking: Thinking,
}

impl Default for ConverseOptions {
    fn default() -> Self {
        Self {
            max_iterations: MAX_ITERATIONS,
            tools: Options::default(),
            thinking: Thinking::Default,
        }
    }
}

/// A conversation that came to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversed {
    /// The final answer (JIDO-35).
    pub response: Response,
    /// The whole history, the final answer included: the next question may be added to it.
    pub messages: Vec<Message>,
    /// How many tool round trips it took.
    pub iterations: u32,
}

/// Why a conversation has no final answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConverseError {
    /// The model wants tools again and again.
    #[error(
        "max_iterations_reached: the model still wants tools after {max} round trips; allow more, \
         or ask for less"
    )]
    MaxIterationsReached {
        /// How many it was allowed.
        max: u32,
    },
    /// The model could not be called.
    #[error(transparent)]
    Model(#[from] ModelFault),
    /// A tool was offered that is not there.
    #[error("there is no tool {name:?} to offer to the model; the tools are {known}")]
    UnknownTool {
        /// Its name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The scope's token fired.
    #[error("the conversation was cancelled")]
    Cancelled,
}

/// Call a model once, with these messages and these of the tools (JIDO-1). System messages at the
/// beginning are its instructions.
pub async fn generate(
    model: &dyn Model,
    messages: &[Message],
    tools: &Toolbox,
    names: &[&str],
) -> Result<Response, ConverseError> {
    let mut offered = Vec::with_capacity(names.len());
    for name in names {
        match tools.get(name) {
            Some(tool) => offered.push(tool.spec().clone()),
            None => {
                let known: Vec<&str> = tools.names().collect();
                return Err(ConverseError::UnknownTool {
                    name: (*name).to_owned(),
                    known: known.join(", "),
                });
            }
        }
    }
    let history = History::of(messages.to_vec());
    let request = history.request(offered.into(), Thinking::Default);
    Ok(call(model, request).await?)
}

/// Ask a model for a text (JIDO-78).
pub async fn ask(model: &dyn Model, question: &str) -> Result<String, ConverseError> {
    let messages = vec![Message::User {
        content: vec![turnery_engine::Content::text(question)],
    }];
    let request = History::of(messages).request(Arc::new([]), Thinking::Default);
    Ok(call(model, request).await?.text())
}

/// Call a model, run the tools that it wants, and call it again, until it has a final answer
/// (JIDO-78). The tools are those of the options or of the scope. Iterations count from 0, one for
/// each tool round trip (JIDO-34).
pub async fn converse(
    model: &dyn Model,
    messages: Vec<Message>,
    scope: &Scope,
    options: &ConverseOptions,
) -> Result<Conversed, ConverseError> {
    let specs = scope.toolbox(&options.tools).specs();
    let mut history = History::of(messages);
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
            return Ok(Conversed {
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

async fn call(model: &dyn Model, request: ModelRequest) -> Result<Response, ModelFault> {
    // Nobody watches the answer grow: a sender without a receiver never waits.
    let (fragments, _) = DeltaSender::new(1);
    model.call(request, fragments).await.map(Response::settled)
}

/// The messages of a conversation, as a model is sent them.
struct History {
    session_id: SessionId,
    system: Arc<str>,
    messages: Arc<Vec<Arc<LlmMessage>>>,
    /// Those at the beginning that became instructions.
    instructions: Vec<Message>,
}

impl History {
    fn of(messages: Vec<Message>) -> Self {
        let mut history = Self {
            session_id: turnery_store::new_uuid().to_string().into(),
            system: Arc::from(""),
            messages: Arc::default(),
            instructions: Vec::new(),
        };
        let mut system = Vec::new();
        for message in messages {
            match message {
                Message::System { text } if history.messages.is_empty() => {
                    system.push(text.clone());
                    history.instructions.push(Message::System { text });
                }
                message => history.push(message),
            }
        }
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
            thinking,
            temperature: None,
            answer: AnswerLimits::default(),
        }
    }

    fn into_messages(self) -> Vec<Message> {
        let said = self.messages.iter().map(|one| one.message.clone());
        self.instructions.into_iter().chain(said).collect()
    }
}

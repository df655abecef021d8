//! Builds one prompt of an embedding application and runs it to its end, to a sink or as a stream (LASH-53).

use crate::{
    activity::TurnActivity,
    hooks::{HookCx, Hooks},
    session::{PromptError, PromptHandle, PromptOptions, PromptResult, Session, StartError},
    sink::{ActivityLog, ActivitySink, ChannelSink, PromptSinks},
    turn_stream::TurnStream,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::BoxFuture;
use std::{
    collections::HashMap,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio_util::sync::CancellationToken;
use turnery_engine::{Content, HookRequest, HookSet, HookVerdict, ImageData};

/// Activities buffered between a prompt and the reader of its stream.
const STREAM_CAPACITY: usize = 64;
/// Maximum length of an image name. Unit: bytes.
const MAX_IMAGE_NAME_BYTES: usize = 256;

/// Input of a prompt: text, and images referenced by name (LASH-37). Text is passed on verbatim: an
/// application that lets `@path` mean a file inserts the file's text itself (LASH-38, LASH-40).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnInput {
    /// Pieces of the input, in order.
    pub items: Vec<InputItem>,
    /// Images referenced by the pieces (LASH-41).
    pub image_blobs: HashMap<String, ImageBlob>,
}

/// Piece of a [`TurnInput`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputItem {
    /// Text for the model (LASH-39).
    Text(String),
    /// Name of an image in [`TurnInput::image_blobs`].
    ImageRef(String),
}

/// Image data with its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBlob {
    /// Media type, for example `image/png`.
    pub mime_type: String,
    /// Encoded image.
    pub bytes: Vec<u8>,
}

/// Error of invalid input. A prompt with such input ends as `Stopped(InvalidInput)` (LASH-16).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The input contains neither text nor an image.
    #[error("the input is empty: give it some text or an image")]
    Empty,
    /// The image name is malformed.
    #[error("{0:?} is not a valid image name: use 1 to 256 characters without spaces")]
    MalformedRef(String),
    /// No image of that name was supplied.
    #[error("the input refers to the image {0:?}, which is missing: add it to image_blobs")]
    MissingBlob(String),
    /// The data is empty or its media type is not an image type.
    #[error(
        "the image {name:?} is of type {mime_type:?} and {size} bytes long, which is not a valid image"
    )]
    NotAnImage {
        /// Name of the image.
        name: String,
        /// Declared media type.
        mime_type: String,
        /// Size. Unit: bytes.
        size: usize,
    },
}

impl TurnInput {
    /// Creates an input of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            items: vec![InputItem::Text(text.into())],
            image_blobs: HashMap::new(),
        }
    }

    /// Appends an image.
    #[must_use]
    pub fn image(mut self, name: impl Into<String>, blob: ImageBlob) -> Self {
        let name = name.into();
        self.items.push(InputItem::ImageRef(name.clone()));
        self.image_blobs.insert(name, blob);
        self
    }

    /// Converts the input to message content, images with their media type (LASH-42).
    pub fn content(self) -> Result<Vec<Content>, InputError> {
        let mut images: HashMap<String, ImageData> = HashMap::new();
        let mut content = Vec::with_capacity(self.items.len());
        for item in self.items {
            content.push(match item {
                InputItem::Text(text) if text.is_empty() => continue,
                InputItem::Text(text) => Content::Text { text },
                InputItem::ImageRef(name) => {
                    if let Some(image) = images.get(&name) {
                        content.push(Content::Image(image.clone()));
                        continue;
                    }
                    let image = encode_image(&name, &self.image_blobs)?;
                    images.insert(name, image.clone());
                    Content::Image(image)
                }
            });
        }
        match content.is_empty() {
            true => Err(InputError::Empty),
            false => Ok(content),
        }
    }
}

fn encode_image(name: &str, blobs: &HashMap<String, ImageBlob>) -> Result<ImageData, InputError> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > MAX_IMAGE_NAME_BYTES || name.contains(is_odd) {
        return Err(InputError::MalformedRef(name.to_owned()));
    }
    let blob = blobs
        .get(name)
        .ok_or_else(|| InputError::MissingBlob(name.to_owned()))?;
    if blob.bytes.is_empty() || !blob.mime_type.starts_with("image/") {
        return Err(InputError::NotAnImage {
            name: name.to_owned(),
            mime_type: blob.mime_type.clone(),
            size: blob.bytes.len(),
        });
    }
    Ok(ImageData {
        mime_type: blob.mime_type.clone(),
        base64: STANDARD.encode(&blob.bytes).into(),
    })
}

/// Result of a prompt with its activities.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptOutput {
    /// Result of the prompt.
    pub result: PromptResult,
    /// All activities in order, even if the sink failed (LASH-86).
    pub activities: Vec<TurnActivity>,
}

/// Error of a prompt that has no outcome: none of it was stored (LASH-33 to 35).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// The prompt was not accepted.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The prompt did not begin, or could not be stored.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

/// Builder of a prompt.
#[must_use = "a prompt is started by `run`, `stream_to` or `stream`"]
pub struct TurnBuilder {
    session: Session,
    input: TurnInput,
    options: PromptOptions,
}

impl Session {
    /// Prepares a prompt.
    pub fn turn(&self, input: TurnInput) -> TurnBuilder {
        TurnBuilder {
            session: self.clone(),
            input,
            options: PromptOptions::default(),
        }
    }
}

impl TurnBuilder {
    /// Appends an image to the input.
    pub fn image(mut self, name: impl Into<String>, blob: ImageBlob) -> Self {
        self.input = self.input.image(name, blob);
        self
    }

    /// Sets a token that cancels the prompt, running or queued (LASH-91).
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.options.cancel = token;
        self
    }

    /// Sets the options, including the cancel token.
    pub fn options(mut self, options: PromptOptions) -> Self {
        self.options = options;
        self
    }

    /// Runs the prompt to its end. Dropping the future does not cancel the prompt; its token does.
    pub async fn run(self) -> Result<PromptOutput, TurnError> {
        self.start(None)?.wait_for_output().await
    }

    /// Runs the prompt to its end and passes each activity to `sink`. Dropping the future does not cancel the
    /// prompt; its token does.
    pub async fn stream_to(self, sink: Arc<dyn ActivitySink>) -> Result<PromptOutput, TurnError> {
        self.start(Some(sink))?.wait_for_output().await
    }

    /// Starts the prompt and returns its activities as a stream. An unread stream blocks the prompt once 64
    /// activities are buffered; a dropped stream neither blocks nor cancels the prompt.
    pub fn stream(self) -> Result<TurnStream, TurnError> {
        let (sink, activities) = ChannelSink::new(STREAM_CAPACITY);
        let started = self.start(Some(Arc::new(sink)))?;
        Ok(TurnStream::new(activities, started))
    }

    fn start(mut self, sink: Option<Arc<dyn ActivitySink>>) -> Result<StartedPrompt, TurnError> {
        let (listener, gathered) = PromptSinks::new(sink);
        let content = self.input.content().unwrap_or_else(|fault| {
            self.options
                .hooks
                .insert(0, Arc::new(RejectInvalidInput::of(&fault)));
            vec![Content::text(String::new())]
        });
        let ticket = self.session.listen(content, self.options, listener)?;
        Ok(StartedPrompt { ticket, gathered })
    }
}

/// Input hook that runs first and rejects input that could not be converted (C-7), so that no model is
/// called.
struct RejectInvalidInput {
    reason: String,
    /// Set after the first rejection: later interjections pass.
    is_said: AtomicBool,
}

impl RejectInvalidInput {
    fn of(fault: &InputError) -> Self {
        Self {
            reason: fault.to_string(),
            is_said: AtomicBool::new(false),
        }
    }
}

impl Hooks for RejectInvalidInput {
    fn name(&self) -> &str {
        "input"
    }

    fn set(&self) -> HookSet {
        HookSet {
            input: true,
            ..HookSet::default()
        }
    }

    fn ask<'a>(&'a self, _cx: &'a HookCx, _hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        let verdict = match self.is_said.swap(true, Ordering::Relaxed) {
            false => HookVerdict::Stop(self.reason.clone()),
            true => HookVerdict::Continue,
        };
        Box::pin(ready(verdict))
    }
}

/// Started prompt with its activity log.
pub(crate) struct StartedPrompt {
    ticket: PromptHandle,
    gathered: ActivityLog,
}

impl StartedPrompt {
    /// Waits for the result of the prompt.
    pub(crate) async fn wait_for_output(self) -> Result<PromptOutput, TurnError> {
        let result = self.ticket.result().await?;
        Ok(PromptOutput {
            result,
            activities: self.gathered.take(),
        })
    }
}

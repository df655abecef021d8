//! Turn builder: one prompt of an application, and the three ways to follow it (LASH-53).

use crate::{
    ActivitySink, CancellationToken, ChannelSink, HookCx, Hooks, PromptError, PromptOptions,
    PromptResult, Session, StartError, Ticket, TurnActivity, TurnStream,
    sink::{Gathered, Listener},
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
use turnery_engine::{Content, Hook, HookSet, HookVerdict, ImageData};

/// Activities that may wait between a prompt and whoever reads its stream.
const STREAM_ROOM: usize = 64;
/// The longest name of an image. Unit: bytes.
const LONGEST_NAME: usize = 256;

/// What is said to the model: text, and images by name (LASH-37). Text is taken as it is: whoever wants
/// `@path` to mean a file puts the file's text there (LASH-38, LASH-40).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnInput {
    /// The pieces, in order.
    pub items: Vec<InputItem>,
    /// The images that the pieces name (LASH-41).
    pub image_blobs: HashMap<String, ImageBlob>,
}

/// A piece of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputItem {
    /// Text for the model (LASH-39).
    Text(String),
    /// An image of [`TurnInput::image_blobs`], by its name there.
    ImageRef(String),
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBlob {
    /// For example `image/png`.
    pub mime_type: String,
    /// The file's bytes.
    pub bytes: Vec<u8>,
}

/// Input that cannot be brought into shape. A prompt with such input ends as `Stopped(InvalidInput)`
/// (LASH-16).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// Nothing is in it.
    #[error("the input is empty: give it some text or an image")]
    Empty,
    /// A name that no image can have.
    #[error(
        "{0:?} is not a name of an image: take 1 to 256 letters, digits or signs, without spaces"
    )]
    MalformedRef(String),
    /// There is no image of that name.
    #[error("the input names the image {0:?} but does not bring it: put it into image_blobs")]
    MissingBlob(String),
    /// It is there and is no image.
    #[error("the image {name:?} is of type {mime_type:?} and {size} bytes long, which is no image")]
    NotAnImage {
        /// Its name.
        name: String,
        /// What it says it is.
        mime_type: String,
        /// Unit: bytes.
        size: usize,
    },
}

impl TurnInput {
    /// This text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            items: vec![InputItem::Text(text.into())],
            image_blobs: HashMap::new(),
        }
    }

    /// With one more image at its end.
    #[must_use]
    pub fn image(mut self, name: impl Into<String>, blob: ImageBlob) -> Self {
        let name = name.into();
        self.items.push(InputItem::ImageRef(name.clone()));
        self.image_blobs.insert(name, blob);
        self
    }

    /// What a message holds: pictures with their type (LASH-42).
    pub fn content(self) -> Result<Vec<Content>, InputFault> {
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
                    let image = picture(&name, &self.image_blobs)?;
                    images.insert(name, image.clone());
                    Content::Image(image)
                }
            });
        }
        match content.is_empty() {
            true => Err(InputFault::Empty),
            false => Ok(content),
        }
    }
}

fn picture(name: &str, blobs: &HashMap<String, ImageBlob>) -> Result<ImageData, InputFault> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > LONGEST_NAME || name.contains(is_odd) {
        return Err(InputFault::MalformedRef(name.to_owned()));
    }
    let blob = blobs
        .get(name)
        .ok_or_else(|| InputFault::MissingBlob(name.to_owned()))?;
    if blob.bytes.is_empty() || !blob.mime_type.starts_with("image/") {
        return Err(InputFault::NotAnImage {
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

/// What came of a prompt, with all that was shown of it on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptOutput {
    /// What came of it.
    pub result: PromptResult,
    /// Its activities, in order: all of them, whatever became of the sink (LASH-86).
    pub activities: Vec<TurnActivity>,
}

/// A prompt that has no outcome: nothing of it was stored (LASH-33 to 35).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// It was not accepted.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It was not begun, or it was lost.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

/// A prompt before it is started.
#[must_use = "a prompt is started by `run`, `stream_to` or `stream`"]
pub struct TurnBuilder {
    session: Session,
    input: TurnInput,
    options: PromptOptions,
}

impl Session {
    /// Prepare a prompt.
    pub fn turn(&self, input: TurnInput) -> TurnBuilder {
        TurnBuilder {
            session: self.clone(),
            input,
            options: PromptOptions::default(),
        }
    }
}

impl TurnBuilder {
    /// With one more image at the end of the input.
    pub fn image(mut self, name: impl Into<String>, blob: ImageBlob) -> Self {
        self.input = self.input.image(name, blob);
        self
    }

    /// With a token of the caller's: once it fires, the prompt is cancelled, running or waiting (LASH-91).
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.options.cancel = token;
        self
    }

    /// With options of its own, a token among them.
    pub fn options(mut self, options: PromptOptions) -> Self {
        self.options = options;
        self
    }

    /// Run it to its end. Dropping the future does not cancel the prompt; its token does.
    pub async fn run(self) -> Result<PromptOutput, TurnError> {
        self.start(None)?.output().await
    }

    /// Run it to its end, and give each activity to the sink on the way. Dropping the future does not
    /// cancel the prompt; its token does.
    pub async fn stream_to(self, sink: Arc<dyn ActivitySink>) -> Result<PromptOutput, TurnError> {
        self.start(Some(sink))?.output().await
    }

    /// Start it, and give its activities to whoever asks for them. A stream that is not read holds the
    /// prompt back once 64 activities wait; one that is dropped does not, and cancels nothing.
    pub fn stream(self) -> Result<TurnStream, TurnError> {
        let (sink, activities) = ChannelSink::new(STREAM_ROOM);
        let started = self.start(Some(Arc::new(sink)))?;
        Ok(TurnStream::new(activities, started))
    }

    fn start(mut self, sink: Option<Arc<dyn ActivitySink>>) -> Result<Started, TurnError> {
        let (listener, gathered) = Listener::new(sink);
        let content = self.input.content().unwrap_or_else(|fault| {
            self.options.hooks.insert(0, Arc::new(Refusal::of(&fault)));
            vec![Content::text(String::new())]
        });
        let ticket = self.session.listen(content, self.options, listener)?;
        Ok(Started { ticket, gathered })
    }
}

/// The first of all input filters (C-7): what cannot be brought into shape is refused like all else that
/// is refused, and no model is called.
struct Refusal {
    reason: String,
    /// It refuses the prompt, and not what is said to it later.
    is_said: AtomicBool,
}

impl Refusal {
    fn of(fault: &InputFault) -> Self {
        Self {
            reason: fault.to_string(),
            is_said: AtomicBool::new(false),
        }
    }
}

impl Hooks for Refusal {
    fn name(&self) -> &str {
        "input"
    }

    fn set(&self) -> HookSet {
        HookSet {
            input: true,
            ..HookSet::default()
        }
    }

    fn ask<'a>(&'a self, _cx: &'a HookCx, _hook: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        let verdict = match self.is_said.swap(true, Ordering::Relaxed) {
            false => HookVerdict::Stop(self.reason.clone()),
            true => HookVerdict::Go,
        };
        Box::pin(ready(verdict))
    }
}

/// A prompt that has been started.
pub(crate) struct Started {
    ticket: Ticket,
    gathered: Gathered,
}

impl Started {
    /// The end of the prompt.
    pub(crate) async fn output(self) -> Result<PromptOutput, TurnError> {
        let result = self.ticket.result().await?;
        Ok(PromptOutput {
            result,
            activities: self.gathered.take(),
        })
    }
}

//! Defines the input of a prompt.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::collections::HashMap;
use turnery_engine::{Content, ImageData};

/// Maximum length of an image name. Unit: bytes.
const MAX_IMAGE_NAME_BYTES: usize = 256;

/// Input of a prompt: text, and images referenced by name (LASH-37). Text is passed on verbatim: an
/// application that lets `@path` mean a file inserts the file's text itself (LASH-38, LASH-40).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptInput {
    /// Pieces of the input, in order.
    pub items: Vec<InputItem>,
    /// Images referenced by the pieces (LASH-41).
    pub image_blobs: HashMap<String, ImageBlob>,
}

/// Piece of a [`PromptInput`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputItem {
    /// Text for the model (LASH-39).
    Text(String),
    /// Name of an image in [`PromptInput::image_blobs`].
    ImageRef(String),
}

/// Image data with its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBlob {
    /// Media type, for example `image/png`.
    pub mime_type: String,
    /// Content of the image file, for example of a PNG; not base64.
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

impl<T: Into<String>> From<T> for PromptInput {
    fn from(text: T) -> Self {
        Self::text(text)
    }
}

impl PromptInput {
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
    pub fn into_content(self) -> Result<Vec<Content>, InputError> {
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

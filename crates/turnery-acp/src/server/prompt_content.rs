//! Converts the content blocks of a prompt to content for the model.

use crate::{server::rpc_error::RpcError, view::code_fence::code_fence};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use turnery_engine::{AudioData, AudioFormat, Content, DocumentData, ImageData};

/// Characters of a path that are encoded in a URI.
const ENCODED_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Content of a prompt as the model receives it.
pub(crate) struct PromptContent {
    pub(crate) content: Vec<Content>,
    /// For each item of `content`, true if it was a text block, and not text made of another block such as a file.
    pub(crate) is_text: Vec<bool>,
}

/// Defines the parser for the content blocks of a version, `v1` or `v2`.
macro_rules! define_prompt_parser {
    ($version:ident) => {
        use crate::server::{
            prompt_content::{self, PromptContent},
            rpc_error::RpcError,
        };
        use agent_client_protocol_schema::$version::{
            ContentBlock, EmbeddedResource, EmbeddedResourceResource,
        };
        use turnery_engine::Content;

        /// Converts the blocks of a prompt; rejects an empty prompt.
        pub(crate) fn parse_prompt(blocks: Vec<ContentBlock>) -> Result<PromptContent, RpcError> {
            if blocks.is_empty() {
                return Err(RpcError::invalid_params(
                    "prompt is empty: send at least one block of text.",
                ));
            }
            let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
            Ok(PromptContent {
                is_text: blocks.iter().map(is_text).collect(),
                content: blocks
                    .into_iter()
                    .map(parse_block)
                    .collect::<Result<_, _>>()?,
            })
        }

        fn parse_block(block: ContentBlock) -> Result<Content, RpcError> {
            match block {
                ContentBlock::Text(text) => Ok(Content::text(text.text)),
                ContentBlock::Image(image) => {
                    prompt_content::parse_image(image.mime_type.to_string(), image.data)
                }
                ContentBlock::ResourceLink(link) => {
                    Ok(prompt_content::render_resource_link(&link.name, &link.uri))
                }
                ContentBlock::Resource(resource) => parse_resource(resource),
                ContentBlock::Audio(audio) => {
                    prompt_content::parse_audio(audio.mime_type.to_string(), audio.data)
                }
                _ => Err(prompt_content::unknown_block_error()),
            }
        }

        fn parse_resource(resource: EmbeddedResource) -> Result<Content, RpcError> {
            match resource.resource {
                EmbeddedResourceResource::TextResourceContents(it) => {
                    Ok(prompt_content::render_embedded_text(it.uri, &it.text))
                }
                EmbeddedResourceResource::BlobResourceContents(it) => {
                    let kind = it.mime_type.map(|kind| kind.to_string());
                    prompt_content::parse_embedded_blob(it.uri, kind, it.blob)
                }
                _ => Ok(prompt_content::unknown_resource_content()),
            }
        }
    };
}

pub(crate) use define_prompt_parser;

/// Returns the error for a block of unknown type.
pub(crate) fn unknown_block_error() -> RpcError {
    RpcError::invalid_params(
        "prompt holds a block of an unknown type: send text, image, audio, resource or resource_link.",
    )
}

/// Parses an image. Invalid images are rejected here: in the conversation, one would make the provider reject
/// every later prompt too (PROMPT-10).
pub(crate) fn parse_image(mime_type: String, base64: String) -> Result<Content, RpcError> {
    if !ImageData::SUPPORTED_MIME_TYPES.contains(&&*mime_type) {
        return Err(RpcError::invalid_params(format!(
            "prompt holds an image of type {mime_type:?}: send one of {}.",
            ImageData::SUPPORTED_MIME_TYPES.join(", ")
        )));
    }
    if !is_base64(&base64) {
        return Err(RpcError::invalid_params(
            "prompt holds an image whose data is not base64, or is empty.",
        ));
    }
    Ok(Content::Image(ImageData {
        mime_type,
        base64: base64.into(),
    }))
}

/// Parses audio; rejects invalid audio like [`parse_image`]. Support by the model is checked later
/// (PROMPT-2).
pub(crate) fn parse_audio(mime_type: String, base64: String) -> Result<Content, RpcError> {
    if AudioFormat::from_mime_type(&mime_type).is_none() {
        return Err(RpcError::invalid_params(format!(
            "prompt holds audio of type {mime_type:?}: send audio/wav or audio/mpeg."
        )));
    }
    if !is_base64(&base64) {
        return Err(RpcError::invalid_params(
            "prompt holds audio whose data is not base64, or is empty.",
        ));
    }
    Ok(Content::Audio(AudioData {
        mime_type,
        base64: base64.into(),
    }))
}

/// Checks for base64 in the standard alphabet, padded and on one line.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len() - digits.len() <= 2
        && text.len().is_multiple_of(4)
        && !digits.is_empty()
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Renders a resource link: a file by its path, so that tools can use it, anything else as a link.
pub(crate) fn render_resource_link(name: &str, uri: &str) -> Content {
    Content::text(match file_path_from_uri(uri) {
        Some(path) => format!("[{name}]({path})"),
        None => format!("[{name}]({uri})"),
    })
}

/// Renders an embedded text.
pub(crate) fn render_embedded_text(uri: String, text: &str) -> Content {
    let name = file_path_from_uri(&uri).unwrap_or(uri);
    let fence = code_fence(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Content::text(format!("{name}\n{fence}\n{text}{end}{fence}"))
}

/// Parses a document, and rejects invalid ones like [`parse_image`]. A model that takes none gets a note instead.
fn parse_document(uri: String, mime_type: String, base64: String) -> Result<Content, RpcError> {
    if !is_base64(&base64) {
        return Err(RpcError::invalid_params(
            "prompt holds a document whose data is not base64, or is empty.",
        ));
    }
    Ok(Content::Document(DocumentData {
        name: file_path_from_uri(&uri).unwrap_or(uri),
        mime_type,
        base64: base64.into(),
    }))
}

/// Parses an embedded blob: an image, a document, or a mention of anything else.
pub(crate) fn parse_embedded_blob(
    uri: String,
    kind: Option<String>,
    base64: String,
) -> Result<Content, RpcError> {
    Ok(match kind {
        Some(kind) if ImageData::SUPPORTED_MIME_TYPES.contains(&&*kind) => {
            return parse_image(kind, base64);
        }
        Some(kind) if kind == DocumentData::PDF_MIME_TYPE => {
            return parse_document(uri, kind, base64);
        }
        kind => Content::text(format!(
            "{} (binary{}, {} bytes; its content was not passed on)",
            file_path_from_uri(&uri).unwrap_or(uri),
            kind.map(|kind| format!(", {kind}")).unwrap_or_default(),
            base64.len() / 4 * 3,
        )),
    })
}

/// Returns the placeholder for an embedded resource of unknown type.
pub(crate) fn unknown_resource_content() -> Content {
    Content::text("(a resource of unknown type was not passed on)")
}

/// Returns the URI of a document: of its path if it is a file.
pub(crate) fn document_uri(name: &str) -> String {
    match name.starts_with('/') {
        true => format!("file://{}", utf8_percent_encode(name, ENCODED_IN_PATHS)),
        false => name.to_owned(),
    }
}

/// Returns the path of a local `file://` URI, percent-decoded.
fn file_path_from_uri(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    let path = percent_decode_str(path).decode_utf8().ok()?;
    Some(match fragment.is_empty() {
        true => path.into_owned(),
        false => format!("{path}#{fragment}"),
    })
}

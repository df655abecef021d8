//! Converts a server's results to content for the model. Bounded; unsupported parts are named instead.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};
use serde_json::Value;
use turnery_engine::{
    AudioData, AudioFormat, Content, DocumentData, ImageData, ToolEnvelope, ToolErrorKind,
};

/// Larger images and recordings are omitted, as in the strictest model API. Unit: bytes of base64.
const MAX_MEDIA_BYTES: usize = 5 << 20;
/// A larger structured result is omitted; its text is kept. Unit: bytes of JSON.
const MAX_STRUCTURED_BYTES: usize = 256 << 10;
/// Maximum number of items of one result.
const MAX_ITEMS: usize = 200;

/// Converts a server's response to a `tools/call` request to a tool envelope.
pub(super) fn response_to_envelope(answer: ServerResult) -> ToolEnvelope {
    match answer {
        ServerResult::CallToolResult(result) => result_to_envelope(result),
        // A result that violates the protocol may still be useful as text.
        ServerResult::CustomResult(other) => ToolEnvelope::text(other.0.to_string()),
        _ => ToolEnvelope::failed(
            ToolErrorKind::ExecutionError,
            "the MCP server's response is not a tool result",
        ),
    }
}

fn result_to_envelope(result: CallToolResult) -> ToolEnvelope {
    let mut content = convert_blocks(result.content);
    if content.is_empty()
        && let Some(value) = &result.structured_content
    {
        content.push(Content::text(value.to_string()));
    }
    if result.is_error == Some(true) {
        let texts = content.iter().filter_map(Content::as_text);
        let text = texts.collect::<Vec<_>>().join("\n");
        let text = match text.is_empty() {
            true => "the tool failed and did not say why",
            false => &text,
        };
        return ToolEnvelope::failed(ToolErrorKind::ExecutionError, text);
    }
    ToolEnvelope {
        value: result.structured_content.filter(is_structured_value_small),
        ..ToolEnvelope::ok(content)
    }
}

fn is_structured_value_small(value: &Value) -> bool {
    value.to_string().len() <= MAX_STRUCTURED_BYTES
}

/// Converts the blocks of a result or of a prompt.
pub(super) fn convert_blocks(blocks: Vec<ContentBlock>) -> Vec<Content> {
    let count = blocks.len();
    let mut all: Vec<Content> = blocks
        .into_iter()
        .take(MAX_ITEMS)
        .map(convert_block)
        .collect();
    if count > MAX_ITEMS {
        all.push(Content::text(format!(
            "[{} items are left out]",
            count - MAX_ITEMS
        )));
    }
    all
}

fn convert_block(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::text(text.text),
        ContentBlock::Image(image) => {
            media_content(image.mime_type, image.data).unwrap_or_else(Content::text)
        }
        ContentBlock::Audio(audio) => {
            media_content(audio.mime_type, audio.data).unwrap_or_else(Content::text)
        }
        ContentBlock::Resource(resource) => convert_resource(resource.resource),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.map(|about| format!(": {about}"));
            let about = about.unwrap_or_default();
            Content::text(format!("[{}]({}){about}", link.name, link.uri))
        }
        // `ContentBlock` is non-exhaustive.
        _ => Content::text("[content of an unknown type]"),
    }
}

/// Converts a resource to content: text below its URI, a supported image, recording or document, or else a note that
/// names the data.
pub(super) fn convert_resource(resource: ResourceContents) -> Content {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            Content::text(format!("{uri}\n{text}"))
        }
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let kind = mime_type.unwrap_or_else(|| "binary".to_owned());
            if kind == DocumentData::PDF_MIME_TYPE && is_acceptable_media(&blob) {
                return Content::Document(DocumentData {
                    name: uri,
                    mime_type: kind,
                    base64: blob.into(),
                });
            }
            media_content(kind, blob).unwrap_or_else(|note| Content::text(format!("{uri} {note}")))
        }
        // `ResourceContents` is non-exhaustive.
        _ => Content::text("[a resource of an unknown type]"),
    }
}

/// Converts an image or a recording.
///
/// # Errors
///
/// A note to show instead if the type is unknown or the data are invalid: the model API would reject every later
/// request that contains them.
fn media_content(mime_type: String, base64: String) -> Result<Content, String> {
    let is_image = ImageData::SUPPORTED_MIME_TYPES.contains(&&*mime_type);
    let is_known = is_image || AudioFormat::from_mime_type(&mime_type).is_some();
    if !is_known || !is_acceptable_media(&base64) {
        return Err(omitted_note(&mime_type, &base64));
    }
    let base64 = base64.into();
    Ok(match is_image {
        true => Content::Image(ImageData { mime_type, base64 }),
        false => Content::Audio(AudioData { mime_type, base64 }),
    })
}

fn is_acceptable_media(base64: &str) -> bool {
    !base64.is_empty() && base64.len() <= MAX_MEDIA_BYTES && STANDARD.decode(base64).is_ok()
}

fn omitted_note(kind: &str, base64: &str) -> String {
    let bytes = base64.len() / 4 * 3;
    format!("[{kind}, about {bytes} bytes, not passed on]")
}

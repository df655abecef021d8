//! Result: what a server answers, as what a model reads. Bounded; what no model takes is named instead.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};
use serde_json::Value;
use turnery_engine::{AudioData, AudioFormat, Content, FailureKind, ImageData, ToolEnvelope};

/// Larger images and recordings are not passed on. Unit: bytes of base64; what the strictest model API takes.
const LARGEST: usize = 5 << 20;
/// A larger structured result is not kept beside the text. Unit: bytes of JSON.
const LARGEST_VALUE: usize = 256 << 10;
/// Items of one result that are passed on.
const MOST: usize = 200;

/// What came of a tool call.
pub(super) fn of_call(answer: ServerResult) -> ToolEnvelope {
    match answer {
        ServerResult::CallToolResult(result) => envelope(result),
        // A result that does not quite follow the protocol says something all the same.
        ServerResult::CustomResult(other) => ToolEnvelope::text(other.0.to_string()),
        _ => ToolEnvelope::failed(
            FailureKind::ExecutionError,
            "the MCP server answered with something that is no result of a tool",
        ),
    }
}

fn envelope(result: CallToolResult) -> ToolEnvelope {
    let mut content = contents(result.content);
    if content.is_empty()
        && let Some(value) = &result.structured_content
    {
        content.push(Content::text(value.to_string()));
    }
    if result.is_error == Some(true) {
        let text = text(&content);
        let text = match text.is_empty() {
            true => "the tool failed and did not say why",
            false => &text,
        };
        return ToolEnvelope::failed(FailureKind::ExecutionError, text);
    }
    ToolEnvelope {
        value: result.structured_content.filter(is_small),
        ..ToolEnvelope::ok(content)
    }
}

fn is_small(value: &Value) -> bool {
    value.to_string().len() <= LARGEST_VALUE
}

fn text(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|item| match item {
        Content::Text { text } => Some(text.as_str()),
        Content::Image(_)
        | Content::Audio(_)
        | Content::Thinking { .. }
        | Content::ToolCall(_)
        | Content::Opaque { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Blocks of a result or of a prompt.
pub(super) fn contents(blocks: Vec<ContentBlock>) -> Vec<Content> {
    let count = blocks.len();
    let mut all: Vec<Content> = blocks.into_iter().take(MOST).map(block).collect();
    if count > MOST {
        all.push(Content::text(format!(
            "[{} items are left out]",
            count - MOST
        )));
    }
    all
}

fn block(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::text(text.text),
        ContentBlock::Image(image) => picture(image.mime_type, image.data),
        ContentBlock::Audio(audio) => recording(audio.mime_type, audio.data),
        ContentBlock::Resource(resource) => resource_contents(resource.resource),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.map(|about| format!(": {about}"));
            let about = about.unwrap_or_default();
            Content::text(format!("[{}]({}){about}", link.name, link.uri))
        }
        // The enum may grow.
        _ => Content::text("[something of an unknown sort]"),
    }
}

/// The text of a resource, headed by where it is from.
pub(super) fn resource_contents(resource: ResourceContents) -> Content {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            Content::text(format!("{uri}\n{text}"))
        }
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => match mime_type {
            Some(kind) if ImageData::TYPES.contains(&&*kind) => picture(kind, blob),
            Some(kind) if AudioFormat::of(&kind).is_some() => recording(kind, blob),
            kind => {
                let kind = kind.unwrap_or_else(|| "binary".to_owned());
                match not_passed_on(&kind, &blob) {
                    Content::Text { text } => Content::text(format!("{uri} {text}")),
                    other => other,
                }
            }
        },
        // The enum may grow.
        _ => Content::text("[a resource of an unknown sort]"),
    }
}

/// An image that cannot be one would make the model API refuse every later prompt as well.
fn picture(mime_type: String, base64: String) -> Content {
    match ImageData::TYPES.contains(&&*mime_type) && is_passed_on(&base64) {
        true => Content::Image(ImageData {
            mime_type,
            base64: base64.into(),
        }),
        false => not_passed_on(&mime_type, &base64),
    }
}

/// Of a recording the same holds.
fn recording(mime_type: String, base64: String) -> Content {
    match AudioFormat::of(&mime_type).is_some() && is_passed_on(&base64) {
        true => Content::Audio(AudioData {
            mime_type,
            base64: base64.into(),
        }),
        false => not_passed_on(&mime_type, &base64),
    }
}

fn is_passed_on(base64: &str) -> bool {
    !base64.is_empty() && base64.len() <= LARGEST && STANDARD.decode(base64).is_ok()
}

fn not_passed_on(kind: &str, base64: &str) -> Content {
    let bytes = base64.len() / 4 * 3;
    Content::text(format!("[{kind}, about {bytes} bytes, not passed on]"))
}

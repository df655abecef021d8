//! Content: the blocks of a prompt, turned into what a model reads.

use crate::fault::Fault;
use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResource, EmbeddedResourceResource};
use turnery_engine::{AudioData, AudioFormat, Content, ImageData};

/// A prompt from the wire (PROMPT-1, PROMPT-2).
pub(crate) fn from_wire(blocks: Vec<ContentBlock>) -> Result<Vec<Content>, Fault> {
    each(blocks, block)
}

/// All blocks of a prompt, of which there is one at least.
pub(crate) fn each<B>(
    blocks: Vec<B>,
    block: fn(B) -> Result<Content, Fault>,
) -> Result<Vec<Content>, Fault> {
    if blocks.is_empty() {
        return Err(Fault::params(
            "prompt is empty: send at least one block of text.",
        ));
    }
    blocks.into_iter().map(block).collect()
}

fn block(block: ContentBlock) -> Result<Content, Fault> {
    match block {
        ContentBlock::Text(text) => Ok(Content::text(text.text)),
        ContentBlock::Image(image) => picture(image.mime_type, image.data),
        ContentBlock::ResourceLink(link) => Ok(mention(&link.name, &link.uri)),
        ContentBlock::Resource(resource) => embedded(resource),
        ContentBlock::Audio(audio) => recording(audio.mime_type, audio.data),
        _ => Err(unknown()),
    }
}

/// A block of a type that nobody knows.
pub(crate) fn unknown() -> Fault {
    Fault::params(
        "prompt holds a block of an unknown type: send text, image, audio, resource or resource_link.",
    )
}

/// An image is refused here unless it can be one: in the conversation it would make the provider
/// refuse every later prompt as well (PROMPT-10).
pub(crate) fn picture(mime_type: String, base64: String) -> Result<Content, Fault> {
    if !ImageData::TYPES.contains(&&*mime_type) {
        return Err(Fault::params(format!(
            "prompt holds an image of type {mime_type:?}: send one of {}.",
            ImageData::TYPES.join(", ")
        )));
    }
    if !is_base64(&base64) {
        return Err(Fault::params(
            "prompt holds an image whose data is not base64, or is empty.",
        ));
    }
    Ok(Content::Image(ImageData {
        mime_type,
        base64: base64.into(),
    }))
}

/// Of a recording the same holds. Whether the model takes any is asked later (PROMPT-2).
pub(crate) fn recording(mime_type: String, base64: String) -> Result<Content, Fault> {
    if AudioFormat::of(&mime_type).is_none() {
        return Err(Fault::params(format!(
            "prompt holds audio of type {mime_type:?}: send audio/wav or audio/mpeg."
        )));
    }
    if !is_base64(&base64) {
        return Err(Fault::params(
            "prompt holds audio whose data is not base64, or is empty.",
        ));
    }
    Ok(Content::Audio(AudioData {
        mime_type,
        base64: base64.into(),
    }))
}

/// The standard alphabet, padded, on one line.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len() - digits.len() <= 2
        && text.len().is_multiple_of(4)
        && !digits.is_empty()
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// A file is mentioned by its path, so that tools can be pointed at it; anything else as a link.
pub(crate) fn mention(name: &str, uri: &str) -> Content {
    Content::text(match file_path(uri) {
        Some(path) => format!("[{name}]({path})"),
        None => format!("[{name}]({uri})"),
    })
}

fn embedded(resource: EmbeddedResource) -> Result<Content, Fault> {
    match resource.resource {
        EmbeddedResourceResource::TextResourceContents(text) => Ok(file(text.uri, &text.text)),
        EmbeddedResourceResource::BlobResourceContents(it) => blob(it.uri, it.mime_type, it.blob),
        _ => Ok(no_resource()),
    }
}

/// An embedded text.
pub(crate) fn file(uri: String, text: &str) -> Content {
    let name = file_path(&uri).unwrap_or(uri);
    let fence = fence(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Content::text(format!("{name}\n{fence}\n{text}{end}{fence}"))
}

/// Embedded bytes: an image, or the mention of something else.
pub(crate) fn blob(uri: String, kind: Option<String>, base64: String) -> Result<Content, Fault> {
    Ok(match kind {
        Some(kind) if ImageData::TYPES.contains(&&*kind) => return picture(kind, base64),
        kind => Content::text(format!(
            "{} (binary{}, {} bytes; its content was not passed on)",
            file_path(&uri).unwrap_or(uri),
            kind.map(|kind| format!(", {kind}")).unwrap_or_default(),
            base64.len() / 4 * 3,
        )),
    })
}

/// An embedded thing that is neither.
pub(crate) fn no_resource() -> Content {
    Content::text("(a resource of an unknown sort was not passed on)")
}

/// The path of a `file://` URI of this machine, with its percent signs resolved.
fn file_path(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let hex = (*byte == b'%')
            .then(|| std::str::from_utf8(tail.get(..2)?).ok())
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex {
            Some(value) => {
                bytes.push(value);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    let path = String::from_utf8(bytes).ok()?;
    Some(match fragment.is_empty() {
        true => path,
        false => format!("{path}#{fragment}"),
    })
}

/// A fence that the text does not contain.
pub(crate) fn fence(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(3.max(longest + 1))
}

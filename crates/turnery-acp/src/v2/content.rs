//! Content: the blocks of a v2 prompt, turned into what a model reads.

use crate::{content, fault::Fault};
use agent_client_protocol_schema::v2::{ContentBlock, EmbeddedResource, EmbeddedResourceResource};
use turnery_engine::Content;

/// A prompt from the wire. A type that was not advertised is refused (V2-18).
pub(super) fn from_wire(blocks: Vec<ContentBlock>) -> Result<Vec<Content>, Fault> {
    content::each(blocks, block)
}

fn block(block: ContentBlock) -> Result<Content, Fault> {
    match block {
        ContentBlock::Text(text) => Ok(Content::text(text.text)),
        ContentBlock::Image(image) => content::picture(image.mime_type.to_string(), image.data),
        ContentBlock::ResourceLink(link) => Ok(content::mention(&link.name, &link.uri)),
        ContentBlock::Resource(resource) => embedded(resource),
        ContentBlock::Audio(audio) => content::recording(audio.mime_type.to_string(), audio.data),
        _ => Err(content::unknown()),
    }
}

fn embedded(resource: EmbeddedResource) -> Result<Content, Fault> {
    match resource.resource {
        EmbeddedResourceResource::TextResourceContents(it) => Ok(content::file(it.uri, &it.text)),
        EmbeddedResourceResource::BlobResourceContents(it) => {
            content::blob(it.uri, it.mime_type.map(|kind| kind.to_string()), it.blob)
        }
        _ => Ok(content::no_resource()),
    }
}

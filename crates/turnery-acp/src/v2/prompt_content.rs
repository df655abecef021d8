//! Converts the content blocks of a v2 prompt to what a model reads.

use crate::server::{prompt_content, rpc_error::RpcError};
use agent_client_protocol_schema::v2::{ContentBlock, EmbeddedResource, EmbeddedResourceResource};
use turnery_engine::Content;

/// Parses the content of a prompt. Types that were not advertised are rejected (V2-18).
pub(super) fn parse_prompt(blocks: Vec<ContentBlock>) -> Result<Vec<Content>, RpcError> {
    prompt_content::parse_blocks(blocks, parse_block)
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
        EmbeddedResourceResource::BlobResourceContents(it) => prompt_content::parse_embedded_blob(
            it.uri,
            it.mime_type.map(|kind| kind.to_string()),
            it.blob,
        ),
        _ => Ok(prompt_content::unknown_resource_content()),
    }
}

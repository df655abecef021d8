//! Tests the content blocks of a prompt (PROMPT-1, PROMPT-2, PROMPT-13).

use crate::{
    server::prompt_content::document_uri, v1::prompt_content::parse_prompt,
    view::code_fence::code_fence,
};
use agent_client_protocol_schema::v1::ContentBlock;
use jsonrpsee::types::ErrorObjectOwned;
use proptest::prelude::*;
use serde_json::{Value, json};
use turnery_engine::{AudioData, Content, DocumentData};

fn parse(blocks: Value) -> Result<Vec<Content>, i32> {
    let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).unwrap();
    let parsed = parse_prompt(blocks).map(|prompt| prompt.content);
    parsed.map_err(|fault| ErrorObjectOwned::from(fault).code())
}

fn parse_text(block: Value) -> String {
    match &parse(json!([block])).unwrap()[..] {
        [Content::Text { text }] => text.clone(),
        other => panic!("{other:?}"),
    }
}

// proves: ACP-7, ACP-8, ACP-9, C-30, LASH-40, PROMPT-1
#[test]
fn blocks_become_model_content() {
    assert_eq!(parse_text(json!({"type": "text", "text": "hi"})), "hi");
    assert_eq!(
        parse_text(json!({"type": "resource_link", "uri": "https://x.org/a", "name": "a"})),
        "[a](https://x.org/a)"
    );
    assert_eq!(
        parse_text(
            json!({"type": "resource_link", "uri": "file:///w/my%20file.rs#L3", "name": "f"})
        ),
        "[f](/w/my file.rs#L3)"
    );
    assert_eq!(
        parse_text(json!({"type": "resource_link", "uri": "not a uri", "name": "n"})),
        "[n](not a uri)"
    );
    assert_eq!(
        parse_text(
            json!({"type": "resource", "resource": {"uri": "file:///w/a.md", "text": "```\nx\n```"}})
        ),
        "/w/a.md\n````\n```\nx\n```\n````"
    );
    assert_eq!(
        parse_text(json!({"type": "resource", "resource":
            {"uri": "file:///w/a.bin", "blob": "AAAA", "mimeType": "application/zip"}})),
        "/w/a.bin (binary, application/zip, 3 bytes; its content was not passed on)"
    );
    let picture = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let embedded = json!({"type": "resource", "resource":
        {"uri": "file:///w/a.png", "blob": "AAAA", "mimeType": "image/png"}});
    for block in [picture, embedded] {
        let content = parse(json!([block])).unwrap();
        let [Content::Image(image)] = &content[..] else {
            panic!("{content:?}");
        };
        assert_eq!(
            (image.mime_type.as_str(), &*image.base64),
            ("image/png", "AAAA")
        );
    }
}

fn embedded_pdf(uri: &str, blob: &str) -> Value {
    json!({"type": "resource", "resource":
        {"uri": uri, "blob": blob, "mimeType": "application/pdf"}})
}

#[test]
fn embedded_pdf_becomes_document() {
    for (uri, name) in [
        ("file:///w/my%20report%231.pdf", "/w/my report#1.pdf"),
        ("https://x.org/a.pdf", "https://x.org/a.pdf"),
        ("C:\\a.pdf", "C:\\a.pdf"),
    ] {
        let document = DocumentData {
            name: name.to_owned(),
            mime_type: "application/pdf".to_owned(),
            base64: "JVBERi0xLjc=".into(),
        };
        assert_eq!(
            parse(json!([embedded_pdf(uri, "JVBERi0xLjc=")])),
            Ok(vec![Content::Document(document)])
        );
    }
    for data in ["", "JVBERi0xLjc", "%PDF-1.7"] {
        assert_eq!(parse(json!([embedded_pdf("a.pdf", data)])), Err(-32602));
    }
}

proptest! {
    /// The URI with which a document is shown again names the same document.
    #[test]
    fn uri_of_document_leads_back_to_its_name(name in "/?[a-zA-Z0-9 %#?&/.:~+ü€\\\\-]{0,20}") {
        let uri = document_uri(&name);
        let parsed = parse(json!([embedded_pdf(&uri, "AA==")])).unwrap();
        let [Content::Document(document)] = &parsed[..] else {
            panic!("{parsed:?}");
        };
        prop_assert_eq!(&document.name, &name);
    }
}

// proves: ACP-10, PROMPT-10, C-30
#[test]
fn only_valid_audio_and_nonempty_prompts_are_accepted() {
    let audio =
        |kind: &str, data: &str| parse(json!([{"type": "audio", "data": data, "mimeType": kind}]));
    let taken = |kind: &str| {
        Ok(vec![Content::Audio(AudioData {
            mime_type: kind.to_owned(),
            base64: "AA==".into(),
        })])
    };
    for kind in ["audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3"] {
        assert_eq!(audio(kind, "AA=="), taken(kind));
    }
    for kind in ["audio/ogg", "audio/webm", "image/png", ""] {
        assert_eq!(audio(kind, "AA=="), Err(-32602), "{kind:?}");
    }
    for data in ["", "AAA", "AA-_"] {
        assert_eq!(audio("audio/wav", data), Err(-32602), "{data:?}");
    }
    assert_eq!(parse(json!([])), Err(-32602));
}

/// An invalid image in the history would make a provider reject all later prompts of the session.
// proves: PROMPT-10
#[test]
fn invalid_images_are_rejected() {
    let image = |kind: &str, data: &str| {
        let image = json!({"type": "image", "data": data, "mimeType": kind});
        parse(json!([image])).map(|content| content.len())
    };
    assert_eq!(image("image/jpeg", "iVBORw0KGg=="), Ok(1));
    assert_eq!(image("image/png", "AA+/"), Ok(1));
    for data in [
        "", "====", "A", "AAA", "AA=A", "A===", "AA\nA", "AA-_", "hé==",
    ] {
        assert_eq!(image("image/png", data), Err(-32602), "{data:?}");
    }
    assert_eq!(image("image/svg+xml", "AAAA"), Err(-32602));
    assert_eq!(image("text/plain", "AAAA"), Err(-32602));
    let drawing = json!({"type": "resource", "resource":
        {"uri": "file:///w/a.svg", "blob": "AAAA", "mimeType": "image/svg+xml"}});
    assert_eq!(
        parse_text(drawing),
        "/w/a.svg (binary, image/svg+xml, 3 bytes; its content was not passed on)"
    );
}

#[test]
fn fence_is_longer_than_any_in_text() {
    assert_eq!(code_fence("no"), "```");
    assert_eq!(code_fence("``"), "```");
    assert_eq!(code_fence("a ````` b"), "``````");
}

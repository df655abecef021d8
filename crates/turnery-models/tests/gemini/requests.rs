//! Tests what is sent to Gemini.

use crate::{
    ANSWER, MODEL, answer, opaque,
    server::{
        assistant, call_for_deltas, event_response, hello_request, picture, request, serve,
        tool_call, tool_result,
    },
};
use serde_json::{Value, json};
use turnery_engine::{AudioData, Content, DocumentData, ImageData, Message, MessageStop};
use turnery_models::{Api, Thinking};

/// Returns the message that a response of this model becomes.
fn own_message(model: &str, content: Vec<Content>) -> Message {
    Message::Assistant {
        content,
        stop: MessageStop::ToolUse,
        model: model.to_owned(),
        provider: "acme".to_owned(),
        usage: None,
        error: None,
        request: None,
    }
}

/// Returns the body that `request` becomes for `model`.
async fn sent(model: &str, request: turnery_models::ModelRequest) -> Value {
    let server = serve(vec![event_response(ANSWER)]).await;
    let model = server.model(Api::Gemini, model);
    call_for_deltas(&*model, request)
        .await
        .0
        .expect("a response");
    server.bodies().remove(0)
}

/// Quirk 26: each signature goes back on the part that it came on.
// proves: GEMINI-26
#[tokio::test]
async fn history_is_sent_completely() {
    let server = serve(vec![event_response(ANSWER)]).await;
    let model = server.model(Api::Gemini, MODEL);
    let mut second = request(vec![
        Message::User {
            content: vec![Content::text("hello"), picture()],
        },
        Message::System {
            text: "Careful.".to_owned(),
        },
        own_message(MODEL, answer().content),
        tool_result("g_a", vec![Content::text("one"), picture()], false),
        tool_result("call_2", vec![Content::text("no")], true),
    ]);
    second.thinking = Thinking::Low;
    call_for_deltas(&*model, second)
        .await
        .0
        .expect("a response");
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}});
    assert_eq!(
        server.bodies()[0],
        json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [
                    {"text": "hello"},
                    image,
                    {"text": "<system-notice>\nCareful.\n</system-notice>"},
                ]},
                {"role": "model", "parts": [
                    {"text": "Let me "},
                    {"text": "\"see\" €", "thoughtSignature": "c2lnLXRleHQ="},
                    {"functionCall": {"id": "g_a", "name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2lnLWNhbGw+/w=="},
                    {"functionCall": {"id": "call_2", "name": "list", "args": {}}},
                    {"text": "", "thoughtSignature": "c2lnLWVuZA=="},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "g_a", "name": "read", "response": {"output": "one"}, "parts": [image]}},
                    {"functionResponse": {"id": "call_2", "name": "list", "response": {"error": "no"}}},
                ]},
            ],
            "tools": [{"functionDeclarations": [
                {"name": "read", "description": "Reads a file.", "parametersJsonSchema": {"type": "object"}},
            ]}],
            "generationConfig": {
                "maxOutputTokens": 65_536,
                "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "low"},
            },
        })
    );
    let requests = server.requests.lock().unwrap();
    let head = &requests[0].0;
    let line = "POST /v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse HTTP/1.1";
    assert!(head.starts_with(line), "{head}");
    assert!(head.contains("x-goog-api-key: sk-test"), "{head}");
}

/// Quirk 17: signatures go to the model that gave them only. Quirk 27: the first call of each step has the marker.
// proves: GEMINI-17, GEMINI-27
#[tokio::test]
async fn calls_of_other_models_get_the_skip_marker() {
    let history = || {
        request(vec![
            Message::user("hello"),
            assistant(vec![
                Content::Thinking {
                    text: "Hm".to_owned(),
                    signature: Some("of-claude".to_owned()),
                },
                tool_call("a", "read", json!({})),
                tool_call("b", "read", json!({})),
            ]),
            tool_result("a", vec![Content::text("1")], false),
            tool_result("b", vec![Content::text("2")], false),
            own_message(
                "gemini-2.5-pro",
                vec![
                    tool_call("c", "read", json!({})),
                    opaque(json!({"thoughtSignature": "cw=="})),
                ],
            ),
            tool_result("c", vec![Content::text("3")], false),
        ])
    };
    let call = |id: &str| json!({"functionCall": {"id": id, "name": "read", "args": {}}});
    let signed = |id: &str, signature: &str| {
        let mut part = call(id);
        part["thoughtSignature"] = json!(signature);
        part
    };
    let marker = "skip_thought_signature_validator";
    for (model, first, third) in [
        (MODEL, signed("a", marker), signed("c", marker)),
        ("gemini-4-pro", signed("a", marker), signed("c", marker)),
        ("gemini-2.5-pro", call("a"), signed("c", "cw==")),
        ("gemini-2.5-flash", call("a"), call("c")),
    ] {
        let contents = sent(model, history()).await["contents"].clone();
        assert_eq!(contents[1]["parts"], json!([first, call("b")]), "{model}");
        assert_eq!(contents[3]["parts"], json!([third]), "{model}");
    }
}

/// A signature whose text was shortened since then is sent with all of it.
#[tokio::test]
async fn signed_thoughts_and_odd_lengths_are_sent_back() {
    let content = vec![
        Content::Thinking {
            text: "Hm".to_owned(),
            signature: Some("dA==".to_owned()),
        },
        Content::text("€"),
        opaque(json!({"thoughtSignature": "cQ==", "signedBytes": 2})),
        Content::text("x"),
        opaque(json!({"thoughtSignature": "cg==", "signedBytes": 5})),
    ];
    let messages = vec![
        Message::user("hello"),
        own_message(MODEL, content),
        Message::user("on"),
    ];
    assert_eq!(
        sent(MODEL, request(messages)).await["contents"][1]["parts"],
        json!([
            {"text": "Hm", "thought": true, "thoughtSignature": "dA=="},
            {"text": "€", "thoughtSignature": "cQ=="},
            {"text": "x", "thoughtSignature": "cg=="},
        ])
    );
}

/// Blank texts are not sent, and the signature of one is not that of the call before it.
#[tokio::test]
async fn signature_of_a_blank_text_signs_no_call() {
    let content = vec![
        tool_call("a", "read", json!({})),
        Content::text(" "),
        opaque(json!({"thoughtSignature": "cQ==", "signedBytes": 1})),
    ];
    let messages = vec![
        Message::user("hello"),
        own_message(MODEL, content),
        tool_result("a", vec![Content::text("1")], false),
    ];
    assert_eq!(
        sent(MODEL, request(messages)).await["contents"][1]["parts"],
        json!([{
            "functionCall": {"id": "a", "name": "read", "args": {}},
            "thoughtSignature": "skip_thought_signature_validator",
        }])
    );
}

/// Before Gemini 3, media of results are in the user content that follows; recordings always are.
// proves: GEMINI-14, GEMINI-76, GEMINI-84
#[tokio::test]
async fn media_of_results_are_sent_where_they_fit() {
    let media = |mime_type: &str| {
        Content::Image(ImageData {
            mime_type: mime_type.to_owned(),
            base64: "QUJD".into(),
        })
    };
    let document = Content::Document(DocumentData {
        name: "a.pdf".to_owned(),
        mime_type: "application/pdf".to_owned(),
        base64: "UERG".into(),
    });
    let audio = Content::Audio(AudioData {
        mime_type: "audio/mpeg".to_owned(),
        base64: "TVAz".into(),
    });
    let content = vec![media("image/webp"), document, audio, media("image/gif")];
    let messages = vec![
        Message::user("hello"),
        assistant(vec![tool_call("a", "read", json!({}))]),
        tool_result("a", content, false),
    ];
    let inline =
        |mime_type: &str, data: &str| json!({"inlineData": {"mimeType": mime_type, "data": data}});
    let (image, pdf, mp3) = (
        inline("image/webp", "QUJD"),
        inline("application/pdf", "UERG"),
        inline("audio/mp3", "TVAz"),
    );
    let label = json!({"text": "Files that read gave:"});
    let no_gif = json!({"text": "[image (image/gif) omitted: this model does not accept images of this type]"});
    let response =
        json!({"id": "a", "name": "read", "response": {"output": "(see the next message)"}});
    let mut with_parts = response.clone();
    with_parts["parts"] = json!([image, pdf]);
    for (model, response, files) in [
        (MODEL, with_parts, json!([label, mp3, no_gif])),
        (
            "gemini-2.5-pro",
            response,
            json!([label, image, pdf, mp3, no_gif]),
        ),
    ] {
        let contents = sent(model, request(messages.clone())).await["contents"].clone();
        assert_eq!(
            contents[2],
            json!({"role": "user", "parts": [{"functionResponse": response}]}),
            "{model}"
        );
        assert_eq!(
            contents[3],
            json!({"role": "user", "parts": files}),
            "{model}"
        );
        assert_eq!(contents[4], Value::Null, "{model}");
    }
}

/// Quirks 7 and 12: an orphan call gets a result, and a conversation starts with the user.
#[tokio::test]
async fn shortened_history_is_completed() {
    let history = vec![assistant(vec![tool_call("a", "read", json!("{oops"))])];
    assert_eq!(
        sent("gemini-2.5-pro", request(history)).await["contents"],
        json!([
            {"role": "user", "parts": [{"text": "(The conversation before this is left out.)"}]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "a", "name": "read", "args": {"not_an_object": "{oops"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "read", "response": {"error": "No result: the call was cut short."}}},
            ]},
        ])
    );
}

/// Quirk 28, and the temperature that Gemini 3 should not be given.
// proves: GEMINI-19, GEMINI-21, GEMINI-82
#[tokio::test]
async fn generation_config_depends_on_the_model() {
    for (model, thinking, expected) in [
        (
            MODEL,
            Thinking::Default,
            json!({"maxOutputTokens": 65_536, "thinkingConfig": {"includeThoughts": true}}),
        ),
        (
            MODEL,
            Thinking::Off,
            json!({"maxOutputTokens": 65_536, "thinkingConfig": {"includeThoughts": false, "thinkingLevel": "minimal"}}),
        ),
        (
            "gemini-2.5-flash",
            Thinking::Off,
            json!({"maxOutputTokens": 65_536, "temperature": 0.25, "thinkingConfig": {"includeThoughts": false, "thinkingBudget": 0}}),
        ),
        (
            "gemini-2.5-pro",
            Thinking::High,
            json!({"maxOutputTokens": 65_536, "temperature": 0.25, "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 24_576}}),
        ),
        (
            "gemini-2.0-flash",
            Thinking::High,
            json!({"maxOutputTokens": 8_192, "temperature": 0.25}),
        ),
        (
            "gemma-unlisted",
            Thinking::Off,
            json!({"temperature": 0.25}),
        ),
    ] {
        let mut request = hello_request();
        request.temperature = Some(0.25);
        request.thinking = thinking;
        assert_eq!(
            sent(model, request).await["generationConfig"],
            expected,
            "{model}"
        );
    }
}

#[tokio::test]
async fn model_name_is_encoded_in_the_path() {
    let server = serve(vec![event_response(ANSWER)]).await;
    let model = server.model(Api::Gemini, "tuned/ä?b");
    call_for_deltas(&*model, hello_request())
        .await
        .0
        .expect("a response");
    let head = server.requests.lock().unwrap()[0].0.clone();
    let path = "POST /v1beta/models/tuned%2F%C3%A4%3Fb:streamGenerateContent?alt=sse ";
    assert!(head.starts_with(path), "{head}");
}

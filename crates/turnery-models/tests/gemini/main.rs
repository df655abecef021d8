//! Tests Gemini `generateContent` over a real socket.

mod requests;
#[path = "../server/mod.rs"]
mod server;

use serde_json::{Value, json};
use server::{
    assert_same_when_cut_anywhere, assert_same_when_cut_randomly, call_error, call_for_deltas,
    chunked_response, error_response, event_response, hello_request, serve, text_delta,
    thinking_delta, tool_call,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use turnery_engine::{Content, ModelDelta, ModelErrorKind, ModelStop, Response, Usage};
use turnery_models::{Api, ProviderConfig, check_key};

const MODEL: &str = "gemini-3-flash-preview";

/// Thoughts, a text in fragments whose last one is signed, two calls of which the first is signed, and a signature alone.
const ANSWER: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"Hm","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":108,"thoughtsTokenCount":8},"modelVersion":"gemini-3-flash-0914","responseId":"r1"}

data: {"candidates":[{"content":{"parts":[{"text":", well","thought":true},{"text":"Let me "}],"role":"model"},"index":0}],"modelVersion":"gemini-3-flash-0914"}

data: {"candidates":[{"content":{"parts":[{"text":"\"see\" €","thoughtSignature":"c2lnLXRleHQ="}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"read","args":{"path":"a"},"id":"g_a"},"thoughtSignature":"c2lnLWNhbGw+/w=="},{"functionCall":{"name":"list"}}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2lnLWVuZA=="}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":64,"candidatesTokenCount":12,"thoughtsTokenCount":8,"toolUsePromptTokenCount":5,"totalTokenCount":125}}

"#;

fn opaque(value: Value) -> Content {
    Content::Opaque {
        provider: "acme".to_owned(),
        value,
    }
}

fn answer() -> Response {
    Response {
        content: vec![
            Content::Thinking {
                text: "Hm, well".to_owned(),
                signature: None,
            },
            Content::text("Let me \"see\" €"),
            opaque(json!({"thoughtSignature": "c2lnLXRleHQ=", "signedBytes": 9})),
            tool_call("g_a", "read", json!({"path": "a"})),
            opaque(json!({"thoughtSignature": "c2lnLWNhbGw+/w=="})),
            tool_call("call_2", "list", json!({})),
            opaque(json!({"text": "", "thoughtSignature": "c2lnLWVuZA=="})),
        ],
        stop: ModelStop::ToolUse,
        raw_stop: Some("STOP".to_owned()),
        usage: Some(Usage {
            input: 41,
            output: 20,
            reasoning: 8,
            cache_read: 64,
            cache_write: 0,
        }),
        model: "gemini-3-flash-0914".to_owned(),
        provider: "acme".to_owned(),
        tool_results: Vec::new(),
        request: None,
    }
}

fn deltas() -> Vec<ModelDelta> {
    vec![
        thinking_delta(0, "Hm"),
        thinking_delta(0, ", well"),
        text_delta(1, "Let me "),
        text_delta(1, "\"see\" €"),
        ModelDelta::ToolCallArgs {
            block: 3,
            name: "read".to_owned(),
            fragment: "{\"path\":\"a\"}".to_owned(),
        },
    ]
}

/// Returns a stream of one chunk with this candidate.
fn chunk(candidate: &Value) -> String {
    format!("data: {}\n\n", json!({ "candidates": [candidate] }))
}

/// Returns a stream of one chunk with these parts, and the end of the response.
fn parts_answer(parts: Value) -> String {
    chunk(&json!({"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}))
}

// proves: GEMINI-72
#[tokio::test]
async fn response_does_not_depend_on_one_cut() {
    assert_same_when_cut_anywhere(Api::Gemini, MODEL, ANSWER, &answer(), &deltas()).await;
}

// proves: GEMINI-72
#[test]
fn response_does_not_depend_on_many_cuts() {
    assert_same_when_cut_randomly(Api::Gemini, MODEL, ANSWER, &answer(), &deltas());
}

/// C-31.
// proves: GEMINI-47
#[tokio::test]
async fn truncated_stream_is_an_error() {
    let bytes = chunked_response(ANSWER);
    let done = bytes.len() - "0\r\n\r\n".len();
    let server = serve((1..done).map(|end| bytes[..end].to_vec()).collect()).await;
    let model = server.model_with_retries(Api::Gemini, MODEL, 0);
    for end in 1..done {
        let kind = call_error(&*model).await.kind;
        assert_eq!(kind, ModelErrorKind::Network, "cut at {end}");
    }
}

/// Quirk 47, C-31: the connection is fine, but no chunk has a finishReason.
// proves: GEMINI-47
#[tokio::test]
async fn response_without_finish_reason_is_unfinished() {
    let last = ANSWER.rfind("\"finishReason\"").expect("the reason");
    let ends: Vec<usize> = (0..=last).step_by(7).chain([last]).collect();
    let bodies = ends
        .iter()
        .map(|end| event_response(ANSWER.get(..*end).unwrap_or_default()));
    let server = serve(bodies.collect()).await;
    let model = server.model_with_retries(Api::Gemini, MODEL, 0);
    for end in ends {
        let kind = call_error(&*model).await.kind;
        assert_eq!(kind, ModelErrorKind::Unfinished, "cut at {end}");
    }
}

/// Parts of all kinds, and the content that they represent.
#[tokio::test]
async fn parts_are_read_in_every_form() {
    let thought = |text: &str, signature: Option<&str>| Content::Thinking {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
    };
    let code =
        json!({"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "cw=="});
    let cases = [
        (
            "each signed thought is a block of its own",
            json!([
                {"text": "a", "thought": true, "thoughtSignature": "cQ=="},
                {"text": "b", "thought": true},
                {"text": "c", "thought": true},
            ]),
            vec![thought("a", Some("cQ==")), thought("bc", None)],
            ModelStop::EndTurn,
        ),
        (
            "text after a signature is a block of its own",
            json!([{"text": "a", "thoughtSignature": "cQ=="}, {"text": "b"}, {"text": "c"}]),
            vec![
                Content::text("a"),
                opaque(json!({"thoughtSignature": "cQ==", "signedBytes": 1})),
                Content::text("bc"),
            ],
            ModelStop::EndTurn,
        ),
        (
            "quirks 4 and 41: calls without id, with an empty one, without arguments, with one id twice",
            json!([
                {"functionCall": {"name": "a", "args": null}},
                {"functionCall": {"name": "b", "id": "", "args": {}}},
                {"functionCall": {"name": "c", "id": "x", "args": {"n": 1.5}}},
                {"functionCall": {"name": "d", "id": "x"}},
            ]),
            vec![
                tool_call("call_1", "a", json!({})),
                tool_call("call_2", "b", json!({})),
                tool_call("x", "c", json!({"n": 1.5})),
                tool_call("call_4", "d", json!({})),
            ],
            ModelStop::ToolUse,
        ),
        (
            "parts of other kinds are kept whole; empty ones are nothing",
            json!([{"text": ""}, code, {"text": "x"}]),
            vec![opaque(code.clone()), Content::text("x")],
            ModelStop::EndTurn,
        ),
    ];
    let bodies = cases
        .iter()
        .map(|case| event_response(&parts_answer(case.1.clone())));
    let server = serve(bodies.collect()).await;
    let model = server.model_with_retries(Api::Gemini, MODEL, 0);
    for (what, _, content, stop) in cases {
        let response = call_for_deltas(&*model, hello_request())
            .await
            .0
            .expect("a response");
        assert_eq!((response.content, response.stop), (content, stop), "{what}");
    }
}

// proves: GEMINI-43, GEMINI-71
#[tokio::test]
async fn finish_reason_decides_how_a_response_ends() {
    let call = json!({"functionCall": {"name": "read"}});
    let text = json!({"text": "x"});
    let cases = [
        ("STOP", &text, ModelStop::EndTurn),
        ("STOP", &call, ModelStop::ToolUse),
        ("MAX_TOKENS", &text, ModelStop::Length),
        ("MAX_TOKENS", &call, ModelStop::Length),
        ("SAFETY", &text, ModelStop::Refusal),
        ("RECITATION", &text, ModelStop::Refusal),
        ("PROHIBITED_CONTENT", &text, ModelStop::Refusal),
        ("BLOCKLIST", &text, ModelStop::Refusal),
        ("SPII", &text, ModelStop::Refusal),
        ("LANGUAGE", &text, ModelStop::Refusal),
    ];
    let candidate =
        |reason, part: &Value| json!({"content": {"parts": [part]}, "finishReason": reason});
    let bodies = cases
        .iter()
        .map(|(reason, part, _)| event_response(&chunk(&candidate(*reason, part))));
    let server = serve(bodies.collect()).await;
    let model = server.model_with_retries(Api::Gemini, MODEL, 0);
    for (reason, _, stop) in cases {
        let response = call_for_deltas(&*model, hello_request())
            .await
            .0
            .expect("a response");
        assert_eq!(response.stop, stop, "{reason}");
        assert_eq!(response.raw_stop.as_deref(), Some(reason));
    }
}

/// Quirks 48 and 62: a slip of the model is tried again unless something was shown.
// proves: GEMINI-48, GEMINI-62
#[tokio::test]
async fn slip_before_the_first_output_is_tried_again() {
    let slip =
        |reason: &str| chunk(&json!({"finishReason": reason, "finishMessage": "no such function"}));
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "OTHER",
        "STOP",
    ] {
        let server = serve(vec![
            event_response(&slip(reason)),
            event_response(&parts_answer(json!([{"text": "x"}]))),
        ])
        .await;
        let model = server.model(Api::Gemini, MODEL);
        let response = call_for_deltas(&*model, hello_request())
            .await
            .0
            .expect("a response");
        assert_eq!(response.content, [Content::text("x")], "{reason}");
        assert_eq!(server.bodies().len(), 2, "{reason}");
    }
    let shown = chunk(&json!({"content": {"parts": [{"text": "x"}]}}));
    let body = format!("{shown}{}", slip("MALFORMED_FUNCTION_CALL"));
    let server = serve(vec![event_response(&body), event_response(ANSWER)]).await;
    let model = server.model(Api::Gemini, MODEL);
    let error = call_error(&*model).await;
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(error.message.contains("no such function"), "{error}");
    assert_eq!(server.bodies().len(), 1);
}

#[tokio::test]
async fn missing_signature_is_not_tried_again() {
    let body = chunk(&json!({"finishReason": "MISSING_THOUGHT_SIGNATURE"}));
    let server = serve(vec![event_response(&body), event_response(ANSWER)]).await;
    let model = server.model(Api::Gemini, MODEL);
    assert_eq!(call_error(&*model).await.kind, ModelErrorKind::BadRequest);
    assert_eq!(server.bodies().len(), 1);
}

#[tokio::test]
async fn refused_prompt_is_a_refusal() {
    let body = r#"data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7}}"#;
    let server = serve(vec![event_response(body)]).await;
    let model = server.model_with_retries(Api::Gemini, MODEL, 0);
    let response = call_for_deltas(&*model, hello_request())
        .await
        .0
        .expect("a response");
    assert_eq!(response.stop, ModelStop::Refusal);
    assert_eq!(response.raw_stop.as_deref(), Some("PROHIBITED_CONTENT"));
    assert_eq!(response.usage.map(|usage| usage.input), Some(7));
}

#[tokio::test]
async fn errors_of_the_api_are_understood() {
    let error = |code: u16, message: &str, status: &str| {
        json!({"error": {"code": code, "message": message, "status": status}}).to_string()
    };
    let key = error(
        400,
        "API key not valid. Please pass a valid API key.",
        "INVALID_ARGUMENT",
    );
    let busy = error(
        429,
        "You exceeded your current quota.",
        "RESOURCE_EXHAUSTED",
    );
    let unknown = error(
        404,
        "models/x is not found for API version v1beta",
        "NOT_FOUND",
    );
    let overloaded = error(503, "The model is overloaded.", "UNAVAILABLE");
    let server = serve(vec![
        error_response("400 Bad Request", "", &key),
        error_response("429 Too Many Requests", "", &busy),
        error_response("404 Not Found", "", &unknown),
        event_response(&format!("data: {overloaded}\n\n")),
    ])
    .await;
    let model = server.model_with_retries(Api::Gemini, MODEL, 0);
    for (kind, status) in [
        (ModelErrorKind::Auth, 400),
        (ModelErrorKind::RateLimit, 429),
        (ModelErrorKind::BadRequest, 404),
        (ModelErrorKind::Overloaded, 503),
    ] {
        let error = call_error(&*model).await;
        assert_eq!((error.kind, error.status), (kind, Some(status)), "{error}");
    }
}

/// Only the first candidate counts, wherever it is in the list.
#[tokio::test]
async fn other_candidates_are_ignored() {
    let candidate = |index: u32, text: &str| json!({"index": index, "content": {"parts": [{"text": text}]}, "finishReason": "STOP"});
    let both = json!({"candidates": [candidate(1, "no"), candidate(0, "yes")]});
    let other = json!({"candidates": [candidate(1, "no")]});
    let server = serve(vec![event_response(&format!(
        "data: {both}\n\ndata: {other}\n\n"
    ))])
    .await;
    let model = server.model_with_retries(Api::Gemini, MODEL, 0);
    let response = call_for_deltas(&*model, hello_request())
        .await
        .0
        .expect("a response");
    assert_eq!(response.content, [Content::text("yes")]);
}

/// Quirk 52.
// proves: GEMINI-52
#[tokio::test]
async fn unreadable_usage_is_unknown() {
    let with_usage = |usage: Value| {
        let candidate = json!({"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"});
        format!(
            "data: {}\n\n",
            json!({"candidates": [candidate], "usageMetadata": usage})
        )
    };
    let known = Usage {
        input: 3,
        output: 2,
        ..Usage::default()
    };
    let cases = [
        (
            json!({"promptTokenCount": 3, "candidatesTokenCount": "2"}),
            Some(known),
        ),
        (
            json!({"promptTokenCount": 3.0, "candidatesTokenCount": 2}),
            Some(known),
        ),
        (
            json!({"promptTokenCount": -3, "candidatesTokenCount": 2}),
            None,
        ),
        (json!({"trafficType": "ON_DEMAND"}), None),
        (json!(null), None),
    ];
    let bodies = cases
        .iter()
        .map(|case| event_response(&with_usage(case.0.clone())));
    let server = serve(bodies.collect()).await;
    let model = server.model_with_retries(Api::Gemini, MODEL, 0);
    for (report, usage) in cases {
        let response = call_for_deltas(&*model, hello_request())
            .await
            .0
            .expect("a response");
        assert_eq!(response.usage, usage, "{report}");
    }
}

/// The list of models checks the key, and only those that generate content are offered.
#[tokio::test]
async fn models_that_generate_content_are_listed() {
    let list = json!({"models": [
        {"name": "models/gemini-3.7-flash", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/gemini-embedding-001", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/aqa", "supportedGenerationMethods": ["generateAnswer"]},
    ]});
    let (server, listener) = server::ModelServer::bind().await;
    let answering = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let length = socket.read(&mut head).await.unwrap();
        let response = error_response("200 OK", "", &list.to_string());
        socket.write_all(&response).await.unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    };
    let provider = ProviderConfig {
        key: Some("sk-test".to_owned().into()),
        ..ProviderConfig::new("google", Api::Gemini, format!("{}/v1beta", server.base_url))
    };
    let (listed, head) = tokio::join!(check_key(&provider), answering);
    assert_eq!(listed, Ok(vec!["gemini-3.7-flash".to_owned()]));
    assert!(
        head.starts_with("GET /v1beta/models?pageSize=1000 "),
        "{head}"
    );
    assert!(head.contains("x-goog-api-key: sk-test"), "{head}");
}

//! Tests what is sent.

use crate::{
    ANSWER, answer, opaque,
    server::{
        assistant, call_for_deltas, event_response, hello_request, picture, request, serve, tool,
        tool_call, tool_result, user,
    },
};
use serde_json::{Value, json};
use turnery_engine::{Content, DocumentData, Message, MessageStop, ToolSchema};
use turnery_models::{
    Api, ModelName, ModelOverride, ModelRegistry, ModelRequest, ProviderConfig, Thinking,
    ToolChoice,
};

/// Returns the body of a request to `model`.
async fn sent(model: &str, request: ModelRequest) -> Value {
    let server = serve(vec![event_response(ANSWER)]).await;
    let model = server.model(Api::OpenAiResponses, model);
    let (response, _) = call_for_deltas(&*model, request).await;
    response.expect("a response");
    server.bodies().remove(0)
}

/// Returns the input items of a request with this history to the model `m1`.
async fn sent_input(messages: Vec<Message>) -> Value {
    sent("m1", request(messages)).await["input"].take()
}

fn document() -> Content {
    Content::Document(DocumentData {
        name: "a.pdf".to_owned(),
        mime_type: "application/pdf".to_owned(),
        base64: "JVBE".into(),
    })
}

/// Quirks 15, 29, 30 and 31: pictures inside of outputs, and all items of the response in their places without ids.
// proves: LASH-43
// proves: RESPONSES-11, RESPONSES-15, RESPONSES-29, RESPONSES-30, RESPONSES-31
#[tokio::test]
async fn history_is_sent_completely() {
    let server = serve(vec![event_response(ANSWER)]).await;
    let model = server.model(Api::OpenAiResponses, "m1");
    let mut second = request(vec![
        Message::User {
            content: vec![Content::text("hello"), picture(), document()],
        },
        Message::System {
            text: "Careful.".to_owned(),
        },
        assistant(answer().content),
        tool_result("call_a", vec![Content::text("seen"), picture()], false),
    ]);
    second.thinking = Thinking::Low;
    let (response, _) = call_for_deltas(&*model, second).await;
    let response = response.expect("a response");
    let ids: Vec<&str> = response.calls().map(|call| call.call_id.as_str()).collect();
    assert_eq!(ids, ["call_3", "call_4"], "the history has the ids already");
    assert_eq!(
        server.bodies()[0],
        json!({
            "model": "m1",
            "instructions": "Be brief.",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low", "summary": "auto"},
            "prompt_cache_key": "s1",
            "parallel_tool_calls": true,
            "tools": [{"type": "function", "name": "read", "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {}}, "strict": false}],
            "input": [
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "hello"},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"},
                    {"type": "input_text", "text": "[document a.pdf omitted: this model does not accept documents, but its text can be extracted with a tool]"},
                    {"type": "input_text", "text": "<system-notice>\nCareful.\n</system-notice>"},
                ]},
                {"type": "reasoning", "encrypted_content": "gAAA+/==", "summary": [
                    {"type": "summary_text", "text": "Hm"}, {"type": "summary_text", "text": "so"}]},
                {"type": "message", "role": "assistant", "content": "Let me \"see\" €", "phase": "commentary"},
                {"type": "function_call", "call_id": "call_a", "name": "read", "arguments": "{\"path\":\"a\"}"},
                {"type": "function_call", "call_id": "call_b", "name": "list", "arguments": "{\"not_an_object\":\"{oops\"}"},
                {"type": "function_call_output", "call_id": "call_a", "output": [
                    {"type": "input_text", "text": "seen"},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"},
                ]},
                {"type": "function_call_output", "call_id": "call_b", "output": "No result: the call was cut short."},
            ],
        })
    );
    let requests = server.requests.lock().expect("the requests");
    let head = &requests[0].0;
    assert!(head.starts_with("POST /v1/responses HTTP/1.1"), "{head}");
    assert!(head.contains("authorization: Bearer sk-test"), "{head}");
}

/// Quirk 17: another model could not decrypt the reasoning. The texts and calls stay.
// proves: RESPONSES-17
#[tokio::test]
async fn reasoning_is_not_sent_to_another_model() {
    let mut other = assistant(answer().content);
    if let Message::Assistant { model, .. } = &mut other {
        *model = "m2".to_owned();
    }
    let input = sent_input(vec![user("hello"), other]).await;
    let kinds: Vec<&str> = items(&input).iter().map(kind).collect();
    let expected = [
        "message",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(input[1].get("phase"), None);
}

fn items(input: &Value) -> &[Value] {
    input.as_array().expect("a list")
}

fn kind(item: &Value) -> &str {
    item["type"].as_str().expect("a type")
}

/// Quirks 29, 30 and 32; and reasoning at the end, which a truncated response leaves.
// proves: RESPONSES-29, RESPONSES-30, RESPONSES-32
#[tokio::test]
async fn reasoning_that_the_server_rejects_is_left_out() {
    let reasoning = |encrypted: Value| {
        opaque(
            json!({"type": "reasoning", "id": "rs_1", "status": null, "summary": [],
            "encrypted_content": encrypted}),
        )
    };
    let content = vec![
        Content::Thinking {
            text: "Hm".to_owned(),
            signature: None,
        },
        reasoning(json!(null)),
        reasoning(json!("")),
        reasoning(json!("kept")),
        Content::text("Hi"),
        reasoning(json!("last")),
    ];
    let truncated = Message::Assistant {
        content,
        stop: MessageStop::Length,
        model: "m1".to_owned(),
        provider: "acme".to_owned(),
        usage: None,
        error: None,
        request: None,
    };
    let input = sent_input(vec![user("hello"), truncated, user("go on")]).await;
    let kept = json!([
        {"type": "reasoning", "summary": [], "encrypted_content": "kept"},
        {"type": "message", "role": "assistant", "content": "Hi"},
    ]);
    assert_eq!(json!(items(&input)[1..3]), kept);
    assert_eq!(items(&input).len(), 4);
}

/// Items that the provider ran go back; what another API left, or what awaits an output, would be refused.
#[tokio::test]
async fn only_items_of_this_api_are_sent_back() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let blocks = [
        search,
        json!({"type": "redacted_thinking", "data": "x9"}),
        json!({"type": "web_search_tool_result", "tool_use_id": "x"}),
        json!({"type": "reasoning.encrypted", "data": "x"}),
        json!({"type": "custom_tool_call", "call_id": "c", "input": "x"}),
        json!({"thoughtSignature": "x"}),
        json!("text"),
    ];
    let content = blocks.map(opaque).to_vec();
    let input = sent_input(vec![user("hello"), assistant(content), user("go on")]).await;
    assert_eq!(
        json!(items(&input)[1..input.as_array().map_or(0, Vec::len) - 1]),
        json!([{"type": "web_search_call", "status": "completed"}])
    );
}

/// Quirk 3. The hashes come from `sha256sum`.
// proves: RESPONSES-3
#[tokio::test]
async fn refused_ids_and_names_are_replaced_in_pairs() {
    let long = "x".repeat(65);
    let call = |id: &str, name| tool_call(id, name, json!({}));
    let names = ["functions.read", "read"];
    let input = sent_input(vec![
        user("hello"),
        assistant(vec![call("call_a|fc_b", names[0]), call(&long, names[1])]),
        tool_result(&long, vec![], false),
        tool_result(
            "call_a|fc_b",
            vec![Content::text("one"), Content::text("two")],
            false,
        ),
    ])
    .await;
    let joined = "call_8ce72531cc146ff17b25732e3922e77caa02d570cf991e76";
    let hashed = "call_9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814d";
    assert_eq!(
        json!(items(&input)[1..]),
        json!([
            {"type": "function_call", "call_id": joined, "name": "functions_read", "arguments": "{}"},
            {"type": "function_call", "call_id": hashed, "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": joined, "output": "one\n\ntwo"},
            {"type": "function_call_output", "call_id": hashed, "output": "(no output)"},
        ])
    );
}

#[test]
fn documents_are_accepted_by_openai_and_its_models() {
    let provider = ProviderConfig::new("openai", Api::OpenAiResponses, "https://api.openai.com/v1");
    let registry = ModelRegistry::new(vec![provider]);
    let takes = |model: &str| {
        let model = registry.model(&ModelName::new("openai", model));
        model.expect("a model").info().documents
    };
    assert!(takes("gpt-5"));
    assert!(!takes("gpt-oss-120b"));
}

/// Quirks 19, 34 and 54: what a model rejects is left out. Unknown models are asked to reason only on demand.
// proves: LOOP-43
// proves: RESPONSES-19, RESPONSES-21, RESPONSES-34, RESPONSES-54
#[tokio::test]
async fn reasoning_parameters_depend_on_the_model() {
    let encrypted = json!(["reasoning.encrypted_content"]);
    for (model, level, reasoning, temperature) in [
        ("m1", Thinking::Default, json!(null), json!(0.25)),
        (
            "m1",
            Thinking::High,
            json!({"effort": "high", "summary": "auto"}),
            json!(null),
        ),
        ("gpt-4o", Thinking::High, json!(null), json!(0.25)),
        (
            "gpt-5",
            Thinking::Default,
            json!({"summary": "auto"}),
            json!(null),
        ),
        (
            "gpt-5",
            Thinking::Off,
            json!({"effort": "minimal", "summary": "auto"}),
            json!(null),
        ),
        (
            "gpt-5.1",
            Thinking::Off,
            json!({"effort": "none"}),
            json!(null),
        ),
        (
            "gpt-5-pro",
            Thinking::Low,
            json!({"effort": "high", "summary": "auto"}),
            json!(null),
        ),
    ] {
        let mut request = hello_request();
        request.thinking = level;
        request.temperature = Some(0.25);
        let body = sent(model, request).await;
        assert_eq!(body["reasoning"], reasoning, "{model} {level:?}");
        assert_eq!(body["temperature"], temperature, "{model} {level:?}");
        let include = match reasoning.is_null() {
            true => &Value::Null,
            false => &encrypted,
        };
        assert_eq!(&body["include"], include, "{model} {level:?}");
    }
}

// proves: RESPONSES-12
#[tokio::test]
async fn tools_and_choice_are_sent() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    let mut enforced = tool("finish", "Ends.");
    enforced.schema = ToolSchema::from(closed).enforced();
    for (choice, sent_choice) in [
        (ToolChoice::Auto, json!(null)),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
    ] {
        let mut request = hello_request();
        request.tools = [tool("read", "Reads a file."), enforced.clone()].into();
        request.tool_choice = choice;
        let body = sent("gpt-5", request).await;
        assert_eq!(body["tool_choice"], sent_choice);
        // The API takes a missing mark for true. The fake server is not known to enforce schemas.
        let marks: Vec<&Value> = items(&body["tools"])
            .iter()
            .map(|it| &it["strict"])
            .collect();
        assert_eq!(marks, [false, false]);
    }
    let mut request = hello_request();
    request.tools = [].into();
    request.tool_choice = ToolChoice::Required;
    request.system = "  ".into();
    let body = sent("gpt-5", request).await;
    for absent in [
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "instructions",
    ] {
        assert_eq!(body.get(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn output_limit_is_sent_if_chosen() {
    let server = serve(vec![event_response(ANSWER); 2]).await;
    // A server that needs a key applies its own limit.
    let provider = ProviderConfig {
        key: Some("sk-test".to_owned().into()),
        key_hint: "ACME_API_KEY".to_owned(),
        ..ProviderConfig::new(
            "acme",
            Api::OpenAiResponses,
            format!("{}/v1", server.base_url),
        )
    };
    let name = ModelName::new("acme", "gpt-5");
    let chosen = ModelOverride {
        max_output: Some(900),
        ..ModelOverride::default()
    };
    let registry = || ModelRegistry::new(vec![provider.clone()]);
    let limited = registry().with_overrides([(name.clone(), chosen)]);
    for (registry, limit) in [(registry(), json!(null)), (limited, json!(900))] {
        let model = registry.model(&name).expect("a model");
        let (response, _) = call_for_deltas(&*model, hello_request()).await;
        response.expect("a response");
        let bodies = server.bodies();
        let body = bodies.last().expect("a request");
        assert_eq!(body["max_output_tokens"], limit);
    }
}

/// The API rejects cache keys of more than 64 characters.
#[tokio::test]
async fn cache_key_is_the_session_within_its_limit() {
    let mut request = hello_request();
    request.session_id = format!("{}é", "s".repeat(63)).into();
    let body = sent("m1", request).await;
    assert_eq!(body["prompt_cache_key"], "s".repeat(63));
}

/// A cache entry is keyed by the start of a request.
// proves: RESPONSES-83
#[tokio::test]
async fn turn_extends_the_previous_request() {
    let reasoning =
        |text: &str| opaque(json!({"type": "reasoning", "summary": [], "encrypted_content": text}));
    let call = |id: &str| tool_call(id, "read", json!({"p": 1}));
    let result = |id: &str| tool_result(id, vec![Content::text("x"), picture()], false);
    let history = [
        user("hello"),
        assistant(vec![reasoning("1"), call("a|b"), call("b")]),
        result("b"),
        result("a|b"),
        assistant(vec![reasoning("2"), Content::text("so"), call("c")]),
        result("c"),
        assistant(vec![reasoning("3"), Content::text("done")]),
        user("go on"),
    ];
    let server = serve(vec![event_response(ANSWER); 4]).await;
    let model = server.model(Api::OpenAiResponses, "m1");
    for upto in [1, 4, 6, 8] {
        let mut turn = request(history[..upto].to_vec());
        // The last request asks for prose, which must not change what comes before.
        if upto == 8 {
            turn.tool_choice = ToolChoice::None;
        }
        let (response, _) = call_for_deltas(&*model, turn).await;
        response.expect("a response");
    }
    let bodies = server.bodies();
    for pair in bodies.windows(2) {
        let [before, after] = pair else {
            unreachable!()
        };
        for part in ["model", "instructions", "tools", "include", "reasoning"] {
            assert_eq!(before.get(part), after.get(part), "{part}");
        }
        assert!(items(&after["input"]).starts_with(items(&before["input"])));
    }
    assert_eq!(items(&bodies[3]["input"]).len(), 13);
}

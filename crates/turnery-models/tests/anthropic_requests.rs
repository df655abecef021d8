//! Tests what is sent to Anthropic Messages, by the rules of each model.

mod server;

use serde_json::{Value, json};
use server::{
    ModelServer, assistant, call_for_deltas, call_for_events, event_response, hello_request,
    picture, request, serve, tool, tool_call, tool_result, user,
};
use std::sync::Arc;
use turnery_engine::{Content, DocumentData, LlmMessage, Message, MessageStop, Response};
use turnery_models::{
    Api, ModelName, ModelOverride, ModelRegistry, ModelRequest, ProviderConfig, Thinking,
    ToolChoice,
};

/// A response with signed reasoning and a call.
const ANSWER: &str = r#"data: {"type":"message_start","message":{"id":"msg_1","model":"claude-x"}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"H\u00e4"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq/+=="}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x9=="}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a"}}}

data: {"type":"content_block_stop","index":2}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

data: {"type":"message_stop"}

"#;

/// Sends requests to a model; returns the servers' view of them.
async fn sent(model: &str, requests: Vec<ModelRequest>) -> (ModelServer, Vec<Value>) {
    let server = serve(vec![event_response(ANSWER); requests.len()]).await;
    let model = server.model(Api::Anthropic, model);
    for request in requests {
        let (response, _) = call_for_deltas(&*model, request).await;
        response.expect("a response");
    }
    let bodies = server.bodies();
    (server, bodies)
}

async fn sent_once(model: &str, request: ModelRequest) -> Value {
    sent(model, vec![request]).await.1.remove(0)
}

fn content_types(message: &Value) -> Vec<&str> {
    let blocks = message["content"].as_array().expect("blocks").iter();
    blocks
        .map(|block| block["type"].as_str().expect("a type"))
        .collect()
}

/// Quirks 18 to 21: the parameters for each level by model, whether a temperature is sent, and whether the header for
/// thinking between calls is. Sources: the migration guides of the models.
// proves: ANTHROPIC-18, ANTHROPIC-19, ANTHROPIC-20, ANTHROPIC-21, ANTHROPIC-34, ANTHROPIC-81
#[tokio::test]
async fn thinking_level_is_mapped_for_each_model() {
    use Thinking::{Default, High, Low, Medium, Off};
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let adaptive = || json!({"type": "adaptive", "display": "summarized"});
    let none = || Value::Null;
    let cases = [
        ("claude-3-5-haiku-latest", High, none(), none(), true, false),
        (
            "claude-3-7-sonnet-latest",
            Low,
            budget(2048),
            none(),
            false,
            false,
        ),
        ("claude-3-7-sonnet-latest", Off, none(), none(), true, false),
        (
            "claude-opus-4-20250514",
            High,
            budget(16_000),
            none(),
            false,
            true,
        ),
        (
            "claude-haiku-4-5",
            Medium,
            budget(8192),
            none(),
            false,
            true,
        ),
        ("claude-haiku-4-5", Default, none(), none(), true, true),
        (
            "claude-opus-4-6",
            Low,
            adaptive(),
            json!("low"),
            false,
            false,
        ),
        ("claude-opus-4-6", Off, none(), none(), true, false),
        (
            "claude-opus-4-8",
            High,
            adaptive(),
            json!("high"),
            false,
            false,
        ),
        ("claude-opus-4-8", Off, none(), none(), false, false),
        ("claude-opus-4-8", Default, none(), none(), false, false),
        (
            "claude-opus-5",
            Medium,
            adaptive(),
            json!("medium"),
            false,
            false,
        ),
        ("claude-opus-5", Default, adaptive(), none(), false, false),
        (
            "claude-opus-5",
            Off,
            json!({"type": "disabled"}),
            none(),
            false,
            false,
        ),
        (
            "claude-haiku-5-5",
            Off,
            json!({"type": "disabled"}),
            none(),
            false,
            false,
        ),
        (
            "claude-sonnet-5-5",
            Off,
            json!({"type": "between_tools"}),
            none(),
            false,
            false,
        ),
        (
            "claude-opus-5-5",
            Off,
            adaptive(),
            json!("low"),
            false,
            false,
        ),
        (
            "claude-fable-5-1",
            Off,
            adaptive(),
            json!("low"),
            false,
            false,
        ),
        ("glm-5", Low, budget(2048), none(), false, false),
        (
            "glm-5",
            Off,
            json!({"type": "disabled"}),
            none(),
            true,
            false,
        ),
        ("kimi-k3", Medium, none(), json!("high"), false, false),
        ("kimi-k3", Off, none(), json!("low"), false, false),
    ];
    for (model, level, thinking, effort, has_temperature, has_header) in cases {
        let mut asked = hello_request();
        asked.thinking = level;
        asked.temperature = Some(0.5);
        let (server, bodies) = sent(model, vec![asked]).await;
        let body = &bodies[0];
        let found = (&body["thinking"], &body["output_config"]["effort"]);
        assert_eq!(found, (&thinking, &effort), "{model} {level:?}");
        let temperature = body["temperature"].as_f64();
        assert_eq!(
            temperature,
            has_temperature.then_some(0.5),
            "{model} {level:?}"
        );
        let requests = server.requests.lock().unwrap();
        let header = "anthropic-beta: interleaved-thinking-2025-05-14";
        assert_eq!(
            requests[0].0.contains(header),
            has_header,
            "{model} {level:?}"
        );
    }
}

/// Quirk 22: a forced call is rejected while the model thinks, and models that always think reject it always.
// proves: ANTHROPIC-12, ANTHROPIC-22
#[tokio::test]
async fn forced_call_is_sent_only_without_thinking() {
    for (model, level, choice) in [
        ("claude-opus-4-8", Thinking::Off, json!({"type": "any"})),
        ("claude-opus-4-8", Thinking::High, Value::Null),
        (
            "claude-haiku-4-5",
            Thinking::Default,
            json!({"type": "any"}),
        ),
        ("claude-opus-5", Thinking::Off, json!({"type": "any"})),
        ("claude-opus-5", Thinking::Default, Value::Null),
        ("claude-sonnet-5-5", Thinking::Off, Value::Null),
        ("claude-opus-5-5", Thinking::Off, Value::Null),
    ] {
        let mut forced = hello_request();
        forced.thinking = level;
        forced.tool_choice = ToolChoice::Required;
        assert_eq!(
            sent_once(model, forced).await["tool_choice"],
            choice,
            "{model} {level:?}"
        );
    }
    let mut prose = hello_request();
    prose.thinking = Thinking::High;
    prose.tool_choice = ToolChoice::None;
    let body = sent_once("claude-opus-5-5", prose).await;
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"][0]["name"], "read");
}

/// Quirk 2: ids of other providers are replaced, each by one id of its own, the same in every request.
// proves: ANTHROPIC-2, ANTHROPIC-3
#[tokio::test]
async fn call_ids_are_accepted_distinct_and_stable() {
    let long = "x".repeat(65);
    let ids = ["functions.read:0", "a|b", "a_b", long.as_str(), "toolu_1"];
    let calls = ids.iter().map(|id| tool_call(id, "read", json!({})));
    let mut history = vec![user("hello"), assistant(calls.collect())];
    history.extend(
        ids.iter()
            .map(|id| tool_result(id, vec![Content::text("x")], false)),
    );
    let first = request(history.clone());
    history.extend([assistant(vec![Content::text("ok")]), user("more")]);
    let (_, bodies) = sent("claude-opus-4-8", vec![first, request(history)]).await;
    let ids_of = |body: &Value, message: usize, name: &str| -> Vec<String> {
        let blocks = body["messages"][message]["content"]
            .as_array()
            .expect("blocks");
        blocks
            .iter()
            .map(|block| block[name].as_str().expect("a type").to_owned())
            .collect()
    };
    let calls = ids_of(&bodies[0], 1, "id");
    assert_eq!(calls, ids_of(&bodies[0], 2, "tool_use_id"));
    assert_eq!(calls, ids_of(&bodies[1], 1, "id"));
    assert_eq!((calls[2].as_str(), calls[4].as_str()), ("a_b", "toolu_1"));
    let distinct: std::collections::HashSet<_> = calls.iter().collect();
    assert_eq!(distinct.len(), 5, "{calls:?}");
    for id in &calls {
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        assert!((1..=64).contains(&id.len()) && id.bytes().all(fits), "{id}");
    }
}

/// Quirk 9: no block has empty or blank text, and no message is empty.
// proves: ANTHROPIC-9
#[tokio::test]
async fn empty_text_is_never_sent() {
    let history = vec![
        Message::User {
            content: vec![
                Content::text(""),
                Content::text("hello"),
                Content::text("\n "),
            ],
        },
        assistant(vec![
            Content::text(" "),
            tool_call("a", "read", json!({})),
            Content::text(""),
        ]),
        tool_result("a", vec![Content::text("")], false),
        assistant(vec![Content::text("")]),
        user("go on"),
    ];
    let body = sent_once("claude-opus-4-8", request(history)).await;
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": cached}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a"},
                {"type": "text", "text": "go on", "cache_control": cached},
            ]},
        ])
    );
}

/// Quirks 7 and 16: each message with calls is followed by one message that starts with their results, in order, even if
/// some came late, in other order, or not at all.
// proves: ANTHROPIC-7, ANTHROPIC-16
#[tokio::test]
async fn results_directly_follow_their_calls_in_order() {
    let read = |id| tool_call(id, "read", json!({}));
    let result = |id| tool_result(id, vec![Content::text(id)], false);
    let history = vec![
        user("hello"),
        assistant(vec![
            read("a"),
            Content::text("and"),
            read("b"),
            read("lost"),
        ]),
        result("b"),
        user("meanwhile"),
        result("a"),
        assistant(vec![read("c")]),
        user("stop"),
    ];
    let body = sent_once("claude-opus-4-8", request(history)).await;
    let messages = body["messages"].as_array().expect("blocks");
    let roles: Vec<_> = messages
        .iter()
        .map(|it| it["role"].as_str().expect("a type"))
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(
        content_types(&messages[1]),
        ["tool_use", "text", "tool_use", "tool_use"]
    );
    let results = |at: usize| -> Vec<&Value> {
        let blocks = messages[at]["content"].as_array().expect("blocks").iter();
        blocks.map(|block| &block["tool_use_id"]).collect()
    };
    assert_eq!(
        results(2),
        [&json!("a"), &json!("b"), &json!("lost"), &Value::Null]
    );
    assert_eq!(results(4), [&json!("c"), &Value::Null]);
}

/// Returns the conversation after `response`, with a result of its call.
fn continued(mut before: ModelRequest, response: Response) -> ModelRequest {
    let answer = Message::Assistant {
        content: response.content,
        stop: MessageStop::ToolUse,
        model: response.model,
        provider: response.provider,
        usage: None,
        error: None,
        request: response.request,
    };
    let mut messages = (*before.messages).clone();
    for message in [
        answer,
        tool_result("toolu_1", vec![Content::text("x")], false),
    ] {
        messages.push(Arc::new(LlmMessage {
            message_id: format!("m{}", messages.len()).into(),
            turn_id: None,
            message,
        }));
    }
    before.messages = Arc::new(messages);
    before
}

/// Quirks 17 and 35: signed and redacted reasoning goes back byte for byte to the model that produced it, as long as the
/// instructions, the tools and the messages before it are the same; otherwise it is left out.
// proves: ANTHROPIC-17, ANTHROPIC-35
#[tokio::test]
async fn reasoning_goes_back_only_to_its_model_and_context() {
    let server = serve(vec![event_response(ANSWER); 7]).await;
    let model = server.model(Api::Anthropic, "claude-opus-5");
    let first = request(vec![user("a long story"), user("hello")]);
    let response = call_for_events(&*model, first.clone()).await.0.unwrap();
    let same = continued(first, response);

    let mut other_system = same.clone();
    other_system.system = "Be long.".into();
    let mut other_tools = same.clone();
    other_tools.tools = Arc::new([tool("read", "Reads a file."), tool("list", "Lists.")]);
    let mut compacted = same.clone();
    let mut messages = (*same.messages).clone();
    messages[0] = Arc::new(LlmMessage {
        message_id: messages[0].message_id.clone(),
        turn_id: None,
        message: user("a story"),
    });
    compacted.messages = Arc::new(messages);
    let mut shortened = same.clone();
    shortened.messages = Arc::new(same.messages[1..].to_vec());

    let blocks = |at: usize| {
        let body = &server.bodies()[at];
        let messages = body["messages"].as_array().expect("blocks");
        messages
            .iter()
            .find(|it| it["role"] == "assistant")
            .unwrap()["content"]
            .clone()
    };
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}});
    call_for_deltas(&*model, same.clone()).await.0.unwrap();
    assert_eq!(
        blocks(1),
        json!([
            {"type": "thinking", "thinking": "Häm", "signature": "Eq/+=="},
            {"type": "redacted_thinking", "data": "x9=="},
            call,
        ])
    );
    for (at, changed) in [other_system, other_tools, compacted, shortened]
        .into_iter()
        .enumerate()
    {
        call_for_deltas(&*model, changed).await.0.unwrap();
        assert_eq!(blocks(at + 2), json!([call]), "change {at}");
    }
    let other = server.model(Api::Anthropic, "claude-opus-5-5");
    call_for_deltas(&*other, same).await.0.unwrap();
    assert_eq!(blocks(6), json!([call]));
}

/// Models of other vendors do not sign their reasoning, and want it back in any later request.
// proves: ANTHROPIC-23
#[tokio::test]
async fn unsigned_reasoning_goes_back_to_other_vendors() {
    let answer = ANSWER.replace(r#""signature":"Eq/+==""#, r#""signature":"""#);
    let server = serve(vec![event_response(&answer); 3]).await;
    let model = server.model(Api::Anthropic, "kimi-k2.6");
    let response = call_for_events(&*model, hello_request()).await.0.unwrap();
    let mut next = continued(hello_request(), response);
    next.system = "Be long.".into();
    call_for_deltas(&*model, next.clone()).await.0.unwrap();
    let reasoning = json!({"type": "thinking", "thinking": "Häm", "signature": ""});
    assert_eq!(server.bodies()[1]["messages"][1]["content"][0], reasoning);
    // Claude rejects it without a signature.
    let claude = server.model(Api::Anthropic, "claude-opus-4-8");
    call_for_deltas(&*claude, next).await.0.unwrap();
    let content = &server.bodies()[2]["messages"][1];
    assert_eq!(content_types(content), ["tool_use"]);
}

/// A round of calls that started with thinking ends with it, and one that started without does not begin to: the API
/// rejects both. The rest of the conversation does not matter.
#[tokio::test]
async fn thinking_does_not_change_within_a_round() {
    let answer = ANSWER;
    let server = serve(vec![event_response(answer); 9]).await;
    let on = |body: &Value| body["thinking"]["type"].as_str().map(str::to_owned);
    for (model, level, expected) in [
        ("claude-haiku-4-5", Thinking::Off, Some("enabled")),
        ("claude-opus-4-8", Thinking::Default, Some("adaptive")),
        ("claude-opus-5", Thinking::Off, Some("adaptive")),
    ] {
        let model = server.model(Api::Anthropic, model);
        let mut first = hello_request();
        first.thinking = Thinking::High;
        let response = call_for_events(&*model, first.clone()).await.0.unwrap();
        let mut next = continued(first, response);
        next.thinking = level;
        // A later call of the same round without thinking of its own.
        let mut messages = (*next.messages).clone();
        let more = [
            assistant(vec![tool_call("t2", "read", json!({}))]),
            tool_result("t2", vec![Content::text("y")], false),
        ];
        for message in more {
            messages.push(Arc::new(LlmMessage {
                message_id: format!("m{}", messages.len()).into(),
                turn_id: None,
                message,
            }));
        }
        next.messages = Arc::new(messages.clone());
        call_for_deltas(&*model, next.clone()).await.0.unwrap();
        let bodies = server.bodies();
        assert_eq!(on(bodies.last().unwrap()).as_deref(), expected);
        // The next message of the user starts another round.
        for (id, message) in [
            ("done", assistant(vec![Content::text("done")])),
            ("last", user("thanks")),
        ] {
            messages.push(Arc::new(LlmMessage {
                message_id: id.into(),
                turn_id: None,
                message,
            }));
        }
        next.messages = Arc::new(messages);
        call_for_deltas(&*model, next).await.0.unwrap();
        let bodies = server.bodies();
        let after = on(bodies.last().unwrap());
        assert_ne!(after.as_deref(), expected, "{level:?}");
    }
    let mut foreign = request(vec![
        user("hello"),
        assistant(vec![tool_call("a", "read", json!({}))]),
        tool_result("a", vec![Content::text("x")], false),
    ]);
    foreign.thinking = Thinking::High;
    assert_eq!(
        on(&sent_once("claude-haiku-4-5", foreign.clone()).await),
        None
    );
    assert_eq!(
        on(&sent_once("claude-opus-4-8", foreign.clone()).await).as_deref(),
        Some("adaptive")
    );
    assert_eq!(
        on(&sent_once("glm-5", foreign).await).as_deref(),
        Some("enabled")
    );
}

/// Quirk 58: at most four marks: the tools, the instructions, and the last two messages of the user.
// proves: ANTHROPIC-58
#[tokio::test]
async fn cache_marks_are_at_most_four_and_in_place() {
    let read = |id| tool_call(id, "read", json!({}));
    let mut history = vec![user("hello")];
    for id in ["a", "b", "c", "d"] {
        history.push(assistant(vec![read(id)]));
        history.push(tool_result(id, vec![Content::text("x"), picture()], false));
    }
    let mut marked = request(history);
    marked.tools = Arc::new([tool("list", "Lists."), tool("read", "Reads a file.")]);
    let body = sent_once("claude-opus-4-8", marked).await;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["tools"][0]["cache_control"], Value::Null);
    assert_eq!(body["tools"][1]["cache_control"], mark);
    assert_eq!(body["system"][0]["cache_control"], mark);
    for (at, expected) in [(6, &mark), (8, &mark), (4, &Value::Null), (2, &Value::Null)] {
        assert_eq!(
            &body["messages"][at]["content"][0]["cache_control"], expected,
            "{at}"
        );
    }
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
}

/// A PDF goes as a document, an image as an image; a model without either gets a note instead.
// proves: ANTHROPIC-63, ANTHROPIC-77
#[tokio::test]
async fn media_are_sent_only_to_models_that_take_them() {
    let document = Content::Document(DocumentData {
        name: "report.pdf".to_owned(),
        mime_type: "application/pdf".to_owned(),
        base64: "UERG".into(),
    });
    let history = vec![Message::User {
        content: vec![document, picture()],
    }];
    let body = sent_once("claude-opus-4-8", request(history.clone())).await;
    assert_eq!(
        body["messages"][0]["content"][0],
        json!({
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "UERG"},
            "title": "report.pdf",
        })
    );
    assert_eq!(content_types(&body["messages"][0]), ["document", "image"]);

    let server = serve(vec![event_response(ANSWER)]).await;
    let provider = ProviderConfig::new("acme", Api::Anthropic, &server.base_url);
    let name: ModelName = "acme/claude-opus-4-8".parse().unwrap();
    let blind = ModelOverride {
        images: Some(false),
        documents: Some(false),
        ..ModelOverride::default()
    };
    let registry = ModelRegistry::new(vec![provider]).with_overrides([(name.clone(), blind)]);
    let model = registry.model(&name).unwrap();
    call_for_deltas(&*model, request(history)).await.0.unwrap();
    let message = &server.bodies()[0]["messages"][0];
    assert_eq!(content_types(message), ["text", "text"]);
    assert!(!message.to_string().contains("QUJD") && !message.to_string().contains("UERG"));
}

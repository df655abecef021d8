//! Tests of the server: order of responses, dropped connections and unknown paths.

use crate::wire::{get, parse_responses, post, read_response, send_request, start_model};
use acp_conformance::model::{
    ExchangeRole, ExchangeState, FakeModel, FakeModelConfig, ScriptTool, ToolCandidates,
};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

const CHAT_PATH: &str = "/v1/chat/completions";

fn chat_request(stream: bool, prompt: &str) -> Value {
    json!({
        "model": "m", "stream": stream,
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
        "messages": [{"role": "user", "content": prompt}],
    })
}

async fn response_text(model: &FakeModel, prompt: &str) -> Value {
    let completion = post(model, CHAT_PATH, &chat_request(false, prompt))
        .await
        .json();
    completion["choices"][0]["message"]["content"].clone()
}

#[tokio::test]
async fn responses_come_in_order_and_last_repeats() {
    let model = start_model("text \"first\"\n---\ntext \"second\"").await;
    assert_eq!(model.unused_responses(), 2);
    assert_eq!(response_text(&model, "a").await, "first");
    assert_eq!(response_text(&model, "b").await, "second");
    assert_eq!(response_text(&model, "c").await, "second");
    let roles: Vec<ExchangeRole> = model
        .conversation_exchanges()
        .into_iter()
        .map(|one| one.role)
        .collect();
    assert_eq!(
        roles,
        [
            ExchangeRole::Main(0),
            ExchangeRole::Main(1),
            ExchangeRole::AfterScript
        ]
    );
    assert_eq!(model.unused_responses(), 0);
}

#[tokio::test]
async fn same_script_gives_the_same_bytes() {
    let script = "think \"a\"\ntext \"b\" times 3\ncall t {\"x\": 1}\n---\ntext \"c\"\nlength";
    let (one, other) = (start_model(script).await, start_model(script).await);
    for path in [
        CHAT_PATH,
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/g:streamGenerateContent?alt=sse",
    ] {
        let mine = post(&one, path, &chat_request(true, "go")).await.body;
        assert_eq!(
            mine,
            post(&other, path, &chat_request(true, "go")).await.body
        );
        assert!(mine.len() > 100, "{path}: {mine}");
    }
}

#[tokio::test]
async fn tool_call_is_not_repeated() {
    let model = start_model("call tool:nothing {}").await;
    assert_eq!(response_text(&model, "a").await, Value::Null);
    assert_eq!(
        response_text(&model, "b").await,
        "The script is at its end."
    );
}

#[tokio::test]
async fn final_error_repeats() {
    let model = start_model("error 500").await;
    for _ in 0..3 {
        assert_eq!(
            post(&model, CHAT_PATH, &chat_request(true, "a"))
                .await
                .status,
            500
        );
    }
}

#[tokio::test]
async fn each_prompt_can_have_its_own_script() {
    let model = start_model("text \"any\"\n---\ntext \"any again\"").await;
    model.set_script(
        Some("alpha"),
        parse_responses("text \"A1\"\n---\ntext \"A2\""),
    );
    model.set_script(Some("beta"), parse_responses("text \"B1\""));
    assert_eq!(response_text(&model, "do beta").await, "B1");
    assert_eq!(response_text(&model, "do alpha").await, "A1");
    assert_eq!(response_text(&model, "neither").await, "any");
    assert_eq!(response_text(&model, "do alpha").await, "A2");
    // The newest of several prompts in a conversation counts.
    let mut both = chat_request(false, "do alpha");
    let messages = both["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "A1"}));
    messages.push(json!({"role": "user", "content": "now beta"}));
    model.set_script(Some("beta"), parse_responses("text \"B2\""));
    let completion = post(&model, CHAT_PATH, &both).await.json();
    assert_eq!(completion["choices"][0]["message"]["content"], "B2");
    // This applies within one message, too.
    assert_eq!(response_text(&model, "do beta\n\nnow alpha").await, "A2");
    assert_eq!(response_text(&model, "do alpha\n\nnow beta").await, "B2");
}

#[tokio::test]
async fn prompt_script_restarts_with_each_prompt() {
    let model = start_model("text \"any 1\"\n---\ntext \"any 2\"").await;
    model.set_script(
        Some("alpha"),
        parse_responses("text \"A1\"\n---\ntext \"A2\""),
    );
    model.set_script(
        Some("beta"),
        parse_responses("text \"B1\"\n---\ntext \"B2\""),
    );
    assert_eq!(response_text(&model, "alpha").await, "A1");
    assert_eq!(response_text(&model, "beta").await, "B1");
    assert_eq!(response_text(&model, "none").await, "any 1");
    model.restart_scripts(|text| "alpha and none".contains(text));
    assert_eq!(response_text(&model, "alpha").await, "A1");
    assert_eq!(response_text(&model, "beta").await, "B2");
    assert_eq!(response_text(&model, "none").await, "any 2");
}

#[tokio::test]
async fn side_requests_do_not_consume_the_script() {
    let mut config = FakeModelConfig::default();
    config.requests.side_markers = vec!["[SUGGEST]".to_owned()];
    let model = FakeModel::start(config).await.unwrap();
    model.set_script(None, parse_responses("text \"main\""));
    let mut title = chat_request(false, "Give it a title");
    title.as_object_mut().unwrap().remove("tools");
    let completion = post(&model, CHAT_PATH, &title).await.json();
    assert_eq!(
        completion["choices"][0]["message"]["content"],
        "Conformance"
    );
    assert_eq!(
        response_text(&model, "[SUGGEST] what next").await,
        "Conformance"
    );
    title["response_format"] = json!({"type": "json_schema", "json_schema": {"schema":
        {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}}});
    let completion = post(&model, CHAT_PATH, &title).await.json();
    assert_eq!(
        completion["choices"][0]["message"]["content"],
        "{\"title\":\"conformance\"}"
    );
    assert_eq!(response_text(&model, "go").await, "main");
    let roles: Vec<ExchangeRole> = model.exchanges().into_iter().map(|one| one.role).collect();
    assert_eq!(
        roles,
        [
            ExchangeRole::Side,
            ExchangeRole::Side,
            ExchangeRole::Side,
            ExchangeRole::Main(0)
        ]
    );
}

#[tokio::test]
async fn agent_without_tools_can_converse() {
    let mut config = FakeModelConfig::default();
    config.requests.offers_tools = false;
    let model = FakeModel::start(config).await.unwrap();
    model.set_script(None, parse_responses("text \"main\""));
    let mut bare = chat_request(false, "go");
    bare.as_object_mut().unwrap().remove("tools");
    let completion = post(&model, CHAT_PATH, &bare).await.json();
    assert_eq!(completion["choices"][0]["message"]["content"], "main");
}

#[tokio::test]
async fn dropped_connection_is_noticed() {
    let model = start_model("hang\n---\ntext \"begun\"\nhang").await;
    let silent = send_request(
        &model,
        "POST",
        CHAT_PATH,
        &chat_request(true, "a").to_string(),
    )
    .await;
    model
        .wait_until(|all| all.len() == 1 && all[0].role == ExchangeRole::Main(0))
        .await;
    assert_eq!(model.exchanges()[0].state, ExchangeState::Open);
    drop(silent);
    model
        .wait_until(|all| all[0].state == ExchangeState::Dropped)
        .await;

    let mut begun = send_request(
        &model,
        "POST",
        CHAT_PATH,
        &chat_request(true, "b").to_string(),
    )
    .await;
    let mut heard = String::new();
    while !heard.contains("begun") {
        let mut bytes = [0; 4096];
        let count = begun.read(&mut bytes).await.unwrap();
        heard.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    assert_eq!(model.exchanges()[1].state, ExchangeState::Open);
    drop(begun);
    model
        .wait_until(|all| all[1].state == ExchangeState::Dropped)
        .await;
    assert_eq!(model.exchanges()[1].status, Some(200));
}

#[tokio::test]
async fn hanging_response_continues_on_release() {
    let model = start_model("text \"a\"\nhang\ntext \"b\"").await;
    let stream = send_request(
        &model,
        "POST",
        CHAT_PATH,
        &chat_request(true, "go").to_string(),
    )
    .await;
    let reading = tokio::spawn(read_response(stream));
    model
        .wait_until(|all| all.len() == 1 && all[0].status == Some(200))
        .await;
    // The request may not be waiting yet; repeated releases end it anyway.
    while model.exchanges()[0].state == ExchangeState::Open {
        model.release_hanging();
        tokio::task::yield_now().await;
    }
    let answer = reading.await.unwrap();
    assert!(answer.is_complete && answer.body.contains("\"content\":\"b\""));
    assert_eq!(model.exchanges()[0].state, ExchangeState::Answered);
}

#[tokio::test]
async fn cut_closes_connection_within_the_response() {
    let model = start_model("text \"a\"\ncut\n---\ncut").await;
    let answer = post(&model, CHAT_PATH, &chat_request(true, "go")).await;
    assert!(answer.body.contains("\"content\":\"a\"") && !answer.is_complete);
    assert_eq!(
        post(&model, CHAT_PATH, &chat_request(true, "go"))
            .await
            .status,
        0
    );
    let fates: Vec<ExchangeState> = model.exchanges().into_iter().map(|one| one.state).collect();
    assert_eq!(fates, [ExchangeState::Cut, ExchangeState::Cut]);
}

#[tokio::test]
async fn slow_response_is_complete() {
    let model = start_model("slow 1\ntext \"a\" times 20").await;
    let answer = post(&model, CHAT_PATH, &chat_request(true, "go")).await;
    assert_eq!(answer.body.matches("\"content\":\"a\"").count(), 20);
    assert_eq!(model.exchanges()[0].state, ExchangeState::Answered);
}

#[tokio::test]
async fn missing_tool_is_reported_and_recorded() {
    let model = start_model("call shell {\"command\": \"ls\"}").await;
    assert_eq!(
        response_text(&model, "go").await,
        "No tool on offer does shell."
    );
    assert_eq!(model.exchanges()[0].missing_tools, [ScriptTool::Shell]);
}

#[tokio::test]
async fn profile_candidates_precede_the_search() {
    let tools: ToolCandidates =
        toml::from_str(r#"shell = [{ tool = "t", args = { x = "{command}" } }]"#).unwrap();
    let model = FakeModel::start(FakeModelConfig {
        tools,
        ..FakeModelConfig::default()
    })
    .await
    .unwrap();
    model.set_script(None, parse_responses("call shell {\"command\": \"ls\"}"));
    let completion = post(&model, CHAT_PATH, &chat_request(false, "go"))
        .await
        .json();
    let call = &completion["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(*call, json!({"name": "t", "arguments": "{\"x\":\"ls\"}"}));
}

#[tokio::test]
async fn unknown_path_gets_404_and_is_recorded() {
    let model = start_model("text \"a\"").await;
    let nothing = post(&model, "/v1/nothing?a=b&key=s3cret", &json!({"x": 1})).await;
    assert_eq!(nothing.status, 404);
    assert_eq!(get(&model, "/").await.status, 404);
    let all = model.exchanges();
    assert_eq!(
        (&all[0].role, all[0].status, all[0].state),
        (&ExchangeRole::Unknown, Some(404), ExchangeState::Answered)
    );
    assert_eq!(
        (all[0].path.as_str(), &all[0].body),
        ("/v1/nothing?a=b", &json!({"x": 1}))
    );
    assert!(!format!("{all:?}").contains("s3cret"));
    assert_eq!(model.unused_responses(), 1);
}

#[tokio::test]
async fn unreadable_request_gets_400() {
    let model = start_model("text \"a\"").await;
    let broken = read_response(send_request(&model, "POST", CHAT_PATH, "{nonsense").await).await;
    assert_eq!(broken.status, 400);
    let exchange = model.exchanges().remove(0);
    assert!(matches!(exchange.role, ExchangeRole::Unreadable(_)));
    assert_eq!(exchange.body, json!("{nonsense"));
    assert_eq!(model.unused_responses(), 1);
}

#[tokio::test]
async fn models_are_listed_and_tokens_counted() {
    let model = start_model("text \"a\"").await;
    let models = get(&model, "/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "fake-model");
    assert_eq!(models["models"][0]["name"], "models/fake-model");
    let count = post(&model, "/v1/messages/count_tokens", &json!({}))
        .await
        .json();
    assert_eq!(count, json!({"input_tokens": 1200}));
    let count = post(&model, "/v1beta/models/g:countTokens", &json!({}))
        .await
        .json();
    assert_eq!(count, json!({"totalTokens": 1200}));
    assert!(
        model
            .exchanges()
            .iter()
            .all(|one| one.role == ExchangeRole::Service)
    );
    assert_eq!(model.unused_responses(), 1);
}

#[tokio::test]
async fn dropping_the_model_closes_connections() {
    let model = start_model("hang").await;
    let stream = send_request(
        &model,
        "POST",
        CHAT_PATH,
        &chat_request(true, "a").to_string(),
    )
    .await;
    model.wait_until(|all| !all.is_empty()).await;
    drop(model);
    assert_eq!(read_response(stream).await.status, 0);
}

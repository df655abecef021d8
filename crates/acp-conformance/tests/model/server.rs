//! The server itself: whose turn it is, who let go, and what is not there.

use crate::wire::{ask, get, model, post, read, script_of};
use acp_conformance::model::{Candidates, FakeModel, Fate, Role, Rules, Tool};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

const CHAT: &str = "/v1/chat/completions";

fn chat(stream: bool, prompt: &str) -> Value {
    json!({
        "model": "m", "stream": stream,
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
        "messages": [{"role": "user", "content": prompt}],
    })
}

async fn said(model: &FakeModel, prompt: &str) -> Value {
    let completion = post(model, CHAT, &chat(false, prompt)).await.json();
    completion["choices"][0]["message"]["content"].clone()
}

#[tokio::test]
async fn answers_come_in_order_and_the_last_one_again() {
    let model = model("text \"first\"\n---\ntext \"second\"").await;
    assert_eq!(model.unsaid(), 2);
    assert_eq!(said(&model, "a").await, "first");
    assert_eq!(said(&model, "b").await, "second");
    assert_eq!(said(&model, "c").await, "second");
    let roles: Vec<Role> = model
        .conversation()
        .into_iter()
        .map(|one| one.role)
        .collect();
    assert_eq!(roles, [Role::Main(0), Role::Main(1), Role::Beyond]);
    assert_eq!(model.unsaid(), 0);
}

#[tokio::test]
async fn two_runs_of_one_script_are_the_same_to_the_byte() {
    let script = "think \"a\"\ntext \"b\" times 3\ncall t {\"x\": 1}\n---\ntext \"c\"\nlength";
    let (one, other) = (model(script).await, model(script).await);
    for path in [
        CHAT,
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/g:streamGenerateContent?alt=sse",
    ] {
        let mine = post(&one, path, &chat(true, "go")).await.body;
        assert_eq!(mine, post(&other, path, &chat(true, "go")).await.body);
        assert!(mine.len() > 100, "{path}: {mine}");
    }
}

#[tokio::test]
async fn a_call_is_not_made_again() {
    let model = model("call tool:nothing {}").await;
    assert_eq!(said(&model, "a").await, Value::Null);
    assert_eq!(said(&model, "b").await, "The script is at its end.");
}

#[tokio::test]
async fn an_error_at_the_end_is_the_answer_to_all_that_follows() {
    let model = model("error 500").await;
    for _ in 0..3 {
        assert_eq!(post(&model, CHAT, &chat(true, "a")).await.status, 500);
    }
}

#[tokio::test]
async fn each_prompt_may_have_a_script_of_its_own() {
    let model = model("text \"any\"\n---\ntext \"any again\"").await;
    model.says(Some("alpha"), script_of("text \"A1\"\n---\ntext \"A2\""));
    model.says(Some("beta"), script_of("text \"B1\""));
    assert_eq!(said(&model, "do beta").await, "B1");
    assert_eq!(said(&model, "do alpha").await, "A1");
    assert_eq!(said(&model, "neither").await, "any");
    assert_eq!(said(&model, "do alpha").await, "A2");
    // Of several prompts in one conversation the newest counts.
    let mut both = chat(false, "do alpha");
    let messages = both["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "A1"}));
    messages.push(json!({"role": "user", "content": "now beta"}));
    model.says(Some("beta"), script_of("text \"B2\""));
    let completion = post(&model, CHAT, &both).await.json();
    assert_eq!(completion["choices"][0]["message"]["content"], "B2");
    // Even in one message.
    assert_eq!(said(&model, "do beta\n\nnow alpha").await, "A2");
    assert_eq!(said(&model, "do alpha\n\nnow beta").await, "B2");
}

#[tokio::test]
async fn a_script_for_a_prompt_begins_anew_with_each() {
    let model = model("text \"any 1\"\n---\ntext \"any 2\"").await;
    model.says(Some("alpha"), script_of("text \"A1\"\n---\ntext \"A2\""));
    model.says(Some("beta"), script_of("text \"B1\"\n---\ntext \"B2\""));
    assert_eq!(said(&model, "alpha").await, "A1");
    assert_eq!(said(&model, "beta").await, "B1");
    assert_eq!(said(&model, "none").await, "any 1");
    model.prompted(|text| "alpha and none".contains(text));
    assert_eq!(said(&model, "alpha").await, "A1");
    assert_eq!(said(&model, "beta").await, "B2");
    assert_eq!(said(&model, "none").await, "any 2");
}

#[tokio::test]
async fn what_is_beside_the_conversation_takes_none_of_the_script() {
    let rules = Rules {
        side: vec!["[SUGGEST]".to_owned()],
        ..Rules::default()
    };
    let model = FakeModel::start(rules).await.unwrap();
    model.says(None, script_of("text \"main\""));
    let mut title = chat(false, "Give it a title");
    title.as_object_mut().unwrap().remove("tools");
    let completion = post(&model, CHAT, &title).await.json();
    assert_eq!(
        completion["choices"][0]["message"]["content"],
        "Conformance"
    );
    assert_eq!(said(&model, "[SUGGEST] what next").await, "Conformance");
    title["response_format"] = json!({"type": "json_schema", "json_schema": {"schema":
        {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}}});
    let completion = post(&model, CHAT, &title).await.json();
    assert_eq!(
        completion["choices"][0]["message"]["content"],
        "{\"title\":\"conformance\"}"
    );
    assert_eq!(said(&model, "go").await, "main");
    let roles: Vec<Role> = model.exchanges().into_iter().map(|one| one.role).collect();
    assert_eq!(roles, [Role::Side, Role::Side, Role::Side, Role::Main(0)]);
}

#[tokio::test]
async fn an_agent_without_tools_can_hold_a_conversation() {
    let rules = Rules {
        offers_tools: false,
        ..Rules::default()
    };
    let model = FakeModel::start(rules).await.unwrap();
    model.says(None, script_of("text \"main\""));
    let mut bare = chat(false, "go");
    bare.as_object_mut().unwrap().remove("tools");
    let completion = post(&model, CHAT, &bare).await.json();
    assert_eq!(completion["choices"][0]["message"]["content"], "main");
}

#[tokio::test]
async fn a_dropped_connection_is_noticed_before_and_within_an_answer() {
    let model = model("hang\n---\ntext \"begun\"\nhang").await;
    let silent = ask(&model, "POST", CHAT, &chat(true, "a").to_string()).await;
    model
        .until(|all| all.len() == 1 && all[0].role == Role::Main(0))
        .await;
    assert_eq!(model.exchanges()[0].fate, Fate::Open);
    drop(silent);
    model.until(|all| all[0].fate == Fate::Dropped).await;

    let mut begun = ask(&model, "POST", CHAT, &chat(true, "b").to_string()).await;
    let mut heard = String::new();
    while !heard.contains("begun") {
        let mut bytes = [0; 4096];
        let count = begun.read(&mut bytes).await.unwrap();
        heard.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    assert_eq!(model.exchanges()[1].fate, Fate::Open);
    drop(begun);
    model.until(|all| all[1].fate == Fate::Dropped).await;
    assert_eq!(model.exchanges()[1].status, Some(200));
}

#[tokio::test]
async fn what_hangs_goes_on_when_released() {
    let model = model("text \"a\"\nhang\ntext \"b\"").await;
    let stream = ask(&model, "POST", CHAT, &chat(true, "go").to_string()).await;
    let reading = tokio::spawn(read(stream));
    model
        .until(|all| all.len() == 1 && all[0].status == Some(200))
        .await;
    // It may not hang yet; released again and again, it ends all the same.
    while model.exchanges()[0].fate == Fate::Open {
        model.release();
        tokio::task::yield_now().await;
    }
    let answer = reading.await.unwrap();
    assert!(answer.whole && answer.body.contains("\"content\":\"b\""));
    assert_eq!(model.exchanges()[0].fate, Fate::Answered);
}

#[tokio::test]
async fn a_cut_ends_the_connection_within_the_answer() {
    let model = model("text \"a\"\ncut\n---\ncut").await;
    let answer = post(&model, CHAT, &chat(true, "go")).await;
    assert!(answer.body.contains("\"content\":\"a\"") && !answer.whole);
    assert_eq!(post(&model, CHAT, &chat(true, "go")).await.status, 0);
    let fates: Vec<Fate> = model.exchanges().into_iter().map(|one| one.fate).collect();
    assert_eq!(fates, [Fate::Cut, Fate::Cut]);
}

#[tokio::test]
async fn a_slow_answer_is_whole_all_the_same() {
    let model = model("slow 1\ntext \"a\" times 20").await;
    let answer = post(&model, CHAT, &chat(true, "go")).await;
    assert_eq!(answer.body.matches("\"content\":\"a\"").count(), 20);
    assert_eq!(model.exchanges()[0].fate, Fate::Answered);
}

#[tokio::test]
async fn a_tool_that_is_not_on_offer_is_said_and_recorded() {
    let model = model("call shell {\"command\": \"ls\"}").await;
    assert_eq!(said(&model, "go").await, "No tool on offer does shell.");
    assert_eq!(model.exchanges()[0].missing, [Tool::Shell]);
}

#[tokio::test]
async fn candidates_of_a_profile_go_before_the_search() {
    let tools: Candidates =
        toml::from_str(r#"shell = [{ tool = "t", args = { x = "{command}" } }]"#).unwrap();
    let model = FakeModel::start(Rules {
        tools,
        ..Rules::default()
    })
    .await
    .unwrap();
    model.says(None, script_of("call shell {\"command\": \"ls\"}"));
    let completion = post(&model, CHAT, &chat(false, "go")).await.json();
    let call = &completion["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(*call, json!({"name": "t", "arguments": "{\"x\":\"ls\"}"}));
}

#[tokio::test]
async fn an_unknown_path_is_answered_with_404_and_recorded() {
    let model = model("text \"a\"").await;
    let nothing = post(&model, "/v1/nothing?a=b&key=s3cret", &json!({"x": 1})).await;
    assert_eq!(nothing.status, 404);
    assert_eq!(get(&model, "/").await.status, 404);
    let all = model.exchanges();
    assert_eq!(
        (&all[0].role, all[0].status, all[0].fate),
        (&Role::Unknown, Some(404), Fate::Answered)
    );
    assert_eq!(
        (all[0].path.as_str(), &all[0].body),
        ("/v1/nothing?a=b", &json!({"x": 1}))
    );
    assert!(!format!("{all:?}").contains("s3cret"));
    assert_eq!(model.unsaid(), 1);
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_with_400_and_takes_no_answer() {
    let model = model("text \"a\"").await;
    let broken = read(ask(&model, "POST", CHAT, "{nonsense").await).await;
    assert_eq!(broken.status, 400);
    let exchange = model.exchanges().remove(0);
    assert!(matches!(exchange.role, Role::Broken(_)));
    assert_eq!(exchange.body, json!("{nonsense"));
    assert_eq!(model.unsaid(), 1);
}

#[tokio::test]
async fn models_are_listed_and_tokens_counted() {
    let model = model("text \"a\"").await;
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
            .all(|one| one.role == Role::Service)
    );
    assert_eq!(model.unsaid(), 1);
}

#[tokio::test]
async fn with_the_model_go_its_connections() {
    let model = model("hang").await;
    let stream = ask(&model, "POST", CHAT, &chat(true, "a").to_string()).await;
    model.until(|all| !all.is_empty()).await;
    drop(model);
    assert_eq!(read(stream).await.status, 0);
}

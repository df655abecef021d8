//! Tests how deltas are assigned to tool calls.

use crate::{
    server::{call_for_deltas, event_response, hello_request, serve, tool_call},
    variants::read_with_deltas,
};
use serde_json::json;
use turnery_engine::{Content, ModelDelta};
use turnery_models::Api;

/// Reads a stream of deltas, each given as the list `tool_calls`.
async fn read(deltas: &[&str]) -> (Vec<Content>, Vec<ModelDelta>) {
    let chunk = |calls: &&str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{calls}]}}}}]}}"#);
    let mut events: Vec<String> = deltas.iter().map(chunk).collect();
    events.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let (response, deltas) = read_with_deltas(&events).await;
    (response.content, deltas)
}

/// Quirks 4, 37, 38, 39 and 41.
// proves: CHAT-37, CHAT-38, CHAT-39
#[tokio::test]
async fn deltas_are_assigned_to_their_calls() {
    let cases: Vec<(&str, Vec<&str>, Vec<Content>)> = vec![
        (
            "indexes that are sparse and do not start at zero",
            vec![
                r#"{"index":3,"id":"a","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"index":7,"id":"b","function":{"name":"list","arguments":"{\"q\":"}}"#,
                r#"{"index":3,"function":{"arguments":"1}"}},{"index":7,"function":{"arguments":"2}"}}"#,
            ],
            vec![
                tool_call("a", "read", json!({"p": 1})),
                tool_call("b", "list", json!({"q": 2})),
            ],
        ),
        (
            "indexes as strings, and without sense",
            vec![
                r#"{"index":"1","id":"a","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"index":"0","id":"b","function":{"name":"list","arguments":""}}"#,
                r#"{"index":"1","function":{"arguments":"1}"}}"#,
                r#"{"index":-1,"id":"c","function":{"name":"stat","arguments":"{"}}"#,
                r#"{"index":null,"function":{"arguments":"}"}}"#,
            ],
            vec![
                tool_call("a", "read", json!({"p": 1})),
                tool_call("b", "list", json!({})),
                tool_call("c", "stat", json!({})),
            ],
        ),
        (
            "one index for two calls, told by their ids",
            vec![
                r#"{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"read","arguments":"1}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"read","arguments":"{}"}}"#,
            ],
            vec![
                tool_call("a", "read", json!({"p": 1})),
                tool_call("b", "read", json!({})),
            ],
        ),
        (
            "an id that changes within a call",
            vec![
                r#"{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"index":0,"id":"a2","function":{"arguments":"1}"}}"#,
            ],
            vec![tool_call("a", "read", json!({"p": 1}))],
        ),
        (
            "the name after the arguments",
            vec![
                r#"{"index":0,"id":"a","function":{"arguments":"{\"p\":"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
                r#"{"index":0,"function":{"name":"read"}}"#,
            ],
            vec![tool_call("a", "read", json!({"p": 1}))],
        ),
        (
            "the name after the arguments, without indexes",
            vec![
                r#"{"id":"a","function":{"arguments":"{}"}}"#,
                r#"{"function":{"name":"read"}}"#,
                r#"{"id":"b","function":{"name":"list"}}"#,
            ],
            vec![
                tool_call("a", "read", json!({})),
                tool_call("b", "list", json!({})),
            ],
        ),
        (
            "no ids and no arguments",
            vec![
                r#"{"index":0,"id":"","function":{"name":"read"}}"#,
                r#"{"index":1,"id":null,"function":{"name":"list","arguments":null}}"#,
            ],
            vec![
                tool_call("call_1", "read", json!({})),
                tool_call("call_2", "list", json!({})),
            ],
        ),
    ];
    for (what, deltas, content) in cases {
        assert_eq!(read(&deltas).await.0, content, "{what}");
    }
}

/// Quirk 40: arguments that are JSON already may continue.
// proves: CHAT-40
#[tokio::test]
async fn arguments_that_parse_do_not_finish_a_call() {
    let (content, _) = read(&[
        r#"{"index":0,"id":"a","function":{"name":"run","arguments":"{\"command\":\"rm x\"}"}}"#,
        r#"{"index":0,"function":{"arguments":" "}}"#,
        r#"{"index":0,"function":{"arguments":"oops"}}"#,
    ])
    .await;
    assert_eq!(
        content,
        [tool_call("a", "run", json!("{\"command\":\"rm x\"} oops"))]
    );
}

/// Quirk 59.
#[tokio::test]
async fn tool_names_lose_prefix_and_marker() {
    let (content, deltas) = read(&[
        r#"{"index":0,"id":"a","function":{"name":"functions.read","arguments":"{}"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"list<|channel|>commentary","arguments":"{}"}}"#,
        r#"{"index":2,"id":"c","function":{"name":"functions.stat <|constrain|>json","arguments":"{}"}}"#,
    ])
    .await;
    let shown: Vec<&str> = deltas
        .iter()
        .filter_map(|delta| match delta {
            ModelDelta::ToolCallArgs { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["read", "list", "stat"]);
    let names = ["read", "list", "stat"];
    let ids = ["a", "b", "c"];
    let expected: Vec<Content> = ids
        .into_iter()
        .zip(names)
        .map(|(id, name)| tool_call(id, name, json!({})))
        .collect();
    assert_eq!(content, expected);
}

/// Quirk 59: the calls inside take the place of the made-up one, which is not shown.
#[tokio::test]
async fn parallel_calls_are_unpacked() {
    let (content, deltas) = read(&[
        r#"{"index":0,"id":"a","function":{"name":"multi_tool_use.parallel","arguments":"{\"tool_uses\":[{\"recipient_name\":\"functions.read\","}}"#,
        r#"{"index":0,"function":{"arguments":"\"parameters\":{\"p\":1}},{\"recipient_name\":\"list\",\"parameters\":\"{\\\"q\\\":2}\"},{\"recipient_name\":\"functions.stat\"}]}"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"read","arguments":"{\"p\":3}"}}"#,
    ])
    .await;
    assert_eq!(
        content,
        [
            tool_call("a", "read", json!({"p": 1})),
            tool_call("call_3", "list", json!({"q": 2})),
            tool_call("call_4", "stat", json!({})),
            tool_call("b", "read", json!({"p": 3})),
        ]
    );
    assert_eq!(deltas.len(), 1, "{deltas:?}");
    // Nothing runs that is not understood.
    let made_up = "multi_tool_use.parallel";
    for args in [
        r#"{\"tool_uses\":[]}"#,
        r#"{\"tool_uses\":[{\"parameters\":{}}]}"#,
        r#"{}"#,
    ] {
        let delta = format!(
            r#"{{"index":0,"id":"a","function":{{"name":"{made_up}","arguments":"{args}"}}}}"#
        );
        let (content, _) = read(&[&delta]).await;
        let parsed = serde_json::from_str(&args.replace('\\', "")).unwrap();
        assert_eq!(content, [tool_call("a", made_up, parsed)]);
    }
}

/// Quirk 5: ids that a server uses in every response are unique within the conversation.
#[tokio::test]
async fn ids_are_unique_within_the_conversation() {
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let server = serve(vec![event_response(&format!("data: {call}\n\n")); 2]).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    let first = call_for_deltas(&*model, hello_request()).await.0.unwrap();
    let mut history = hello_request();
    history = crate::server::request(vec![
        history.messages[0].message.clone(),
        crate::server::assistant(first.content.clone()),
        crate::server::tool_result("call_0", vec![Content::text("found")], false),
    ]);
    let second = call_for_deltas(&*model, history).await.0.unwrap();
    let ids = [&first, &second].map(|it| it.calls().next().unwrap().call_id.to_string());
    assert_eq!(ids[0], "call_0");
    assert_ne!(ids[0], ids[1]);
}

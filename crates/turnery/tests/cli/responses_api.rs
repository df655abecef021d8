//! A prompt over the OpenAI Responses API: reasoning and calls of a turn are sent back with the next.

use crate::{fake_http, home::Home};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Returns the events of a response with these output items.
fn events(items: Value) -> String {
    let usage = json!({"input_tokens": 40, "output_tokens": 10, "total_tokens": 50});
    let end =
        json!({"type": "response.completed", "response": {"status": "completed", "usage": usage}});
    let items = items.as_array().cloned().unwrap_or_default();
    let done = (0..).zip(items).map(|(index, item): (u32, Value)| {
        json!({"type": "response.output_item.done", "output_index": index, "item": item})
    });
    done.chain([end])
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

#[tokio::test]
async fn reasoning_and_result_return_with_the_next_turn() {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = Arc::clone(&bodies);
    let address = fake_http::serve(move |request| {
        // The list of models is asked for as well.
        if request.body.is_empty() {
            return Some(fake_http::response(
                "404 Not Found",
                "application/json",
                "{}",
            ));
        }
        let mut bodies = kept.lock().expect("no panic");
        bodies.push(serde_json::from_slice(&request.body).expect("JSON"));
        let items = match bodies.len() {
            1 => json!([
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
                {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "list_dir", "arguments": "{}"},
            ]),
            _ => json!([
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
            ]),
        };
        Some(fake_http::response(
            "200 OK",
            "text/event-stream",
            &events(items),
        ))
    });
    let home = Home::new();
    let config = format!(
        "[providers.desk]\napi = \"openai_responses\"\nbase_url = \"http://{address}/v1\"\n"
    );
    home.write_file("turnery/config.toml", &config);
    let run = ["run", "--format", "json", "--model", "desk/gpt-5", "go"];
    let result = home.run(&run).await.stdout_json();
    assert_eq!(result["text"], "done", "{result}");
    assert_eq!(result["turns"], 2, "{result}");
    let bodies = bodies.lock().expect("no panic");
    let input = bodies[1]["input"].as_array().expect("a list");
    let first = bodies[0]["input"].as_array().expect("a list");
    assert!(input.starts_with(first), "{input:?}");
    let [reasoning, call, output] = &input[first.len()..] else {
        panic!("{input:?}");
    };
    assert_eq!(
        *reasoning,
        json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"})
    );
    assert_eq!(
        *call,
        json!({"type": "function_call", "call_id": "call_1", "name": "list_dir", "arguments": "{}"})
    );
    assert_eq!(output["call_id"], "call_1");
    assert_eq!(output["type"], "function_call_output");
}

//! Runs the example against a fake provider over HTTP. Its address is in the environment, so the program is
//! another process.

#[path = "../../../turnery-models/tests/server/mod.rs"]
mod server;

use server::{event_response, serve};
use std::{env, process::Command};

/// Set in the process that is the program.
const IS_PROGRAM: &str = "TURNERY_TEST_IS_PROGRAM";

const CALL: &str = r#"data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude-sonnet-4-6","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"seats","input":{}}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"tables\":3}"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

"#;

const TEXT: &str = r#"data: {"type":"message_start","message":{"id":"m2","type":"message","role":"assistant","model":"claude-sonnet-4-6","content":[],"usage":{"input_tokens":20,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Three tables seat twelve."}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

"#;

#[tokio::test(flavor = "multi_thread")]
async fn tool_result_reaches_a_provider() {
    let server = serve([CALL, TEXT].map(event_response).into()).await;
    let mut program = Command::new(env::current_exe().expect("a path"));
    program
        .args(["tests::program", "--exact", "--nocapture"])
        .env(IS_PROGRAM, "1")
        .env("ANTHROPIC_BASE_URL", &server.base_url)
        .env("ANTHROPIC_API_KEY", "sk-test")
        .env("NO_PROXY", "127.0.0.1");
    let ended = tokio::task::spawn_blocking(move || program.output());
    let output = ended.await.expect("no panic").expect("a process");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Three tables seat twelve."), "{output:?}");
    let [first, second] = &server.bodies()[..] else {
        panic!("two requests");
    };
    assert_eq!(first["tools"][0]["name"], "seats");
    assert_eq!(first["system"][0]["text"], "You plan parties.");
    let result = second["messages"].as_array().and_then(|all| all.last());
    assert!(result.is_some_and(|it| it.to_string().contains("12 seats")));
}

/// Runs the program in the process that the other test starts, and nothing elsewhere.
#[test]
fn program() {
    if env::var_os(IS_PROGRAM).is_some() {
        super::main().expect("an answer");
    }
}

/// The whole program, without its tests.
#[test]
fn program_has_at_most_30_lines() {
    let text = include_str!("main.rs");
    let program = text.split("#[cfg(test)]").next().unwrap_or_default();
    assert!(program.lines().count() <= 30);
    assert_eq!(program.matches("\nuse ").count(), 1);
}

//! Tests of tool calls: what is sent to a server and what it returns.

use super::fake_server::{FakeServer, McpFixture, envelope_text, tool_json};
use crate::{Access, Progress, TraceContext};
use serde_json::{Value, json};
use turnery_engine::{Artifact, AudioData, Content, DocumentData};

async fn connect_one(name: &str) -> (McpFixture, FakeServer) {
    let fake = FakeServer::new(vec![tool_json(name)]);
    (McpFixture::connected(vec![("s", fake.clone())]).await, fake)
}

#[tokio::test]
async fn arguments_reach_server_unchanged_and_in_order() {
    let (bench, _) = connect_one("echo").await;
    let args = json!({"z": "é\n", "a": "", "m": [1.5, null, {"y": 1, "b": 2}]});
    let envelope = bench.call("mcp__s__echo", args).await;
    assert_eq!(
        envelope_text(&envelope),
        r#"{"z":"é\n","a":"","m":[1.5,null,{"y":1,"b":2}]}"#
    );
}

// proves: EXT-6
#[tokio::test]
async fn trace_context_of_prompt_is_forwarded() {
    let (mut bench, fake) = connect_one("echo").await;
    let meta = json!({"traceparent": "00-a-b-01", "tracestate": "k=v", "baggage": "u=1", "x": 1});
    bench.cx.trace = TraceContext::from_meta(meta.as_object().unwrap());
    bench.call("mcp__s__echo", json!({})).await;
    let mut seen = fake.last_meta.lock().unwrap().clone();
    assert!(seen["progressToken"].is_number());
    seen.as_object_mut().unwrap().remove("progressToken");
    let expected = json!({"traceparent": "00-a-b-01", "tracestate": "k=v", "baggage": "u=1"});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn results_are_converted_for_the_model() {
    let (bench, _) = connect_one("raw").await;
    let long = "A".repeat(5 * 1024 * 1024 + 4);
    #[rustfmt::skip]
    let table: &[(Value, &str)] = &[
        (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "a\nb"),
        (json!({"content": [], "structuredContent": {"k": [1]}}), r#"{"k":[1]}"#),
        (json!({"content": [{"type": "text", "text": "why"}], "isError": true}), "ExecutionError: why"),
        (json!({"content": [], "isError": true}), "ExecutionError: the tool failed and did not say why"),
        (json!({"content": [{"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/ogg"}]}), "[audio/ogg, about 6 bytes, not passed on]"),
        (json!({"content": [{"type": "audio", "data": "!", "mimeType": "audio/wav"}]}), "[audio/wav, about 0 bytes, not passed on]"),
        (json!({"content": [{"type": "image", "data": "!", "mimeType": "image/png"}]}), "[image/png, about 0 bytes, not passed on]"),
        (json!({"content": [{"type": "image", "data": long, "mimeType": "image/png"}]}), "[image/png, about 3932163 bytes, not passed on]"),
        (json!({"content": [{"type": "resource_link", "uri": "note://1", "name": "n", "description": "d"}]}), "[n](note://1): d"),
        (json!({"content": [{"type": "resource", "resource": {"uri": "note://1", "text": "t"}}]}), "note://1\nt"),
        (json!({"content": [{"type": "resource", "resource": {"uri": "x://1", "blob": "AAAA"}}]}), "x://1 [binary, about 3 bytes, not passed on]"),
        (json!({"content": [{"type": "resource", "resource": {"uri": "x://1", "blob": "!", "mimeType": "application/pdf"}}]}), "x://1 [application/pdf, about 0 bytes, not passed on]"),
    ];
    for (result, expected) in table {
        let envelope = bench.call("mcp__s__raw", result.clone()).await;
        assert_eq!(envelope_text(&envelope), *expected);
    }
    let picture = json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}],
        "structuredContent": {"n": 1}});
    let envelope = bench.call("mcp__s__raw", picture).await;
    assert!(matches!(envelope.result.unwrap()[..], [Content::Image(_)]));
    assert_eq!(envelope.value, Some(json!({"n": 1})));
    let report = json!({"content": [{"type": "resource", "resource":
        {"uri": "x://r.pdf", "blob": "JVBERi0=", "mimeType": "application/pdf"}}]});
    let envelope = bench.call("mcp__s__raw", report).await;
    let document = DocumentData {
        name: "x://r.pdf".to_owned(),
        mime_type: "application/pdf".to_owned(),
        base64: "JVBERi0=".into(),
    };
    assert_eq!(envelope.result.unwrap(), [Content::Document(document)]);
    let sound = json!({"content": [
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x://1", "blob": "SUQz", "mimeType": "audio/mpeg"}}]});
    let heard = |mime_type: &str, base64: &str| {
        Content::Audio(AudioData {
            mime_type: mime_type.to_owned(),
            base64: base64.into(),
        })
    };
    assert_eq!(
        bench.call("mcp__s__raw", sound).await.result.unwrap(),
        [heard("audio/wav", "AAAA"), heard("audio/mpeg", "SUQz")]
    );
}

#[tokio::test]
async fn server_error_is_reported_without_secrets() {
    let (bench, _) = connect_one("refuse").await;
    let envelope = bench.call("mcp__s__refuse", json!({})).await;
    assert_eq!(
        envelope_text(&envelope),
        "ExecutionError: the MCP server s: no such thing as [hidden] (-32602)"
    );
}

#[tokio::test]
async fn progress_is_forwarded() {
    let (mut bench, _) = connect_one("progress").await;
    let envelope = bench.call("mcp__s__progress", json!({})).await;
    assert_eq!(envelope_text(&envelope), "done");
    let report = bench.progress.recv().await;
    assert_eq!(report, Some(Progress::Message("half (1 of 2)".to_owned())));
}

#[tokio::test]
async fn cancel_is_sent_to_server_without_waiting() {
    let (bench, fake) = connect_one("wait").await;
    let (mut waiting, mut cancelled) = (
        fake.waiting_calls.subscribe(),
        fake.cancelled_calls.subscribe(),
    );
    let cancel = bench.cx.cancel.clone();
    let stop = async {
        waiting.wait_for(|count| *count == 1).await.unwrap();
        cancel.cancel();
    };
    let (envelope, ()) = tokio::join!(bench.call("mcp__s__wait", json!({})), stop);
    assert_eq!(
        envelope_text(&envelope),
        "Cancelled: the call of the MCP server s was cancelled"
    );
    cancelled.wait_for(|count| *count == 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn timed_out_call_is_cancelled_at_server() {
    let (bench, fake) = connect_one("wait").await;
    let mut cancelled = fake.cancelled_calls.subscribe();
    let envelope = bench.call("mcp__s__wait", json!({})).await;
    assert_eq!(
        envelope_text(&envelope),
        "Timeout: mcp__s__wait ran longer than 60s and was stopped"
    );
    cancelled.wait_for(|count| *count == 1).await.unwrap();
}

#[tokio::test]
async fn permission_request_shows_server_tool_and_args() {
    let mut lying = tool_json("drop_all");
    lying["title"] = json!("Harmless\nthing");
    lying["annotations"] = json!({"readOnlyHint": true});
    let bench = McpFixture::connected(vec![("db", FakeServer::new(vec![lying]))]).await;
    let prepared = bench
        .tool("mcp__db__drop_all")
        .prepare(&json!({"now": "```"}), &bench.cx)
        .await
        .unwrap();
    assert_eq!(
        prepared.detail.title,
        "MCP db/drop_all, titled \"Harmless\nthing\""
    );
    let shown = "Server db, tool drop_all:\n````json\n{\n  \"now\": \"```\"\n}\n````";
    assert_eq!(
        prepared.detail.artifacts,
        [Artifact::Content(Content::text(shown))]
    );
    let access = Access::Server {
        all: "mcp__db".to_owned(),
        is_read_only: true,
        is_destructive: false,
    };
    assert_eq!(prepared.access, access);
}

/// A server's hints can only make the policy stricter.
#[tokio::test]
async fn destructive_tool_is_marked_and_never_read_only() {
    let mut both = tool_json("drop_all");
    both["annotations"] =
        json!({"readOnlyHint": true, "destructiveHint": true, "title": "List\u{202e}\r files"});
    let mut plain = tool_json("keep");
    plain["annotations"] = json!({"readOnlyHint": true, "destructiveHint": false});
    let bench = McpFixture::connected(vec![("db", FakeServer::new(vec![both, plain]))]).await;
    for (name, title, hints) in [
        (
            "mcp__db__drop_all",
            "MCP db/drop_all (destructive), titled \"List\u{202e}\r files\"",
            (false, true),
        ),
        ("mcp__db__keep", "MCP db/keep", (true, false)),
    ] {
        let (tool, args) = (bench.tool(name), json!({}));
        let prepared = tool.prepare(&args, &bench.cx).await.unwrap();
        assert_eq!(prepared.detail.title, title);
        let access = Access::Server {
            all: "mcp__db".to_owned(),
            is_read_only: hints.0,
            is_destructive: hints.1,
        };
        assert_eq!(prepared.access, access);
    }
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let (bench, _) = connect_one("echo").await;
    let listed = bench.call("list_mcp_resources", json!({})).await;
    assert_eq!(envelope_text(&listed), "s:\n  note://1 A note\n");
    let read = json!({"server": "s", "uri": "note://1"});
    let read = bench.call("read_mcp_resource", read).await;
    assert_eq!(envelope_text(&read), "note://1\nBuy milk");
    let other = bench
        .call("list_mcp_resources", json!({"server": "x"}))
        .await;
    assert_eq!(
        envelope_text(&other),
        "NotFound: no MCP server \"x\" has resources; these have: s"
    );
    let prepared = bench
        .tool("read_mcp_resource")
        .prepare(&json!({"server": "s", "uri": "note://1"}), &bench.cx)
        .await
        .unwrap();
    assert!(matches!(prepared.access, Access::Server { .. }));
}

#[tokio::test]
async fn prompts_are_offered_as_commands() {
    let (bench, _) = connect_one("echo").await;
    let prompts = bench.servers.prompts();
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0].command, "s:the_weather");
    assert_eq!(prompts[0].description, "Asks for it");
    assert_eq!(prompts[0].argument_hint.as_deref(), Some("city"));
    let trace = TraceContext::default();
    let written = bench
        .servers
        .get_prompt("s:the_weather", "New York", &trace);
    let expected = "What is the weather in \"New York\"?";
    assert_eq!(written.await, Ok(vec![Content::text(expected)]));
    let missing = bench.servers.get_prompt("s:the_weather", "", &trace).await;
    assert_eq!(
        missing,
        Err("city is missing: /s:the_weather city".to_owned())
    );
    assert!(!bench.servers.may_have_prompt("s:other"));
    assert!(!bench.servers.may_have_prompt("the_weather"));
}

//! Tests with servers that never start, or that die.

use super::fake_server::{FakeServer, McpFixture, envelope_text, tool_json};
use serde_json::json;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

// proves: MCP-6
#[tokio::test]
async fn failed_server_does_not_affect_others() {
    let bad = FakeServer::new(vec![tool_json("echo")]);
    bad.remaining_refusals.store(1, Ordering::SeqCst);
    let good = FakeServer::new(vec![tool_json("echo")]);
    let bench = McpFixture::connected(vec![("bad", bad), ("good", good)]).await;
    assert_eq!(bench.tool_names()[0], "mcp__good__echo");
    let status = bench.servers.status();
    assert_eq!(
        status[0].error.as_deref(),
        Some("it has the key [hidden] and does not want to")
    );
    assert_eq!(status[1].error, None);
    let envelope = bench.call("mcp__good__echo", json!({})).await;
    assert_eq!(envelope_text(&envelope), "{}");
}

#[tokio::test(start_paused = true)]
async fn hanging_server_times_out_after_20_seconds() {
    let mut hanging = FakeServer::new(Vec::new());
    hanging.hangs = true;
    let began = Instant::now();
    let bench = McpFixture::connected(vec![("slow", hanging)]).await;
    assert_eq!(began.elapsed().as_secs(), 20);
    assert_eq!(
        bench.servers.status()[0].error.as_deref(),
        Some("it was not ready within 20 s")
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_server_delays_only_its_users() {
    let hanging = FakeServer {
        hangs: true,
        ..FakeServer::new(Vec::new())
    };
    let good = FakeServer::new(vec![tool_json("echo")]);
    let began = Instant::now();
    let bench = McpFixture::new(vec![("slow", hanging), ("s", good)]);
    let servers = &bench.servers;
    servers.wait_for_server_of_tool("mcp__s__echo").await;
    servers.wait_for_server_of_prompt("s:the_weather").await;
    assert_eq!(began.elapsed().as_secs(), 0);
    let text = "use mcp__s__echo and the server slow, but not mcp__slow";
    servers.wait_for_servers_named_in(text).await;
    assert_eq!(began.elapsed().as_millis(), 0);
    assert_eq!(bench.tool_names()[0], "mcp__s__echo");
    assert_eq!(bench.tool_names().last().unwrap(), "wait_for_mcp_server");
    for (name, may) in [
        ("mcp__slow__x", true),
        ("mcp__slo__x", false),
        ("mcp__slow", false),
        ("mcp__s__x", false),
        ("slow__x", false),
    ] {
        assert_eq!(servers.may_have_tool(name), may, "{name}");
    }
    servers.wait_for_servers_named_in("use mcp__slow__x").await;
    assert_eq!(began.elapsed().as_secs(), 20);
    servers.wait_for_server_of_tool("mcp__slow__x").await;
    assert_eq!(began.elapsed().as_secs(), 20);
    let waits = |name: &String| name == "wait_for_mcp_server";
    assert!(!bench.tool_names().iter().any(waits), "it has failed");
}

#[tokio::test(start_paused = true)]
async fn wait_tool_waits_for_starting_server() {
    let hanging = FakeServer {
        hangs: true,
        ..FakeServer::new(Vec::new())
    };
    let good = FakeServer::new(vec![tool_json("echo")]);
    let bench = McpFixture::new(vec![("slow", hanging), ("s", good)]);
    let waiting = bench.tool("wait_for_mcp_server");
    let about = &waiting.spec().description;
    assert!(about.ends_with("Still starting: slow, s."), "{about}");
    let began = Instant::now();
    for (server, says, seconds) in [
        ("s", "s has started. Its tools: mcp__s__echo", 0),
        ("nobody", "these are: slow, s", 0),
        (
            "slow",
            "slow does not work: it was not ready within 20 s",
            20,
        ),
    ] {
        let envelope = waiting.run(&json!({"server": server}), &bench.cx).await;
        let told = format!("{envelope:?}");
        assert!(told.contains(says), "{told}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{server}");
    }
}

#[tokio::test]
async fn server_that_died_is_restarted_by_next_call() {
    let fake = FakeServer::new(vec![tool_json("die"), tool_json("echo")]);
    let bench = McpFixture::connected(vec![("s", fake.clone())]).await;
    let envelope = bench.call("mcp__s__die", json!({})).await;
    assert_eq!(
        envelope_text(&envelope),
        "ExecutionError: the MCP server s: it ended before it answered; it is started again when it is \
         used again"
    );
    let mut news = bench.servers.changes();
    while bench.servers.status()[0].error.is_none() {
        news.changed().await.unwrap();
    }
    // Its tools are still offered.
    assert_eq!(bench.tool_names()[0], "mcp__s__die");
    assert_eq!(fake.connect_count(), 1, "nobody has used it yet");
    let envelope = bench.call("mcp__s__echo", json!({"a": 1})).await;
    assert_eq!(envelope_text(&envelope), "{\"a\":1}");
    assert_eq!(fake.connect_count(), 2);
    assert_eq!(bench.servers.status()[0].error, None);
}

#[tokio::test]
async fn server_that_keeps_dying_is_not_restarted() {
    let fake = FakeServer::new(vec![tool_json("die")]);
    let bench = McpFixture::connected(vec![("s", fake.clone())]).await;
    for _ in 0..8 {
        bench.call("mcp__s__die", json!({})).await;
    }
    assert_eq!(fake.connect_count(), 4);
    let envelope = bench.call("mcp__s__die", json!({})).await;
    assert_eq!(
        envelope_text(&envelope),
        "ExecutionError: the MCP server s: it exited too often soon after its start, so it is not restarted"
    );
}

#[tokio::test]
async fn call_after_close_fails() {
    let bench = McpFixture::connected(vec![("s", FakeServer::new(vec![tool_json("echo")]))]).await;
    bench.servers.close().await;
    bench.servers.closed().await;
    let envelope = bench.call("mcp__s__echo", json!({})).await;
    assert_eq!(
        envelope_text(&envelope),
        "ExecutionError: the MCP server s: its session is over"
    );
}

//! Dying: servers that never come up, or go away.

use super::fake::{Bench, Fake, text, tool};
use serde_json::json;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

// proves: MCP-6
#[tokio::test]
async fn a_server_that_fails_leaves_the_others_alone() {
    let bad = Fake::new(vec![tool("echo")]);
    bad.refusals.store(1, Ordering::SeqCst);
    let good = Fake::new(vec![tool("echo")]);
    let bench = Bench::connected(vec![("bad", bad), ("good", good)]).await;
    assert_eq!(bench.names()[0], "mcp__good__echo");
    let status = bench.servers.status();
    assert_eq!(
        status[0].trouble.as_deref(),
        Some("it has the key [hidden] and does not want to")
    );
    assert_eq!(status[1].trouble, None);
    let envelope = bench.call("mcp__good__echo", json!({})).await;
    assert_eq!(text(&envelope), "{}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_waited_for_a_bounded_time() {
    let mut hanging = Fake::new(Vec::new());
    hanging.hangs = true;
    let began = Instant::now();
    let bench = Bench::connected(vec![("slow", hanging)]).await;
    assert_eq!(began.elapsed().as_secs(), 20);
    assert_eq!(
        bench.servers.status()[0].trouble.as_deref(),
        Some("it was not ready within 20 s")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_delays_only_what_uses_it() {
    let hanging = Fake {
        hangs: true,
        ..Fake::new(Vec::new())
    };
    let good = Fake::new(vec![tool("echo")]);
    let began = Instant::now();
    let bench = Bench::new(vec![("slow", hanging), ("s", good)]);
    let servers = &bench.servers;
    servers.settled_for_tool("mcp__s__echo").await;
    servers.settled_for_prompt("s:the_weather").await;
    assert_eq!(began.elapsed().as_secs(), 0);
    let text = "use mcp__s__echo and the server slow, but not mcp__slow";
    servers.settled_for_text(text).await;
    assert_eq!(began.elapsed().as_millis(), 0);
    assert_eq!(bench.names()[0], "mcp__s__echo");
    assert_eq!(bench.names().last().unwrap(), "wait_for_mcp_server");
    for (name, may) in [
        ("mcp__slow__x", true),
        ("mcp__slo__x", false),
        ("mcp__slow", false),
        ("mcp__s__x", false),
        ("slow__x", false),
    ] {
        assert_eq!(servers.may_have_tool(name), may, "{name}");
    }
    servers.settled_for_text("use mcp__slow__x").await;
    assert_eq!(began.elapsed().as_secs(), 20);
    servers.settled_for_tool("mcp__slow__x").await;
    assert_eq!(began.elapsed().as_secs(), 20);
    let waits = |name: &String| name == "wait_for_mcp_server";
    assert!(!bench.names().iter().any(waits), "it has failed");
}

#[tokio::test(start_paused = true)]
async fn model_can_wait_for_a_server_that_starts() {
    let hanging = Fake {
        hangs: true,
        ..Fake::new(Vec::new())
    };
    let good = Fake::new(vec![tool("echo")]);
    let bench = Bench::new(vec![("slow", hanging), ("s", good)]);
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
async fn a_server_that_dies_in_a_call_is_started_again_by_the_next() {
    let fake = Fake::new(vec![tool("die"), tool("echo")]);
    let bench = Bench::connected(vec![("s", fake.clone())]).await;
    let envelope = bench.call("mcp__s__die", json!({})).await;
    assert_eq!(
        text(&envelope),
        "ExecutionError: the MCP server s: it ended before it answered; it is started again when it is \
         used again"
    );
    let mut news = bench.servers.news();
    while bench.servers.status()[0].trouble.is_none() {
        news.changed().await.unwrap();
    }
    // Its tools stay on offer.
    assert_eq!(bench.names()[0], "mcp__s__die");
    assert_eq!(fake.starts(), 1, "nobody has used it yet");
    let envelope = bench.call("mcp__s__echo", json!({"a": 1})).await;
    assert_eq!(text(&envelope), "{\"a\":1}");
    assert_eq!(fake.starts(), 2);
    assert_eq!(bench.servers.status()[0].trouble, None);
}

#[tokio::test]
async fn one_that_dies_again_and_again_is_let_be() {
    let fake = Fake::new(vec![tool("die")]);
    let bench = Bench::connected(vec![("s", fake.clone())]).await;
    for _ in 0..8 {
        bench.call("mcp__s__die", json!({})).await;
    }
    assert_eq!(fake.starts(), 4);
    let envelope = bench.call("mcp__s__die", json!({})).await;
    assert_eq!(
        text(&envelope),
        "ExecutionError: the MCP server s: it ends again and again, so it is not started any more"
    );
}

#[tokio::test]
async fn nothing_answers_once_the_session_is_over() {
    let bench = Bench::connected(vec![("s", Fake::new(vec![tool("echo")]))]).await;
    bench.servers.close().await;
    bench.servers.closed().await;
    let envelope = bench.call("mcp__s__echo", json!({})).await;
    assert_eq!(
        text(&envelope),
        "ExecutionError: the MCP server s: its session is over"
    );
}

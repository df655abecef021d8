//! Tests of which tools are offered, under which names.

use super::fake_server::{FakeServer, McpFixture, tool_json};
use serde_json::json;

// proves: MCP-3
#[tokio::test]
async fn all_servers_connect_and_all_pages_are_read() {
    let a = FakeServer::new(vec![
        tool_json("one"),
        tool_json("two"),
        tool_json("get.three"),
    ]);
    let b = FakeServer::new(vec![tool_json("one")]);
    let bench = McpFixture::connected(vec![("a", a.clone()), ("b", b.clone())]).await;
    assert_eq!(
        bench.tool_names(),
        [
            "mcp__a__one",
            "mcp__a__two",
            "mcp__a__get_three-d92f24f9",
            "mcp__b__one",
            "list_mcp_resources",
            "read_mcp_resource",
        ]
    );
    assert_eq!((a.connect_count(), b.connect_count()), (1, 1));
}

#[tokio::test]
async fn changed_tool_list_is_refreshed() {
    let bench =
        McpFixture::connected(vec![("a", FakeServer::new(vec![tool_json("change")]))]).await;
    let mut news = bench.servers.changes();
    news.mark_unchanged();
    bench.call("mcp__a__change", json!({})).await;
    news.changed().await.unwrap();
    assert_eq!(bench.tool_names()[0], "mcp__a__changed");
}

#[tokio::test]
async fn schema_is_normalised_and_huge_one_omitted() {
    let mut bare = tool_json("bare");
    bare["inputSchema"] = json!({"$schema": "http://json-schema.org/draft-07/schema#"});
    let mut huge = tool_json("huge");
    huge["inputSchema"] = json!({"type": "object", "description": "x".repeat(70_000)});
    let bench = McpFixture::connected(vec![("a", FakeServer::new(vec![bare, huge]))]).await;
    assert_eq!(bench.tool_names()[0], "mcp__a__bare");
    let bare = bench.tool("mcp__a__bare");
    assert_eq!(
        *bare.spec().schema,
        json!({"type": "object", "properties": {}})
    );
    let status = &bench.servers.status()[0];
    assert_eq!((status.tools.len(), status.omitted_tools), (1, 1));
}

#[tokio::test]
async fn offered_tools_are_limited() {
    let many = |count: usize| {
        let tools = (0..count).map(|at| tool_json(&format!("t{at}")));
        FakeServer::new(tools.collect())
    };
    let bench = McpFixture::connected(vec![("a", many(19)), ("b", many(19))]).await;
    assert_eq!(bench.tool_names().len(), 40);
    assert_eq!(bench.servers.status()[1].tools.len(), 19);
}

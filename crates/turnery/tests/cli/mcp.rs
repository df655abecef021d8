//! `turnery mcp list`: starts each configured server for the listing.

use crate::home::Home;
use serde_json::json;

/// Server with one tool.
pub(crate) const SERVER: &str = r#"while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"hello","inputSchema":{"type":"object"}}]}' ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[tokio::test]
async fn servers_are_listed_with_tools_or_error() {
    let home = Home::new();
    let none = home.run(&["mcp", "list"]).await;
    assert_eq!(
        none.stdout,
        "No MCP servers. Name some in config.toml, under [mcp.NAME].\n"
    );
    let script = home.write_file("server.sh", SERVER);
    home.write_file(
        "turnery/config.toml",
        &format!(
            "[mcp.desk]\ncommand = \"/bin/sh\"\nargs = [\"{}\"]\n\
             [mcp.gone]\ncommand = \"/nowhere/server\"\nargs = [\"--key=s3cret\"]\n",
            script.display()
        ),
    );
    let listed = home.run(&["mcp", "list"]).await;
    assert_eq!(
        listed.stdout,
        "desk: connected\n  mcp__desk__hello\n\
         gone: does not work: cannot start: program not found\n"
    );
    assert_eq!(listed.stderr, "", "trouble is told once");
    assert_eq!(listed.code, Some(1), "one of them is broken");
    let listed = home.run(&["mcp", "list", "--json"]).await;
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(1), ""));
    assert_eq!(
        listed.stdout_json(),
        json!([
            {"name": "desk", "connected": true, "tools": ["mcp__desk__hello"], "left_out": 0,
             "trouble": null},
            {"name": "gone", "connected": false, "tools": [], "left_out": 0,
             "trouble": "cannot start: program not found"},
        ])
    );
}

#[tokio::test]
async fn list_of_working_servers_succeeds() {
    let home = Home::new();
    let script = home.write_file("server.sh", SERVER);
    let entry = format!(
        "[mcp.desk]\ncommand = \"/bin/sh\"\nargs = [\"{}\"]\n",
        script.display()
    );
    home.write_file("turnery/config.toml", &entry);
    let listed = home.run(&["mcp", "list"]).await;
    assert_eq!(listed.stdout, "desk: connected\n  mcp__desk__hello\n");
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
}

/// The server starts only after the prompt has written a file: a prompt that waited for the server would fail.
#[tokio::test]
async fn prompt_waits_for_server_only_in_wait_tool() {
    let home = Home::new();
    let late = format!("while [ ! -e go ]; do sleep 0.05; done\n{SERVER}");
    let script = home.write_file("server.sh", &late);
    let entry = format!(
        "[mcp.desk]\ncommand = \"/bin/sh\"\nargs = [\"{}\"]\n",
        script.display()
    );
    home.write_file("turnery/config.toml", &entry);
    let call = |name: &str, args| json!({"steps": [{"tool_call": {"name": name, "args": args}}]});
    let scenario = json!({"answers": [
        call("write_file", json!({"path": "go", "content": ""})),
        call("wait_for_mcp_server", json!({"server": "desk"})),
        {"when": {"last_tool_result_contains": "Its tools: mcp__desk__hello"}, "steps": [{"text": "there"}]},
        {"steps": [{"text": "not there"}]},
    ]});
    let model = home.write_file("model.json", &scenario.to_string());
    let model = format!("scripted:{}", model.display());
    let done = home
        .run(&["run", "--mode", "edit", "--model", &model, "go"])
        .await;
    assert_eq!((done.code, &*done.stdout), (Some(0), "there\n"), "{done:?}");
}

/// Servers in a project's file are neither started nor listed; a warning on stderr names them.
#[tokio::test]
async fn project_cannot_add_server() {
    let home = Home::new();
    let ran = home.write_file("ran", "");
    home.write_file(
        "project/.turnery/config.toml",
        &format!(
            "[mcp.evil]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo yes > {}\"]\n",
            ran.display()
        ),
    );
    let listed = home.run(&["mcp", "list"]).await;
    assert_eq!(
        listed.stdout,
        "No MCP servers. Name some in config.toml, under [mcp.NAME].\n"
    );
    assert!(listed.stderr.contains("evil"), "{}", listed.stderr);
    assert_eq!(std::fs::read_to_string(ran).expect("a file"), "");
}

//! Tests of servers that run as processes: their environment, and that nothing is left of them.

use super::fake_server::{McpFixture, envelope_text};
use crate::mcp::{McpLaunchOptions, McpServer, McpServers, McpTransport};
use serde_json::json;
use std::{fs, path::Path};

/// Starts a shell script as a server.
fn start_script(folder: &Path, args: &[&str], env: &[(&str, &str)], text: &str) -> McpServers {
    let mut all = vec!["-c".to_owned(), text.to_owned(), "server".to_owned()];
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let server = McpServer {
        name: "script".to_owned(),
        transport: McpTransport::Stdio {
            command: "/bin/sh".into(),
            args: all,
            env: env.iter().map(pair).collect(),
        },
        timeout: None,
    };
    let launch = McpLaunchOptions {
        roots: vec![folder.to_owned()],
        hidden_env: vec!["HOME".to_owned()],
    };
    let servers = McpServers::new(&[server], &launch);
    servers.start();
    servers
}

/// Answers the handshake and then lists no tools; its child sleeps.
const HANDSHAKE_SCRIPT: &str = r#"
    read -r line
    printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}\n'
    trap '' TERM
    sleep 1000 &
    echo "$$ $!" > pids
    while :; do sleep 1000; done
"#;

/// Returns true if the process runs; a zombie does not.
fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .starts_with(" Z")
    })
}

// proves: MCP-1, MCP-5
#[tokio::test]
async fn args_and_environment_reach_process_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        printf '%s\n' "$#" "$@" "$EMPTY|$ODD" "${HOME-no home}" "$PWD" > got
        exec cat > /dev/null"#;
    let servers = start_script(
        folder.path(),
        &["", "a b", "é\"'$x", "-y"],
        &[("EMPTY", ""), ("ODD", "ü =\t$HOME")],
        text,
    );
    let got = folder.path().join("got");
    let read = async {
        loop {
            match fs::read_to_string(&got) {
                Ok(text) if text.lines().count() == 8 => break text,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    let text = tokio::time::timeout(std::time::Duration::from_secs(120), read)
        .await
        .unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    let expected = format!(
        "4\n\na b\né\"'$x\n-y\n|ü =\t$HOME\nno home\n{}\n",
        cwd.display()
    );
    assert_eq!(text, expected);
    servers.close().await;
}

#[tokio::test]
async fn exit_status_and_last_stderr_line_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = "echo first >&2; echo \"bad token $TOKEN\" >&2; exit 7";
    let servers = start_script(folder.path(), &[], &[("TOKEN", "t0k3n-value")], text);
    servers.wait_until_settled().await;
    let trouble = servers.status()[0].error.clone().unwrap();
    assert_eq!(
        trouble,
        "it ended (exit status: 7); the last line on its stderr was \
         \"bad token [hidden]\""
    );
}

#[tokio::test]
async fn spawn_error_omits_arguments() {
    let server = McpServer {
        name: "gone".to_owned(),
        transport: McpTransport::Stdio {
            command: "/nowhere/server".into(),
            args: vec!["--key=abc".to_owned()],
            env: Vec::new(),
        },
        timeout: None,
    };
    let launch = McpLaunchOptions {
        roots: vec![std::env::temp_dir()],
        hidden_env: Vec::new(),
    };
    let servers = McpServers::new(&[server], &launch);
    servers.start();
    servers.wait_until_settled().await;
    assert_eq!(
        servers.status()[0].error.as_deref(),
        Some("cannot start: program not found")
    );
}

/// A connection that is refused is reported as such.
#[tokio::test]
async fn unreachable_address_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    let server = McpServer {
        name: "web".to_owned(),
        transport: McpTransport::Http {
            url: format!("http://{address}/mcp"),
            headers: Vec::new(),
        },
        timeout: None,
    };
    let launch = McpLaunchOptions {
        roots: vec![std::env::temp_dir()],
        hidden_env: Vec::new(),
    };
    let servers = McpServers::new(&[server], &launch);
    servers.start();
    servers.wait_until_settled().await;
    assert_eq!(
        servers.status()[0].error.as_deref(),
        Some("nothing answers at its address")
    );
}

/// Waits for the server and returns the ids of the server and its child.
async fn wait_for_pids(folder: &Path, servers: &McpServers) -> Vec<i32> {
    servers.wait_until_settled().await;
    assert_eq!(servers.status()[0].error, None);
    loop {
        if let Ok(text) = fs::read_to_string(folder.join("pids"))
            && text.ends_with('\n')
        {
            return text
                .split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn unresponsive_server_is_killed_with_descendants() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start_script(folder.path(), &[], &[], HANDSHAKE_SCRIPT);
    let pids = wait_for_pids(folder.path(), &servers).await;
    assert!(pids.iter().all(|pid| is_running(*pid)));
    servers.close().await;
    assert!(!is_running(pids[0]), "it is waited for");
    // The system reaps processes whose parent is gone.
    while is_running(pids[1]) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn dropped_servers_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start_script(folder.path(), &[], &[], HANDSHAKE_SCRIPT);
    let pids = wait_for_pids(folder.path(), &servers).await;
    drop(servers);
    while pids.iter().any(|pid| is_running(*pid)) {
        tokio::task::yield_now().await;
    }
}

/// Responds to every call with the requested number of bytes, and records each start.
const SIZED_RESPONSE_SCRIPT: &str = r#"
    echo started >> starts
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
        case $line in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"bytes","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*)
            size=$(printf '%s' "$line" | sed -n 's/.*"size":\([0-9]*\).*/\1/p')
            printf '{"result":{"content":[{"type":"text","text":"'
            head -c "$size" /dev/zero | tr '\0' x
            printf '"}]},"jsonrpc":"2.0","id":%s}\n' "$id"
            continue ;;
        *) continue ;;
        esac
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    done"#;

#[tokio::test]
async fn oversized_response_fails_only_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start_script(folder.path(), &[], &[], SIZED_RESPONSE_SCRIPT);
    servers.wait_until_settled().await;
    let bench = McpFixture::connected(Vec::new()).await;
    let tools = servers.tools();
    let tool = &tools[0];
    let answer = tool.run(&json!({"size": 33 << 20}), &bench.cx).await;
    assert_eq!(
        envelope_text(&answer),
        "ExecutionError: the MCP server script: its answer is larger than 32.0 MiB, the most that is read: \
         ask for less at once (-32603)"
    );
    let answer = tool.run(&json!({"size": 3}), &bench.cx).await;
    assert_eq!(envelope_text(&answer), "xxx");
    let starts = fs::read_to_string(folder.path().join("starts")).unwrap();
    assert_eq!(starts, "started\n", "the connection went on");
    servers.close().await;
}

//! MCP servers given by the client: each request that opens a session connects its own, beside those of the
//! user's configuration.

use crate::harness::{TestClient, TestEnv, error_code_of, result_of};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};
use turnery_agent::Settings;
use turnery_tools::{McpServer, mcp::McpTransport};

/// Shell script of an MCP server with one tool, `say`, that returns `said by` and the first argument of the
/// script.
const SERVER_SCRIPT: &str = r#"
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9][0-9]*\).*/\1/p')
        case $line in
        *'"initialize"'*) result='"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}' ;;
        *'"tools/list"'*) result='"tools":[{"name":"say","inputSchema":{"type":"object"}}]' ;;
        *'"tools/call"'*) result='"content":[{"type":"text","text":"said by '$1'"}]' ;;
        *) continue ;;
        esac
        printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$result"
    done"#;

fn stdio_server(name: &str, word: &str) -> Value {
    json!({"name": name, "command": "/bin/sh", "args": ["-c", SERVER_SCRIPT, "server", word], "env": []})
}

/// Creates an environment in which each prompt `use NAME` calls that server's tool.
fn env_calling_servers(names: &[&str]) -> TestEnv {
    let mut answers: Vec<Value> = vec![
        json!({"when": {"last_tool_result_contains": "said by"}, "steps": [{"text": "done"}]}),
        json!({"when": {"last_tool_result_contains": "mcp__"}, "steps": [{"text": "not there"}]}),
    ];
    answers.extend(names.iter().map(|name| {
        let call = json!({"tool_call": {"name": format!("mcp__{name}__say"), "args": {}}});
        json!({"when": {"last_user_contains": format!("use {name}")}, "steps": [call]})
    }));
    TestEnv::new(json!(answers))
}

/// Returns the output of this server's tool, or `None` if there is no such tool.
fn call_server_tool(client: &mut TestClient, id: &str, name: &str) -> Option<String> {
    client.take_buffered();
    let auto = json!({"sessionId": id, "modeId": "auto"});
    result_of(&client.request("session/set_mode", auto));
    assert_eq!(client.prompt(id, &format!("use {name}")), "end_turn");
    let updates = client.take_updates();
    let done = updates.iter().find(|it| it["status"] == "completed")?;
    let text = done["content"][0]["content"]["text"].as_str();
    Some(text.expect("a text").to_owned())
}

fn new_session(client: &mut TestClient, world: &TestEnv, servers: &[Value]) -> String {
    let params = json!({"cwd": world.cwd(), "mcpServers": servers});
    client.new_session(params)
}

/// Servers over stdio need no capability; three can be given; a reopened session has the servers of that
/// request only.
// proves: MCP-1, MCP-3, MCP-5, MCP-7, LOAD-3, RES-2, G-10
#[test]
fn each_request_connects_its_own_servers() {
    let world = env_calling_servers(&["a", "b", "c"]);
    let mut client = world.client(json!({}));
    let servers = [
        stdio_server("a", "A"),
        stdio_server("b", "B"),
        stdio_server("c", "C"),
    ];
    let id = new_session(&mut client, &world, &servers);
    for (name, said) in [("a", "said by A"), ("b", "said by B"), ("c", "said by C")] {
        assert_eq!(
            call_server_tool(&mut client, &id, name).as_deref(),
            Some(said)
        );
    }
    client.close_and_join();
    for (method, servers, a, b) in [
        (
            "session/load",
            json!([stdio_server("b", "B2")]),
            None,
            Some("said by B2"),
        ),
        (
            "session/resume",
            json!([stdio_server("a", "A3")]),
            Some("said by A3"),
            None,
        ),
        ("session/load", json!([]), None, None),
    ] {
        let mut client = world.client(json!({}));
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": servers});
        result_of(&client.request(method, at));
        assert_eq!(
            call_server_tool(&mut client, &id, "a").as_deref(),
            a,
            "{method}"
        );
        assert_eq!(
            call_server_tool(&mut client, &id, "b").as_deref(),
            b,
            "{method}"
        );
        client.close_and_join();
    }
}

/// A server that never answers `initialize` (connect timeout: 20 s) does not delay a prompt that uses another
/// server.
#[test]
fn hanging_server_does_not_delay_another_server() {
    let world = env_calling_servers(&["a"]);
    let mut client = world.client(json!({}));
    let mute =
        json!({"name": "mute", "command": "/bin/sh", "args": ["-c", "exec sleep 600"], "env": []});
    let id = new_session(&mut client, &world, &[mute, stdio_server("a", "A")]);
    let began = Instant::now();
    assert_eq!(
        call_server_tool(&mut client, &id, "a").as_deref(),
        Some("said by A")
    );
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
    client.close_and_join();
}

/// A transport that was not advertised is rejected, and no session is created.
// proves: MCP-4
#[test]
fn unsupported_transport_is_rejected() {
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    let can = &result_of(&hello)["agentCapabilities"]["mcpCapabilities"];
    assert_eq!((&can["http"], &can["sse"]), (&json!(true), &json!(false)));
    for other in [
        json!({"type": "sse", "name": "a", "url": "http://127.0.0.1:1/", "headers": []}),
        json!({"type": "acp", "name": "a", "serverId": "x"}),
        json!({"type": "pigeon", "name": "a"}),
    ] {
        let params = json!({"cwd": world.cwd(), "mcpServers": [stdio_server("b", "B"), other]});
        let answer = client.request("session/new", params);
        assert_eq!(error_code_of(&answer), -32602, "{other}");
    }
    let list = client.request("session/list", json!({}));
    assert_eq!(result_of(&list)["sessions"], json!([]));
}

/// Servers of the user's configuration are available beside the client's, and hide none of them.
// proves: THEME-10
#[test]
fn user_servers_do_not_hide_client_servers() {
    let own = |name: &str, word: &str| McpServer {
        name: name.to_owned(),
        transport: McpTransport::Stdio {
            command: "/bin/sh".into(),
            args: ["-c", SERVER_SCRIPT, "server", word]
                .map(str::to_owned)
                .into(),
            env: Vec::new(),
        },
        timeout: None,
    };
    let world = env_calling_servers(&["a", "b", "c"]);
    let settings = Settings {
        mcp_servers: vec![own("a", "own-a"), own("b", "own-b")],
        ..world.settings()
    };
    let mut client = TestClient::initialized(world.agent_with_settings(Arc::new(settings)));
    let servers = [stdio_server("a", "given-a"), stdio_server("c", "given-c")];
    let id = new_session(&mut client, &world, &servers);
    for (name, said) in [("a", "given-a"), ("b", "own-b"), ("c", "given-c")] {
        let expected = format!("said by {said}");
        assert_eq!(
            call_server_tool(&mut client, &id, name),
            Some(expected),
            "{name}"
        );
    }
}

/// Headers and body of each request.
type HttpRequests = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts an HTTP server with one tool, which answers each request on its own connection.
fn http_server() -> (String, HttpRequests) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let heard = HttpRequests::default();
    let notes = Arc::clone(&heard);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            serve(stream, &notes);
        }
    });
    (format!("http://{address}/mcp"), heard)
}

fn serve(stream: TcpStream, heard: &HttpRequests) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) < 3 {
            break;
        }
        let line = line.trim().to_owned();
        if let Some((name, value)) = line.split_once(": ")
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.parse().expect("a length");
        }
        head += &line;
        head += "\n";
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match said["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}})
        }
        Some("tools/list") => {
            json!({"tools": [{"name": "say", "inputSchema": {"type": "object"}}]})
        }
        Some("tools/call") => json!({"content": [{"type": "text", "text": "said by HTTP"}]}),
        _ => Value::Null,
    };
    let (status, text) = match (said.get("id"), result.is_null()) {
        (Some(id), false) => {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            ("200 OK", answer.to_string())
        }
        _ if head.starts_with("POST") => ("202 Accepted", String::new()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    heard.lock().expect("no panic").push((head, said));
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    );
    let _ = reader.get_mut().write_all(answer.as_bytes());
}

// proves: MCP-2, MCP-5
#[test]
fn http_server_gets_its_headers() {
    let (url, heard) = http_server();
    let world = env_calling_servers(&["web"]);
    let mut client = world.client(json!({}));
    let headers = json!([{"name": "X-Key", "value": "k1 =\"é\""}]);
    let server = json!({"type": "http", "name": "web", "url": url, "headers": headers});
    let id = new_session(&mut client, &world, &[server]);
    assert_eq!(
        call_server_tool(&mut client, &id, "web").as_deref(),
        Some("said by HTTP")
    );
    let heard = heard.lock().expect("no panic");
    assert!(heard.iter().any(|(_, said)| said["method"] == "tools/call"));
    for (head, said) in heard.iter().filter(|(head, _)| head.starts_with("POST")) {
        let mut lines = head.lines();
        let key = lines.find(|line| line.to_ascii_lowercase().starts_with("x-key: "));
        assert_eq!(
            key.and_then(|line| line.split_once(": ")).map(|it| it.1),
            Some("k1 =\"é\""),
            "{said}"
        );
    }
}

//! Invalid parameters of `session/new` and `session/list` in v2.

use crate::harness::{TestEnv, error_code_of, result_of};
use serde_json::{Value, json};

// proves: V2-18
/// An unsupported transport, folder or cursor is rejected.
#[test]
fn unsupported_params_are_rejected() {
    let world = TestEnv::without_answers();
    let mut client = world.client_v2();
    let cwd = world.cwd();
    let server = |server: Value| json!({"cwd": cwd, "mcpServers": [server]});
    for params in [
        server(json!({"type": "_pigeon", "name": "a"})),
        server(json!({"type": "sse", "name": "a", "url": "http://localhost", "headers": []})),
        server(json!({"type": "stdio", "name": "a", "command": "relative", "args": [], "env": []})),
        server(json!({"type": "stdio", "name": "a"})),
        json!({"cwd": "."}),
        json!({"cwd": cwd, "additionalDirectories": ["x"]}),
        json!({}),
    ] {
        let answer = client.request("session/new", params.clone());
        assert_eq!(error_code_of(&answer), -32602, "{params}");
    }
    for cursor in ["", "nonsense"] {
        let answer = client.request("session/list", json!({"cursor": cursor}));
        assert_eq!(error_code_of(&answer), -32602, "{cursor:?}");
    }
    let list = client.request("session/list", json!({}));
    assert_eq!(result_of(&list), &json!({"sessions": []}));
}

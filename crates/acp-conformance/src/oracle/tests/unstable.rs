//! Tests of unstable parts with and without their capability.

use super::{super::unstable::known_parts, *};
use crate::official_schema::{Side, official_schema};

#[test]
fn unstable_part_needs_its_capability() {
    let start = |client: &str, agent: &str| {
        [
            format!(
                r#"> {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":1,"clientCapabilities":{client}}}}}"#
            ),
            format!(
                r#"< {{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":1,"agentCapabilities":{agent}}}}}"#
            ),
        ]
    };
    let plan = update_line(
        r#"{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}"#,
    );
    let removed = update_line(r#"{"sessionUpdate":"plan_removed","planId":"p"}"#);
    let child = update_line(r#"{"sessionUpdate":"subagent_update","sessionId":"c"}"#);
    let list = r#"> {"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}"#;
    let listed = r#"< {"jsonrpc":"2.0","id":3,"result":{"sessions":[{"sessionId":"s","cwd":"/","archived":true}]}}"#;
    let unsaid = r#"< {"jsonrpc":"2.0","id":3,"result":{"sessions":[{"sessionId":"s","cwd":"/","archived":null}]}}"#;
    let mcp = r#"< {"jsonrpc":"2.0","id":3,"method":"mcp/message","params":{"serverId":"m","requestId":"r","method":"x"}}"#;
    let login =
        r#"< {"jsonrpc":"2.0","method":"auth/status_update","params":{"state":"authenticated"}}"#;
    let counted = r#"< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","usage":{"totalTokens":1,"inputTokens":1,"outputTokens":0}}}"#;
    for (client, agent, lines, rules) in [
        ("{}", "{}", vec![&*plan], vec!["UPD-1"]),
        (r#"{"plan":null}"#, "{}", vec![&*plan], vec!["UPD-1"]),
        (r#"{"subagents":{}}"#, "{}", vec![&*plan], vec!["UPD-1"]),
        (r#"{"plan":{}}"#, "{}", vec![&*plan, &*removed], vec![]),
        ("{}", "{}", vec![&*removed], vec!["UPD-1"]),
        ("{}", "{}", vec![&*child], vec!["UPD-1"]),
        (r#"{"subagents":{}}"#, "{}", vec![&*child], vec![]),
        ("{}", "{}", vec![list, listed], vec!["EXT-1"]),
        ("{}", "{}", vec![list, unsaid], vec![]),
        (
            "{}",
            r#"{"sessionCapabilities":{"archive":{}}}"#,
            vec![list, listed],
            vec![],
        ),
        ("{}", "{}", vec![mcp], vec!["EXT-3"]),
        (
            "{}",
            r#"{"mcpCapabilities":{"acp":false}}"#,
            vec![mcp],
            vec!["EXT-3"],
        ),
        (
            "{}",
            r#"{"mcpCapabilities":{"acp":true}}"#,
            vec![mcp],
            vec![],
        ),
        ("{}", "{}", vec![login], vec!["EXT-3"]),
        ("{}", r#"{"auth":{"status":{}}}"#, vec![login], vec![]),
        // No capability covers this part.
        ("{}", "{}", vec![PROMPT, counted], vec![]),
    ] {
        let start = start(client, agent);
        let start: Vec<&str> = start.iter().map(String::as_str).collect();
        let broken = violations_after(&[&start, SESSION], &lines, None);
        assert_eq!(broken, rules, "{client} {agent} {lines:?}");
    }
}

#[test]
fn refused_initialize_changes_no_capabilities() {
    let initialize = |id: u8, capabilities: Value| {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params})
    };
    let accepted = json!({"jsonrpc": "2.0", "id": 8, "result": {"protocolVersion": 1}});
    let refused = json!({"jsonrpc": "2.0", "id": 8, "error": {"code": -32600, "message": "m"}});
    let all = json!({"plan": {}, "session": {"notices": {}}});
    let plan = update_line(r#"{"sessionUpdate":"plan_removed","planId":"p"}"#);
    let notice = update_line(r#"{"sessionUpdate":"notice","severity":"info","title":"t"}"#);
    for (first, second, response, rules) in [
        (&all, &json!({}), Some(&refused), vec![]),
        (&all, &json!({}), None, vec![]),
        (&all, &json!({}), Some(&accepted), vec!["UPD-1", "NOTE-1"]),
        (&json!({}), &all, Some(&refused), vec!["UPD-1", "NOTE-1"]),
        (&json!({}), &all, None, vec!["UPD-1", "NOTE-1"]),
        (&json!({}), &all, Some(&accepted), vec![]),
    ] {
        let start = [
            format!("> {}", initialize(0, first.clone())),
            INITIALIZED[1].to_owned(),
        ];
        let mut lines = vec![format!("> {}", initialize(8, second.clone()))];
        lines.extend(response.map(|response| format!("< {response}")));
        lines.extend([plan.clone(), notice.clone()]);
        let start: Vec<&str> = start.iter().map(String::as_str).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let broken = violations_after(&[&start, SESSION], &lines, None);
        assert_eq!(broken, rules, "{first} {second} {response:?}");
    }
}

/// Compares the table with the schema, so that new and stabilised parts are noticed.
#[test]
fn all_unstable_parts_are_listed() {
    let official = official_schema(1);
    let said = official.unstable_parts(Side::Agent);
    assert!(said.contains("PromptResponse.usage"));
    let is_offer = |part: &&str| part.contains("Capabilities.");
    let said: BTreeSet<&str> = said.into_iter().filter(|part| !is_offer(part)).collect();
    assert_eq!(known_parts(), said);
}

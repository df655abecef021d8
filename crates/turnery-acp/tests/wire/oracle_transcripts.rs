//! Tests the harness's oracle on transcripts: valid ones pass, and for invalid ones it names the violated
//! rule.

use crate::harness::Oracle;
use serde_json::{Value, json};

/// Message and its sender.
enum TranscriptLine {
    Client(Value),
    Agent(Value),
}
use TranscriptLine::{Agent, Client};

fn client_request(id: i64, method: &str, params: Value) -> TranscriptLine {
    Client(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn client_result(id: i64, result: Value) -> TranscriptLine {
    Client(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn agent_request(id: i64, method: &str, mut params: Value) -> TranscriptLine {
    params["sessionId"] = json!("s");
    Agent(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn agent_result(id: i64, result: Value) -> TranscriptLine {
    Agent(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn agent_error(id: i64, code: i64) -> TranscriptLine {
    Agent(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "No"}}))
}

fn update(kind: &str, mut update: Value) -> TranscriptLine {
    update["sessionUpdate"] = json!(kind);
    let params = json!({"sessionId": "s", "update": update});
    Agent(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
}

fn tool_call(id: &str) -> TranscriptLine {
    let call = json!({"toolCallId": id, "title": "Do", "name": "do"});
    update("tool_call", call)
}

fn tool_call_status(id: &str, status: &str) -> TranscriptLine {
    update(
        "tool_call_update",
        json!({"toolCallId": id, "status": status}),
    )
}

fn agent_text(text: &str) -> TranscriptLine {
    let content = json!({"type": "text", "text": text});
    update(
        "agent_message_chunk",
        json!({"content": content, "messageId": "m"}),
    )
}

fn compaction_status(status: &str) -> TranscriptLine {
    let pass = json!({"compactionId": "k", "status": status});
    update("compaction_update", pass)
}

fn permission_request(id: i64, options: &[(&str, &str)]) -> TranscriptLine {
    let options: Vec<Value> = options
        .iter()
        .map(|(id, kind)| json!({"optionId": id, "name": id, "kind": kind}))
        .collect();
    let params = json!({"toolCall": {"toolCallId": "c"}, "options": options});
    agent_request(id, "session/request_permission", params)
}

const YES_OR_NO: [(&str, &str); 2] = [("yes", "allow_once"), ("no", "reject_once")];

fn prompt_request(id: i64) -> TranscriptLine {
    client_request(id, "session/prompt", json!({"sessionId": "s"}))
}

fn end_turn(id: i64) -> TranscriptLine {
    agent_result(id, json!({"stopReason": "end_turn"}))
}

/// Returns the start of a connection with these capabilities and a session `s`.
fn opened_session(abilities: Value) -> Vec<TranscriptLine> {
    let params = json!({"protocolVersion": 1, "clientCapabilities": abilities});
    vec![
        client_request(1, "initialize", params),
        agent_result(1, json!({"protocolVersion": 1})),
        client_request(2, "session/new", json!({})),
        agent_result(2, json!({"sessionId": "s"})),
    ]
}

fn all_capabilities() -> Value {
    json!({
        "fs": {"readTextFile": true, "writeTextFile": true},
        "terminal": true,
        "session": {"notices": {}, "compaction": {}},
    })
}

/// Returns the rule that the last of these lines violates, if any.
fn broken_rule(lines: impl IntoIterator<Item = TranscriptLine>) -> Option<String> {
    let mut oracle = Oracle::default();
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        match line {
            Client(message) => oracle.client_sent(&message),
            Agent(message) => {
                if let Err(rule) = oracle.agent_sent(&message) {
                    assert!(lines.peek().is_none(), "{rule}: {message}");
                    return Some(rule);
                }
            }
        }
    }
    oracle.check_end().err()
}

/// Asserts that these lines, in a prompt of a client with all capabilities, violate this rule.
fn assert_breaks(rule: &str, lines: impl IntoIterator<Item = TranscriptLine>) {
    assert_breaks_with(rule, all_capabilities(), lines);
}

fn assert_breaks_with(
    rule: &str,
    abilities: Value,
    lines: impl IntoIterator<Item = TranscriptLine>,
) {
    let before = opened_session(abilities)
        .into_iter()
        .chain([prompt_request(3)]);
    let broken = broken_rule(before.chain(lines)).unwrap_or_else(|| panic!("{rule} is not seen"));
    assert!(broken.starts_with(rule), "{broken} instead of {rule}");
}

#[test]
fn valid_transcript_is_accepted() {
    let at = json!({"path": "/w/a"});
    let shown = json!({"toolCallId": "c", "content": [{"type": "terminal", "terminalId": "t"}]});
    let work = [
        prompt_request(3),
        agent_text("hi"),
        tool_call("c"),
        permission_request(1, &YES_OR_NO),
        client_result(1, json!({})),
        tool_call_status("c", "in_progress"),
        agent_request(2, "fs/read_text_file", at),
        client_result(2, json!({"content": ""})),
        agent_request(1, "terminal/create", json!({"command": "true"})),
        client_result(1, json!({"terminalId": "t"})),
        update("tool_call_update", shown.clone()),
        agent_request(5, "terminal/release", json!({"terminalId": "t"})),
        update("tool_call_update", shown),
        tool_call_status("c", "completed"),
        compaction_status("in_progress"),
        compaction_status("completed"),
        update("usage_update", json!({"used": 1, "size": 1})),
        // A command during the prompt, whose calls continue.
        tool_call("d"),
        client_request(
            4,
            "session/prompt",
            json!({"sessionId": "s", "prompt": [{"text": "/help"}]}),
        ),
        end_turn(4),
        // A prompt that is rejected while another runs.
        prompt_request(5),
        agent_error(5, -32603),
        tool_call_status("d", "failed"),
        end_turn(3),
        update("session_info_update", json!({"title": "a"})),
        update("session_info_update", json!({"title": "b"})),
        update("notice", json!({"title": "x"})),
        client_request(6, "session/load", json!({"sessionId": "s"})),
        update("user_message_chunk", json!({"content": {}})),
        update(
            "tool_call",
            json!({"toolCallId": "c", "title": "Do", "name": "do", "status": "completed"}),
        ),
        compaction_status("completed"),
        update("session_info_update", json!({"title": "b"})),
        agent_result(6, json!({})),
        client_request(7, "session/close", json!({"sessionId": "s"})),
        agent_result(7, json!({})),
        // Errors without an id, and responses to requests the harness did not record.
        Agent(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "No"}})),
        agent_error(99, 7),
    ];
    assert_eq!(
        broken_rule(opened_session(all_capabilities()).into_iter().chain(work)),
        None::<String>
    );
}

#[test]
fn response_rules_are_checked() {
    assert_breaks("RPC-12", [end_turn(3), end_turn(3)]);
    assert_breaks("RPC-12", [end_turn(3), agent_error(3, -32603)]);
    assert_breaks("RPC-12", [end_turn(77)]);
    assert_breaks("PROMPT-4", []);
    assert_breaks("RPC-4", [agent_result(3, Value::Null)]);
    let both = json!({"code": 1, "message": "x"});
    assert_breaks(
        "RPC-4",
        [Agent(
            json!({"jsonrpc": "2.0", "id": 3, "result": {}, "error": both}),
        )],
    );
    assert_breaks("RPC-4", [Agent(json!({"jsonrpc": "2.0", "id": 3}))]);
    assert_breaks("RPC-1", [Agent(json!({"id": 3, "result": {}}))]);
    for code in [-32001, -32099, -32801, -32768] {
        assert_breaks("RPC-14", [agent_error(3, code)]);
    }
    for message in ["", "two\nlines"] {
        let error = json!({"code": -32603, "message": message});
        assert_breaks(
            "RPC-13",
            [Agent(json!({"jsonrpc": "2.0", "id": 3, "error": error}))],
        );
    }
    assert_breaks(
        "RPC-16",
        [
            tool_call("c"),
            permission_request(1, &YES_OR_NO),
            permission_request(1, &YES_OR_NO),
        ],
    );
}

#[test]
fn update_placement_is_checked() {
    let about = |session: &str| {
        let update = json!({"sessionUpdate": "notice", "title": "x"});
        let params = json!({"sessionId": session, "update": update});
        Agent(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    };
    assert_breaks("SESS-7, UPD-1", [about("other")]);
    assert_breaks("UPD-1", [update("news", json!({}))]);
    assert_breaks("PROMPT-7", [end_turn(3), agent_text("late")]);
    assert_breaks(
        "PROMPT-7",
        [
            agent_result(3, json!({"stopReason": "cancelled"})),
            agent_text("late"),
        ],
    );
    assert_breaks("PROMPT-7", [agent_error(3, -32603), tool_call("c")]);
    for kind in [
        "plan",
        "usage_update",
        "agent_thought_chunk",
        "compaction_update",
    ] {
        assert_breaks("PROMPT-7", [end_turn(3), update(kind, json!({}))]);
    }
    let resume = || client_request(4, "session/resume", json!({"sessionId": "s"}));
    assert_breaks(
        "PROMPT-7, MSG-4, RES-1",
        [end_turn(3), resume(), agent_text("old")],
    );
    let words = || update("user_message_chunk", json!({"content": {}}));
    assert_breaks("MSG-3", [words()]);
    assert_breaks("MSG-3", [end_turn(3), resume(), words()]);
    let close = |method| {
        [
            end_turn(3),
            client_request(4, method, json!({"sessionId": "s"})),
            agent_result(4, json!({})),
            about("s"),
        ]
    };
    assert_breaks("CLOSE-3", close("session/close"));
    assert_breaks("CLOSE-3", close("session/delete"));
    let blocks = json!({"content": [{"type": "text", "text": "x"}]});
    assert_breaks("MSG-1", [update("agent_message_chunk", blocks)]);
    let load = client_request(4, "session/load", json!({"sessionId": "s"}));
    let mine = update(
        "user_message_chunk",
        json!({"content": {}, "messageId": "m"}),
    );
    assert_breaks("MSG-2", [end_turn(3), load, mine, agent_text("x")]);
    let title = || update("session_info_update", json!({"title": "a"}));
    assert_breaks("INFO-1", [title(), title()]);
    assert_breaks(
        "USAGE-1",
        [update("usage_update", json!({"used": 2, "size": 1}))],
    );
    assert_breaks("USAGE-1", [update("usage_update", json!({"size": 1}))]);
}

#[test]
fn call_lifecycle_is_checked() {
    assert_breaks("TOOL-2", [tool_call_status("c", "in_progress")]);
    assert_breaks("TOOL-2", [tool_call("c"), tool_call("c")]);
    let call = |call: Value| update("tool_call", call);
    assert_breaks(
        "TOOL-2",
        [call(json!({"toolCallId": "c", "title": "", "name": "do"}))],
    );
    assert_breaks("TOOL-10", [call(json!({"toolCallId": "c", "title": "Do"}))]);
    let other = json!({"toolCallId": "c", "name": "other"});
    assert_breaks(
        "TOOL-10",
        [tool_call("c"), update("tool_call_update", other)],
    );
    let done = json!({"toolCallId": "c", "title": "Do", "name": "do", "status": "completed"});
    assert_breaks("TOOL-1", [call(done)]);
    assert_breaks(
        "TOOL-11",
        [tool_call("c"), tool_call_status("c", "cancelled")],
    );
    assert_breaks(
        "TOOL-3",
        [
            tool_call("c"),
            permission_request(1, &YES_OR_NO),
            tool_call_status("c", "in_progress"),
        ],
    );
    let go = || [tool_call("c"), tool_call_status("c", "in_progress")];
    assert_breaks("TOOL-4", [tool_call("c"), end_turn(3)]);
    assert_breaks("TOOL-4", go().into_iter().chain([end_turn(3)]));
    assert_breaks("TOOL-4", go().into_iter().chain([agent_error(3, -32603)]));
    assert_breaks(
        "TOOL-4",
        go().into_iter().chain([tool_call_status("c", "pending")]),
    );
    for after in ["completed", "failed", "in_progress"] {
        let again = [
            tool_call_status("c", "completed"),
            tool_call_status("c", after),
        ];
        assert_breaks("TOOL-4", go().into_iter().chain(again));
    }
    // The first of two prompts ends while the second waits.
    assert_breaks(
        "TOOL-4",
        go().into_iter().chain([prompt_request(4), end_turn(3)]),
    );
    let load = || client_request(4, "session/load", json!({"sessionId": "s"}));
    assert_breaks(
        "TOOL-4, CANCEL-10, LOAD-7",
        [
            end_turn(3),
            load(),
            tool_call("c"),
            agent_result(4, json!({})),
        ],
    );
    for place in [
        json!({"path": "a"}),
        json!({"path": "/a", "line": 0}),
        json!({}),
    ] {
        let update = update(
            "tool_call_update",
            json!({"toolCallId": "c", "locations": [place]}),
        );
        assert_breaks("TOOL-7", [tool_call("c"), update]);
    }
    let diff = json!({"toolCallId": "c", "content": [{"type": "diff", "path": "a"}]});
    assert_breaks("TOOL-7", [tool_call("c"), update("tool_call_update", diff)]);
}

#[test]
fn agent_request_rules_are_checked() {
    let shows = || {
        let content = json!([{"type": "terminal", "terminalId": "t"}]);
        let shown = json!({"toolCallId": "c", "content": content});
        update("tool_call_update", shown)
    };
    let lent = || {
        [
            tool_call("c"),
            agent_request(1, "terminal/create", json!({"command": "true"})),
            client_result(1, json!({"terminalId": "t"})),
        ]
    };
    let use_it = |method| agent_request(2, method, json!({"terminalId": "t"}));
    assert_breaks("TOOL-9", [tool_call("c"), shows()]);
    let released = [use_it("terminal/release"), shows()];
    assert_breaks("TOOL-9", lent().into_iter().chain(released));
    assert_breaks("TERM-3", [use_it("terminal/output")]);
    let after = [
        use_it("terminal/release"),
        agent_request(3, "terminal/output", json!({"terminalId": "t"})),
    ];
    assert_breaks("TERM-3", lent().into_iter().chain(after));
    let kept = [tool_call_status("c", "completed"), end_turn(3)];
    assert_breaks("TERM-2", lent().into_iter().chain(kept));
    let relative = json!({"command": "true", "cwd": "a"});
    assert_breaks(
        "FS-2, TERM-3",
        [agent_request(1, "terminal/create", relative)],
    );
    assert_breaks(
        "FS-2",
        [agent_request(1, "fs/read_text_file", json!({"path": "a"}))],
    );
    let line = json!({"path": "/a", "line": 0});
    assert_breaks("FS-2", [agent_request(1, "fs/read_text_file", line)]);

    assert_breaks("PERM-2", [permission_request(1, &YES_OR_NO)]);
    let twice = [("a", "allow_once"), ("a", "reject_once")];
    assert_breaks("PERM-2", [tool_call("c"), permission_request(1, &twice)]);
    let same = [("a", "reject_once"), ("b", "reject_once")];
    assert_breaks("PERM-5", [tool_call("c"), permission_request(1, &same)]);
    let no_no = [("a", "allow_once")];
    assert_breaks("PERM-5", [tool_call("c"), permission_request(1, &no_no)]);
    assert_breaks("PERM-5", [tool_call("c"), permission_request(1, &[])]);
    let waits = [
        tool_call("c"),
        permission_request(1, &YES_OR_NO),
        tool_call_status("c", "failed"),
        end_turn(3),
    ];
    assert_breaks("CANCEL-7", waits);
    let back = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 9}});
    assert_breaks("REQC-4", [Agent(back)]);
}

#[test]
fn undeclared_capabilities_are_caught() {
    let boolean = json!({"configOptions": [{"id": "a", "type": "boolean", "currentValue": true}]});
    // Values of the wrong type declare nothing.
    for abilities in [
        json!({}),
        Value::Null,
        json!({"fs": true, "terminal": {}, "session": {"notices": true, "compaction": 1,
            "configOptions": {"boolean": true}}, "elicitation": {}}),
    ] {
        for line in [
            agent_request(1, "fs/read_text_file", json!({"path": "/a"})),
            agent_request(1, "fs/write_text_file", json!({"path": "/a"})),
            agent_request(1, "terminal/create", json!({"command": "true"})),
            agent_request(1, "elicitation/create", json!({"mode": "form"})),
            agent_request(1, "elicitation/create", json!({"mode": "url"})),
            agent_request(1, "elicitation/create", json!({})),
            update("notice", json!({"title": "x"})),
            compaction_status("in_progress"),
        ] {
            assert_breaks_with("INIT-7", abilities.clone(), [line]);
        }
        let line = update("config_option_update", boolean.clone());
        assert_breaks_with("CFG-3", abilities, [line]);
    }
    assert_breaks("INIT-7", [agent_request(1, "terminals/create", json!({}))]);
}

#[test]
fn option_and_command_rules_are_checked() {
    assert_breaks("COMP-2", [compaction_status("completed")]);
    assert_breaks(
        "COMP-2",
        [
            compaction_status("in_progress"),
            compaction_status("in_progress"),
        ],
    );
    assert_breaks(
        "COMP-2",
        [
            compaction_status("in_progress"),
            compaction_status("failed"),
            compaction_status("completed"),
        ],
    );
    assert_breaks("COMP-2", [compaction_status("in_progress"), end_turn(3)]);
    let summary = json!({"compactionId": "k", "status": "failed", "summary": []});
    assert_breaks(
        "COMP-2",
        [
            compaction_status("in_progress"),
            update("compaction_update", summary),
        ],
    );
    let option = |value: &str, category: &str| {
        json!({"id": "a", "type": "select", "currentValue": value, "category": category,
            "options": [{"value": "x"}, {"group": "g", "options": [{"value": "y"}]}]})
    };
    let options =
        |options: &[Value]| update("config_option_update", json!({"configOptions": options}));
    assert_breaks("CFG-1", [options(&[option("z", "mode")])]);
    assert_breaks("CFG-6", [options(&[option("x", "ours")])]);
    assert_breaks(
        "CFG-2",
        [options(&[option("x", "_ours"), option("y", "mode")])],
    );
    for names in [&["a b"][..], &["/a"], &[""], &["a", "a"]] {
        let commands: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let commands = json!({"availableCommands": commands});
        assert_breaks("CMD-3", [update("available_commands_update", commands)]);
    }
    let modes = json!({"sessionId": "t", "modes": {"currentModeId": "a", "availableModes": []}});
    let new = || client_request(4, "session/new", json!({}));
    assert_breaks("MODE-4", [end_turn(3), new(), agent_result(4, modes)]);
    assert_breaks(
        "SESS-1",
        [
            end_turn(3),
            new(),
            agent_result(4, json!({"sessionId": "s"})),
        ],
    );
}

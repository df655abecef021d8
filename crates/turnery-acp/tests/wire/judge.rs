//! Tests that the judge of all wire tests reports broken lines: the suite's oracle, whose own tests cover its
//! rules, sees both directions, and every promise beyond the protocol is checked.

use crate::harness::Judge;
use serde_json::{Value, json};

/// Line and its sender.
enum Line {
    Client(String),
    Agent(String),
}
use Line::{Agent, Client};

fn client(id: i64, method: &str, params: Value) -> Line {
    Client(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
}

fn request(id: i64, method: &str, mut params: Value) -> Line {
    params["sessionId"] = json!("s");
    Agent(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
}

fn result(id: i64, result: Value) -> Line {
    Agent(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

fn error(id: Value, code: i64) -> Line {
    let error = json!({"code": code, "message": "No", "data": {"details": "Why"}});
    Agent(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
}

fn notice_about(session: &str, update: Value) -> Line {
    let params = json!({"sessionId": session, "update": update});
    Agent(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string())
}

fn update(kind: &str, mut update: Value) -> Line {
    update["sessionUpdate"] = json!(kind);
    notice_about("s", update)
}

fn prompt(id: i64, text: &str) -> Line {
    let blocks = json!([{"type": "text", "text": text}]);
    client(
        id,
        "session/prompt",
        json!({"sessionId": "s", "prompt": blocks}),
    )
}

/// Returns the first complaint about these lines, or about the end after them.
fn complaint(lines: impl IntoIterator<Item = Line>) -> Option<String> {
    let mut judge = Judge::default();
    for line in lines {
        match line {
            Client(line) => judge.client_wrote(format!("{line}\n").as_bytes()),
            Agent(line) => {
                if let Err(why) = judge.agent_wrote(&line) {
                    return Some(why);
                }
            }
        }
    }
    judge.client_closed();
    judge.agent_closed().err()
}

/// Returns the lines that open the session `s` in this protocol version and prompt it.
fn prompted(version: u64) -> Vec<Line> {
    let info = json!({"name": "a", "version": "1"});
    let (params, answer, prompted) = match version {
        2 => (
            json!({"protocolVersion": 2, "info": info}),
            json!({"protocolVersion": 2, "info": info}),
            json!({"messageId": "m"}),
        ),
        _ => (
            json!({"protocolVersion": 1, "clientCapabilities": {"terminal": true, "session": {"compaction": {}}}}),
            json!({"protocolVersion": 1}),
            Value::Null,
        ),
    };
    let mut lines = vec![
        client(1, "initialize", params),
        result(1, answer),
        client(2, "session/new", json!({"cwd": "/", "mcpServers": []})),
        result(2, json!({"sessionId": "s"})),
        prompt(3, "hi"),
    ];
    if version == 2 {
        lines.push(result(3, prompted));
        lines.push(update("user_message", message("m")));
    }
    lines
}

fn message(id: &str) -> Value {
    json!({"messageId": id, "content": [{"type": "text", "text": "hi"}]})
}

fn assert_complaints(version: u64, table: Vec<(Vec<Line>, &str)>) {
    for (index, (lines, expected)) in table.into_iter().enumerate() {
        let found = complaint(prompted(version).into_iter().chain(lines));
        let found = found.unwrap_or_else(|| panic!("{index}: {expected:?} is not reported"));
        assert!(
            found.contains(expected),
            "{index}: {found}, not {expected:?}"
        );
    }
}

fn end_turn() -> Line {
    result(3, json!({"stopReason": "end_turn"}))
}

fn text(id: &str) -> Line {
    let content = json!({"type": "text", "text": "x"});
    update(
        "agent_message_chunk",
        json!({"content": content, "messageId": id}),
    )
}

fn call(id: &str) -> Line {
    update(
        "tool_call",
        json!({"toolCallId": id, "title": "Do", "name": "do"}),
    )
}

fn status(id: &str, status: &str) -> Line {
    update(
        "tool_call_update",
        json!({"toolCallId": id, "status": status}),
    )
}

fn compaction(status: &str) -> Line {
    update(
        "compaction_update",
        json!({"compactionId": "k", "status": status}),
    )
}

fn permission(kinds: &[&str]) -> Line {
    let option = |kind: &&str| json!({"optionId": format!("{kind}{}", kind.len()), "name": "n", "kind": kind});
    let options: Vec<Value> = kinds.iter().map(option).collect();
    let params = json!({"toolCall": {"toolCallId": "c"}, "options": options});
    request(1, "session/request_permission", params)
}

const YES_OR_NO: [&str; 2] = ["allow_once", "reject_once"];

fn answer(id: i64, result: Value) -> Line {
    Client(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

#[test]
fn valid_lines_pass() {
    let work = vec![
        text("a"),
        call("c"),
        permission(&YES_OR_NO),
        answer(1, json!({"outcome": {"outcome": "cancelled"}})),
        status("c", "in_progress"),
        status("c", "completed"),
        compaction("in_progress"),
        compaction("completed"),
        update("usage_update", json!({"used": 1, "size": 1})),
        Client("nonsense".to_owned()),
        error(Value::Null, -32700),
        // A command beside the prompt, and a prompt that is refused, end no call.
        call("d"),
        prompt(4, "/help"),
        result(4, json!({"stopReason": "end_turn"})),
        prompt(5, "x"),
        error(json!(5), -32603),
        status("d", "failed"),
        end_turn(),
    ];
    assert_eq!(complaint(prompted(1).into_iter().chain(work)), None);
    let state = |state: Value| update("state_update", state);
    let work = vec![
        state(json!({"state": "running"})),
        update("agent_message", message("n")),
        state(json!({"state": "idle", "stopReason": "end_turn"})),
    ];
    assert_eq!(complaint(prompted(2).into_iter().chain(work)), None);
}

#[test]
fn oracle_of_the_suite_sees_both_directions() {
    let untyped = update("agent_message_chunk", json!({}));
    let unknown_member = update("usage_update", json!({"used": 1, "size": 1, "x": 1}));
    let elsewhere = notice_about(
        "t",
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 1}),
    );
    assert_complaints(
        1,
        vec![
            // Late: the prompt was answered.
            (vec![end_turn(), text("a")], "PROMPT-7"),
            (
                vec![result(3, json!({"stopReason": "cancelled"})), text("a")],
                "CANCEL-5",
            ),
            // Against the schema.
            (vec![untyped], "MSG-1"),
            (vec![unknown_member], "EXT-1"),
            (vec![Agent("nonsense".to_owned())], "TR-3"),
            // Depends on what the client has sent, or not.
            (vec![], "TR-7"),
            (vec![end_turn(), end_turn()], "PROMPT-4"),
            (vec![error(Value::Null, -32700)], "RPC-2"),
            (vec![elsewhere], "UPD-1"),
            (
                vec![request(1, "fs/read_text_file", json!({"path": "/a"}))],
                "FS-1",
            ),
            (
                vec![call("c"), permission(&YES_OR_NO), permission(&YES_OR_NO)],
                "RPC-16",
            ),
        ],
    );
    let closes = || {
        [
            client(4, "session/close", json!({"sessionId": "s"})),
            result(4, json!({})),
        ]
    };
    let late = update("usage_update", json!({"used": 1, "size": 1}));
    assert_complaints(
        2,
        vec![
            (vec![update("agent_message", message("n"))], "V2-8"),
            (vec![update("state_update", json!({"state": 7}))], "V2-8"),
            (closes().into_iter().chain([late]).collect(), "V2-16"),
        ],
    );
}

#[test]
fn promises_about_lines_are_checked() {
    let raw = |text: &str| Agent(text.to_owned());
    let unnamed = json!({"cwd": "/", "mcpServers": []});
    let no_version = json!({"id": 4, "method": "session/new", "params": unnamed}).to_string();
    assert_complaints(
        1,
        vec![
            (
                vec![Client("nonsense".to_owned()), end_turn()],
                "1 malformed lines got no error",
            ),
            (
                vec![
                    Client(r#"{"id":4,"id":4,"method":"x"}"#.to_owned()),
                    end_turn(),
                ],
                "1 malformed",
            ),
            (
                vec![
                    Client(r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#.to_owned()),
                    end_turn(),
                ],
                "1 malformed",
            ),
            (
                vec![Client(no_version.clone()), end_turn()],
                "no response to 4",
            ),
            (
                vec![Client(no_version), result(4, json!({"sessionId": "t"}))],
                "a result for a request without",
            ),
            (
                vec![raw(
                    r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"},"x":1}"#,
                )],
                "unknown field",
            ),
            (
                vec![raw(
                    r#"{"jsonrpc":"2.0","id":3,"id":3,"result":{"stopReason":"end_turn"}}"#,
                )],
                "duplicate field",
            ),
            (
                vec![raw(
                    r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"No"}}"#,
                )],
                "an error has details",
            ),
            (
                vec![raw(
                    r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":""}}"#,
                )],
                "is one line",
            ),
            (
                vec![raw(
                    r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9}}"#,
                )],
                "no open request",
            ),
            (
                vec![
                    call("c"),
                    permission(&YES_OR_NO),
                    status("c", "failed"),
                    end_turn(),
                ],
                "CANCEL-7",
            ),
        ],
    );
    let wrong = client(4, "session/new", json!({"cwd": 7}));
    assert_complaints(
        2,
        vec![(
            vec![wrong, result(4, json!({"sessionId": "t"}))],
            "a result for parameters that are wrong",
        )],
    );
}

#[test]
fn promises_of_version_1_are_checked() {
    let go = || vec![call("c"), status("c", "in_progress")];
    let then = |later: Vec<Line>| go().into_iter().chain(later).collect::<Vec<_>>();
    let user = || {
        update(
            "user_message_chunk",
            json!({"content": {"type": "text", "text": "other"}}),
        )
    };
    let title = || update("session_info_update", json!({"title": "a"}));
    let option = |id: &str, category: &str| {
        json!({"id": id, "name": "n", "type": "select", "category": category, "currentValue": "a",
            "options": [{"value": "a", "name": "A"}]})
    };
    let options =
        |options: &[Value]| update("config_option_update", json!({"configOptions": options}));
    let unnamed = update("tool_call", json!({"toolCallId": "c", "title": "Do"}));
    let done = json!({"toolCallId": "c", "title": "Do", "name": "do", "status": "completed"});
    let usage = |used: u64| update("usage_update", json!({"used": used, "size": 1}));
    let load = || {
        client(
            4,
            "session/load",
            json!({"sessionId": "s", "cwd": "/", "mcpServers": []}),
        )
    };
    let mine = update(
        "user_message_chunk",
        json!({"content": {"type": "text", "text": "x"}, "messageId": "a"}),
    );
    assert_complaints(
        1,
        vec![
            (vec![unnamed], "no title or name"),
            (vec![update("tool_call", done)], "TOOL-1"),
            (vec![call("c"), call("c")], "TOOL-2"),
            (
                vec![
                    call("c"),
                    permission(&YES_OR_NO),
                    status("c", "in_progress"),
                ],
                "TOOL-3",
            ),
            (then(vec![status("c", "in_progress")]), "TOOL-4"),
            (
                then(vec![status("c", "failed"), status("c", "failed")]),
                "TOOL-4",
            ),
            (then(vec![error(json!(3), -32603)]), "TOOL-4"),
            (vec![compaction("completed")], "COMP-2"),
            (vec![compaction("in_progress"), end_turn()], "COMP-2"),
            (vec![permission(&YES_OR_NO)], "PERM-2"),
            (vec![call("c"), permission(&["allow_once"])], "PERM-5"),
            (vec![user()], "G-15"),
            (vec![usage(2)], "USAGE-1"),
            (vec![end_turn(), usage(1)], "G-4"),
            (vec![end_turn(), compaction("in_progress")], "G-4"),
            (vec![title(), title()], "INFO-1"),
            (
                vec![options(&[option("a", "mode"), option("a", "mode")])],
                "CFG-2",
            ),
            (vec![options(&[option("a", "own")])], "CFG-6"),
            (vec![end_turn(), load(), mine, text("a")], "MSG-2"),
        ],
    );
}

#[test]
fn promises_of_version_2_are_checked() {
    let state = |state: &str| update("state_update", json!({"state": state}));
    let run = || state("running");
    let idle = || {
        update(
            "state_update",
            json!({"state": "idle", "stopReason": "end_turn"}),
        )
    };
    let call = |status: &str| {
        update(
            "tool_call_update",
            json!({"toolCallId": "c", "title": "t", "status": status}),
        )
    };
    let terminal = |more: Value| {
        let mut body = json!({"terminalId": "t"});
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        update("terminal_update", body)
    };
    let exits = || terminal(json!({"exitStatus": {"exitCode": 0}}));
    let untitled = update(
        "tool_call_update",
        json!({"toolCallId": "c", "status": "pending"}),
    );
    let shows = json!({"toolCallId": "c", "title": "t", "status": "pending",
        "content": [{"type": "terminal", "terminalId": "t"}]});
    let background = update(
        "state_update",
        json!({"state": "running", "background": []}),
    );
    let empty = update("config_option_update", json!({"configOptions": []}));
    let prints = || {
        update(
            "terminal_output_chunk",
            json!({"terminalId": "t", "data": ""}),
        )
    };
    let replay = || {
        let from = json!({"sessionId": "s", "cwd": "/", "replayFrom": {"type": "start"}});
        client(4, "session/resume", from)
    };
    assert_complaints(
        2,
        vec![
            (vec![call("pending")], "nothing is done while idle"),
            (vec![run(), run()], "the state is the same"),
            (vec![run(), state("idle")], "work ends for a reason"),
            (vec![background], "no background is reported"),
            (
                vec![update("user_message", message("m"))],
                "a message is echoed once",
            ),
            (vec![run(), call("in_progress")], "a call begins pending"),
            (vec![run(), untitled], "a call begins with a title"),
            (
                vec![run(), call("pending"), call("failed"), call("completed")],
                "an item ends once",
            ),
            (
                vec![run(), call("pending"), idle()],
                "everything ends before idle",
            ),
            (
                vec![run(), terminal(json!({})), idle()],
                "everything ends before idle",
            ),
            (vec![run(), exits(), exits()], "an item ends once"),
            (
                vec![run(), exits(), prints()],
                "only an open terminal prints",
            ),
            (
                vec![run(), update("tool_call_update", shows)],
                "before it is shown",
            ),
            (vec![run(), compaction("completed")], "a compaction begins"),
            (vec![empty], "configOptions is empty"),
            (
                vec![idle(), replay(), call("pending")],
                "a replayed call is over",
            ),
        ],
    );
}

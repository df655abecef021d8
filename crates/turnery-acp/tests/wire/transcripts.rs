//! The oracle of the harness, tried on transcripts: it lets through what holds, and names the rule that a
//! broken one breaks. All other tests of this folder run under it.

use crate::harness::Oracle;
use serde_json::{Value, json};

/// One message, and who said it.
enum Line {
    Client(Value),
    Agent(Value),
}
use Line::{Agent, Client};

fn ask(id: i64, method: &str, params: Value) -> Line {
    Client(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn reply(id: i64, result: Value) -> Line {
    Client(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn asks(id: i64, method: &str, mut params: Value) -> Line {
    params["sessionId"] = json!("s");
    Agent(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn answer(id: i64, result: Value) -> Line {
    Agent(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn refuse(id: i64, code: i64) -> Line {
    Agent(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "No"}}))
}

fn update(kind: &str, mut update: Value) -> Line {
    update["sessionUpdate"] = json!(kind);
    let params = json!({"sessionId": "s", "update": update});
    Agent(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
}

fn begin(id: &str) -> Line {
    let call = json!({"toolCallId": id, "title": "Do", "name": "do"});
    update("tool_call", call)
}

fn status(id: &str, status: &str) -> Line {
    update(
        "tool_call_update",
        json!({"toolCallId": id, "status": status}),
    )
}

fn says(text: &str) -> Line {
    let content = json!({"type": "text", "text": text});
    update(
        "agent_message_chunk",
        json!({"content": content, "messageId": "m"}),
    )
}

fn pass(status: &str) -> Line {
    let pass = json!({"compactionId": "k", "status": status});
    update("compaction_update", pass)
}

fn permission(id: i64, options: &[(&str, &str)]) -> Line {
    let options: Vec<Value> = options
        .iter()
        .map(|(id, kind)| json!({"optionId": id, "name": id, "kind": kind}))
        .collect();
    let params = json!({"toolCall": {"toolCallId": "c"}, "options": options});
    asks(id, "session/request_permission", params)
}

const YES_OR_NO: [(&str, &str); 2] = [("yes", "allow_once"), ("no", "reject_once")];

fn prompt(id: i64) -> Line {
    ask(id, "session/prompt", json!({"sessionId": "s"}))
}

fn end(id: i64) -> Line {
    answer(id, json!({"stopReason": "end_turn"}))
}

/// A connection of a client that can do these things, with a session `s`.
fn opened(abilities: Value) -> Vec<Line> {
    let params = json!({"protocolVersion": 1, "clientCapabilities": abilities});
    vec![
        ask(1, "initialize", params),
        answer(1, json!({"protocolVersion": 1})),
        ask(2, "session/new", json!({})),
        answer(2, json!({"sessionId": "s"})),
    ]
}

fn everything() -> Value {
    json!({
        "fs": {"readTextFile": true, "writeTextFile": true},
        "terminal": true,
        "session": {"notices": {}, "compaction": {}},
    })
}

/// The rule that these lines break, the last of them; nothing when all holds to the end.
fn broken(lines: impl IntoIterator<Item = Line>) -> Option<String> {
    let mut oracle = Oracle::default();
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        match line {
            Client(message) => oracle.told(&message),
            Agent(message) => {
                if let Err(rule) = oracle.heard(&message) {
                    assert!(lines.peek().is_none(), "{rule}: {message}");
                    return Some(rule);
                }
            }
        }
    }
    oracle.over().err()
}

/// That these lines, in a prompt of a client that can do everything, break this rule.
fn breaks(rule: &str, lines: impl IntoIterator<Item = Line>) {
    breaks_of(rule, everything(), lines);
}

fn breaks_of(rule: &str, abilities: Value, lines: impl IntoIterator<Item = Line>) {
    let before = opened(abilities).into_iter().chain([prompt(3)]);
    let broken = broken(before.chain(lines)).unwrap_or_else(|| panic!("{rule} is not seen"));
    assert!(broken.starts_with(rule), "{broken} instead of {rule}");
}

#[test]
fn what_holds_is_let_through() {
    let at = json!({"path": "/w/a"});
    let shown = json!({"toolCallId": "c", "content": [{"type": "terminal", "terminalId": "t"}]});
    let work = [
        prompt(3),
        says("hi"),
        begin("c"),
        permission(1, &YES_OR_NO),
        reply(1, json!({})),
        status("c", "in_progress"),
        asks(2, "fs/read_text_file", at),
        reply(2, json!({"content": ""})),
        asks(1, "terminal/create", json!({"command": "true"})),
        reply(1, json!({"terminalId": "t"})),
        update("tool_call_update", shown.clone()),
        asks(5, "terminal/release", json!({"terminalId": "t"})),
        update("tool_call_update", shown),
        status("c", "completed"),
        pass("in_progress"),
        pass("completed"),
        update("usage_update", json!({"used": 1, "size": 1})),
        // A command beside the prompt, whose calls go on.
        begin("d"),
        ask(
            4,
            "session/prompt",
            json!({"sessionId": "s", "prompt": [{"text": "/help"}]}),
        ),
        end(4),
        // A prompt that is refused while another runs.
        prompt(5),
        refuse(5, -32603),
        status("d", "failed"),
        end(3),
        update("session_info_update", json!({"title": "a"})),
        update("session_info_update", json!({"title": "b"})),
        update("notice", json!({"title": "x"})),
        ask(6, "session/load", json!({"sessionId": "s"})),
        update("user_message_chunk", json!({"content": {}})),
        update(
            "tool_call",
            json!({"toolCallId": "c", "title": "Do", "name": "do", "status": "completed"}),
        ),
        pass("completed"),
        update("session_info_update", json!({"title": "b"})),
        answer(6, json!({})),
        ask(7, "session/close", json!({"sessionId": "s"})),
        answer(7, json!({})),
        // Errors without an id, and answers to what the harness did not note.
        Agent(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "No"}})),
        refuse(99, 7),
    ];
    assert_eq!(
        broken(opened(everything()).into_iter().chain(work)),
        None::<String>
    );
}

#[test]
fn answers_are_counted_and_have_their_form() {
    breaks("RPC-12", [end(3), end(3)]);
    breaks("RPC-12", [end(3), refuse(3, -32603)]);
    breaks("RPC-12", [end(77)]);
    breaks("PROMPT-4", []);
    breaks("RPC-4", [answer(3, Value::Null)]);
    let both = json!({"code": 1, "message": "x"});
    breaks(
        "RPC-4",
        [Agent(
            json!({"jsonrpc": "2.0", "id": 3, "result": {}, "error": both}),
        )],
    );
    breaks("RPC-4", [Agent(json!({"jsonrpc": "2.0", "id": 3}))]);
    breaks("RPC-1", [Agent(json!({"id": 3, "result": {}}))]);
    for code in [-32001, -32099, -32801, -32768] {
        breaks("RPC-14", [refuse(3, code)]);
    }
    for message in ["", "two\nlines"] {
        let error = json!({"code": -32603, "message": message});
        breaks(
            "RPC-13",
            [Agent(json!({"jsonrpc": "2.0", "id": 3, "error": error}))],
        );
    }
    breaks(
        "RPC-16",
        [
            begin("c"),
            permission(1, &YES_OR_NO),
            permission(1, &YES_OR_NO),
        ],
    );
}

#[test]
fn updates_come_where_they_belong() {
    let about = |session: &str| {
        let update = json!({"sessionUpdate": "notice", "title": "x"});
        let params = json!({"sessionId": session, "update": update});
        Agent(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    };
    breaks("SESS-7, UPD-1", [about("other")]);
    breaks("UPD-1", [update("news", json!({}))]);
    breaks("PROMPT-7", [end(3), says("late")]);
    breaks(
        "PROMPT-7",
        [answer(3, json!({"stopReason": "cancelled"})), says("late")],
    );
    breaks("PROMPT-7", [refuse(3, -32603), begin("c")]);
    for kind in [
        "plan",
        "usage_update",
        "agent_thought_chunk",
        "compaction_update",
    ] {
        breaks("PROMPT-7", [end(3), update(kind, json!({}))]);
    }
    let resume = || ask(4, "session/resume", json!({"sessionId": "s"}));
    breaks("PROMPT-7, MSG-4, RES-1", [end(3), resume(), says("old")]);
    let words = || update("user_message_chunk", json!({"content": {}}));
    breaks("MSG-3", [words()]);
    breaks("MSG-3", [end(3), resume(), words()]);
    let close = |method| {
        [
            end(3),
            ask(4, method, json!({"sessionId": "s"})),
            answer(4, json!({})),
            about("s"),
        ]
    };
    breaks("CLOSE-3", close("session/close"));
    breaks("CLOSE-3", close("session/delete"));
    let blocks = json!({"content": [{"type": "text", "text": "x"}]});
    breaks("MSG-1", [update("agent_message_chunk", blocks)]);
    let load = ask(4, "session/load", json!({"sessionId": "s"}));
    let mine = update(
        "user_message_chunk",
        json!({"content": {}, "messageId": "m"}),
    );
    breaks("MSG-2", [end(3), load, mine, says("x")]);
    let title = || update("session_info_update", json!({"title": "a"}));
    breaks("INFO-1", [title(), title()]);
    breaks(
        "USAGE-1",
        [update("usage_update", json!({"used": 2, "size": 1}))],
    );
    breaks("USAGE-1", [update("usage_update", json!({"size": 1}))]);
}

#[test]
fn calls_have_a_beginning_and_one_end() {
    breaks("TOOL-2", [status("c", "in_progress")]);
    breaks("TOOL-2", [begin("c"), begin("c")]);
    let call = |call: Value| update("tool_call", call);
    breaks(
        "TOOL-2",
        [call(json!({"toolCallId": "c", "title": "", "name": "do"}))],
    );
    breaks("TOOL-10", [call(json!({"toolCallId": "c", "title": "Do"}))]);
    let other = json!({"toolCallId": "c", "name": "other"});
    breaks("TOOL-10", [begin("c"), update("tool_call_update", other)]);
    let done = json!({"toolCallId": "c", "title": "Do", "name": "do", "status": "completed"});
    breaks("TOOL-1", [call(done)]);
    breaks("TOOL-11", [begin("c"), status("c", "cancelled")]);
    breaks(
        "TOOL-3",
        [
            begin("c"),
            permission(1, &YES_OR_NO),
            status("c", "in_progress"),
        ],
    );
    let go = || [begin("c"), status("c", "in_progress")];
    breaks("TOOL-4", [begin("c"), end(3)]);
    breaks("TOOL-4", go().into_iter().chain([end(3)]));
    breaks("TOOL-4", go().into_iter().chain([refuse(3, -32603)]));
    breaks("TOOL-4", go().into_iter().chain([status("c", "pending")]));
    for after in ["completed", "failed", "in_progress"] {
        let again = [status("c", "completed"), status("c", after)];
        breaks("TOOL-4", go().into_iter().chain(again));
    }
    // The first of two prompts ends, and the second waits.
    breaks("TOOL-4", go().into_iter().chain([prompt(4), end(3)]));
    let load = || ask(4, "session/load", json!({"sessionId": "s"}));
    breaks(
        "TOOL-4, CANCEL-10, LOAD-7",
        [end(3), load(), begin("c"), answer(4, json!({}))],
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
        breaks("TOOL-7", [begin("c"), update]);
    }
    let diff = json!({"toolCallId": "c", "content": [{"type": "diff", "path": "a"}]});
    breaks("TOOL-7", [begin("c"), update("tool_call_update", diff)]);
}

#[test]
fn what_is_asked_of_the_client_is_in_order() {
    let shows = || {
        let content = json!([{"type": "terminal", "terminalId": "t"}]);
        let shown = json!({"toolCallId": "c", "content": content});
        update("tool_call_update", shown)
    };
    let lent = || {
        [
            begin("c"),
            asks(1, "terminal/create", json!({"command": "true"})),
            reply(1, json!({"terminalId": "t"})),
        ]
    };
    let use_it = |method| asks(2, method, json!({"terminalId": "t"}));
    breaks("TOOL-9", [begin("c"), shows()]);
    let released = [use_it("terminal/release"), shows()];
    breaks("TOOL-9", lent().into_iter().chain(released));
    breaks("TERM-3", [use_it("terminal/output")]);
    let after = [
        use_it("terminal/release"),
        asks(3, "terminal/output", json!({"terminalId": "t"})),
    ];
    breaks("TERM-3", lent().into_iter().chain(after));
    let kept = [status("c", "completed"), end(3)];
    breaks("TERM-2", lent().into_iter().chain(kept));
    let relative = json!({"command": "true", "cwd": "a"});
    breaks("FS-2, TERM-3", [asks(1, "terminal/create", relative)]);
    breaks("FS-2", [asks(1, "fs/read_text_file", json!({"path": "a"}))]);
    let line = json!({"path": "/a", "line": 0});
    breaks("FS-2", [asks(1, "fs/read_text_file", line)]);

    breaks("PERM-2", [permission(1, &YES_OR_NO)]);
    let twice = [("a", "allow_once"), ("a", "reject_once")];
    breaks("PERM-2", [begin("c"), permission(1, &twice)]);
    let same = [("a", "reject_once"), ("b", "reject_once")];
    breaks("PERM-5", [begin("c"), permission(1, &same)]);
    let no_no = [("a", "allow_once")];
    breaks("PERM-5", [begin("c"), permission(1, &no_no)]);
    breaks("PERM-5", [begin("c"), permission(1, &[])]);
    let waits = [
        begin("c"),
        permission(1, &YES_OR_NO),
        status("c", "failed"),
        end(3),
    ];
    breaks("CANCEL-7", waits);
    let back = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 9}});
    breaks("REQC-4", [Agent(back)]);
}

#[test]
fn what_was_not_offered_is_not_used() {
    let boolean = json!({"configOptions": [{"id": "a", "type": "boolean", "currentValue": true}]});
    // Values of the wrong type offer nothing.
    for abilities in [
        json!({}),
        Value::Null,
        json!({"fs": true, "terminal": {}, "session": {"notices": true, "compaction": 1,
            "configOptions": {"boolean": true}}, "elicitation": {}}),
    ] {
        for line in [
            asks(1, "fs/read_text_file", json!({"path": "/a"})),
            asks(1, "fs/write_text_file", json!({"path": "/a"})),
            asks(1, "terminal/create", json!({"command": "true"})),
            asks(1, "elicitation/create", json!({"mode": "form"})),
            asks(1, "elicitation/create", json!({"mode": "url"})),
            asks(1, "elicitation/create", json!({})),
            update("notice", json!({"title": "x"})),
            pass("in_progress"),
        ] {
            breaks_of("INIT-7", abilities.clone(), [line]);
        }
        let line = update("config_option_update", boolean.clone());
        breaks_of("CFG-3", abilities, [line]);
    }
    breaks("INIT-7", [asks(1, "terminals/create", json!({}))]);
}

#[test]
fn what_is_offered_is_in_order() {
    breaks("COMP-2", [pass("completed")]);
    breaks("COMP-2", [pass("in_progress"), pass("in_progress")]);
    breaks(
        "COMP-2",
        [pass("in_progress"), pass("failed"), pass("completed")],
    );
    breaks("COMP-2", [pass("in_progress"), end(3)]);
    let summary = json!({"compactionId": "k", "status": "failed", "summary": []});
    breaks(
        "COMP-2",
        [pass("in_progress"), update("compaction_update", summary)],
    );
    let option = |value: &str, category: &str| {
        json!({"id": "a", "type": "select", "currentValue": value, "category": category,
            "options": [{"value": "x"}, {"group": "g", "options": [{"value": "y"}]}]})
    };
    let options =
        |options: &[Value]| update("config_option_update", json!({"configOptions": options}));
    breaks("CFG-1", [options(&[option("z", "mode")])]);
    breaks("CFG-6", [options(&[option("x", "ours")])]);
    breaks(
        "CFG-2",
        [options(&[option("x", "_ours"), option("y", "mode")])],
    );
    for names in [&["a b"][..], &["/a"], &[""], &["a", "a"]] {
        let commands: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let commands = json!({"availableCommands": commands});
        breaks("CMD-3", [update("available_commands_update", commands)]);
    }
    let modes = json!({"sessionId": "t", "modes": {"currentModeId": "a", "availableModes": []}});
    let new = || ask(4, "session/new", json!({}));
    breaks("MODE-4", [end(3), new(), answer(4, modes)]);
    breaks(
        "SESS-1",
        [end(3), new(), answer(4, json!({"sessionId": "s"}))],
    );
}

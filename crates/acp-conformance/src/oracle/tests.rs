//! Tests of each rule: valid lines are accepted, and invalid lines break the named rule.

use super::*;
use serde_json::json;

mod every_rule;
mod streams;
mod unstable;
mod v2;

const INITIALIZED: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#,
];
const SESSION: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
    r#"< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
];
const PROMPT: &str = r#"> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}"#;
const END_TURN: &str = r#"< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#;
const CANCELLED: &str = r#"< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}"#;
const TEXT_CHUNK: &str =
    r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}"#;

fn update_line(update: &str) -> String {
    session_update_line("s", update)
}

fn session_update_line(session: &str, update: &str) -> String {
    format!(
        r#"< {{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{update}}}}}"#
    )
}

/// Returns the rules broken by lines, sent (`>`) and received (`<`), after `before`.
fn violations_after(
    before: &[&[&str]],
    lines: &[&str],
    ending: Option<OutputEnding>,
) -> Vec<&'static str> {
    let mut oracle = Oracle::default();
    let mut rules = Vec::new();
    let lines = before.iter().copied().flatten().chain(lines);
    for line in lines {
        let (sign, text) = line.split_at(2);
        match sign {
            "> " => oracle.on_sent_line(text),
            "< " => {
                let found = oracle.on_received_line(format!("{text}\n").as_bytes());
                rules.extend(found.into_iter().map(|violation| violation.rule));
            }
            other => panic!("{other:?}"),
        }
    }
    if let Some(ending) = ending {
        let found = oracle.on_output_end(ending);
        rules.extend(found.into_iter().map(|violation| violation.rule));
    }
    rules
}

fn violations(lines: &[&str]) -> Vec<&'static str> {
    violations_after(&[INITIALIZED, SESSION], lines, None)
}

fn no_violations() -> Vec<&'static str> {
    Vec::new()
}

#[test]
fn whole_turn_breaks_no_rule() {
    let lines = [
        &*update_line(
            r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"init","description":"d"}]}"#,
        ),
        PROMPT,
        &*update_line(TEXT_CHUNK),
        &*update_line(
            r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","kind":"read","locations":[{"path":"/a","line":1}]}"#,
        ),
        r#"< {"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}"#,
        r#"> {"jsonrpc":"2.0","id":"ask","result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#,
        &*update_line(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}"#,
        ),
        &*update_line(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[{"type":"content","content":{"type":"text","text":"x"}}]}"#,
        ),
        END_TURN,
        &*update_line(
            r#"{"sessionUpdate":"session_info_update","title":"A title","updatedAt":"2026-11-21T18:00:00Z"}"#,
        ),
    ];
    let all = violations_after(&[INITIALIZED, SESSION], &lines, Some(OutputEnding::Eof));
    assert_eq!(all, no_violations());
}

#[test]
fn framing_errors_are_reported() {
    let heard = |line: &[u8]| -> Vec<&'static str> {
        let found = Oracle::default().on_received_line(line);
        found.into_iter().map(|violation| violation.rule).collect()
    };
    let right = br#"{"jsonrpc":"2.0","method":"_x"}"#;
    assert_eq!(heard(&[&right[..], b"\n"].concat()), no_violations());
    assert_eq!(heard(&[&right[..], b"\r\n"].concat()), no_violations());
    assert_eq!(heard(right), ["TR-2"]);
    assert_eq!(
        heard(b"{\"jsonrpc\":\"2.0\",\"method\":\"_\xff\"}\n"),
        ["TR-1"]
    );
    for junk in ["starting up\n", "\n", "5\n", "[]\n", "null\n", "{}}\n"] {
        assert_eq!(heard(junk.as_bytes()), ["TR-3"], "{junk}");
    }
    assert_eq!(heard(&[&right[..], &right[..], b"\n"].concat()), ["TR-2"]);
    let mut long = right.to_vec();
    long.resize(33_554_431, b' ');
    assert_eq!(heard(&[&long[..], b"\n"].concat()), no_violations());
    assert_eq!(heard(&[&long[..], b" \n"].concat()), ["TR-9"]);
}

#[test]
fn split_message_is_reported_once_and_parsed() {
    let lines = [
        "< {",
        "<   \"jsonrpc\": \"2.0\",",
        "<   \"method\": \"nope\"",
        "< }",
    ];
    assert_eq!(violations(&lines), ["TR-2", "EXT-3"]);
}

#[test]
fn batch_may_be_answered_with_a_batch() {
    let batch = r#"> [{"jsonrpc":"2.0","id":7,"method":"a"}]"#;
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"x"}}"#;
    assert_eq!(
        violations(&[batch, &format!("< [{error}]")]),
        no_violations()
    );
    assert_eq!(violations(&[batch, &format!("< {error}")]), no_violations());
    assert_eq!(violations(&[&format!("< [{error}]")]), ["TR-3"]);
}

#[test]
fn envelope_errors_are_reported() {
    for (line, rules) in [
        (r#"< {"id":3,"result":{}}"#, vec!["RPC-1"]),
        (r#"< {"jsonrpc":"1.0","method":"_x"}"#, vec!["RPC-1"]),
        (r#"< {"jsonrpc":"2.0","id":3}"#, vec!["RPC-4"]),
        (
            r#"< {"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":""}}"#,
            vec!["RPC-4"],
        ),
        (
            r#"< {"jsonrpc":"2.0","id":3,"method":"_x","result":{}}"#,
            vec!["RPC-4"],
        ),
        (r#"< {"jsonrpc":"2.0","params":{}}"#, vec!["TR-3"]),
        (
            r#"< {"jsonrpc":"2.0","method":"_x","params":1}"#,
            vec!["TR-3"],
        ),
        (r#"< {"jsonrpc":"2.0","method":"_x","params":null}"#, vec![]),
        (r#"< {"jsonrpc":"2.0","id":3,"error":"no"}"#, vec!["RPC-13"]),
        (
            r#"< {"jsonrpc":"2.0","id":3,"error":{"code":"-32601","message":"x"}}"#,
            vec!["RPC-13"],
        ),
        (
            r#"< {"jsonrpc":"2.0","id":3,"error":{"code":-32000}}"#,
            vec!["RPC-13"],
        ),
        (
            r#"< {"jsonrpc":"2.0","id":3,"error":{"code":-32050,"message":"x"}}"#,
            vec!["RPC-14"],
        ),
        (
            r#"< {"jsonrpc":"2.0","id":3,"error":{"code":-32850,"message":"x"}}"#,
            vec!["RPC-14"],
        ),
        (
            r#"< {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"x","data":1}}"#,
            vec![],
        ),
        (
            r#"< {"jsonrpc":"2.0","id":3,"error":{"code":17,"message":"x"}}"#,
            vec![],
        ),
        (
            r#"< {"jsonrpc":"2.0","id":3,"error":{"code":17,"message":"x","hint":1}}"#,
            vec!["EXT-1"],
        ),
    ] {
        let asked = r#"> {"jsonrpc":"2.0","id":3,"method":"_x"}"#;
        assert_eq!(violations(&[asked, line]), rules, "{line}");
    }
}

#[test]
fn response_errors_are_reported() {
    let ask = |id: &str| format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"_x"}}"#);
    let answer = |id: &str| format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let error = |id: &str| {
        format!(r#"< {{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"x"}}}}"#)
    };
    let tell = r#"> {"jsonrpc":"2.0","method":"_x"}"#;
    let no_id = r#"< {"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}"#;
    assert_eq!(violations(&[tell, no_id]), ["TR-3", "RPC-5"]);
    assert_eq!(violations(&["> {\"x\":", no_id]), ["TR-3"]);
    for (lines, rules) in [
        (
            vec![ask("9223372036854775807"), answer("9223372036854775807")],
            vec![],
        ),
        (vec![ask("null"), answer("null")], vec![]),
        (vec![ask(r#""é""#), answer(r#""\u00e9""#)], vec![]),
        (vec![ask("5"), answer(r#""5""#)], vec!["RPC-2"]),
        (vec![ask(r#""5""#), answer("5")], vec!["RPC-2"]),
        (
            vec![ask("9007199254740993"), answer("9007199254740992")],
            vec!["RPC-23"],
        ),
        (
            vec![ask("9007199254740993"), answer(r#""9007199254740993""#)],
            vec!["RPC-2"],
        ),
        (
            vec![ask("9007199254740991"), answer("9007199254740990")],
            vec!["RPC-2"],
        ),
        (vec![ask("5"), answer("6")], vec!["RPC-2"]),
        (vec![ask("5"), answer("5"), answer("5")], vec!["RPC-12"]),
        (vec![ask("5"), answer("5"), ask("5"), answer("5")], vec![]),
        (vec![ask("1.5"), error("null")], vec![]),
        (vec![ask("1.5"), error("1.5")], vec![]),
        (vec!["> {\"x\":".to_owned(), error("null")], vec![]),
        (
            vec!["> {\"x\":".to_owned(), error("null"), error("null")],
            vec!["RPC-2"],
        ),
        (vec!["> {\"foo\":1}".to_owned(), error("null")], vec![]),
        (vec![tell.to_owned(), error("null")], vec!["RPC-5"]),
        (vec![error("null")], vec!["RPC-2"]),
        (
            vec![
                r#"> {"jsonrpc":"2.0","method":5}"#.to_owned(),
                error("null"),
            ],
            vec![],
        ),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(violations(&lines), rules, "{lines:?}");
    }
    assert_eq!(violations(&[PROMPT, END_TURN, END_TURN]), ["PROMPT-4"]);
}

#[test]
fn missing_responses_are_reported_at_end() {
    let ask = r#"> {"jsonrpc":"2.0","id":3,"method":"_x"}"#;
    let odd = r#"> {"id":3,"method":"_x"}"#;
    let ended = |line, ending| violations_after(&[INITIALIZED, SESSION], &[line], Some(ending));
    assert_eq!(ended(ask, OutputEnding::Eof), ["TR-7"]);
    assert_eq!(ended(ask, OutputEnding::Unexpected), ["RPC-12"]);
    assert_eq!(ended(ask, OutputEnding::Forced), no_violations());
    assert_eq!(ended(PROMPT, OutputEnding::Unexpected), ["PROMPT-4"]);
    assert_eq!(ended(odd, OutputEnding::Eof), no_violations());
}

#[test]
fn end_after_malformed_line_owes_no_response() {
    let ask = |id| format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"_x"}}"#);
    let answer = |id| format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let refusal = r#"< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}"#;
    let ended = |lines: &[&str]| {
        violations_after(
            &[INITIALIZED, SESSION],
            lines,
            Some(OutputEnding::Unexpected),
        )
    };
    for fault in ["> [1]", "> {\"x\":", "> \u{fffd}"] {
        assert_eq!(ended(&[fault, &ask(3)]), no_violations(), "{fault}");
        assert_eq!(
            ended(&[&ask(3), fault, &answer(3), &ask(4)]),
            no_violations()
        );
        assert_eq!(ended(&[fault, refusal, &ask(3)]), no_violations());
        // The process survived the malformed line: another request ended it.
        let later = [fault, &ask(3), &answer(3), &ask(4)];
        assert_eq!(ended(&later), ["RPC-12"], "{fault}");
    }
}

#[test]
fn agent_request_ids_are_unique() {
    let ask = r#"< {"jsonrpc":"2.0","id":1,"method":"_x"}"#;
    let answer = r#"> {"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(violations(&[ask, ask]), ["RPC-16"]);
    assert_eq!(violations(&[ask, answer, ask]), no_violations());
    // The client's requests have a separate id space.
    let own = r#"> {"jsonrpc":"2.0","id":1,"method":"_x"}"#;
    assert_eq!(violations(&[own, ask]), no_violations());
}

#[test]
fn malformed_message_still_updates_state() {
    let new =
        r#"> {"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    let odd = r#"< {"jsonrpc":"2.0","id":5,"result":{"sessionId":"t","modes":{}}}"#;
    let more = r#"< {"jsonrpc":"2.0","id":5,"result":{"sessionId":"t","extra":1}}"#;
    let commands = session_update_line(
        "t",
        r#"{"sessionUpdate":"available_commands_update","availableCommands":[]}"#,
    );
    assert_eq!(violations(&[new, odd, &commands]), ["MODE-1"]);
    assert_eq!(violations(&[new, more, &commands]), ["EXT-1"]);
}

#[test]
fn schema_errors_map_to_their_rules() {
    for (body, rule) in [
        (r#"{"sessionUpdate":"nonsense"}"#, "UPD-1"),
        (
            r#"{"sessionUpdate":"state_update","state":"idle"}"#,
            "INIT-15",
        ),
        (
            r#"{"sessionUpdate":"current_mode_update","modeId":"a"}"#,
            "MODE-3",
        ),
        (
            r#"{"sessionUpdate":"agent_message_chunk","content":[]}"#,
            "MSG-1",
        ),
        (
            r#"{"sessionUpdate":"tool_call","toolCallId":"t"}"#,
            "TOOL-2",
        ),
        (
            r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"cancelled"}"#,
            "TOOL-11",
        ),
        (
            r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","content":[{"type":"text","text":"x"}]}"#,
            "TOOL-6",
        ),
        (
            r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","locations":[{"line":1}]}"#,
            "TOOL-7",
        ),
        (
            r#"{"sessionUpdate":"plan","entries":[{"content":"a"}]}"#,
            "PLAN-2",
        ),
        (
            r#"{"sessionUpdate":"usage_update","used":null,"size":1}"#,
            "UPD-1",
        ),
        (
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"},"extra":1}"#,
            "EXT-1",
        ),
        (
            r#"{"sessionUpdate":"agent_message_chunk","message_id":"m","content":{"type":"text","text":"a"}}"#,
            "RPC-21",
        ),
    ] {
        assert_eq!(violations(&[PROMPT, &update_line(body)]), [rule], "{body}");
    }
    for (lines, rule) in [
        (
            [
                PROMPT,
                r#"< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"error"}}"#,
            ],
            "PROMPT-5",
        ),
        (
            [
                r#"> {"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#,
                r#"< {"jsonrpc":"2.0","id":3,"result":null}"#,
            ],
            "LOAD-4",
        ),
        (
            [
                r#"> {"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}"#,
                r#"< {"jsonrpc":"2.0","id":3,"result":{"sessions":null}}"#,
            ],
            "LIST-1",
        ),
        (
            [
                PROMPT,
                r#"< {"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s","options":[]}}"#,
            ],
            "PERM-2",
        ),
        (
            [
                PROMPT,
                r#"< {"jsonrpc":"2.0","id":9,"method":"editor/open","params":{}}"#,
            ],
            "EXT-3",
        ),
        (
            [
                PROMPT,
                r#"< {"jsonrpc":"2.0","id":9,"method":"_editor/open","params":{}}"#,
            ],
            "",
        ),
        (
            [
                PROMPT,
                r#"< {"jsonrpc":"2.0","method":"$/progress","params":{}}"#,
            ],
            "",
        ),
    ] {
        let rules: Vec<&str> = [rule].into_iter().filter(|rule| !rule.is_empty()).collect();
        assert_eq!(violations(&lines), rules, "{lines:?}");
    }
}

#[test]
fn missing_capabilities_are_reported() {
    let read = r#"< {"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}"#;
    let terminal = r#"< {"jsonrpc":"2.0","id":9,"method":"terminal/create","params":{"sessionId":"s","command":"a"}}"#;
    let elicits = r#"< {"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"sessionId":"s","message":"m","mode":"form","requestedSchema":{"type":"object","properties":{}}}}"#;
    let notice = update_line(r#"{"sessionUpdate":"notice","severity":"info","title":"t"}"#);
    let compaction = update_line(
        r#"{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}"#,
    );
    let boolean = update_line(
        r#"{"sessionUpdate":"config_option_update","configOptions":[{"type":"boolean","id":"a","name":"A","currentValue":true}]}"#,
    );
    let offer = |capabilities: Value| {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        format!(
            "> {}",
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        )
    };
    for (line, rule, capabilities) in [
        (read, "FS-1", json!({"fs": {"readTextFile": true}})),
        (terminal, "TERM-1", json!({"terminal": true})),
        (elicits, "ELIC-1", json!({"elicitation": {"form": {}}})),
        (&*notice, "NOTE-1", json!({"session": {"notices": {}}})),
        (
            &*compaction,
            "COMP-1",
            json!({"session": {"compaction": {}}}),
        ),
        (
            &*boolean,
            "CFG-3",
            json!({"session": {"configOptions": {"boolean": {}}}}),
        ),
    ] {
        assert_eq!(violations(&[line]), [rule], "{line}");
        let offered = offer(capabilities);
        let answer = INITIALIZED[1];
        assert_eq!(
            violations(&[&offered, answer, line]),
            no_violations(),
            "{line}"
        );
    }
    // A marker is an object.
    let wrong = offer(json!({"session": {"notices": true}}));
    assert_eq!(violations(&[&wrong, INITIALIZED[1], &notice]), ["NOTE-1"]);
    let terminal = r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"authMethods":[{"type":"terminal","id":"t","name":"T"}]}}"#;
    let all = [&*offer(json!({})), terminal];
    assert_eq!(violations_after(&[], &all, None), ["AUTH-2"]);
    let all = [&*offer(json!({"auth": {"terminal": true}})), terminal];
    assert_eq!(violations_after(&[], &all, None), no_violations());
}

#[test]
fn update_order_errors_are_reported() {
    let text = update_line(TEXT_CHUNK);
    let title = update_line(r#"{"sessionUpdate":"session_info_update","title":"t"}"#);
    let echo = update_line(
        r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}"#,
    );
    let other = session_update_line("x", TEXT_CHUNK);
    let load = r#"> {"jsonrpc":"2.0","id":5,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#;
    let resume = r#"> {"jsonrpc":"2.0","id":5,"method":"session/resume","params":{"sessionId":"s","cwd":"/"}}"#;
    let close = r#"> {"jsonrpc":"2.0","id":5,"method":"session/close","params":{"sessionId":"s"}}"#;
    let new =
        r#"> {"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    let done = r#"< {"jsonrpc":"2.0","id":5,"result":{}}"#;
    let second = r#"> {"jsonrpc":"2.0","id":6,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"more"}]}}"#;
    for (lines, rules) in [
        (vec![PROMPT, &*text, END_TURN], vec![]),
        (vec![PROMPT, END_TURN, &*text], vec!["PROMPT-7"]),
        (vec![PROMPT, CANCELLED, &*text], vec!["CANCEL-5"]),
        (vec![PROMPT, END_TURN, &*title], vec![]),
        (vec![PROMPT, second, END_TURN, &*text], vec![]),
        (vec![&*text], vec!["MSG-4"]),
        (vec![PROMPT, &*echo], vec!["MSG-3"]),
        (vec![&*other], vec!["UPD-1"]),
        (vec![new, &*other], vec!["SESS-7"]),
        (vec![load, &*echo, &*text, done], vec![]),
        (vec![load, done, &*text], vec!["LOAD-2"]),
        (vec![load, done, &*title], vec![]),
        (vec![resume, &*text, done], vec!["RES-1"]),
        (vec![resume, &*title, done], vec![]),
        (vec![close, &*title, done], vec![]),
        (vec![close, done, &*title], vec!["CLOSE-3"]),
        (vec![close, done, load, &*text], vec![]),
        (vec![PROMPT, close, done, &*text, CANCELLED], vec![]),
    ] {
        assert_eq!(violations(&lines), rules, "{lines:?}");
    }
}

#[test]
fn seen_rules_are_listed() {
    let mut oracle = Oracle::default();
    oracle.on_received_line(b"{\"jsonrpc\":\"2.0\",\"method\":\"_x\"}\n");
    let seen: Vec<&str> = oracle.exercised_rules().iter().copied().collect();
    assert_eq!(seen, ["EXT-3", "RPC-1", "TR-1", "TR-2", "TR-3"]);
}

//! Tests of version 2 rules that span messages, with valid and invalid streams.

use super::*;

pub(super) const V2_SESSION: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}"#,
    r#"> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#,
    r#"< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
];
const RUNNING: &str = r#"{"sessionUpdate":"state_update","state":"running"}"#;
const REQUIRES_ACTION: &str = r#"{"sessionUpdate":"state_update","state":"requires_action"}"#;
const IDLE: &str = r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}"#;
const ECHO: &str = r#"{"sessionUpdate":"user_message","messageId":"m"}"#;
const SECOND_ECHO: &str = r#"{"sessionUpdate":"user_message","messageId":"n"}"#;
const AGENT_CHUNK: &str = r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"x"}}"#;
const INFO_UPDATE: &str = r#"{"sessionUpdate":"session_info_update","title":"t"}"#;
const PROMPT: &str = r#"> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}"#;
const PROMPT_RESPONSE: &str = r#"< {"jsonrpc":"2.0","id":2,"result":{"messageId":"m"}}"#;
const SECOND_PROMPT: &str = r#"> {"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"ho"}]}}"#;
const SECOND_PROMPT_RESPONSE: &str = r#"< {"jsonrpc":"2.0","id":3,"result":{"messageId":"n"}}"#;
const PERMISSION_REQUEST: &str = r#"< {"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","title":"t","subject":{"type":"tool_call","toolCall":{"toolCallId":"t"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}"#;
const PERMISSION_RESPONSE: &str =
    r#"> {"jsonrpc":"2.0","id":"q","result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#;
const CLOSE: &str =
    r#"> {"jsonrpc":"2.0","id":4,"method":"session/close","params":{"sessionId":"s"}}"#;
const RESUME: &str =
    r#"> {"jsonrpc":"2.0","id":4,"method":"session/resume","params":{"sessionId":"s","cwd":"/"}}"#;
const RESUME_WITH_REPLAY: &str = r#"> {"jsonrpc":"2.0","id":4,"method":"session/resume","params":{"sessionId":"s","cwd":"/","replayFrom":{"type":"start"}}}"#;
const SUCCESS_RESPONSE: &str = r#"< {"jsonrpc":"2.0","id":4,"result":{}}"#;
const NOT_FOUND_RESPONSE: &str =
    r#"< {"jsonrpc":"2.0","id":4,"error":{"code":-32002,"message":"x","data":{"sessionId":"s"}}}"#;

/// Returns the rules that a stream breaks; a line without `<` or `>` is a session update.
fn violations_in(lines: &[&str]) -> Vec<&'static str> {
    let whole = |line: &&str| match line.starts_with('{') {
        true => update(line),
        false => (*line).to_owned(),
    };
    let lines: Vec<String> = lines.iter().map(whole).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    violations_after(&[V2_SESSION], &lines, None)
}

fn assert_no_violations(streams: &[&[&str]]) {
    for lines in streams {
        assert_eq!(violations_in(lines), nothing(), "{lines:?}");
    }
}

fn assert_each_violates(rule: &str, streams: &[&[&str]]) {
    for lines in streams {
        assert_eq!(violations_in(lines), [rule], "{lines:?}");
    }
}

#[test]
fn negotiated_version_is_at_most_requested() {
    let one = r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let seven =
        r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":7}}"#;
    assert_eq!(violations_after(&[], &[one, V2_SESSION[1]], None), ["V2-1"]);
    assert_eq!(
        violations_after(&[], &[seven, V2_SESSION[1]], None),
        nothing()
    );
}

#[test]
fn agent_request_ids_are_checked() {
    let null = PERMISSION_REQUEST.replace(r#""id":"q""#, r#""id":null"#);
    assert_no_violations(&[&[PERMISSION_REQUEST, PERMISSION_RESPONSE, PERMISSION_REQUEST]]);
    assert_each_violates("V2-3", &[&[PERMISSION_REQUEST, PERMISSION_REQUEST]]);
    assert!(violations_in(&[&null]).contains(&"V2-3"));
}

#[test]
fn prompt_message_is_echoed() {
    assert_no_violations(&[
        &[PROMPT, PROMPT_RESPONSE, ECHO, RUNNING, AGENT_CHUNK, IDLE],
        &[PROMPT, RUNNING, ECHO, AGENT_CHUNK, IDLE, PROMPT_RESPONSE],
        &[PROMPT, RUNNING, PROMPT_RESPONSE, AGENT_CHUNK, ECHO, IDLE],
        // The work that ends may belong to another prompt.
        &[
            PROMPT,
            RUNNING,
            ECHO,
            PROMPT_RESPONSE,
            SECOND_PROMPT,
            SECOND_PROMPT_RESPONSE,
            IDLE,
            SECOND_ECHO,
            RUNNING,
            IDLE,
        ],
        // A repeated state ends nothing.
        &[PROMPT, PROMPT_RESPONSE, IDLE, ECHO, RUNNING, IDLE],
    ]);
    assert_each_violates(
        "V2-6",
        &[
            &[PROMPT, PROMPT_RESPONSE, RUNNING, AGENT_CHUNK, IDLE],
            &[PROMPT, PROMPT_RESPONSE, SECOND_ECHO, RUNNING, IDLE],
            &[PROMPT, PROMPT_RESPONSE, CLOSE, SUCCESS_RESPONSE],
            &[
                PROMPT,
                RUNNING,
                ECHO,
                PROMPT_RESPONSE,
                SECOND_PROMPT,
                SECOND_PROMPT_RESPONSE,
                IDLE,
                RUNNING,
                IDLE,
            ],
        ],
    );
}

#[test]
fn message_ids_are_checked() {
    let same = SECOND_PROMPT_RESPONSE.replace(r#""n""#, r#""m""#);
    assert_no_violations(&[
        &[
            PROMPT,
            ECHO,
            PROMPT_RESPONSE,
            SECOND_PROMPT,
            SECOND_PROMPT_RESPONSE,
            SECOND_ECHO,
        ],
        // A message of another type may have the same id.
        &[
            PROMPT,
            PROMPT_RESPONSE,
            ECHO,
            RUNNING,
            r#"{"sessionUpdate":"agent_message","messageId":"m"}"#,
        ],
        &[
            PROMPT,
            ECHO,
            PROMPT_RESPONSE,
            RESUME_WITH_REPLAY,
            ECHO,
            IDLE,
            SUCCESS_RESPONSE,
        ],
    ]);
    assert_each_violates(
        "V2-11",
        &[
            &[PROMPT, ECHO, PROMPT_RESPONSE, SECOND_PROMPT, &same],
            &[
                RESUME_WITH_REPLAY,
                ECHO,
                IDLE,
                SUCCESS_RESPONSE,
                PROMPT,
                PROMPT_RESPONSE,
            ],
            &[PROMPT, r#"{"sessionUpdate":"user_message"}"#],
        ],
    );
}

#[test]
fn states() {
    assert_no_violations(&[
        &[
            PROMPT,
            ECHO,
            PROMPT_RESPONSE,
            RUNNING,
            PERMISSION_REQUEST,
            REQUIRES_ACTION,
            PERMISSION_RESPONSE,
            RUNNING,
            AGENT_CHUNK,
            IDLE,
        ],
        // Background work may send messages, and the agent may start work by itself.
        &[AGENT_CHUNK],
        &[RUNNING, AGENT_CHUNK, IDLE, IDLE, INFO_UPDATE],
        // Other work continues.
        &[
            PROMPT,
            ECHO,
            PROMPT_RESPONSE,
            RUNNING,
            PERMISSION_REQUEST,
            AGENT_CHUNK,
            PERMISSION_RESPONSE,
            AGENT_CHUNK,
            IDLE,
        ],
        &[
            PROMPT,
            ECHO,
            PROMPT_RESPONSE,
            RUNNING,
            PERMISSION_REQUEST,
            REQUIRES_ACTION,
            AGENT_CHUNK,
            PERMISSION_RESPONSE,
            IDLE,
        ],
        &[
            r#"{"sessionUpdate":"state_update","state":"_dreaming"}"#,
            PROMPT,
            AGENT_CHUNK,
        ],
    ]);
    assert_each_violates(
        "V2-8",
        &[
            &[PROMPT, ECHO, PROMPT_RESPONSE, AGENT_CHUNK, AGENT_CHUNK],
            &[
                PROMPT,
                ECHO,
                PROMPT_RESPONSE,
                RUNNING,
                AGENT_CHUNK,
                IDLE,
                SECOND_PROMPT,
                SECOND_PROMPT_RESPONSE,
                SECOND_ECHO,
                AGENT_CHUNK,
            ],
            &[
                PROMPT,
                ECHO,
                PROMPT_RESPONSE,
                RUNNING,
                PERMISSION_REQUEST,
                REQUIRES_ACTION,
                PERMISSION_RESPONSE,
                AGENT_CHUNK,
                AGENT_CHUNK,
            ],
            &[r#"{"sessionUpdate":"state_update"}"#],
        ],
    );
}

#[test]
fn background_work_is_checked() {
    let state = |items: &str| {
        format!(r#"{{"sessionUpdate":"state_update","state":"idle","background":[{items}]}}"#)
    };
    let none = state("");
    let terminal = state(r#"{"type":"terminal","terminalId":"w"}"#);
    let call = state(r#"{"type":"tool_call","toolCallId":"t"}"#);
    let child = state(r#"{"type":"subagent","sessionId":"c"}"#);
    let own = state(r#"{"type":"_index"}"#);
    let twice =
        state(r#"{"type":"tool_call","toolCallId":"t"},{"type":"tool_call","toolCallId":"t"}"#);
    let opened = r#"{"sessionUpdate":"terminal_update","terminalId":"w"}"#;
    let exited = r#"{"sessionUpdate":"terminal_update","terminalId":"w","exitStatus":{}}"#;
    let begun = r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}"#;
    let ended = r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"cancelled"}"#;
    let parent = r#"{"sessionUpdate":"subagent_update","sessionId":"c"}"#;
    assert_no_violations(&[
        &[IDLE, &none, &own, &none],
        &[opened, &terminal, &terminal, exited, &none],
        &[begun, &call, ended, &none],
        &[PERMISSION_REQUEST, &call],
        &[parent, &child, &none],
        &[
            opened,
            &terminal,
            CLOSE,
            SUCCESS_RESPONSE,
            RESUME,
            IDLE,
            SUCCESS_RESPONSE,
        ],
    ]);
    assert_each_violates(
        "V2-9",
        &[
            &[&none, IDLE],
            &[&own, RUNNING],
            &[&terminal],
            &[&call],
            &[&child],
            &[opened, &terminal, &none],
            &[begun, &call, &none],
            &[begun, &twice],
        ],
    );
}

#[test]
fn resume() {
    let busy = &[
        PROMPT,
        ECHO,
        PROMPT_RESPONSE,
        RUNNING,
        RESUME,
        AGENT_CHUNK,
        RUNNING,
        SUCCESS_RESPONSE,
    ];
    assert_no_violations(&[
        &[
            RESUME_WITH_REPLAY,
            ECHO,
            AGENT_CHUNK,
            IDLE,
            SUCCESS_RESPONSE,
        ],
        &[
            RESUME_WITH_REPLAY,
            ECHO,
            AGENT_CHUNK,
            RUNNING,
            AGENT_CHUNK,
            SUCCESS_RESPONSE,
        ],
        &[RESUME, INFO_UPDATE, IDLE, SUCCESS_RESPONSE],
        &[RESUME, RUNNING, AGENT_CHUNK, SUCCESS_RESPONSE],
        &[RESUME, NOT_FOUND_RESPONSE],
        busy,
    ]);
    assert_each_violates(
        "V2-10",
        &[
            &[RESUME, SUCCESS_RESPONSE],
            &[RESUME_WITH_REPLAY, ECHO, AGENT_CHUNK, SUCCESS_RESPONSE],
            &[
                RESUME_WITH_REPLAY,
                IDLE,
                ECHO,
                AGENT_CHUNK,
                SUCCESS_RESPONSE,
            ],
            &[RESUME, ECHO, AGENT_CHUNK, IDLE, SUCCESS_RESPONSE],
        ],
    );
}

#[test]
fn calls() {
    let call = |more: &str| {
        format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"x"{more}}}"#)
    };
    let chunk = r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"x"}}}"#;
    let (begun, runs, paused, over) = (
        call(""),
        call(r#","status":"in_progress""#),
        call(r#","status":"paused""#),
        call(r#","status":"completed""#),
    );
    let reset = call(r#","status":null"#);
    let (own, odd) = (
        call(r#","status":"_queued""#),
        call(r#","status":"queued""#),
    );
    let place = |path: &str| call(&format!(r#","locations":[{{"path":"{path}"}}]"#));
    let (here, there) = (place("/a"), place("a"));
    assert_no_violations(&[
        &[&begun, chunk, &runs, &paused, &runs, &over, &begun],
        &[PERMISSION_REQUEST, chunk],
        &[
            &over,
            RESUME_WITH_REPLAY,
            &runs,
            &over,
            IDLE,
            SUCCESS_RESPONSE,
        ],
        &[&own, &here],
    ]);
    assert_each_violates(
        "V2-12",
        &[&[chunk], &[&over, &runs], &[&over, &reset], &[&there]],
    );
    assert_each_violates("V2-20", &[&[&odd]]);
}

#[test]
fn terminals() {
    let terminal =
        |more: &str| format!(r#"{{"sessionUpdate":"terminal_update","terminalId":"w"{more}}}"#);
    let chunk = |data: &str| {
        format!(r#"{{"sessionUpdate":"terminal_output_chunk","terminalId":"w","data":"{data}"}}"#)
    };
    let begun = terminal(r#","command":"a","cwd":"/a""#);
    let (bytes, none, whole) = (chunk("aMOp"), chunk(""), chunk("aA=="));
    let (short, plain, cut) = (chunk("aMO"), chunk("h\u{e9}l"), chunk("a=A="));
    let all = terminal(r#","output":{"data":"aGk="}"#);
    let odd = terminal(r#","output":{"data":"hi"}"#);
    let relative = terminal(r#","cwd":"a""#);
    assert_no_violations(&[&[&begun, &bytes, &none, &whole, &all]]);
    assert_each_violates(
        "V2-13",
        &[
            &[&bytes],
            &[&begun, &short],
            &[&begun, &plain],
            &[&begun, &cut],
            &[&odd],
            &[&relative],
        ],
    );
}

#[test]
fn diffs() {
    let diff = |change: &str| {
        format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{{"type":"diff","changes":[{change}]}}]}}"#
        )
    };
    let add = diff(r#"{"operation":"add","path":"/a"}"#);
    let odd = diff(r#"{"operation":"add","path":"a"}"#);
    let from = diff(r#"{"operation":"move","oldPath":"a","path":"/b"}"#);
    assert_no_violations(&[&[&add]]);
    assert_each_violates("V2-14", &[&[&odd], &[&from]]);
}

#[test]
fn close() {
    assert_no_violations(&[
        &[CLOSE, INFO_UPDATE, SUCCESS_RESPONSE],
        &[
            PROMPT,
            ECHO,
            PROMPT_RESPONSE,
            RUNNING,
            CLOSE,
            IDLE,
            SUCCESS_RESPONSE,
        ],
        &[
            PROMPT,
            ECHO,
            RUNNING,
            CLOSE,
            IDLE,
            SUCCESS_RESPONSE,
            PROMPT_RESPONSE,
        ],
        &[
            CLOSE,
            SUCCESS_RESPONSE,
            RESUME_WITH_REPLAY,
            AGENT_CHUNK,
            IDLE,
            SUCCESS_RESPONSE,
            INFO_UPDATE,
        ],
        &[CLOSE, NOT_FOUND_RESPONSE, INFO_UPDATE],
    ]);
    assert_each_violates(
        "V2-16",
        &[
            &[CLOSE, SUCCESS_RESPONSE, INFO_UPDATE],
            &[CLOSE, SUCCESS_RESPONSE, PERMISSION_REQUEST],
            &[RUNNING, CLOSE, SUCCESS_RESPONSE],
            &[REQUIRES_ACTION, CLOSE, SUCCESS_RESPONSE],
            &[
                CLOSE,
                SUCCESS_RESPONSE,
                RESUME,
                NOT_FOUND_RESPONSE,
                INFO_UPDATE,
            ],
        ],
    );
}

#[test]
fn single_item_cancels_are_checked() {
    let cancel = r#"> {"jsonrpc":"2.0","id":4,"method":"tool_call/cancel","params":{"sessionId":"s","toolCallId":"t"}}"#;
    let stop = r#"> {"jsonrpc":"2.0","id":4,"method":"terminal/cancel","params":{"sessionId":"s","terminalId":"w"}}"#;
    let no = r#"< {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"x"}}"#;
    let call =
        |more: &str| format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t"{more}}}"#);
    let terminal =
        |more: &str| format!(r#"{{"sessionUpdate":"terminal_update","terminalId":"w"{more}}}"#);
    let can = r#","capabilities":{"cancel":{}}"#;
    let (offered, kept, taken_back, over) = (
        call(can),
        call(""),
        call(r#","capabilities":null"#),
        call(r#","status":"cancelled""#),
    );
    let (opened, bare, exited) = (terminal(can), terminal(""), terminal(r#","exitStatus":{}"#));
    assert_no_violations(&[
        &[&offered, &kept, cancel, &over, SUCCESS_RESPONSE],
        &[&opened, stop, SUCCESS_RESPONSE, &exited],
        &[cancel, no],
        &[&offered, &over, cancel, no],
    ]);
    assert_each_violates(
        "V2-19",
        &[
            &[cancel, SUCCESS_RESPONSE],
            &[&kept, cancel, SUCCESS_RESPONSE],
            &[&offered, &taken_back, cancel, SUCCESS_RESPONSE],
            &[&offered, &over, cancel, SUCCESS_RESPONSE],
            &[&bare, stop, SUCCESS_RESPONSE],
            &[&opened, &exited, stop, SUCCESS_RESPONSE],
        ],
    );
}

#[test]
fn custom_updates_begin_with_underscore() {
    assert_no_violations(&[&[r#"{"sessionUpdate":"_mood"}"#]]);
    assert_each_violates("V2-20", &[&[r#"{"sessionUpdate":"mood"}"#]]);
}

#[test]
fn lists() {
    let option = |id: &str, current: &str, values: &str| {
        format!(
            r#"{{"type":"select","configId":"{id}","name":"A","currentValue":"{current}","options":[{values}]}}"#
        )
    };
    let options = |options: &[&str]| {
        format!(
            r#"{{"sessionUpdate":"config_option_update","configOptions":[{}]}}"#,
            options.join(",")
        )
    };
    let commands = |one: &str, other: &str| {
        format!(
            r#"{{"sessionUpdate":"available_commands_update","availableCommands":[{{"type":"command","name":"{one}","description":""}},{{"type":"command","name":"{other}","description":""}}]}}"#
        )
    };
    let (x, y) = (r#"{"value":"x","name":"X"}"#, r#"{"value":"y","name":"Y"}"#);
    let group = format!(
        r#"{{"groupId":"g","name":"G","options":[{x}]}},{{"groupId":"h","name":"H","options":[{y}]}}"#
    );
    let again = format!(
        r#"{{"groupId":"g","name":"G","options":[{x}]}},{{"groupId":"h","name":"H","options":[{x}]}}"#
    );
    let both = format!("{x},{y}");
    let twice = format!("{x},{x}");
    let a = option("a", "x", &both);
    let right = options(&[&a, &option("b", "y", &group)]);
    assert_no_violations(&[&[&right, &commands("a", "b")]]);
    let doubled = PERMISSION_REQUEST.replace(
        r#""options":["#,
        r#""options":[{"optionId":"y","name":"N","kind":"reject_once"},"#,
    );
    assert_each_violates(
        "V2-21",
        &[
            &[&options(&[&a, &a])],
            &[&options(&[&option("a", "z", &both)])],
            &[&options(&[&option("a", "x", "")])],
            &[&options(&[&option("a", "x", &twice)])],
            &[&options(&[&option("a", "x", &again)])],
            &[&commands("a", "a")],
            &[&commands("/a", "b")],
            &[&commands("a b", "c")],
            &[&doubled],
        ],
    );
}

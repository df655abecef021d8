//! Version 2 from message to message: each law with streams that keep it, and with some that break it.

use super::*;

pub(super) const SECOND: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#,
    r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}"#,
    r#"> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#,
    r#"< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
];
const RUNNING: &str = r#"{"sessionUpdate":"state_update","state":"running"}"#;
const ASKING: &str = r#"{"sessionUpdate":"state_update","state":"requires_action"}"#;
const IDLE: &str = r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}"#;
const ECHO: &str = r#"{"sessionUpdate":"user_message","messageId":"m"}"#;
const ECHO_TOO: &str = r#"{"sessionUpdate":"user_message","messageId":"n"}"#;
const SAYS: &str = r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"x"}}"#;
const NEWS: &str = r#"{"sessionUpdate":"session_info_update","title":"t"}"#;
const PROMPT: &str = r#"> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}"#;
const TAKEN: &str = r#"< {"jsonrpc":"2.0","id":2,"result":{"messageId":"m"}}"#;
const PROMPT_TOO: &str = r#"> {"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"ho"}]}}"#;
const TAKEN_TOO: &str = r#"< {"jsonrpc":"2.0","id":3,"result":{"messageId":"n"}}"#;
const ASK: &str = r#"< {"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","title":"t","subject":{"type":"tool_call","toolCall":{"toolCallId":"t"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}"#;
const ANSWER: &str =
    r#"> {"jsonrpc":"2.0","id":"q","result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#;
const CLOSE: &str =
    r#"> {"jsonrpc":"2.0","id":4,"method":"session/close","params":{"sessionId":"s"}}"#;
const RESUME: &str =
    r#"> {"jsonrpc":"2.0","id":4,"method":"session/resume","params":{"sessionId":"s","cwd":"/"}}"#;
const REPLAY: &str = r#"> {"jsonrpc":"2.0","id":4,"method":"session/resume","params":{"sessionId":"s","cwd":"/","replayFrom":{"type":"start"}}}"#;
const DONE: &str = r#"< {"jsonrpc":"2.0","id":4,"result":{}}"#;
const GONE: &str =
    r#"< {"jsonrpc":"2.0","id":4,"error":{"code":-32002,"message":"x","data":{"sessionId":"s"}}}"#;

/// The rules that a stream breaks; a line without `<` or `>` is an update of the session.
fn breaks(lines: &[&str]) -> Vec<&'static str> {
    let whole = |line: &&str| match line.starts_with('{') {
        true => update(line),
        false => (*line).to_owned(),
    };
    let lines: Vec<String> = lines.iter().map(whole).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    broken_after(&[SECOND], &lines, None)
}

fn hold(streams: &[&[&str]]) {
    for lines in streams {
        assert_eq!(breaks(lines), nothing(), "{lines:?}");
    }
}

fn each_breaks(rule: &str, streams: &[&[&str]]) {
    for lines in streams {
        assert_eq!(breaks(lines), [rule], "{lines:?}");
    }
}

#[test]
fn the_version_is_not_above_the_one_that_was_asked_for() {
    let one = r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let seven =
        r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":7}}"#;
    assert_eq!(broken_after(&[], &[one, SECOND[1]], None), ["V2-1"]);
    assert_eq!(broken_after(&[], &[seven, SECOND[1]], None), nothing());
}

#[test]
fn ids_of_requests() {
    let null = ASK.replace(r#""id":"q""#, r#""id":null"#);
    hold(&[&[ASK, ANSWER, ASK]]);
    each_breaks("V2-3", &[&[ASK, ASK]]);
    assert!(breaks(&[&null]).contains(&"V2-3"));
}

#[test]
fn the_message_is_echoed() {
    hold(&[
        &[PROMPT, TAKEN, ECHO, RUNNING, SAYS, IDLE],
        &[PROMPT, RUNNING, ECHO, SAYS, IDLE, TAKEN],
        &[PROMPT, RUNNING, TAKEN, SAYS, ECHO, IDLE],
        // It may be that the work that ends is another's.
        &[
            PROMPT, RUNNING, ECHO, TAKEN, PROMPT_TOO, TAKEN_TOO, IDLE, ECHO_TOO, RUNNING, IDLE,
        ],
        // A repeated state ends nothing.
        &[PROMPT, TAKEN, IDLE, ECHO, RUNNING, IDLE],
    ]);
    each_breaks(
        "V2-6",
        &[
            &[PROMPT, TAKEN, RUNNING, SAYS, IDLE],
            &[PROMPT, TAKEN, ECHO_TOO, RUNNING, IDLE],
            &[PROMPT, TAKEN, CLOSE, DONE],
            &[
                PROMPT, RUNNING, ECHO, TAKEN, PROMPT_TOO, TAKEN_TOO, IDLE, RUNNING, IDLE,
            ],
        ],
    );
}

#[test]
fn ids_of_messages() {
    let same = TAKEN_TOO.replace(r#""n""#, r#""m""#);
    hold(&[
        &[PROMPT, ECHO, TAKEN, PROMPT_TOO, TAKEN_TOO, ECHO_TOO],
        // A message of another type may have the same.
        &[
            PROMPT,
            TAKEN,
            ECHO,
            RUNNING,
            r#"{"sessionUpdate":"agent_message","messageId":"m"}"#,
        ],
        &[PROMPT, ECHO, TAKEN, REPLAY, ECHO, IDLE, DONE],
    ]);
    each_breaks(
        "V2-11",
        &[
            &[PROMPT, ECHO, TAKEN, PROMPT_TOO, &same],
            &[REPLAY, ECHO, IDLE, DONE, PROMPT, TAKEN],
            &[PROMPT, r#"{"sessionUpdate":"user_message"}"#],
        ],
    );
}

#[test]
fn states() {
    hold(&[
        &[
            PROMPT, ECHO, TAKEN, RUNNING, ASK, ASKING, ANSWER, RUNNING, SAYS, IDLE,
        ],
        // What runs in the background may speak, and the agent may begin by itself.
        &[SAYS],
        &[RUNNING, SAYS, IDLE, IDLE, NEWS],
        // Other work goes on.
        &[PROMPT, ECHO, TAKEN, RUNNING, ASK, SAYS, ANSWER, SAYS, IDLE],
        &[
            PROMPT, ECHO, TAKEN, RUNNING, ASK, ASKING, SAYS, ANSWER, IDLE,
        ],
        &[
            r#"{"sessionUpdate":"state_update","state":"_dreaming"}"#,
            PROMPT,
            SAYS,
        ],
    ]);
    each_breaks(
        "V2-8",
        &[
            &[PROMPT, ECHO, TAKEN, SAYS, SAYS],
            &[
                PROMPT, ECHO, TAKEN, RUNNING, SAYS, IDLE, PROMPT_TOO, TAKEN_TOO, ECHO_TOO, SAYS,
            ],
            &[
                PROMPT, ECHO, TAKEN, RUNNING, ASK, ASKING, ANSWER, SAYS, SAYS,
            ],
            &[r#"{"sessionUpdate":"state_update"}"#],
        ],
    );
}

#[test]
fn background_work() {
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
    hold(&[
        &[IDLE, &none, &own, &none],
        &[opened, &terminal, &terminal, exited, &none],
        &[begun, &call, ended, &none],
        &[ASK, &call],
        &[parent, &child, &none],
        &[opened, &terminal, CLOSE, DONE, RESUME, IDLE, DONE],
    ]);
    each_breaks(
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
    let busy = &[PROMPT, ECHO, TAKEN, RUNNING, RESUME, SAYS, RUNNING, DONE];
    hold(&[
        &[REPLAY, ECHO, SAYS, IDLE, DONE],
        &[REPLAY, ECHO, SAYS, RUNNING, SAYS, DONE],
        &[RESUME, NEWS, IDLE, DONE],
        &[RESUME, RUNNING, SAYS, DONE],
        &[RESUME, GONE],
        busy,
    ]);
    each_breaks(
        "V2-10",
        &[
            &[RESUME, DONE],
            &[REPLAY, ECHO, SAYS, DONE],
            &[REPLAY, IDLE, ECHO, SAYS, DONE],
            &[RESUME, ECHO, SAYS, IDLE, DONE],
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
    hold(&[
        &[&begun, chunk, &runs, &paused, &runs, &over, &begun],
        &[ASK, chunk],
        &[&over, REPLAY, &runs, &over, IDLE, DONE],
        &[&own, &here],
    ]);
    each_breaks(
        "V2-12",
        &[&[chunk], &[&over, &runs], &[&over, &reset], &[&there]],
    );
    each_breaks("V2-20", &[&[&odd]]);
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
    hold(&[&[&begun, &bytes, &none, &whole, &all]]);
    each_breaks(
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
    hold(&[&[&add]]);
    each_breaks("V2-14", &[&[&odd], &[&from]]);
}

#[test]
fn close() {
    hold(&[
        &[CLOSE, NEWS, DONE],
        &[PROMPT, ECHO, TAKEN, RUNNING, CLOSE, IDLE, DONE],
        &[PROMPT, ECHO, RUNNING, CLOSE, IDLE, DONE, TAKEN],
        &[CLOSE, DONE, REPLAY, SAYS, IDLE, DONE, NEWS],
        &[CLOSE, GONE, NEWS],
    ]);
    each_breaks(
        "V2-16",
        &[
            &[CLOSE, DONE, NEWS],
            &[CLOSE, DONE, ASK],
            &[RUNNING, CLOSE, DONE],
            &[ASKING, CLOSE, DONE],
            &[CLOSE, DONE, RESUME, GONE, NEWS],
        ],
    );
}

#[test]
fn cancels_of_one_thing() {
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
    hold(&[
        &[&offered, &kept, cancel, &over, DONE],
        &[&opened, stop, DONE, &exited],
        &[cancel, no],
        &[&offered, &over, cancel, no],
    ]);
    each_breaks(
        "V2-19",
        &[
            &[cancel, DONE],
            &[&kept, cancel, DONE],
            &[&offered, &taken_back, cancel, DONE],
            &[&offered, &over, cancel, DONE],
            &[&bare, stop, DONE],
            &[&opened, &exited, stop, DONE],
        ],
    );
}

#[test]
fn updates_of_its_own_begin_with_an_underscore() {
    hold(&[&[r#"{"sessionUpdate":"_mood"}"#]]);
    each_breaks("V2-20", &[&[r#"{"sessionUpdate":"mood"}"#]]);
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
    hold(&[&[&right, &commands("a", "b")]]);
    let doubled = ASK.replace(
        r#""options":["#,
        r#""options":[{"optionId":"y","name":"N","kind":"reject_once"},"#,
    );
    each_breaks(
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

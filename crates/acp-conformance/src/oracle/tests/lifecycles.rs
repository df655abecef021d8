//! Tests of state that outlives a line: tool calls, terminals, modes, compactions.

use super::*;

#[test]
fn tool_calls() {
    let call = |more: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"t","title":"x"{more}}}"#
        ))
    };
    let step = |more: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t"{more}}}"#
        ))
    };
    let begun = call("");
    let named = call(r#","name":"a""#);
    let over = step(r#","status":"completed""#);
    let runs = step(r#","status":"in_progress""#);
    let failed = step(r#","status":"failed""#);
    let renamed = step(r#","name":"b""#);
    let relative = step(r#","locations":[{"path":"a"}]"#);
    let zero = step(r#","locations":[{"path":"/a","line":0}]"#);
    let diff = step(r#","content":[{"type":"diff","path":"a","newText":""}]"#);
    let ask = |options: &str| {
        format!(
            r#"< {{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"t"}},"options":[{options}]}}}}"#
        )
    };
    let option = r#"{"optionId":"y","name":"Y","kind":"allow_once"}"#;
    let (asks, asks_nothing, asks_twice) =
        (ask(option), ask(""), ask(&format!("{option},{option}")));
    for (lines, rules) in [
        (vec![PROMPT, &*over], vec!["TOOL-2"]),
        (vec![PROMPT, &*asks, &*over], vec![]),
        (vec![PROMPT, &*begun, &*over, &*begun], vec!["TOOL-2"]),
        (vec![PROMPT, &*begun, &*begun], vec![]),
        (vec![PROMPT, &*begun, &*over, &*runs], vec!["TOOL-4"]),
        (vec![PROMPT, &*begun, END_TURN], vec!["TOOL-4"]),
        (vec![PROMPT, &*begun, CANCELLED], vec!["CANCEL-10"]),
        (vec![PROMPT, &*begun, &*failed, CANCELLED], vec![]),
        (vec![PROMPT, &*named, &*renamed], vec!["TOOL-10"]),
        (vec![PROMPT, &*begun, &*relative], vec!["TOOL-7"]),
        (vec![PROMPT, &*begun, &*zero], vec!["TOOL-7"]),
        (vec![PROMPT, &*begun, &*diff], vec!["TOOL-7"]),
        (vec![PROMPT, &*asks_nothing], vec!["PERM-2"]),
        (vec![PROMPT, &*asks_twice], vec!["PERM-2"]),
    ] {
        assert_eq!(broken(&lines), rules, "{lines:?}");
    }
    let load = r#"> {"jsonrpc":"2.0","id":5,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#;
    let done = r#"< {"jsonrpc":"2.0","id":5,"result":{}}"#;
    let replayed = vec![
        PROMPT, &*begun, &*over, END_TURN, load, &*begun, &*over, done,
    ];
    assert_eq!(broken(&replayed), nothing());
    assert_eq!(broken(&[load, &*begun, done]), ["LOAD-7"]);
    // The load and the call's updates cross.
    let crossed = vec![
        PROMPT, &*begun, load, &*runs, &*failed, CANCELLED, &*begun, &*over, done,
    ];
    assert_eq!(broken(&crossed), nothing());
}

#[test]
fn terminal_and_file_errors_are_reported() {
    let offered = r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true,"fs":{"readTextFile":true}}}}"#;
    let before: &[&[&str]] = &[&[offered, INITIALIZED[1]], SESSION];
    let create = r#"< {"jsonrpc":"2.0","id":"c","method":"terminal/create","params":{"sessionId":"s","command":"a","cwd":"/"}}"#;
    let created = r#"> {"jsonrpc":"2.0","id":"c","result":{"terminalId":"T"}}"#;
    let relative = r#"< {"jsonrpc":"2.0","id":"c","method":"terminal/create","params":{"sessionId":"s","command":"a","cwd":"b"}}"#;
    let output = r#"< {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"T"}}"#;
    let release = r#"< {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"T"}}"#;
    let shown = update(
        r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"completed","content":[{"type":"terminal","terminalId":"T"}]}"#,
    );
    let read = r#"< {"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{"sessionId":"s","path":"a"}}"#;
    let line = r#"< {"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{"sessionId":"s","path":"/a","line":0}}"#;
    for (lines, rules) in [
        (vec![create, created, &*shown, output, release], vec![]),
        (vec![PROMPT, create, created, END_TURN], vec!["TERM-2"]),
        (vec![output], vec!["TERM-3"]),
        (vec![create, created, release, output], vec!["TERM-3"]),
        (vec![relative], vec!["TERM-3"]),
        (vec![PROMPT, &*shown, END_TURN], vec!["TOOL-9"]),
        (vec![read], vec!["FS-2"]),
        (vec![line], vec!["FS-2"]),
    ] {
        assert_eq!(
            violations_after(before, &lines, Some(OutputEnding::Eof)),
            rules,
            "{lines:?}"
        );
    }
}

#[test]
fn news() {
    let again =
        r#"> {"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    let result = |result: &str| format!(r#"< {{"jsonrpc":"2.0","id":5,"result":{result}}}"#);
    let modes = result(
        r#"{"sessionId":"t","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]}}"#,
    );
    let no_mode = result(
        r#"{"sessionId":"t","modes":{"currentModeId":"b","availableModes":[{"id":"a","name":"A"}]}}"#,
    );
    let mode = |mode: &str| {
        session_update_line(
            "t",
            &format!(r#"{{"sessionUpdate":"current_mode_update","currentModeId":"{mode}"}}"#),
        )
    };
    let (to_a, to_b) = (mode("a"), mode("b"));
    let option = |current: &str| {
        result(&format!(
            r#"{{"sessionId":"t","configOptions":[{{"type":"select","id":"m","name":"M","currentValue":"{current}","options":[{{"group":"g","name":"G","options":[{{"value":"x","name":"X"}}]}}]}}]}}"#
        ))
    };
    let (right, wrong) = (option("x"), option("y"));
    let commands = |name: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"available_commands_update","availableCommands":[{{"name":"{name}","description":""}},{{"name":"b","description":""}}]}}"#
        ))
    };
    let (plain, slash, twice) = (commands("a"), commands("/a"), commands("b"));
    let same = result(r#"{"sessionId":"s"}"#);
    let list = r#"> {"jsonrpc":"2.0","id":5,"method":"session/list","params":{}}"#;
    let listed = |at: &str| {
        result(&format!(
            r#"{{"sessions":[{{"sessionId":"s","cwd":"/","updatedAt":"{at}"}}]}}"#
        ))
    };
    let (good, bad) = (listed("2026-11-21T18:00:00.5+01:00"), listed("yesterday"));
    let complete =
        r#"< {"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e"}}"#;
    for (lines, rules) in [
        (vec![again, &*same], vec!["SESS-1"]),
        (vec![again, &*modes, &*to_a], vec![]),
        (vec![again, &*no_mode], vec!["MODE-1"]),
        (vec![again, &*modes, &*to_b], vec!["MODE-3"]),
        (vec![again, &*right], vec![]),
        (vec![again, &*wrong], vec!["CFG-1"]),
        (vec![&*plain], vec![]),
        (vec![&*slash], vec!["CMD-3"]),
        (vec![&*twice], vec!["CMD-3"]),
        (vec![list, &*good], vec![]),
        (vec![list, &*bad], vec!["LIST-6"]),
        (vec![complete], vec!["ELIC-6"]),
    ] {
        assert_eq!(broken(&lines), rules, "{lines:?}");
    }
}

#[test]
fn compactions_end_once() {
    let offered = r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"session":{"compaction":{}}}}}"#;
    let before: &[&[&str]] = &[&[offered, INITIALIZED[1]], SESSION];
    let compaction = |more: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"compaction_update","compactionId":"c",{more}}}"#
        ))
    };
    let chunk = update(
        r#"{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"a"}}"#,
    );
    let begun = compaction(r#""status":"in_progress""#);
    let over = compaction(r#""status":"completed","summary":[{"type":"text","text":"a"}]"#);
    let patched = compaction(r#""status":"completed""#);
    let failed = compaction(r#""status":"failed""#);
    let odd = compaction(r#""status":"in_progress","error":"x""#);
    for (lines, rules) in [
        (vec![&*begun, &*chunk, &*over], vec![]),
        (vec![&*begun, &*over, &*patched], vec![]),
        (vec![&*begun, &*over, &*failed], vec!["COMP-2"]),
        (vec![&*chunk], vec!["COMP-2"]),
        (vec![&*begun, &*over, &*begun], vec!["COMP-2"]),
        (vec![&*begun, &*over, &*chunk], vec!["COMP-2"]),
        (vec![&*odd], vec!["COMP-2"]),
    ] {
        assert_eq!(violations_after(before, &lines, None), rules, "{lines:?}");
    }
}

//! Tests which lines are parsed, and which are rejected.

use super::*;
use serde_json::{Value, json};
use std::time::Duration;

fn parse_line_of_case(line: &str) -> CaseLine {
    let set = ["session", "b", "prompt", "second", "ask"].map(|name| format!("let {name} 1\n"));
    let text = format!("# x\n{}{line}", set.concat());
    let mut case = Case::parse("x", &text).expect("a case");
    assert_eq!(case.lines.len(), 6);
    case.lines.remove(5)
}

fn parse_step(line: &str) -> CaseStep {
    parse_line_of_case(line).step
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn case_is_parsed_line_by_line() {
    let case = Case::parse(
        "greet",
        "# shows it\n# proves: X-1\n\nneeds loadSession\nfile a.txt one\\ntwo\nmodel\n  text \"a\"\n\n  # b\n  ---\nend\nstart\nexit 3 @ TR-6 TR-7\n",
    );
    let case = case.unwrap();
    assert_eq!((&*case.name, &*case.purpose), ("greet", "shows it"));
    assert_eq!(case.needs, [Need::Path(text("loadSession"))]);
    let steps: Vec<(usize, &CaseStep)> = case
        .lines
        .iter()
        .map(|line| (line.number, &line.step))
        .collect();
    let answers = vec![model::ScriptedResponse::from_text("a")];
    assert_eq!(
        steps,
        [
            (5, &CaseStep::File(text("a.txt"), text("one\ntwo"))),
            (
                6,
                &CaseStep::Model {
                    prompt: None,
                    answers
                }
            ),
            (12, &CaseStep::Start(StartOptions::default())),
            (13, &CaseStep::Exit(Some(3))),
        ]
    );
    assert_eq!(case.lines[3].text, "exit 3 @ TR-6 TR-7");
    assert_eq!(case.cited_rules(), ["TR-6", "TR-7"]);
}

#[test]
fn invalid_line_is_reported() {
    for (lines, line) in [
        ("start", 1),
        ("", 1),
        ("# x\nstrat", 2),
        ("# x\n< {", 2),
        ("# x\n\nexit now", 3),
        ("# x\nfile", 2),
        ("# x\nmodel\ntext", 2),
        ("# x\nmodel\n\ntetx \"a\"\nend", 4),
        ("# x\nneeds tool hammer", 2),
        ("# x\nneeds $x", 2),
        ("# x\n< {} {}", 2),
        ("# x\nmark @ nothing", 2),
        ("# x\nsplit 0", 2),
        ("# x\n>raw \"\\q\"", 2),
        ("# x\nwithin soon mark", 2),
    ] {
        assert_eq!(Case::parse("x", lines).unwrap_err().line, line, "{lines}");
    }
}

#[test]
fn conditions_patience_and_rules_are_parsed() {
    let line = parse_line_of_case(
        "unless session.modes within 250 no {\"a\": \" @ B-1 c\"} @ MODE-1 V2-12",
    );
    assert_eq!(
        line.conditions,
        [LineCondition::Unless(Need::Path(text("session.modes")))]
    );
    assert_eq!(line.patience, Some(Duration::from_millis(250)));
    assert_eq!(line.step, CaseStep::No(json!({"a": " @ B-1 c"})));
    assert_eq!(line.rules, ["MODE-1", "V2-12"]);
    let line = parse_line_of_case("if tool shell if $ask probe");
    let asked = Need::Captured(text("ask"));
    assert_eq!(
        line.conditions,
        [
            LineCondition::If(Need::Tool(ToolKind::Shell)),
            LineCondition::If(asked)
        ]
    );
    assert_eq!(line.rules, Vec::<String>::new());
}

#[test]
fn misspelled_rules_are_reported() {
    for (line, why) in [
        (
            "exit 0 @ tr-1 RPC-2",
            "ids of rules are in capitals: did you mean `@ TR-1 RPC-2`?",
        ),
        ("exit 0 @", "behind `@` the rule is missing"),
        ("saw hello @", "behind `@` the rule is missing"),
        (
            "exit 0@ TR-6",
            "`@` stands between blanks: did you mean ` @ TR-6`?",
        ),
        (
            "exit 0 @tr-6",
            "`@` stands between blanks: did you mean ` @ TR-6`?",
        ),
        (
            "exit 0 @ TR6",
            "\"@ TR6\" is too much: a check ends with rules such as `@ TR-1`",
        ),
        (
            "needs model @ TR-1",
            "\"@ TR-1\" is too much: a check ends with rules such as `@ TR-1`",
        ),
    ] {
        let error = Case::parse("x", &format!("# x\n{line}")).unwrap_err();
        assert_eq!((error.line, error.reason.as_str()), (2, why), "{line}");
    }
    let tabs = parse_line_of_case("exit 0\t@\tTR-6\tTR-7");
    assert_eq!(tabs.step, CaseStep::Exit(Some(0)));
    assert_eq!(tabs.rules, ["TR-6", "TR-7"]);
    let address = parse_step("saw me@home-1 or @ home");
    assert_eq!(
        address,
        CaseStep::ModelRequestText(true, text("me@home-1 or @ home"))
    );
}

#[test]
fn byte_order_mark_is_skipped() {
    let case = Case::parse("x", "\u{feff}# shows it\nmark").unwrap();
    assert_eq!((&*case.purpose, case.lines.len()), ("shows it", 1));
}

#[test]
fn send_steps_are_parsed() {
    let send = |text: &str, may_be_invalid, joins_next_write| CaseStep::Send {
        text: text.to_owned(),
        may_be_invalid,
        joins_next_write,
    };
    assert_eq!(parse_step("> {\"a\": 1}"), send("{\"a\": 1}", false, false));
    assert_eq!(parse_step(">+ {}"), send("{}", false, true));
    assert_eq!(parse_step(">! {\"a"), send("{\"a", true, false));
    assert_eq!(parse_step(">!+ []"), send("[]", true, true));
    assert_eq!(
        parse_step(r#">raw "a\xff\n\u00e9\"""#),
        CaseStep::Raw {
            bytes: vec![b'a', 0xff, b'\n', 0xc3, 0xa9, b'"'],
            joins_next_write: false,
        }
    );
}

#[test]
fn request_and_response_steps_are_parsed() {
    assert_eq!(
        parse_step("session other {\"cwd\": \".\"}"),
        CaseStep::Session(text("other"), Some(json!({"cwd": "."})))
    );
    assert_eq!(
        parse_step("session"),
        CaseStep::Session(text("session"), None)
    );
    assert_eq!(parse_step("login"), CaseStep::Login);
    assert_eq!(parse_step("cancel b"), CaseStep::Cancel(text("b")));
    assert_eq!(
        parse_step("prompt+ \"hi in b\" in b as second"),
        CaseStep::Prompt {
            content: PromptContent::Text(text("hi in b")),
            session: text("b"),
            name: text("second"),
            may_be_invalid: false,
            joins_next_write: true,
        }
    );
    assert_eq!(
        parse_step("call! session/list null as x"),
        CaseStep::Call {
            method: text("session/list"),
            params: Value::Null,
            name: text("x"),
            may_be_invalid: true,
            expected: None,
        }
    );
    assert_eq!(
        parse_step("call nope/nope {} -> error {\"code\": -32601}"),
        CaseStep::Call {
            method: text("nope/nope"),
            params: json!({}),
            name: text("call"),
            may_be_invalid: false,
            expected: Some(ExpectedResponse::Error(json!({"code": -32601}))),
        }
    );
    assert_eq!(
        parse_step("answered {\"stopReason\": \"end_turn\"} for second"),
        CaseStep::ExpectResponse(
            text("second"),
            ExpectedResponse::Result(json!({"stopReason": "end_turn"}))
        )
    );
    assert_eq!(
        parse_step("ended"),
        CaseStep::ExpectResponse(text("prompt"), ExpectedResponse::Any)
    );
}

#[test]
fn check_process_and_client_steps_are_parsed() {
    let range = |from, to| CountRange { min: from, max: to };
    assert_eq!(
        parse_step("count 2.. 5"),
        CaseStep::Count(range(2, None), json!(5))
    );
    assert_eq!(parse_step("maybe 5"), CaseStep::CaptureIfAny(json!(5)));
    assert_eq!(parse_step("gone any"), CaseStep::ExitUnprompted(None));
    assert_eq!(
        parse_step("asked ..3"),
        CaseStep::ModelRequestCount(range(0, Some(3)))
    );
    assert_eq!(
        parse_step("unsaid thought \"x\" in b"),
        CaseStep::MessageText {
            author: ChunkAuthor::Thought,
            text: text("x"),
            session: text("b"),
            is_negated: true,
        }
    );
    assert_eq!(
        parse_step("start in $CWD A=1 B="),
        CaseStep::Start(StartOptions {
            is_keyless: false,
            folder: Some(text("$CWD")),
            variables: vec![(text("A"), text("1")), (text("B"), text(""))],
        })
    );
    assert_eq!(
        parse_step("stop reading stderr"),
        CaseStep::StopReading(OutputPipe::Stderr)
    );
    assert_eq!(
        parse_step("permission by hand"),
        CaseStep::Permission(PermissionAnswer::ByHand)
    );
    assert_eq!(
        parse_step("answer fs/read_text_file error -32002"),
        CaseStep::Answer(text("fs/read_text_file"), ResponseMode::Error(-32002))
    );
    assert_eq!(
        parse_step("elicitation accept {\"a\": 1}"),
        CaseStep::Elicitation(ElicitationAnswer::Accept(json!({"a": 1})))
    );
    assert_eq!(
        parse_step("elicitation accept each \"a\""),
        CaseStep::Elicitation(ElicitationAnswer::AcceptEach(json!("a")))
    );
    assert_eq!(
        parse_step("saw \"a b\""),
        CaseStep::ModelRequestText(true, text("a b"))
    );
}

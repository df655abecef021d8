//! Lines of cases, each as it is read, and each kind that is not.

use super::*;
use serde_json::{Value, json};
use std::time::Duration;

fn one(line: &str) -> Line {
    let set = ["session", "b", "prompt", "second", "ask"].map(|name| format!("let {name} 1\n"));
    let text = format!("# x\n{}{line}", set.concat());
    let mut case = Case::parse("x", &text).expect("a case");
    assert_eq!(case.lines.len(), 6);
    case.lines.remove(5)
}

fn step(line: &str) -> Step {
    one(line).step
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn a_case_is_read_line_by_line() {
    let case = Case::parse(
        "greet",
        "# shows it\n# proves: X-1\n\nneeds loadSession\nfile a.txt one\\ntwo\nmodel\n  text \"a\"\n\n  # b\n  ---\nend\nstart\nexit 3 @ TR-6 TR-7\n",
    );
    let case = case.unwrap();
    assert_eq!((&*case.name, &*case.purpose), ("greet", "shows it"));
    assert_eq!(case.needs, [Need::Path(text("loadSession"))]);
    let steps: Vec<(usize, &Step)> = case
        .lines
        .iter()
        .map(|line| (line.number, &line.step))
        .collect();
    let answers = vec![model::Answer::text("a")];
    assert_eq!(
        steps,
        [
            (5, &Step::File(text("a.txt"), text("one\ntwo"))),
            (
                6,
                &Step::Model {
                    prompt: None,
                    answers
                }
            ),
            (12, &Step::Start(Start::default())),
            (13, &Step::Exit(Some(3))),
        ]
    );
    assert_eq!(case.lines[3].text, "exit 3 @ TR-6 TR-7");
    assert_eq!(case.rules(), ["TR-6", "TR-7"]);
}

#[test]
fn a_line_that_is_no_step_is_named() {
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
fn what_stands_around_a_step() {
    let line = one("unless session.modes within 250 no {\"a\": \" @ B-1 c\"} @ MODE-1 V2-12");
    assert_eq!(
        line.guards,
        [Guard::Unless(Need::Path(text("session.modes")))]
    );
    assert_eq!(line.within, Some(Duration::from_millis(250)));
    assert_eq!(line.step, Step::No(json!({"a": " @ B-1 c"})));
    assert_eq!(line.rules, ["MODE-1", "V2-12"]);
    let line = one("if tool shell if $ask probe");
    let asked = Need::Captured(text("ask"));
    assert_eq!(
        line.guards,
        [Guard::If(Need::Tool(Tool::Shell)), Guard::If(asked)]
    );
    assert_eq!(line.rules, Vec::<String>::new());
}

#[test]
fn rules_that_are_written_otherwise_are_told() {
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
    let tabs = one("exit 0\t@\tTR-6\tTR-7");
    assert_eq!(tabs.step, Step::Exit(Some(0)));
    assert_eq!(tabs.rules, ["TR-6", "TR-7"]);
    let address = step("saw me@home-1 or @ home");
    assert_eq!(address, Step::Saw(true, text("me@home-1 or @ home")));
}

#[test]
fn the_mark_of_an_encoding_is_skipped() {
    let case = Case::parse("x", "\u{feff}# shows it\nmark").unwrap();
    assert_eq!((&*case.purpose, case.lines.len()), ("shows it", 1));
}

#[test]
fn what_is_sent() {
    let send = |text: &str, broken, more| Step::Send {
        text: text.to_owned(),
        broken,
        more,
    };
    assert_eq!(step("> {\"a\": 1}"), send("{\"a\": 1}", false, false));
    assert_eq!(step(">+ {}"), send("{}", false, true));
    assert_eq!(step(">! {\"a"), send("{\"a", true, false));
    assert_eq!(step(">!+ []"), send("[]", true, true));
    assert_eq!(
        step(r#">raw "a\xff\n\u00e9\"""#),
        Step::Raw {
            bytes: vec![b'a', 0xff, b'\n', 0xc3, 0xa9, b'"'],
            more: false,
        }
    );
}

#[test]
fn requests_and_their_answers() {
    assert_eq!(
        step("session other {\"cwd\": \".\"}"),
        Step::Session(text("other"), Some(json!({"cwd": "."})))
    );
    assert_eq!(step("session"), Step::Session(text("session"), None));
    assert_eq!(step("login"), Step::Login);
    assert_eq!(step("cancel b"), Step::Cancel(text("b")));
    assert_eq!(
        step("prompt+ \"hi in b\" in b as second"),
        Step::Prompt {
            content: Content::Text(text("hi in b")),
            session: text("b"),
            name: text("second"),
            broken: false,
            more: true,
        }
    );
    assert_eq!(
        step("call! session/list null as x"),
        Step::Call {
            method: text("session/list"),
            params: Value::Null,
            name: text("x"),
            broken: true,
            then: None,
        }
    );
    assert_eq!(
        step("call nope/nope {} -> error {\"code\": -32601}"),
        Step::Call {
            method: text("nope/nope"),
            params: json!({}),
            name: text("call"),
            broken: false,
            then: Some(Expect::Error(json!({"code": -32601}))),
        }
    );
    assert_eq!(
        step("answered {\"stopReason\": \"end_turn\"} for second"),
        Step::Answered(
            text("second"),
            Expect::Result(json!({"stopReason": "end_turn"}))
        )
    );
    assert_eq!(step("ended"), Step::Answered(text("prompt"), Expect::Any));
}

#[test]
fn checks_the_process_and_the_client() {
    let range = |from, to| Range { from, to };
    assert_eq!(step("count 2.. 5"), Step::Count(range(2, None), json!(5)));
    assert_eq!(step("maybe 5"), Step::Maybe(json!(5)));
    assert_eq!(step("gone any"), Step::Gone(None));
    assert_eq!(step("asked ..3"), Step::Asked(range(0, Some(3))));
    assert_eq!(
        step("unsaid thought \"x\" in b"),
        Step::Said {
            voice: Voice::Thought,
            text: text("x"),
            session: text("b"),
            not: true,
        }
    );
    assert_eq!(
        step("start in $CWD A=1 B="),
        Step::Start(Start {
            is_keyless: false,
            folder: Some(text("$CWD")),
            variables: vec![(text("A"), text("1")), (text("B"), text(""))],
        })
    );
    assert_eq!(step("stop reading stderr"), Step::StopReading(Pipe::Stderr));
    assert_eq!(
        step("permission by hand"),
        Step::Permission(Permission::ByHand)
    );
    assert_eq!(
        step("answer fs/read_text_file error -32002"),
        Step::Answer(text("fs/read_text_file"), How::Error(-32002))
    );
    assert_eq!(
        step("elicitation accept {\"a\": 1}"),
        Step::Elicitation(Elicitation::Accept(json!({"a": 1})))
    );
    assert_eq!(
        step("elicitation accept each \"a\""),
        Step::Elicitation(Elicitation::AcceptEach(json!("a")))
    );
    assert_eq!(step("saw \"a b\""), Step::Saw(true, text("a b")));
}

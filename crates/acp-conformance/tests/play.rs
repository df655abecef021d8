//! The player against agents that are a line of shell: it must catch what they do wrong.

use acp_conformance::{Agent, Case, play};
use std::time::Duration;

fn outcome(script: &str, case: &str) -> Result<(), (usize, String)> {
    let agent = Agent {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        patience: Duration::from_secs(5),
    };
    let case = Case::parse(&format!("# test\nstart\n{case}")).expect("a case");
    play(&case, &agent).map_err(|failure| (failure.line, failure.reason))
}

/// Answers every line with itself, then ends with stdin.
const ECHO: &str = "cat";

#[test]
fn what_is_sent_and_what_comes_back_is_compared() {
    assert_eq!(
        outcome(ECHO, "> {\"id\": 1}\n< {\"id\": 1}\nexit 0"),
        Ok(())
    );
    let wrong = outcome(ECHO, "> {\"id\": 1}\n< {\"id\": 2}");
    assert_eq!(wrong, Err((4, "/id: expected 2, found 1".to_owned())));
}

#[test]
fn skipped_lines_are_looked_at() {
    let sent = ">+ {\"a\": 1}\n> {\"b\": 2}\n<* {\"b\": 2}\n";
    assert_eq!(
        outcome(ECHO, &format!("{sent}no {{\"c\": 3}}\nexit 0")),
        Ok(())
    );
    let wrong = outcome(ECHO, &format!("{sent}no {{\"a\": 1}}"));
    assert_eq!(wrong, Err((6, "there is one: {\"a\":1}".to_owned())));
}

#[test]
fn an_agent_that_ends_or_ends_wrongly_is_caught() {
    assert_eq!(
        outcome("exit 0", "< {}"),
        Err((3, "the agent ended".to_owned()))
    );
    let (line, reason) = outcome("exit 3", "exit 0").unwrap_err();
    assert_eq!((line, reason.contains('3')), (3, true), "{reason}");
    let more = outcome("echo '{}'; cat", "exit 0");
    assert_eq!(more, Err((3, "one more line: {}".to_owned())));
}

#[test]
fn a_line_that_is_not_json_is_caught() {
    let (line, reason) = outcome("echo hello", "< {}").unwrap_err();
    assert_eq!(line, 3);
    assert!(reason.starts_with("not JSON"), "{reason}");
}

#[test]
fn files_are_made_and_compared() {
    let script = "read line; cp \"$line\" \"$line.copy\"; echo '{}'; cat";
    let case = "file a one\\n\n> $CWD/a\n< {}\nread a.copy one\\n\nexit 0";
    assert_eq!(outcome(script, case), Ok(()));
    let wrong = outcome(script, "file a one\n> $CWD/a\n< {}\nread a.copy two");
    assert_eq!(wrong, Err((6, "a.copy holds \"one\"".to_owned())));
}

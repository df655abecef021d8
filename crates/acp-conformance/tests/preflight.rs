//! What an agent is asked before the cases: one that does not answer is told of at once, and one that never offers
//! the model a tool is known for that.

use acp_conformance::{
    Agent, Case, Facts, Options, Ruling, outcome::Outcome, play_all, profile::Profile,
};
use serde_json::Value;
use std::{fs, path::Path, process::Command, time::Duration};

/// Run an agent that is this script in a file `agent.sh` here. Code, the report, stderr.
fn ran(folder: &Path, script: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    fs::write(folder.join("agent.sh"), script).expect("a script");
    let mut runner = Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    runner.args(["run", "--format", "json"]).args(more);
    let output = runner.current_dir(folder).output().expect("the runner");
    let report = serde_json::from_slice(&output.stdout).expect("a report");
    let stderr = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), report, stderr)
}

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("a path");
    (folder, path.display().to_string())
}

/// The verdicts of these rules, and the names of the cases.
fn known(report: &Value, rules: &[&str]) -> (Vec<String>, Vec<String>) {
    let list = |key: &str| report[key].as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let all = list("rules");
    let verdict = |id: &&str| {
        let rule = all.iter().find(|rule| rule["id"] == *id).expect("a rule");
        text(&rule["verdict"])
    };
    let cases = list("cases");
    let cases = cases.iter().map(|case| text(&case["name"])).collect();
    (rules.iter().map(verdict).collect(), cases)
}

#[test]
fn an_agent_that_ends_at_once_is_told_of_and_the_run_ends() {
    let (folder, path) = folder();
    let agent = ["--", "sh", "agent.sh", "/no/such"];
    let (code, report, stderr) = ran(folder.path(), "exit 0", &agent);
    // Started elsewhere, the shell does not find its file; what it says of that is its own.
    let (head, words) = stderr
        .split_once("its last words on stderr:\n")
        .expect("words");
    let expected = format!(
        "acp-conformance: the agent does not answer `initialize`: the agent ended: exit status: 2\n  \
        its command: sh agent.sh /no/such\n  \
        it was started in a folder of its own: if agent.sh is a path, say {path}/agent.sh\n  "
    );
    assert_eq!(head, expected);
    assert!(words.contains("agent.sh"), "{words}");
    assert_eq!(code, Some(1));
    let found = known(&report, &["INIT-1", "TR-9", "SESS-1"]);
    let verdicts = ["fail", "not_reached", "not_reached"].map(str::to_owned);
    assert_eq!(found, (verdicts.to_vec(), vec!["preflight".to_owned()]));
}

#[test]
fn what_came_instead_of_an_answer_is_told() {
    let (folder, path) = folder();
    // The first start is given twice the patience.
    let script = "read a; echo 'cannot' >&2; echo '{\"jsonrpc\":\"2.0\",\"id\":\"101\",\"result\":{}}'; cat >/dev/null";
    let command = format!("sh {path}/agent.sh");
    let more = ["--patience", "1", "--agent", &command];
    let (code, report, stderr) = ran(folder.path(), script, &more);
    let expected = format!(
        "acp-conformance: the agent does not answer `initialize`: nothing fitting came in 2000 ms; an answer with the \
        id \"101\" came, a string, and not the number 101\n  \
        its command: sh {path}/agent.sh\n  \
        the last that it said: {{\"jsonrpc\":\"2.0\",\"id\":\"101\",\"result\":{{}}}}\n  \
        its last words on stderr:\n    cannot\n"
    );
    assert_eq!((code, stderr), (Some(1), expected));
    let found = known(&report, &["INIT-1", "RPC-2"]);
    let verdicts = ["fail", "fail"].map(str::to_owned);
    assert_eq!(found, (verdicts.to_vec(), vec!["preflight".to_owned()]));
    // Whatever is asked for, nothing of it was seen.
    let (code, ..) = ran(
        folder.path(),
        script,
        &[&more[..], &["--only", "PROMPT-7"]].concat(),
    );
    assert_eq!(code, Some(1));
}

#[test]
fn who_refuses_or_answers_the_second_version_only_is_played() {
    let (folder, path) = folder();
    let case =
        "# It begins.\nstart\ncall initialize {\"protocolVersion\": 1} -> any @ INIT-1\nexit 0\n";
    fs::write(folder.path().join("begins.case"), case).expect("a case");
    let error = r#""error":{"code":-32602,"message":"no"}"#;
    let second =
        r#""result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{}}"#;
    for (answer, to, verdict) in [(error, "*", "pass"), (second, "*:2*", "not_applicable")] {
        let script = format!(
            "while read -r a; do case $a in {to}) echo '{{\"jsonrpc\":\"2.0\",\"id\":101,{answer}}}';; esac; done"
        );
        let command = format!("sh {path}/agent.sh");
        let more = ["--patience", "1", "--agent", &command, "begins.case"];
        let (_, report, stderr) = ran(folder.path(), &script, &more);
        assert!(!stderr.contains("does not answer"), "{stderr}");
        let found = known(&report, &["INIT-1"]);
        assert_eq!(found, (vec![verdict.to_owned()], vec!["begins".to_owned()]));
    }
}

/// The verdict of INIT-1 with two seconds of patience, and what is flaky, of an agent whose starts take these seconds:
/// the two of the preflight, and all others.
fn slow(first: f32, others: f32) -> (Vec<String>, Value) {
    let (folder, path) = folder();
    let case =
        "# It begins.\nstart\ncall initialize {\"protocolVersion\": 1} -> any @ INIT-1\nexit 0\n";
    fs::write(folder.path().join("begins.case"), case).expect("a case");
    let script = format!(
        "cd '{path}'; if mkdir 1 || mkdir 2; then sleep {first}; else sleep {others}; fi 2>&-\n\
        while read -r a; do echo '{{\"jsonrpc\":\"2.0\",\"id\":101,\"result\":{{\"protocolVersion\":1}}}}'; done"
    );
    let command = format!("sh {path}/agent.sh");
    let more = ["--patience", "2", "--agent", &command, "begins.case"];
    let (_, report, stderr) = ran(folder.path(), &script, &more);
    assert!(!stderr.contains("does not answer"), "{stderr}");
    (known(&report, &["INIT-1"]).0, report["flaky"].clone())
}

#[test]
fn a_slow_agent_is_waited_for_by_what_its_first_start_took() {
    let none = Value::Array(Vec::new());
    assert_eq!(slow(2.5, 2.5), (vec!["pass".to_owned()], none));
}

#[test]
fn patience_is_three_times_what_the_first_start_took() {
    let patience = |script: &str| {
        let agent = Agent {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            ..Agent::default()
        };
        let options = Options {
            patience: Duration::from_secs(2),
            ..Options::default()
        };
        let played = play_all(&[], &agent, &options, None, &|_| ());
        played.expect("a runtime").patience
    };
    assert_eq!(patience("exit"), Duration::from_secs(2));
    assert!(patience("sleep 1; echo '{}'") >= Duration::from_secs(3));
}

#[test]
fn an_agent_that_starts_slowly_only_later_fails_both_times() {
    let none = Value::Array(Vec::new());
    assert_eq!(slow(0.0, 1000.0), (vec!["fail".to_owned()], none));
}

/// Speaks just enough of the protocol, and asks the model at each prompt: `ask TOOLS TEXT`.
const AGENT: &str = r#"
place=${MODEL#http://}
ask() {
    body="{\"model\":\"m\",$1\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]}"
    exec 3<>"/dev/tcp/${place%:*}/${place#*:}"
    printf 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s' "${#body}" "$body" >&3
    cat <&3 >/dev/null
}
say() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    text=${line#*\"text\":\"}
    text=${text%%\"*}
    case $line in
    *'"initialize"'*) say '{"protocolVersion":1}' ;;
    *'"session/new"'*) say '{"sessionId":"s"}' ;;
    *'"session/prompt"'*) ASKS; say '{"stopReason":"end_turn"}' ;;
    esac
done
"#;
const TOOLS: &str =
    r#"ask '"tools":[{"type":"function","function":{"name":"t","parameters":{}}}],' "$text""#;
const TITLE: &str = "ask '' \"A title for: $text\"";
const PLAIN: &str = "ask '' \"$text\"";

/// A case of two prompts, of which the model hears.
fn prompted(asks: &str, facts: Option<Facts>) -> Outcome {
    let profile =
        "name = 'a'\nabout = 'b'\ncommand = []\napi = 'openai-chat'\nenvironment.MODEL = '{BASE}'";
    let agent = Agent {
        command: ["bash", "-c", &AGENT.replace("ASKS", asks)]
            .map(str::to_owned)
            .to_vec(),
        profile: Some(Profile::parse("test", profile).expect("a profile")),
        ..Agent::default()
    };
    let case = "# test\nneeds model\nmodel\n  text \"a\"\nend\nstart\ninitialize\nsession\n\
        prompt \"the first\"\nanswered {}\nsaw the first @ A-1\nprompt \"the second\" as other\n\
        answered {} for other\nasked 2 @ A-2\nexit 0";
    let case = Case::parse("test", case).expect("a case");
    let played = play_all(&[case], &agent, &Options::default(), facts, &|_| ());
    let played = played.expect("a runtime");
    assert_eq!(played.stopped, None);
    played.outcomes.into_iter().next().expect("an outcome")
}

fn of(rule: &str, outcome: &Outcome) -> Option<String> {
    let check = outcome.checks.iter().find(|check| check.rule == rule);
    match check.map(|check| &check.result) {
        Some(Ruling::Failed(finding)) => Some(finding.why.clone()),
        Some(Ruling::Passed) => None,
        other => panic!("{rule}: {other:?}, {:?}", outcome.fault),
    }
}

#[test]
fn an_agent_that_never_offers_the_model_a_tool_is_asked_all_the_same() {
    let outcome = prompted(PLAIN, None);
    assert_eq!((of("A-1", &outcome), of("A-2", &outcome)), (None, None));
}

#[test]
fn a_title_is_no_part_of_the_conversation_of_an_agent_that_has_tools() {
    for asks in [format!("{TITLE}; {TOOLS}"), format!("{TOOLS}; {TITLE}")] {
        let outcome = prompted(&asks, None);
        assert_eq!((of("A-1", &outcome), of("A-2", &outcome)), (None, None));
    }
}

#[test]
fn a_request_that_was_taken_for_a_title_is_told_of() {
    let facts = Facts {
        model: true,
        ..Facts::default()
    };
    let outcome = prompted(PLAIN, Some(facts));
    let hint = "a request came without tools and was taken for a side request (a title, a summary): set offers_tools = \
        false in the profile, under [requests], if the agent never offers tools";
    let not = format!("the model was not asked anything; {hint}");
    let times = format!("the model was asked 0 times, not 2; {hint}");
    assert_eq!(
        (of("A-1", &outcome), of("A-2", &outcome)),
        (Some(not), Some(times))
    );
}

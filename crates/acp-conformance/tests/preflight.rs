//! Tests of the preflight: agents that do not respond are reported at once, and agents that never offer the
//! model a tool are recognized.

use acp_conformance::{
    AgentFacts, AgentSpec, Case, CheckResult, PlayOptions, outcome::CaseOutcome, play_suite,
    profile::Profile,
};
use serde_json::Value;
use std::{fs, path::Path, process::Command, time::Duration};

/// Runs an agent given as a script, in the file `agent.sh` in `folder`. Returns the exit code, the report and
/// stderr.
fn run_agent_script(folder: &Path, script: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    fs::write(folder.join("agent.sh"), script).expect("a script");
    let mut runner = Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    runner.args(["run", "--format", "json"]).args(more);
    let output = runner.current_dir(folder).output().expect("the runner");
    let report = serde_json::from_slice(&output.stdout).expect("a report");
    let stderr = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), report, stderr)
}

fn agent_folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("a path");
    (folder, path.display().to_string())
}

/// Returns the verdicts on these rules, and the names of the cases.
fn verdicts_and_cases(report: &Value, rules: &[&str]) -> (Vec<String>, Vec<String>) {
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
fn agent_that_exits_at_once_stops_the_run() {
    let (folder, path) = agent_folder();
    let agent = ["--", "sh", "agent.sh", "/no/such"];
    let (code, report, stderr) = run_agent_script(folder.path(), "exit 0", &agent);
    // The agent starts in another folder, so the shell does not find the file; its message differs between
    // shells.
    let (head, words) = stderr.split_once("last lines of stderr:\n").expect("words");
    let expected = format!(
        "acp-conformance: the agent does not answer `initialize`: the agent ended: exit status: 2\n  \
        command: sh agent.sh /no/such\n  \
        the agent starts in a temporary folder: if agent.sh is a path, use {path}/agent.sh\n  "
    );
    assert_eq!(head, expected);
    assert!(words.contains("agent.sh"), "{words}");
    assert_eq!(code, Some(1));
    let found = verdicts_and_cases(&report, &["INIT-1", "TR-9", "SESS-1"]);
    let verdicts = ["fail", "not_reached", "not_reached"].map(str::to_owned);
    assert_eq!(found, (verdicts.to_vec(), vec!["preflight".to_owned()]));
}

#[test]
fn output_instead_of_response_is_reported() {
    let (folder, path) = agent_folder();
    // The first start gets twice the patience.
    let script = "read a; echo 'cannot' >&2; echo '{\"jsonrpc\":\"2.0\",\"id\":\"101\",\"result\":{}}'; cat >/dev/null";
    let command = format!("sh {path}/agent.sh");
    let more = ["--patience", "1", "--agent", &command];
    let (code, report, stderr) = run_agent_script(folder.path(), script, &more);
    let expected = format!(
        "acp-conformance: the agent does not answer `initialize`: nothing fitting came in 2000 ms; an answer with the \
        id \"101\" came, a string, and not the number 101\n  \
        command: sh {path}/agent.sh\n  \
        last output line: {{\"jsonrpc\":\"2.0\",\"id\":\"101\",\"result\":{{}}}}\n  \
        last lines of stderr:\n    cannot\n"
    );
    assert_eq!((code, stderr), (Some(1), expected));
    let found = verdicts_and_cases(&report, &["INIT-1", "RPC-2"]);
    let verdicts = ["fail", "fail"].map(str::to_owned);
    assert_eq!(found, (verdicts.to_vec(), vec!["preflight".to_owned()]));
    // No selected rule was observed.
    let (code, ..) = run_agent_script(
        folder.path(),
        script,
        &[&more[..], &["--only", "PROMPT-7"]].concat(),
    );
    assert_eq!(code, Some(1));
}

#[test]
fn refusing_or_v2_only_agent_is_played() {
    let (folder, path) = agent_folder();
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
        let (_, report, stderr) = run_agent_script(folder.path(), &script, &more);
        assert!(!stderr.contains("does not answer"), "{stderr}");
        let found = verdicts_and_cases(&report, &["INIT-1"]);
        assert_eq!(found, (vec![verdict.to_owned()], vec!["begins".to_owned()]));
    }
}

/// Returns the verdict on INIT-1 with two seconds of patience, and the flaky failures, of an agent that takes
/// `first` seconds for the two starts of the preflight and `others` seconds for all later ones.
fn run_slow_agent(first: f32, others: f32) -> (Vec<String>, Value) {
    let (folder, path) = agent_folder();
    let case =
        "# It begins.\nstart\ncall initialize {\"protocolVersion\": 1} -> any @ INIT-1\nexit 0\n";
    fs::write(folder.path().join("begins.case"), case).expect("a case");
    let script = format!(
        "cd '{path}'; if mkdir 1 || mkdir 2; then sleep {first}; else sleep {others}; fi 2>&-\n\
        while read -r a; do echo '{{\"jsonrpc\":\"2.0\",\"id\":101,\"result\":{{\"protocolVersion\":1}}}}'; done"
    );
    let command = format!("sh {path}/agent.sh");
    let more = ["--patience", "2", "--agent", &command, "begins.case"];
    let (_, report, stderr) = run_agent_script(folder.path(), &script, &more);
    assert!(!stderr.contains("does not answer"), "{stderr}");
    (
        verdicts_and_cases(&report, &["INIT-1"]).0,
        report["flaky"].clone(),
    )
}

#[test]
fn patience_grows_with_the_first_start() {
    let none = Value::Array(Vec::new());
    assert_eq!(run_slow_agent(2.5, 2.5), (vec!["pass".to_owned()], none));
}

#[test]
fn patience_is_three_times_the_first_start() {
    let patience = |script: &str| {
        let agent = AgentSpec {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            ..AgentSpec::default()
        };
        let options = PlayOptions {
            patience: Duration::from_secs(2),
            ..PlayOptions::default()
        };
        let played = play_suite(&[], &agent, &options, None, &|_| ());
        played.expect("a runtime").patience
    };
    assert_eq!(patience("exit"), Duration::from_secs(2));
    assert!(patience("sleep 1; echo '{}'") >= Duration::from_secs(3));
}

#[test]
fn agent_slow_only_later_fails_twice() {
    let none = Value::Array(Vec::new());
    assert_eq!(run_slow_agent(0.0, 1000.0), (vec!["fail".to_owned()], none));
}

/// Agent that speaks just enough of the protocol, and asks the model at each prompt: `ask TOOLS TEXT`.
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

/// Plays a case of two prompts that are passed on to the model.
fn play_prompts(asks: &str, facts: Option<AgentFacts>) -> CaseOutcome {
    let profile =
        "name = 'a'\nabout = 'b'\ncommand = []\napi = 'openai-chat'\nenvironment.MODEL = '{BASE}'";
    let agent = AgentSpec {
        command: ["bash", "-c", &AGENT.replace("ASKS", asks)]
            .map(str::to_owned)
            .to_vec(),
        profile: Some(Profile::parse("test", profile).expect("a profile")),
        ..AgentSpec::default()
    };
    let case = "# test\nneeds model\nmodel\n  text \"a\"\nend\nstart\ninitialize\nsession\n\
        prompt \"the first\"\nanswered {}\nsaw the first @ A-1\nprompt \"the second\" as other\n\
        answered {} for other\nasked 2 @ A-2\nexit 0";
    let case = Case::parse("test", case).expect("a case");
    let played = play_suite(&[case], &agent, &PlayOptions::default(), facts, &|_| ());
    let played = played.expect("a runtime");
    assert_eq!(played.unplayed_reason, None);
    played.outcomes.into_iter().next().expect("an outcome")
}

fn finding_for_rule(rule: &str, outcome: &CaseOutcome) -> Option<String> {
    let check = outcome.checks.iter().find(|check| check.rule == rule);
    match check.map(|check| &check.result) {
        Some(CheckResult::Failed(finding)) => Some(finding.why.clone()),
        Some(CheckResult::Passed) => None,
        other => panic!("{rule}: {other:?}, {:?}", outcome.error),
    }
}

#[test]
fn agent_without_tools_is_still_judged() {
    let outcome = play_prompts(PLAIN, None);
    assert_eq!(
        (
            finding_for_rule("A-1", &outcome),
            finding_for_rule("A-2", &outcome)
        ),
        (None, None)
    );
}

#[test]
fn title_request_is_not_conversation() {
    for asks in [format!("{TITLE}; {TOOLS}"), format!("{TOOLS}; {TITLE}")] {
        let outcome = play_prompts(&asks, None);
        assert_eq!(
            (
                finding_for_rule("A-1", &outcome),
                finding_for_rule("A-2", &outcome)
            ),
            (None, None)
        );
    }
}

#[test]
fn request_mistaken_for_title_is_reported() {
    let facts = AgentFacts {
        has_model: true,
        ..AgentFacts::default()
    };
    let outcome = play_prompts(PLAIN, Some(facts));
    let hint = "a request came without tools and was taken for a side request (a title, a summary): set offers_tools = \
        false in the profile, under [requests], if the agent never offers tools";
    let not = format!("the model was not asked anything; {hint}");
    let times = format!("the model was asked 0 times, not 2; {hint}");
    assert_eq!(
        (
            finding_for_rule("A-1", &outcome),
            finding_for_rule("A-2", &outcome)
        ),
        (Some(not), Some(times))
    );
}

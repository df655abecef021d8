//! Which rules a behaviour is blamed for, in the cases that come along.

use acp_conformance::{
    Agent, Facts, Options, Outcome, Ruling, case::Tool, embedded, play_all, profile::Profile,
};
use serde_json::json;

/// Asks the model once for each prompt, with a tool that reads. A refusal by the model is an internal error; any other
/// answer is not looked at, and the prompt ends. An array, and bytes that are not UTF-8, end the process.
const AGENT: &str = r#"
place=${MODEL#http://}
tools='[{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}]'
ask() {
    body="{\"model\":\"m\",\"tools\":$tools,\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}]}"
    exec 3<>"/dev/tcp/${place%:*}/${place#*:}"
    printf 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s' "${#body}" "$body" >&3
    read -r _ status _ <&3
    cat <&3 >/dev/null
}
say() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    text=${line#*\"text\":\"}
    text=${text%%\"*}
    case $line in
    [$'[\xff']*) exit 1 ;;
    *'"initialize"'*) say "\"result\":{\"protocolVersion\":1,\"authMethods\":$METHODS}" ;;
    *'"session/new"'*) say '"result":{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
        ask "$text"
        case $status in
        200) say '"result":{"stopReason":"end_turn"}' ;;
        *) say '"error":{"code":-32603,"message":"the model refused"}' ;;
        esac
        ;;
    *'"id"'*) say '"error":{"code":-32601,"message":"no such method"}' ;;
    esac
done
"#;

/// A case that comes along, played against the agent above with these auth methods.
fn played(case: &str, methods: &serde_json::Value) -> Outcome {
    let profile = format!(
        "name = 'a'\nabout = 'b'\ncommand = []\napi = 'openai-chat'\n\
        environment = {{ MODEL = '{{BASE}}', METHODS = '{methods}' }}"
    );
    let agent = Agent {
        command: ["bash", "-c", AGENT].map(str::to_owned).to_vec(),
        profile: Some(Profile::parse("test", &profile).expect("a profile")),
        ..Agent::default()
    };
    let facts = Facts {
        initialize: json!({"protocolVersion": 1, "authMethods": methods}),
        profile: true,
        model: true,
        tools: vec![Tool::Read],
        ..Facts::default()
    };
    let mut cases = embedded::cases().expect("the cases");
    cases.retain(|one| one.name == case);
    let played = play_all(&cases, &agent, &Options::default(), Some(facts), &|_| ());
    let outcome = played.expect("a runtime").outcomes.remove(0);
    assert_eq!(outcome.fault, None);
    outcome
}

/// The rulings on a rule by the steps of a case, each once.
fn rulings(outcome: &Outcome, rule: &str) -> Vec<&'static str> {
    let checks = outcome.checks.iter().filter(|check| check.rule == rule);
    let names = checks.map(|check| match check.result {
        Ruling::Passed => "passed",
        Ruling::Failed(_) => "failed",
        Ruling::NotReached(_) => "not reached",
        Ruling::NotApplicable(_) => "not applicable",
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn a_refused_key_is_a_missing_login_only_where_one_can_log_in() {
    let login = json!([{"id": "key", "name": "A key"}]);
    assert_eq!(rulings(&played("failures", &login), "AUTH-6"), ["failed"]);
    let outcome = played("failures", &json!([]));
    assert_eq!(rulings(&outcome, "AUTH-6"), ["not applicable"]);
}

#[test]
fn a_read_that_failed_uses_nothing_that_was_not_offered() {
    let outcome = played("reading", &json!([]));
    assert_eq!(rulings(&outcome, "FS-3"), ["failed"]);
    assert_eq!(rulings(&outcome, "INIT-7"), ["passed"]);
}

#[test]
fn an_array_that_ends_the_process_is_no_unanswered_request() {
    let outcome = played("batches", &json!([]));
    assert_eq!(rulings(&outcome, "RPC-8"), ["failed", "not reached"]);
    assert_eq!(rulings(&outcome, "RPC-12"), ["passed"]);
}

#[test]
fn bytes_that_end_the_process_are_no_unanswered_request() {
    let outcome = played("malformed", &json!([]));
    let died = outcome.died.as_deref();
    assert_eq!(died, Some("exit status: 1"));
    assert!(rulings(&outcome, "RPC-6").contains(&"failed"));
    assert_eq!(rulings(&outcome, "RPC-12"), ["passed"]);
}

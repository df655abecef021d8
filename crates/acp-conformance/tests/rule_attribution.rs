//! Tests which rules a behaviour is attributed to, in the built-in cases.

use acp_conformance::{
    AgentFacts, AgentSpec, CaseOutcome, CheckResult, PlayOptions, case::ToolKind, embedded,
    play_suite, profile::Profile,
};
use serde_json::json;

/// Agent that asks the model once for each prompt, with a tool that reads. It turns a refusal by the model into
/// an internal error, ignores any other response, and ends the prompt. An array or invalid UTF-8 ends the
/// process.
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

/// Plays a built-in case against the agent above, with these auth methods.
fn played(case: &str, methods: &serde_json::Value) -> CaseOutcome {
    let profile = format!(
        "name = 'a'\nabout = 'b'\ncommand = []\napi = 'openai-chat'\n\
        environment = {{ MODEL = '{{BASE}}', METHODS = '{methods}' }}"
    );
    let agent = AgentSpec {
        command: ["bash", "-c", AGENT].map(str::to_owned).to_vec(),
        profile: Some(Profile::parse("test", &profile).expect("a profile")),
        ..AgentSpec::default()
    };
    let facts = AgentFacts {
        initialize: json!({"protocolVersion": 1, "authMethods": methods}),
        has_profile: true,
        has_model: true,
        tools: vec![ToolKind::Read],
        ..AgentFacts::default()
    };
    let mut cases = embedded::cases().expect("the cases");
    cases.retain(|one| one.name == case);
    let played = play_suite(
        &cases,
        &agent,
        &PlayOptions::default(),
        Some(facts),
        &|_| (),
    );
    let outcome = played.expect("a runtime").outcomes.remove(0);
    assert_eq!(outcome.error, None);
    outcome
}

/// Returns the distinct results of a rule in the steps of a case.
fn results_for(outcome: &CaseOutcome, rule: &str) -> Vec<&'static str> {
    let checks = outcome.checks.iter().filter(|check| check.rule == rule);
    let names = checks.map(|check| match check.result {
        CheckResult::Passed => "passed",
        CheckResult::Failed(_) => "failed",
        CheckResult::NotReached(_) => "not reached",
        CheckResult::NotApplicable(_) => "not applicable",
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn refused_key_breaks_auth_6_only_with_a_login() {
    let login = json!([{"id": "key", "name": "A key"}]);
    assert_eq!(
        results_for(&played("failures", &login), "AUTH-6"),
        ["failed"]
    );
    let outcome = played("failures", &json!([]));
    assert_eq!(results_for(&outcome, "AUTH-6"), ["not applicable"]);
}

#[test]
fn failed_read_does_not_break_init_7() {
    let outcome = played("reading", &json!([]));
    assert_eq!(results_for(&outcome, "FS-3"), ["failed"]);
    assert_eq!(results_for(&outcome, "INIT-7"), ["passed"]);
}

#[test]
fn exit_on_array_is_not_an_unanswered_request() {
    let outcome = played("batches", &json!([]));
    assert_eq!(results_for(&outcome, "RPC-8"), ["failed", "not reached"]);
    assert_eq!(results_for(&outcome, "RPC-12"), ["passed"]);
}

#[test]
fn exit_on_bytes_is_not_an_unanswered_request() {
    let outcome = played("malformed", &json!([]));
    let died = outcome.unexpected_exit.as_deref();
    assert_eq!(died, Some("exit status: 1"));
    assert!(results_for(&outcome, "RPC-6").contains(&"failed"));
    assert_eq!(results_for(&outcome, "RPC-12"), ["passed"]);
}

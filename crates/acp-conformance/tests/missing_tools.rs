//! Tests that an agent is not blamed if it offers the model no tool that a case needs, unless it offered the
//! tool before or was given the MCP server that has it.

use acp_conformance::{
    AgentFacts, AgentSpec, Case, CheckResult, PlayOptions, case::ToolKind, embedded, play_suite,
    profile::Profile,
};

/// Agent that reads each line as the tools to offer, asks the model once with them, and reports that it did.
const AGENT: &str = r#"
place=${MODEL#http://}
while read -r tools; do
    body="{\"model\":\"m\",\"tools\":$tools,\"messages\":[{\"role\":\"user\",\"content\":\"go\"}]}"
    exec 3<>"/dev/tcp/${place%:*}/${place#*:}"
    printf 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s' "${#body}" "$body" >&3
    cat <&3 >/dev/null
    echo '{"asked": 1}'
done
"#;
const PLAN_TOOL: &str = r#"[{"type": "function", "function": {"name": "plan", "parameters": {}}}]"#;
const OTHER_TOOL: &str =
    r#"[{"type": "function", "function": {"name": "else", "parameters": {}}}]"#;

/// Agent that speaks just enough of the protocol, and asks the model only about the long work, with a tool that
/// is no shell.
const BUSY_AGENT: &str = r#"
say() { echo "{\"jsonrpc\":\"2.0\",$1}"; }
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) say "\"id\":$id,\"result\":{\"protocolVersion\":1}" ;;
    *'"session/new"'*) say "\"id\":$id,\"result\":{\"sessionId\":\"s\"}" ;;
    *'"session/prompt"'* | *'"session/cancel"'*)
        say '"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I"}}}'
        case $line in *long*) echo 'ELSE' | bash -c "$ASKS" >/dev/null ;; esac
        ;;
    esac
done
"#;

#[test]
fn agent_without_shell_finishes_leaving_busy_case() {
    let profile = "name = 'a'\nabout = 'b'\ncommand = []\napi = 'openai-chat'\n\
        environment.MODEL = '{BASE}'\nenvironment.ASKS = '''\nASKING'''";
    let profile = profile.replace("ASKING", &AGENT.replace("\"go\\", "\"Do the long work\\"));
    let script = BUSY_AGENT.replace("ELSE", OTHER_TOOL);
    let agent = AgentSpec {
        command: ["bash", "-c", &script].map(str::to_owned).to_vec(),
        profile: Some(Profile::parse("test", &profile).expect("a profile")),
        ..AgentSpec::default()
    };
    let facts = AgentFacts {
        has_model: true,
        tools: vec![ToolKind::Shell],
        ..AgentFacts::default()
    };
    let mut cases = embedded::cases().expect("the cases");
    cases.retain(|case| case.name == "leaving-busy");
    let played = play_suite(
        &cases,
        &agent,
        &PlayOptions::default(),
        Some(facts),
        &|_| (),
    );
    let outcome = played.expect("a runtime").outcomes.remove(0);
    assert_eq!((outcome.error, outcome.failed_step), (None, None));
    let of = |rule: &str| -> Vec<CheckResult> {
        let checks = outcome.checks.iter();
        let its = checks.filter(|check| check.rule == rule && check.line > 0);
        its.map(|check| check.result.clone()).collect()
    };
    let why = "the agent offered the model no tool that runs commands";
    let without = CheckResult::NotApplicable(why.to_owned());
    let passed = || CheckResult::Passed;
    let all = [
        passed(),
        passed(),
        passed(),
        passed(),
        without.clone(),
        without,
    ];
    assert_eq!(of("TR-6"), all, "{:#?}", outcome.transcript);
    assert_eq!(of("TR-11"), [passed(), passed()]);
}

/// Returns the result of each cited rule, against an agent whose profile claims all tools.
fn play_results(case: &str) -> Vec<(String, &'static str, String)> {
    let profile =
        "name = 'a'\nabout = 'b'\ncommand = []\napi = 'openai-chat'\nenvironment.MODEL = '{BASE}'";
    let agent = AgentSpec {
        command: ["bash", "-c", AGENT].map(str::to_owned).to_vec(),
        profile: Some(Profile::parse("test", profile).expect("a profile")),
        ..AgentSpec::default()
    };
    let facts = AgentFacts {
        has_model: true,
        tools: vec![ToolKind::Write, ToolKind::Plan, ToolKind::Mcp],
        ..AgentFacts::default()
    };
    let case = case.replace("PLAN", PLAN_TOOL).replace("ELSE", OTHER_TOOL);
    let case = Case::parse("test", &format!("# test\n{case}")).expect("a case");
    let cited: Vec<String> = case.cited_rules().iter().map(ToString::to_string).collect();
    let played = play_suite(
        &[case],
        &agent,
        &PlayOptions::default(),
        Some(facts),
        &|_| (),
    );
    let outcome = played.expect("a runtime").outcomes.remove(0);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.failed_step, None);
    let checks = outcome.checks.into_iter();
    let checks = checks.filter(|check| cited.contains(&check.rule));
    checks
        .map(|check| match check.result {
            CheckResult::Passed => (check.rule, "passed", String::new()),
            CheckResult::Failed(finding) => (check.rule, "failed", finding.why),
            CheckResult::NotReached(_) => (check.rule, "not reached", String::new()),
            CheckResult::NotApplicable(why) => (check.rule, "not applicable", why),
        })
        .collect()
}

fn rule_result(rule: &str, verdict: &'static str, why: &str) -> (String, &'static str, String) {
    (rule.to_owned(), verdict, why.to_owned())
}

const NO_PLAN: &str = "the agent offered the model no tool that shows a plan";
const WRONG: &str = "/asked: expected 2, found 1";

#[test]
fn missing_needed_tool_is_not_applicable() {
    let case = "needs tool plan\nmodel\n  text \"a\"\n---\n  call plan {}\nend\nstart\n\
        >! ELSE\n< {\"asked\": 1} @ A-1\n>! ELSE\n< {\"asked\": 2} @ A-2\nexit 3 @ A-3";
    let expected = [
        rule_result("A-1", "passed", ""),
        rule_result("A-2", "not applicable", NO_PLAN),
        rule_result("A-3", "not applicable", NO_PLAN),
    ];
    assert_eq!(play_results(case), expected);
}

#[test]
fn agent_with_the_tool_is_judged() {
    let wrong = "needs tool plan\nmodel\n  call plan {}\nend\nstart\n>! PLAN\n< {\"asked\": 2} @ A-1\nexit 0";
    assert_eq!(play_results(wrong), [rule_result("A-1", "failed", WRONG)]);
    let taken_back = "needs tool plan\nmodel\n  call plan {}\n---\n  call plan {}\nend\nstart\n\
        >! PLAN\n< {\"asked\": 1}\n>! ELSE\n< {\"asked\": 2} @ A-1\nexit 0";
    assert_eq!(
        play_results(taken_back),
        [rule_result("A-1", "failed", WRONG)]
    );
}

#[test]
fn only_steps_for_the_missing_tool_are_skipped() {
    let case = "model\n  call write {\"path\": \"a\", \"text\": \"b\"}\nend\nstart\n\
        if tool write >! ELSE\nif tool write < {\"asked\": 2} @ A-1\nif tool write absent no @ A-2\n\
        absent no @ A-3\nif tool plan absent no @ A-4\nexit 3 @ A-5";
    let why = "the agent offered the model no tool that writes files";
    let expected = [
        rule_result("A-1", "not applicable", why),
        rule_result("A-2", "not applicable", why),
        rule_result("A-3", "passed", ""),
        rule_result("A-4", "passed", ""),
        rule_result("A-5", "failed", "the agent ended with exit status: 0"),
    ];
    assert_eq!(play_results(case), expected);
}

#[test]
fn tool_offered_later_counts_from_then_on() {
    let case = "model\n  call plan {}\n---\n  call plan {}\nend\nstart\n\
        if tool plan >! ELSE\nif tool plan < {\"asked\": 2} @ A-1\n>! PLAN\n< {\"asked\": 1}\n\
        if tool plan absent no @ A-2\nexit 0";
    let expected = [
        rule_result("A-1", "not applicable", NO_PLAN),
        rule_result("A-2", "passed", ""),
    ];
    assert_eq!(play_results(case), expected);
}

#[test]
fn unconnected_mcp_server_is_a_failure() {
    let case = "needs tool mcp\nmodel\n  call mcp:echo {}\nend\nstart\n>! ELSE\n< {\"asked\": 2} @ A-1\nexit 0";
    assert_eq!(play_results(case), [rule_result("A-1", "failed", WRONG)]);
}

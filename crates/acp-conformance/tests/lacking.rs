//! An agent that offers the model no tool for what a case is about: that is not its fault. One that had the
//! tool and takes it back, or that was told of the server it belongs to, has no such excuse.

use acp_conformance::{
    Agent, Case, Facts, Options, Ruling, case::Tool, embedded, play_all, profile::Profile,
};

/// Takes each line for the tools to offer, asks the model once with them, and says so.
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
const PLAN: &str = r#"[{"type": "function", "function": {"name": "plan", "parameters": {}}}]"#;
const ELSE: &str = r#"[{"type": "function", "function": {"name": "else", "parameters": {}}}]"#;

/// Speaks just enough of the protocol, and asks the model about the long work only, with a tool that is no shell.
const BUSY: &str = r#"
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
fn an_agent_without_a_shell_comes_to_the_end_of_the_case_of_those_who_leave() {
    let profile = "name = 'a'\nabout = 'b'\ncommand = []\napi = 'openai-chat'\n\
        environment.MODEL = '{BASE}'\nenvironment.ASKS = '''\nASKING'''";
    let profile = profile.replace("ASKING", &AGENT.replace("\"go\\", "\"Do the long work\\"));
    let script = BUSY.replace("ELSE", ELSE);
    let agent = Agent {
        command: ["bash", "-c", &script].map(str::to_owned).to_vec(),
        profile: Some(Profile::parse("test", &profile).expect("a profile")),
        ..Agent::default()
    };
    let facts = Facts {
        model: true,
        tools: vec![Tool::Shell],
        ..Facts::default()
    };
    let mut cases = embedded::cases().expect("the cases");
    cases.retain(|case| case.name == "leaving-busy");
    let played = play_all(&cases, &agent, &Options::default(), Some(facts), &|_| ());
    let outcome = played.expect("a runtime").outcomes.remove(0);
    assert_eq!((outcome.fault, outcome.broken), (None, None));
    let of = |rule: &str| -> Vec<Ruling> {
        let checks = outcome.checks.iter();
        let its = checks.filter(|check| check.rule == rule && check.line > 0);
        its.map(|check| check.result.clone()).collect()
    };
    let why = "the agent offered the model no tool that runs commands";
    let without = Ruling::NotApplicable(why.to_owned());
    let passed = || Ruling::Passed;
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

/// What came of each rule that the case cites, against an agent of which its profile says that it has all tools.
fn rulings(case: &str) -> Vec<(String, &'static str, String)> {
    let profile =
        "name = 'a'\nabout = 'b'\ncommand = []\napi = 'openai-chat'\nenvironment.MODEL = '{BASE}'";
    let agent = Agent {
        command: ["bash", "-c", AGENT].map(str::to_owned).to_vec(),
        profile: Some(Profile::parse("test", profile).expect("a profile")),
        ..Agent::default()
    };
    let facts = Facts {
        model: true,
        tools: vec![Tool::Write, Tool::Plan, Tool::Mcp],
        ..Facts::default()
    };
    let case = case.replace("PLAN", PLAN).replace("ELSE", ELSE);
    let case = Case::parse("test", &format!("# test\n{case}")).expect("a case");
    let cited: Vec<String> = case.rules().iter().map(ToString::to_string).collect();
    let played = play_all(&[case], &agent, &Options::default(), Some(facts), &|_| ());
    let outcome = played.expect("a runtime").outcomes.remove(0);
    assert_eq!(outcome.fault, None);
    assert_eq!(outcome.broken, None);
    let checks = outcome.checks.into_iter();
    let checks = checks.filter(|check| cited.contains(&check.rule));
    checks
        .map(|check| match check.result {
            Ruling::Passed => (check.rule, "passed", String::new()),
            Ruling::Failed(finding) => (check.rule, "failed", finding.why),
            Ruling::NotReached(_) => (check.rule, "not reached", String::new()),
            Ruling::NotApplicable(why) => (check.rule, "not applicable", why),
        })
        .collect()
}

fn ruling(rule: &str, verdict: &'static str, why: &str) -> (String, &'static str, String) {
    (rule.to_owned(), verdict, why.to_owned())
}

const NO_PLAN: &str = "the agent offered the model no tool that shows a plan";
const WRONG: &str = "/asked: expected 2, found 1";

#[test]
fn what_a_case_needs_and_the_agent_does_not_offer_is_not_applicable() {
    let case = "needs tool plan\nmodel\n  text \"a\"\n---\n  call plan {}\nend\nstart\n\
        >! ELSE\n< {\"asked\": 1} @ A-1\n>! ELSE\n< {\"asked\": 2} @ A-2\nexit 3 @ A-3";
    let expected = [
        ruling("A-1", "passed", ""),
        ruling("A-2", "not applicable", NO_PLAN),
        ruling("A-3", "not applicable", NO_PLAN),
    ];
    assert_eq!(rulings(case), expected);
}

#[test]
fn an_agent_that_has_the_tool_is_held_to_it() {
    let wrong = "needs tool plan\nmodel\n  call plan {}\nend\nstart\n>! PLAN\n< {\"asked\": 2} @ A-1\nexit 0";
    assert_eq!(rulings(wrong), [ruling("A-1", "failed", WRONG)]);
    let taken_back = "needs tool plan\nmodel\n  call plan {}\n---\n  call plan {}\nend\nstart\n\
        >! PLAN\n< {\"asked\": 1}\n>! ELSE\n< {\"asked\": 2} @ A-1\nexit 0";
    assert_eq!(rulings(taken_back), [ruling("A-1", "failed", WRONG)]);
}

#[test]
fn steps_for_those_that_have_a_tool_are_left_out_and_the_others_done() {
    let case = "model\n  call write {\"path\": \"a\", \"text\": \"b\"}\nend\nstart\n\
        if tool write >! ELSE\nif tool write < {\"asked\": 2} @ A-1\nif tool write absent no @ A-2\n\
        absent no @ A-3\nif tool plan absent no @ A-4\nexit 3 @ A-5";
    let why = "the agent offered the model no tool that writes files";
    let expected = [
        ruling("A-1", "not applicable", why),
        ruling("A-2", "not applicable", why),
        ruling("A-3", "passed", ""),
        ruling("A-4", "passed", ""),
        ruling("A-5", "failed", "the agent ended with exit status: 0"),
    ];
    assert_eq!(rulings(case), expected);
}

#[test]
fn a_tool_that_is_offered_later_is_there_from_then_on() {
    let case = "model\n  call plan {}\n---\n  call plan {}\nend\nstart\n\
        if tool plan >! ELSE\nif tool plan < {\"asked\": 2} @ A-1\n>! PLAN\n< {\"asked\": 1}\n\
        if tool plan absent no @ A-2\nexit 0";
    let expected = [
        ruling("A-1", "not applicable", NO_PLAN),
        ruling("A-2", "passed", ""),
    ];
    assert_eq!(rulings(case), expected);
}

#[test]
fn a_server_that_was_not_connected_is_the_agents_fault() {
    let case = "needs tool mcp\nmodel\n  call mcp:echo {}\nend\nstart\n>! ELSE\n< {\"asked\": 2} @ A-1\nexit 0";
    assert_eq!(rulings(case), [ruling("A-1", "failed", WRONG)]);
}

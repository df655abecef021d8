//! Plays cases against agents that are one line of shell, and checks that violations are found.

use acp_conformance::{
    AgentFacts, AgentSpec, Case, CaseOutcome, CheckResult, Finding, PlayOptions, RuleCheck,
    outcome::TranscriptSource, play_suite,
};
use std::time::Duration;

fn play_script(script: &str, case: &str) -> CaseOutcome {
    let agent = AgentSpec {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        ..AgentSpec::default()
    };
    let options = PlayOptions {
        patience: Duration::from_secs(20),
        quiet_pause: Duration::from_millis(1),
        jobs: 1,
        ..PlayOptions::default()
    };
    let case = Case::parse("test", &format!("# test\n{case}")).expect("a case");
    let facts = Some(AgentFacts::default());
    let played = play_suite(&[case], &agent, &options, facts, &|_| ()).expect("a runtime");
    played.outcomes.into_iter().next().expect("an outcome")
}

/// Returns the failures: rule, line, explanation. The rule is empty for a step without one.
fn failures(script: &str, case: &str) -> Vec<(String, usize, String)> {
    let outcome = play_script(script, case);
    assert_eq!(outcome.error, None, "{:?}", outcome.transcript);
    // Only those of the steps: rules that are always watched have separate tests.
    let mut failed: Vec<_> = Vec::new();
    for check in outcome.checks.iter().filter(|check| check.line > 0) {
        if let CheckResult::Failed(finding) = &check.result {
            failed.push((check.rule.clone(), finding.line, finding.why.clone()));
        }
    }
    let broken = outcome.failed_step.as_ref();
    failed.extend(broken.map(|finding| (String::new(), finding.line, finding.why.clone())));
    failed
}

fn single_failure(rule: &str, line: usize, why: &str) -> Vec<(String, usize, String)> {
    vec![(rule.to_owned(), line, why.to_owned())]
}

/// Agent that echoes every line and ends with stdin.
const ECHO_AGENT: &str = "cat";

#[test]
fn received_lines_are_compared() {
    let right = "start\n>! {\"id\": 1}\n< {\"id\": 1} @ A-1\nexit 0 @ A-2";
    assert_eq!(failures(ECHO_AGENT, right), []);
    let wrong = "start\n>! {\"id\": 1}\n< {\"id\": 2} @ A-1\nexit 0 @ A-2";
    assert_eq!(
        failures(ECHO_AGENT, wrong),
        single_failure("A-1", 4, "/id: expected 2, found 1")
    );
}

#[test]
fn null_load_result_fails_load_4_only() {
    let script = r#"
        while read -r line; do
            id=${line#*\"id\":}; id=${id%%[,\}]*}
            echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":null}"
        done"#;
    let case = "start\n\
        call session/load {\"sessionId\": \"s\", \"cwd\": \"/\", \"mcpServers\": []} as load\n\
        answered {} for load @ LOAD-1\nexit any @ TR-6";
    let outcome = play_script(script, case);
    let failed: Vec<_> = outcome.findings().map(|(rule, _)| rule).collect();
    assert_eq!(failed, ["LOAD-4"]);
    let is_unreached = |check: &RuleCheck| matches!(check.result, CheckResult::NotReached(_));
    assert!(
        !outcome.checks.iter().any(is_unreached),
        "{:?}",
        outcome.checks
    );
}

#[test]
fn case_continues_after_mismatch_not_after_silence() {
    let rulings = |case: &str| -> Vec<(String, CheckResult)> {
        let outcome = play_script(ECHO_AGENT, case);
        let checks = outcome.checks.into_iter();
        checks
            .filter(|check| check.line > 0 || matches!(check.result, CheckResult::NotApplicable(_)))
            .filter(|check| !matches!(check.result, CheckResult::Failed(_)))
            .map(|check| (check.rule, check.result))
            .collect()
    };
    let wrong = "start\n>! {\"id\": 1}\n< {\"id\": 2} @ A-1\nexit 0 @ A-2 A-3";
    let passed = |rule: &str| (rule.to_owned(), CheckResult::Passed);
    assert_eq!(rulings(wrong), [passed("A-2"), passed("A-3")]);
    let none = "start\nwithin 1 < {} @ A-1\nexit 0 @ A-2\nif loadSession mark @ A-3";
    let not_applicable = CheckResult::NotApplicable("loadSession".to_owned());
    let before = Finding {
        case: "test".to_owned(),
        line: 3,
        step: "within 1 < {} @ A-1".to_owned(),
        sent: None,
        received: None,
        why: "a step before its check failed: nothing fitting came in 1 ms".to_owned(),
        entry: Some(0),
    };
    assert_eq!(
        rulings(none),
        [
            ("A-2".to_owned(), CheckResult::NotReached(before)),
            ("A-3".to_owned(), not_applicable),
        ]
    );
    let unset =
        "start\n>! {\"id\": 1}\n< {\"no\": \"$x\"} @ A-1\ncall _y {\"x\": \"$x\"} -> {} @ A-2";
    let unset = rulings(unset);
    let [(_, CheckResult::NotReached(before))] = &unset[..] else {
        panic!("{unset:?}");
    };
    let why = "$x is not set, since line 4 failed: /no is missing";
    assert_eq!((before.line, before.why.as_str()), (5, why));
    let needs = "needs loadSession\nstart\n< {} @ A-1";
    let not_applicable = CheckResult::NotApplicable("loadSession".to_owned());
    assert_eq!(rulings(needs), [("A-1".to_owned(), not_applicable)]);
}

#[test]
fn checks_see_lines_since_the_mark() {
    let sent = "start\n>!+ {\"a\": 1}\n>! {\"b\": 2}\n<* {\"b\": 2}\n";
    let right = format!("{sent}no {{\"c\": 3}}\nsome {{\"a\": 1}}\ncount 1.. {{}}\nmark\nno {{}}");
    assert_eq!(failures(ECHO_AGENT, &right), []);
    for (check, why) in [
        ("no {\"a\": 1}", "there should be no such line"),
        ("some {\"c\": 1}", "none of 2 lines fits {\"c\":1}"),
        ("count 1 {}", "2 lines fit, not 1"),
        (
            "order [{\"b\": 2}, {\"a\": 1}]",
            "behind those before it no line fits {\"a\":1}",
        ),
    ] {
        let wrong = format!("{sent}{check} @ A-1");
        assert_eq!(
            failures(ECHO_AGENT, &wrong),
            single_failure("A-1", 6, why),
            "{check}"
        );
    }
}

#[test]
fn responses_are_matched_by_id() {
    // The fake agent answers the second request first.
    let script = "read a; read b; echo '{\"jsonrpc\":\"2.0\",\"id\":102,\"result\":{\"x\":2}}'; echo '{\"jsonrpc\":\"2.0\",\"id\":101,\"error\":{\"code\":5,\"message\":\"no\"}}'; cat >/dev/null";
    let calls = "start\ncall a {} as a\ncall b {} as b\n";
    let right = "refused {\"code\": 5} for a @ A-1\nanswered {\"x\": 2} for b @ A-2\nexit 0";
    assert_eq!(failures(script, &format!("{calls}{right}")), []);
    let wrong = "answered {} for a @ A-1";
    assert_eq!(
        failures(script, &format!("{calls}{wrong}")),
        single_failure("A-1", 5, "it is no result, but an error")
    );
    let talks = "while echo '{\"jsonrpc\":\"2.0\",\"method\":\"_x\"}'; do sleep 0.01; done";
    let patience = "start\nwithin 1000 <* {\"id\": 1} @ A-1";
    let why = "nothing fitting came in 1000 ms; the last line: /id is missing";
    assert_eq!(failures(talks, patience), single_failure("A-1", 3, why));
    let usual = "start\nwithin 1 call a {} -> any\nmark @ A-2";
    let nothing = "nothing fitting came in 1 ms";
    assert_eq!(
        failures("cat >/dev/null", usual),
        single_failure("RPC-12", 3, nothing)
    );
}

#[test]
fn malformed_response_breaks_only_its_shape_rule() {
    // The error has no message.
    let script = r#"read a; echo '{"jsonrpc":"2.0","id":101,"error":{"code":5}}'; cat >/dev/null"#;
    let outcome = play_script(
        script,
        "start\ncall a {} as a\nanswered {} for a @ A-1\nexit 0 @ A-2",
    );
    let of = |rule: &str| outcome.checks.iter().find(|check| check.rule == rule);
    let result = |rule: &str| of(rule).map(|check| check.result.clone());
    let bent = "the response is malformed: another rule reports that";
    let Some(CheckResult::NotReached(before)) = result("A-1") else {
        panic!("{:?}", of("A-1"));
    };
    assert_eq!((before.line, before.why.as_str()), (4, bent));
    assert_eq!(result("A-2"), Some(CheckResult::Passed));
    assert!(
        matches!(result("RPC-13"), Some(CheckResult::Failed(_))),
        "{:?}",
        of("RPC-13")
    );
}

#[test]
fn unexpected_exit_is_caught() {
    let ended = "the agent ended: exit status: 0";
    assert_eq!(
        failures("exit 0", "start\n< {}"),
        single_failure("", 3, ended)
    );
    let ended = "the agent ended: signal: 9 (SIGKILL)";
    assert_eq!(
        failures("kill -9 $$", "start\n<* {}"),
        single_failure("", 3, ended)
    );
    let closed = "the agent closed its output";
    let script = "exec >&-; sleep 1000";
    assert_eq!(
        failures(script, "start\n< {}"),
        single_failure("", 3, closed)
    );
    let code = failures("exit 3", "start\nexit 0 @ A-1");
    let why = "the agent ended with exit status: 3";
    assert_eq!(code, single_failure("A-1", 3, why));
    assert_eq!(failures("exit 3", "start\nexit any\nstart\nexit 3"), []);
    let usual = failures(
        "sleep 1000",
        "start\nwithin 50 exit 0\nstart\nwithin 50 exit 0 @ A-1",
    );
    let lines: Vec<(&str, usize)> = usual
        .iter()
        .map(|(rule, line, _)| (rule.as_str(), *line))
        .collect();
    assert_eq!(lines, [("TR-6", 3), ("A-1", 5)]);
    let stays = "start\nwithin 50 exit 0 @ A-1";
    let why = "the agent does not end";
    assert_eq!(failures("sleep 1000", stays), single_failure("A-1", 3, why));
}

#[test]
fn relative_agent_path_starts_at_runner_folder() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let name = folder.path().file_name().expect("a name").to_string_lossy();
    std::os::unix::fs::symlink("/bin/cat", folder.path().join("agent")).expect("a link");
    let agent = AgentSpec {
        command: vec![format!("{name}/agent")],
        ..AgentSpec::default()
    };
    let case = Case::parse(
        "test",
        "# test\nstart\n>! {\"a\": 1}\n< {\"a\": 1} @ A-1\nexit 0",
    )
    .expect("a case");
    let facts = Some(AgentFacts::default());
    let played = play_suite(&[case], &agent, &PlayOptions::default(), facts, &|_| ());
    let outcome = played.expect("a runtime").outcomes.remove(0);
    assert_eq!((outcome.error, outcome.failed_step), (None, None));
    assert_eq!(outcome.checks[0].result, CheckResult::Passed);
}

#[test]
fn all_child_processes_are_killed() {
    let script = "sleep 1000 >&- & setsid sleep 1001 >&- & cat >/dev/null";
    let found = failures(script, "start\nexit 0\norphans none @ TR-6");
    let [(rule, 4, why)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(rule, "TR-6");
    assert!(why.contains("sleep 1000"), "{why}");
    let gone = failures("cat >/dev/null", "start\nexit 0\norphans none @ TR-6");
    assert_eq!(gone, []);
}

#[test]
fn orphans_are_reported_for_their_agent() {
    let left = |case: &str| {
        let script =
            "sleep 1000 >&- & test -e $HOME/again && kill $!; touch $HOME/again; cat >/dev/null";
        let outcome = play_script(script, case);
        let mut findings = outcome.findings();
        findings.any(|(rule, _)| rule == "TR-6")
    };
    assert!(left("start\nexit 0"));
    assert!(!left("start\nfile ../home/again x\nkill\nstart\nexit 0"));
}

#[test]
fn files_are_created_and_compared() {
    let script = "read line; cp \"$line\" \"$line.copy\"; echo '{}'; cat >/dev/null";
    let case = "file a one\\n\nstart\n>raw \"$CWD/a\\n\"\n< {}\nread a.copy one\\n\nsame a\nholds a on\nabsent b\nexit 0";
    assert_eq!(failures(script, case), []);
    for (check, why) in [
        ("read a.copy two", "a.copy holds \"one\\n\""),
        ("holds a two", "a holds \"one\\n\""),
        ("absent a", "a is there"),
    ] {
        let wrong = format!("file a one\\n\nstart\n>raw \"$CWD/a\\n\"\n< {{}}\n{check} @ A-1");
        assert_eq!(
            failures(script, &wrong),
            single_failure("A-1", 6, why),
            "{check}"
        );
    }
    let spoils = "read line; echo more >> \"$line\"; echo '{}'; cat >/dev/null";
    let wrong = "file a one\\n\nstart\n>raw \"$CWD/a\\n\"\n< {}\nsame a @ A-1";
    let why = "a was changed and holds \"one\\nmore\\n\"";
    assert_eq!(failures(spoils, wrong), single_failure("A-1", 6, why));
}

#[test]
fn raw_bytes_are_sent_unchanged() {
    let case = "let x 7\nstart\n>raw+ \"{\\\"a\\\":\\x22\"\nsplit 2\n>raw \"\\u00e9$x\\\"}\\n\"\n< {\"a\": \"é7\"} @ A-1\nexit 0";
    assert_eq!(failures(ECHO_AGENT, case), []);
}

#[test]
fn case_faults_are_not_agent_failures() {
    for (case, fault) in [
        ("start\n> {\"id\": 1}", "line 3: this is no JSON-RPC 2.0"),
        ("start\n> {\"id\":", "line 3: not JSON"),
        ("exit 0", "line 2: no agent has been started"),
        (
            "start\nif loadSession let session 1\nprompt \"x\"",
            "line 4: $session is not set",
        ),
        ("start\nstart", "line 3: an agent is already running"),
    ] {
        let found = play_script(ECHO_AGENT, case).error.expect(case);
        assert!(found.starts_with(fault), "{found}");
    }
}

#[test]
fn watched_rules_are_in_the_outcome() {
    let script = "echo starting; read a; echo '{\"jsonrpc\":\"2.0\",\"id\":101,\"result\":{}}'";
    let outcome = play_script(
        script,
        "start\ncall _x {} -> {} @ A-1\ncall _y {} -> {} @ A-2",
    );
    let watched: Vec<(&str, &str, Option<&str>)> = outcome
        .findings()
        .map(|(rule, finding)| (rule, finding.why.as_str(), finding.received.as_deref()))
        .collect();
    assert_eq!(
        watched,
        [
            ("A-2", "the agent ended: exit status: 0", None),
            ("TR-3", "it is no message", Some("starting")),
            ("RPC-12", "_y 102 was never answered", None),
        ]
    );
    let place = outcome.findings().nth(1);
    let place = place.map(|(_, finding)| (finding.line, finding.step.as_str()));
    // The case was at this line; the step is unrelated to the violation.
    assert_eq!(place, Some((3, "(always watched)")));
    let passed = |rule: &str| {
        let mut checks = outcome.checks.iter();
        checks.any(|check| check.rule == rule && check.result == CheckResult::Passed)
    };
    assert!(passed("RPC-2") && passed("RPC-1") && !passed("TR-3"));
}

#[test]
fn overlong_line_is_reported_and_next_is_read() {
    // A line of 65 MiB.
    let script = "head -c 68157440 /dev/zero | tr '\\0' x; echo; echo '{\"jsonrpc\":\"2.0\",\"method\":\"_x\"}'; cat";
    let outcome = play_script(script, "start\n<* {\"method\": \"_x\"} @ A-1\nexit 0 @ A-2");
    let found: Vec<(&str, &str)> = outcome
        .findings()
        .map(|(rule, finding)| (rule, finding.why.as_str()))
        .collect();
    assert_eq!(found, [("TR-9", "a line of more than 64 MiB")]);
    let came = outcome
        .findings()
        .next()
        .and_then(|(_, found)| found.received.clone());
    assert_eq!(came, Some("x".repeat(2048) + "…"));
    assert_eq!(outcome.failed_step, None);
}

#[test]
fn deeply_nested_json_is_received() {
    let script = "read a; printf '{\"jsonrpc\":\"2.0\",\"id\":101,\"result\":{\"x\":1,\"deep\":'; head -c 500000 /dev/zero | tr '\\0' '['; head -c 500000 /dev/zero | tr '\\0' ']'; echo '}}'; cat >/dev/null";
    let deep = play_script(
        script,
        "start\ncall _x {} -> {\"x\": 1} @ A-1\nexit 0 @ A-2",
    );
    assert_eq!(deep.findings().collect::<Vec<_>>(), []);
    let script = "head -c 500000 /dev/zero | tr '\\0' '['; echo; cat >/dev/null";
    let open = play_script(script, "start\nexit 0 @ A-1");
    let found: Vec<&str> = open.findings().map(|(rule, _)| rule).collect();
    assert_eq!(found, ["TR-3"]);
}

#[test]
fn case_messages_are_checked_by_schema() {
    let fault = |case: &str| play_script("cat >/dev/null", case).error;
    let wrong =
        fault("start\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{}}");
    let wrong = wrong.expect("it lacks cwd");
    let why = "line 3: NewSessionRequest: cwd is missing at \"\"; if that is meant, say `>!`";
    assert!(wrong.starts_with(why), "{wrong}");
    assert!(fault("start\ntell session/cancel {}").is_some());
    assert_eq!(fault("start\ntell! session/cancel {}\nexit 0"), None);
}

#[test]
fn transcript_is_complete() {
    let outcome = play_script(ECHO_AGENT, "start\n>! {\"a\": 1}\n< {}\nexit 0");
    let said: Vec<(TranscriptSource, &str)> = outcome
        .transcript
        .iter()
        .map(|entry| (entry.by, entry.text.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (TranscriptSource::Process, "started sh"),
            (TranscriptSource::Case, "{\"a\": 1}"),
            (TranscriptSource::Agent, "{\"a\": 1}"),
            (TranscriptSource::Process, "stdin is closed"),
            (TranscriptSource::Process, "the agent ended: exit status: 0"),
        ]
    );
}

/// Returns all notes of a transcript.
fn transcript_notes(outcome: &CaseOutcome) -> Vec<&str> {
    let notes = outcome.transcript.iter();
    let notes = notes.filter(|entry| entry.by == TranscriptSource::Process);
    notes.map(|entry| entry.text.as_str()).collect()
}

#[test]
fn unexpected_exit_is_in_the_transcript() {
    let crashed = play_script("read a; exit 7", "start\ncall _x {} -> {} @ A-1");
    assert_eq!(
        transcript_notes(&crashed),
        ["started sh", "the agent ended: exit status: 7"]
    );
    // A child holds stdout open, so the exit of the agent is found before the end of its output.
    let script = "sleep 1000 & echo '{}'; exit 7";
    let left = play_script(script, "start\n< {}\nwithin 300 < {} @ A-1");
    assert_eq!(
        transcript_notes(&left),
        ["started sh", "the agent ended: exit status: 7"]
    );
    let again = play_script(
        "read a; exit 7",
        "start\ntell _x {}\nexit 7\nstart\nexit any",
    );
    let notes = transcript_notes(&again);
    let ended = notes
        .iter()
        .filter(|note| note.starts_with("the agent ended"));
    assert_eq!(ended.count(), 2, "{notes:?}");
}

#[test]
fn exit_is_blamed_on_the_unanswered_request() {
    let answers = "answer() { read a; echo '{\"jsonrpc\":\"2.0\",\"id\":'$1',\"result\":{}}'; }";
    let sent = |script: &str, case: &str| -> Vec<String> {
        let outcome = play_script(&format!("{answers}; {script}"), case);
        let found = outcome.findings().map(|(_, finding)| finding.sent.clone());
        found
            .map(|sent| sent.expect("something was sent"))
            .collect()
    };
    let odd = "{\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"odd\"}";
    let case = format!("start\ncall _x {{}} -> {{}}\n>! {odd}\nprobe @ A-1");
    let script = "answer 101; read odd; read probe; exit 3";
    assert_eq!(sent(script, &case), [odd, odd]);
    // If all earlier requests were answered, only the probe can be named.
    let case = format!("start\n>! {odd}\nprobe @ A-1");
    let probe = "_acp_conformance/probe";
    let probes = sent("answer 5; read probe; exit 3", &case);
    assert!(probes.iter().all(|sent| sent.contains(probe)), "{probes:?}");
    assert_eq!(probes.len(), 2);
}

#[test]
fn control_characters_are_escaped() {
    let outcome = play_script("cat >/dev/null", "start\n>raw \"{}\\r\\x1b\\n\"\nexit 0");
    let mut sent = outcome
        .transcript
        .iter()
        .filter(|entry| entry.by == TranscriptSource::Case);
    assert_eq!(
        sent.next().map(|entry| entry.text.as_str()),
        Some("{}\\r\\u{1b}\n")
    );
}

#[test]
fn response_with_string_id_is_mentioned() {
    let script = r#"read a; echo '{"jsonrpc":"2.0","id":"101","result":{}}'; cat >/dev/null"#;
    let why = "nothing fitting came in 300 ms; an answer with the id \"101\" came, a string, and not the number 101";
    let case = "start\nwithin 300 call _x {} -> {} @ A-1";
    assert_eq!(failures(script, case), single_failure("A-1", 3, why));
}

#[test]
fn permission_selects_option_by_kind() {
    let script = "echo '{\"id\":1,\"method\":\"session/request_permission\",\"params\":{\"options\":[{\"optionId\":\"n\",\"kind\":\"reject_once\"},{\"optionId\":\"y\",\"kind\":\"allow_once\"}]}}'; cat";
    for (way, outcome) in [
        (
            "allow_once",
            "{\"outcome\": \"selected\", \"optionId\": \"y\"}",
        ),
        (
            "reject_always",
            "{\"outcome\": \"selected\", \"optionId\": \"n\"}",
        ),
        ("cancelled", "{\"outcome\": \"cancelled\"}"),
        ("strange", "{\"outcome\": \"_shrug\"}"),
    ] {
        let case = format!(
            "permission {way}\nstart\n< {{\"method\": \"session/request_permission\"}}\n< {{\"id\": 1, \"result\": {{\"outcome\": {outcome}}}}}\nexit 0"
        );
        assert_eq!(failures(script, &case), [], "{way}");
    }
    let never = "permission never\nstart\n< {}\npermission reject_once\n< {\"result\": {\"outcome\": {\"optionId\": \"n\"}}}\nexit 0";
    assert_eq!(failures(script, never), []);
}

#[test]
fn client_serves_only_offered_capabilities() {
    let read = "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"fs/read_text_file\",\"params\":{\"sessionId\":\"s\",\"path\":\"'$PWD'/a\",\"line\":2,\"limit\":1}}";
    let script = format!("read a; echo '{{\"id\":101,\"result\":{{}}}}'; echo '{read}'; cat");
    let case = |client: &str, answer: &str| {
        format!(
            "file a one\\ntwo\\nthree\nclient {client}\nstart in $CWD\ninitialize\n< {{\"id\": 9}}\n< {answer}\nexit 0"
        )
    };
    let offered = "{\"fs\": {\"readTextFile\": true}}";
    let text = "{\"id\": 9, \"result\": {\"content\": \"two\\n\"}}";
    assert_eq!(failures(&script, &case(offered, text)), []);
    let none = "{\"id\": 9, \"error\": {\"code\": -32601}}";
    assert_eq!(failures(&script, &case("{}", none)), []);
    let unsaved = case(offered, "{\"result\": {\"content\": \"b\"}}")
        .replace("start", "buffer a a\\nb\nstart");
    assert_eq!(failures(&script, &unsaved), []);
}

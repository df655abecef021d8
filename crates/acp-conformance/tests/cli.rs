//! Tests of the command line: messages and exit codes.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// Runs the command; returns the exit code, stdout and stderr.
fn run_cli(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    let Output {
        status,
        stdout,
        stderr,
    } = command.args(arguments).output().expect("the runner");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

/// Agent that ends without output.
const MUTE_AGENT: &str = "true";

/// Returns a folder with one case of two rules, one of them a SHOULD.
fn case_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let case = "# It begins and ends.\nstart\nexit 0 @ TR-6 RPC-9\n";
    fs::write(folder.path().join("ends.case"), case).expect("a case");
    folder
}

fn path_str(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn agent_that_does_not_start_is_reported() {
    let (code, stdout, stderr) = run_cli(&["run", "--agent", "/no/such"]);
    let why = "acp-conformance: /no/such does not start: No such file or directory (os error 2)\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(2), "", why));
}

/// Plays a case for this rule against an agent that exits with status 1 only the first time.
fn run_flaky_agent(rule: &str, more: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let case = format!("# It ends.\nstart CASE=1\nexit 0 @ {rule}\n");
    let ends = folder.path().join("ends.case");
    fs::write(&ends, case).expect("a case");
    let seen = folder.path().join("seen");
    let script = format!("test -z \"$CASE\" || ! mkdir '{}' 2>&-", path_str(&seen));
    let agent = ["--", "sh", "-c", &script];
    let (code, stdout, _) = run_cli(&[&["run", path_str(&ends)], more, &agent].concat());
    (code, stdout)
}

#[test]
fn failure_that_does_not_recur_is_flaky() {
    let (code, stdout) = run_flaky_agent("RPC-9", &[]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("flaky  RPC-9 in ends, line 3: "),
        "{stdout}"
    );
    assert!(stdout.contains("; 1 flaky"), "{stdout}");
}

#[test]
fn flaky_failure_is_in_the_report() {
    let (_, stdout) = run_flaky_agent("PERM-1", &["--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("a report");
    let flaky = &report["flaky"][0];
    assert_eq!(
        (&flaky["rule"], &flaky["case"], &flaky["isCounted"]),
        (&"PERM-1".into(), &"ends".into(), &true.into())
    );
}

#[test]
fn flaky_expected_failure_is_no_unexpected_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let known = folder.path().join("known");
    fs::write(&known, "RPC-9\n").expect("a list");
    let (code, stdout) = run_flaky_agent("RPC-9", &["--expected-failures", path_str(&known)]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("; 1 flaky"), "{stdout}");
}

#[test]
fn dangerous_failure_counts_even_if_flaky() {
    let (code, stdout) = run_flaky_agent("PERM-1", &[]);
    assert_eq!(code, Some(1), "{stdout}");
    let ending = "exit 1: 1 dangerous failure that is flaky";
    assert!(stdout.contains(ending), "{stdout}");
}

#[test]
fn missing_case_file_is_reported() {
    let (code, _, stderr) = run_cli(&["run", "--agent", MUTE_AGENT, "/no/such.case"]);
    let why = "acp-conformance: /no/such.case: No such file or directory (os error 2)\n";
    assert_eq!((code, stderr.as_str()), (Some(2), why));
}

#[test]
fn unwritable_report_is_rejected_before_start() {
    let folder = case_folder();
    let seen = folder.path().join("seen");
    let agent = format!("touch {}", path_str(&seen));
    let report = "/no/such/report";
    let (code, _, stderr) = run_cli(&["run", "--agent", &agent, "--output", report]);
    assert_eq!(code, Some(2));
    let why = "acp-conformance: /no/such/report: No such file or directory (os error 2)\n";
    assert_eq!(stderr, why);
    assert!(!seen.exists());
}

#[test]
fn report_replaces_existing_file() {
    let folder = case_folder();
    let report = folder.path().join("report");
    fs::write(&report, "x".repeat(1 << 16)).expect("a file");
    let output = ["--output", path_str(&report), "--format", "json"];
    let case = folder.path().join("ends.case");
    let broken = ["run", path_str(&case), "--agent", "/no/such"];
    assert_eq!(run_cli(&[&broken[..], &output].concat()).0, Some(2));
    assert_eq!(fs::metadata(&report).expect("a file").len(), 1 << 16);
    let right = [
        "run",
        path_str(&case),
        "--agent",
        MUTE_AGENT,
        "--only",
        "tr-6",
    ];
    let (code, stdout, _) = run_cli(&[&right[..], &output].concat());
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    let text = fs::read_to_string(&report).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["rules"][0]["id"], "TR-6");
    assert_eq!(report["rules"].as_array().map(Vec::len), Some(1));
}

#[test]
fn unwritten_report_leaves_no_file() {
    let folder = case_folder();
    let report = folder.path().join("report");
    let (code, ..) = run_cli(&["run", "--agent", "/no/such", "--output", path_str(&report)]);
    assert_eq!((code, report.exists()), (Some(2), false));
    let case = folder.path().join("ends.case");
    let output = ["--output", path_str(&report), "--format", "json"];
    let (code, ..) = run_cli(
        &[
            &["run", path_str(&case), "--agent", MUTE_AGENT],
            &output[..],
        ]
        .concat(),
    );
    assert_eq!((code, report.exists()), (Some(0), true));
}

#[test]
fn faulty_case_does_not_affect_other_cases() {
    let folder = case_folder();
    let wrong = "# It is wrong.\nstart\nmark @ RPC-12\nstart\n";
    fs::write(folder.path().join("wrong.case"), wrong).expect("a case");
    let run = [
        "run",
        path_str(folder.path()),
        "--agent",
        MUTE_AGENT,
        "--format",
        "json",
    ];
    let (code, stdout, stderr) = run_cli(&run);
    let fault = "the case wrong is at fault itself: line 4: an agent is already running";
    assert!(stderr.contains(fault), "{stderr}");
    assert_eq!(code, Some(2));
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let verdict = |id: &str| {
        let mut rules = report["rules"].as_array().expect("rules").iter();
        rules
            .find(|rule| rule["id"] == id)
            .map(|rule| rule["verdict"].clone())
    };
    assert_eq!(verdict("TR-6"), Some("pass".into()));
    assert_eq!(verdict("RPC-12"), Some("unchecked".into()));
}

#[test]
fn command_in_place_of_cases_is_rejected() {
    let why = |said: &str, line: &str| {
        format!(
            "acp-conformance: {said} is no case; an agent's command goes behind `--`: acp-conformance run -- {line}\n"
        )
    };
    let (code, _, stderr) = run_cli(&["run", "python3", "/x/agent.py"]);
    assert_eq!(
        (code, stderr),
        (Some(2), why("python3", "python3 /x/agent.py"))
    );
    let (code, _, stderr) = run_cli(&["run", "--agent", "python3", "agent.py"]);
    assert_eq!(
        (code, stderr),
        (Some(2), why("agent.py", "python3 agent.py"))
    );
}

#[test]
fn invalid_and_missing_arguments_are_reported() {
    let folder = case_folder();
    let run = ["run", path_str(folder.path()), "--agent", MUTE_AGENT];
    for option in ["--jobs", "--patience"] {
        let (code, _, stderr) = run_cli(&[&run[..], &[option, "0"]].concat());
        assert!(stderr.contains("0 is not in 1.."), "{stderr}");
        assert_eq!(code, Some(2));
    }
    let (code, _, stderr) = run_cli(&[&run[..], &["--pass", "NO_SUCH_VARIABLE,PATH"]].concat());
    let why = "acp-conformance: warning: --pass NO_SUCH_VARIABLE: there is no such variable\n";
    assert_eq!((code, stderr.as_str()), (Some(0), why));
}

#[test]
fn expected_and_chosen_rules_use_the_whole_table() {
    let folder = case_folder();
    let expected = folder.path().join("expected");
    // One rule that is selected, and one that is not.
    fs::write(&expected, "RPC-12\nInit-3 # a bug of theirs\n").expect("a file");
    let cases = path_str(folder.path());
    let run = [
        "run",
        cases,
        "--agent",
        MUTE_AGENT,
        "--expected-failures",
        path_str(&expected),
    ];
    let with = |more: &[&str]| {
        let (code, _, stderr) = run_cli(&[&run[..], more].concat());
        (code, stderr)
    };
    assert_eq!(with(&["--only", "TR-6"]), (Some(0), String::new()));
    assert_eq!(with(&["--level", "may"]), (Some(0), String::new()));
    let nothing = "acp-conformance: --only and --level leave no rule\n".to_owned();
    assert_eq!(
        with(&["--only", "RPC-9", "--level", "may"]),
        (Some(2), nothing)
    );
    let near = "acp-conformance: \"end\" is no rule and no case; there is ends\n".to_owned();
    assert_eq!(with(&["--only", "end"]), (Some(2), near));
    fs::write(&expected, "INIT-333\n").expect("a file");
    let why = format!(
        "acp-conformance: {}: line 1: \"INIT-333\" is no rule\n",
        path_str(&expected)
    );
    assert_eq!(with(&["--only", "TR-6"]), (Some(2), why));
}

#[test]
fn unseen_expected_failure_is_a_cli_warning() {
    let folder = case_folder();
    let expected = folder.path().join("expected");
    fs::write(&expected, "V2-1\n").expect("a file");
    let case = folder.path().join("ends.case");
    let rest = [
        "--agent",
        MUTE_AGENT,
        "--expected-failures",
        path_str(&expected),
    ];
    let warning = "warning: V2-1 was expected to be broken, but is unchecked\n";
    let (code, stdout, _) = run_cli(&[&["run", path_str(folder.path())], &rest[..]].concat());
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains(warning), "{stdout}");
    // The other cases may observe the rule.
    let (code, stdout, _) = run_cli(&[&["run", path_str(&case)], &rest[..]].concat());
    assert_eq!(code, Some(0));
    assert!(!stdout.contains("warning"), "{stdout}");
}

/// Plays this case with more options.
fn run_case(agent: &str, case: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("odd.case");
    fs::write(&file, case).expect("a case");
    run_cli(&[&["run", path_str(&file), "--agent", agent], more].concat())
}

#[test]
fn progress_shows_fail_only_for_counted_failures() {
    let case = "# It warns.\nstart\nexit any\nvalue 1 2 @ RPC-9\n";
    let (code, stdout, stderr) = run_case(MUTE_AGENT, case, &[]);
    assert_eq!((code, stderr.as_str()), (Some(0), "warn odd\n"));
    let last = "exit 0: no rule that counts is broken; 1 would count with --strict\n";
    assert!(stdout.ends_with(last), "{stdout}");
    let (code, stdout, stderr) = run_case(MUTE_AGENT, case, &["--strict"]);
    assert_eq!((code, stderr.as_str()), (Some(1), "FAIL odd\n"));
    assert!(stdout.ends_with("exit 1: 1 rule broken\n"), "{stdout}");
}

#[test]
fn faulty_case_still_writes_the_report() {
    let fault = "the case odd is at fault itself: line 2: no agent has been started";
    let (code, stdout, stderr) = run_case(MUTE_AGENT, "# It is odd.\neof\n", &[]);
    assert_eq!(code, Some(2));
    assert_eq!(stderr, format!("fault odd\nacp-conformance: {fault}\n"));
    assert!(stdout.contains(&format!("{fault}\n")), "{stdout}");
    assert!(
        stdout.ends_with("\nexit 2: 1 case at fault itself\n"),
        "{stdout}"
    );
}

#[test]
fn unnamed_agent_gets_its_profile_name() {
    let folder = case_folder();
    let case = folder.path().join("ends.case");
    let profile = folder.path().join("p.toml");
    let text = "name = \"mine\"\nabout = \"An agent.\"\ncommand = [\"true\", \"--acp\"]\n";
    fs::write(&profile, text).expect("a profile");
    let agent = |more: &[&str]| {
        let run = ["run", path_str(&case), "--format", "json"];
        let (_, stdout, _) = run_cli(&[&run[..], more].concat());
        let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        let text = |key: &str| report["agent"][key].as_str().map(str::to_owned);
        (
            text("name").expect("a name"),
            text("command").expect("a command"),
        )
    };
    let words = |name: &str, command: &str| (name.to_owned(), command.to_owned());
    let profile = path_str(&profile);
    assert_eq!(agent(&["--profile", profile]), words("mine", "true --acp"));
    let both = ["--profile", profile, "--agent", "true -v"];
    assert_eq!(agent(&both), words("mine", "true -v"));
    assert_eq!(agent(&["--", "true", "-x"]), words("true -x", "true -x"));
}

#[test]
fn show_prints_the_case_file() {
    let (code, stdout, _) = run_cli(&["show", "framing"]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/cases/framing.case");
    assert_eq!(code, Some(0));
    assert_eq!(stdout, fs::read_to_string(file).expect("a case"));
}

#[test]
fn show_prints_a_rule_with_its_cases() {
    let (code, stdout, _) = run_cli(&["show", "auth-2"]);
    let known = "AUTH-2 (MUST NOT): a terminal method is offered only to a client that takes it\n\
                 source: docs page Authentication; schema\n\
                 official test kit: ACP-AUTH-002\n\
                 checked by: (always watched), auth\n";
    assert_eq!((code, stdout.as_str()), (Some(0), known));
    let (_, stdout, _) = run_cli(&["show", "TR-13"]);
    let reason = "untestable: the suite speaks stdio; another transport is another suite\n";
    assert!(stdout.ends_with(reason), "{stdout}");
    let (code, stdout, stderr) = run_cli(&["show", "framng"]);
    let near = "acp-conformance: \"framng\" is no rule and no case; there is framing\n";
    assert_eq!((code, &*stdout, &*stderr), (Some(2), "", near));
}

#[test]
fn unknown_rule_gets_a_suggestion() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = folder.path().join("ends.case");
    fs::write(&case, "# It ends.\nstart\nexit 0 @ MCP-77\n").expect("a case");
    let (code, _, stderr) = run_cli(&["run", path_str(&case), "--agent", MUTE_AGENT]);
    let why = "acp-conformance: the case ends: \"MCP-77\" is no rule; there is MCP-7";
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with(why), "{stderr}");
}

#[test]
fn unexpected_exit_is_reported_with_stderr() {
    let answers = |rest: &str| format!("sh -c 'read line; echo \"{{}}\"; {rest}'");
    let asks = "# It asks.\nstart\n>! {\"id\": 1}\n<* {\"id\": 1} @ RPC-9\n";
    let told = "the agent's process ended by itself (exit status: 3) in 1 case (odd); last lines of stderr:\n    \
                no more\n";
    let (_, stdout, _) = run_case(&answers("echo no more >&2; exit 3"), asks, &[]);
    assert!(stdout.starts_with(told), "{stdout}");
    // At the end of the case the agent is still running, or was told to end.
    let begins = "# It begins.\nstart\n>! {\"id\": 1}\n< {}\nexit 3 @ RPC-9\n";
    let stays = "case \"$line\" in *initialize*) ;; *) read line ;; esac; exit 3";
    let (_, stdout, _) = run_case(&answers(stays), begins, &[]);
    assert!(!stdout.contains("by itself"), "{stdout}");
    assert!(stdout.contains("1 pass"), "{stdout}");
}

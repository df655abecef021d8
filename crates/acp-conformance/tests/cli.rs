//! The command line: what it says of what it was given, and with which code it ends.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// Run it; code, stdout, stderr.
fn ran(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    let Output {
        status,
        stdout,
        stderr,
    } = command.args(arguments).output().expect("the runner");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

/// An agent that says nothing, and ends.
const MUTE: &str = "true";

/// A folder with this case of two rules, a SHOULD among them.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let case = "# It begins and ends.\nstart\nexit 0 @ TR-6 RPC-9\n";
    fs::write(folder.path().join("ends.case"), case).expect("a case");
    folder
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn an_agent_that_does_not_start_is_named_and_no_line_of_a_case() {
    let (code, stdout, stderr) = ran(&["run", "--agent", "/no/such"]);
    let why = "acp-conformance: /no/such does not start: No such file or directory (os error 2)\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(2), "", why));
}

/// An agent that leaves a case with status 1 the first time that it is played, and this case for a rule.
fn flaky(rule: &str, more: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let case = format!("# It ends.\nstart CASE=1\nexit 0 @ {rule}\n");
    let ends = folder.path().join("ends.case");
    fs::write(&ends, case).expect("a case");
    let seen = folder.path().join("seen");
    let script = format!("test -z \"$CASE\" || ! mkdir '{}' 2>&-", path(&seen));
    let agent = ["--", "sh", "-c", &script];
    let (code, stdout, _) = ran(&[&["run", path(&ends)], more, &agent].concat());
    (code, stdout)
}

#[test]
fn a_failure_that_does_not_come_again_is_flaky() {
    let (code, stdout) = flaky("RPC-9", &[]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("flaky  RPC-9 in ends, line 3: "),
        "{stdout}"
    );
    assert!(stdout.contains("; 1 flaky"), "{stdout}");
}

#[test]
fn a_flaky_failure_is_in_the_report() {
    let (_, stdout) = flaky("PERM-1", &["--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("a report");
    let flaky = &report["flaky"][0];
    assert_eq!(
        (&flaky["rule"], &flaky["case"], &flaky["isCounted"]),
        (&"PERM-1".into(), &"ends".into(), &true.into())
    );
}

#[test]
fn a_known_failure_that_is_flaky_is_no_unexpected_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let known = folder.path().join("known");
    fs::write(&known, "RPC-9\n").expect("a list");
    let (code, stdout) = flaky("RPC-9", &["--expected-failures", path(&known)]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("; 1 flaky"), "{stdout}");
}

#[test]
fn a_dangerous_failure_counts_once_seen() {
    let (code, stdout) = flaky("PERM-1", &[]);
    assert_eq!(code, Some(1), "{stdout}");
    let ending = "exit 1: 1 dangerous failure that is flaky";
    assert!(stdout.contains(ending), "{stdout}");
}

#[test]
fn a_case_that_is_not_there_is_named_and_no_line_of_it() {
    let (code, _, stderr) = ran(&["run", "--agent", MUTE, "/no/such.case"]);
    let why = "acp-conformance: /no/such.case: No such file or directory (os error 2)\n";
    assert_eq!((code, stderr.as_str()), (Some(2), why));
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_an_agent_is_started() {
    let folder = folder();
    let seen = folder.path().join("seen");
    let agent = format!("touch {}", path(&seen));
    let report = "/no/such/report";
    let (code, _, stderr) = ran(&["run", "--agent", &agent, "--output", report]);
    assert_eq!(code, Some(2));
    let why = "acp-conformance: /no/such/report: No such file or directory (os error 2)\n";
    assert_eq!(stderr, why);
    assert!(!seen.exists());
}

#[test]
fn a_report_takes_the_place_of_what_was_there() {
    let folder = folder();
    let report = folder.path().join("report");
    fs::write(&report, "x".repeat(1 << 16)).expect("a file");
    let output = ["--output", path(&report), "--format", "json"];
    let case = folder.path().join("ends.case");
    let broken = ["run", path(&case), "--agent", "/no/such"];
    assert_eq!(ran(&[&broken[..], &output].concat()).0, Some(2));
    assert_eq!(fs::metadata(&report).expect("a file").len(), 1 << 16);
    let right = ["run", path(&case), "--agent", MUTE, "--only", "tr-6"];
    let (code, stdout, _) = ran(&[&right[..], &output].concat());
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    let text = fs::read_to_string(&report).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["rules"][0]["id"], "TR-6");
    assert_eq!(report["rules"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_report_that_is_not_written_leaves_no_file() {
    let folder = folder();
    let report = folder.path().join("report");
    let (code, ..) = ran(&["run", "--agent", "/no/such", "--output", path(&report)]);
    assert_eq!((code, report.exists()), (Some(2), false));
    let case = folder.path().join("ends.case");
    let output = ["--output", path(&report), "--format", "json"];
    let (code, ..) = ran(&[&["run", path(&case), "--agent", MUTE], &output[..]].concat());
    assert_eq!((code, report.exists()), (Some(0), true));
}

#[test]
fn a_case_at_fault_costs_no_other_its_verdict() {
    let folder = folder();
    let wrong = "# It is wrong.\nstart\nmark @ RPC-12\nstart\n";
    fs::write(folder.path().join("wrong.case"), wrong).expect("a case");
    let run = [
        "run",
        path(folder.path()),
        "--agent",
        MUTE,
        "--format",
        "json",
    ];
    let (code, stdout, stderr) = ran(&run);
    let fault = "the case wrong is at fault itself: line 4: an agent runs already";
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
fn a_command_in_the_place_of_cases_is_told_where_it_goes() {
    let why = |said: &str, line: &str| {
        format!(
            "acp-conformance: {said} is no case; an agent's command goes behind `--`: acp-conformance run -- {line}\n"
        )
    };
    let (code, _, stderr) = ran(&["run", "python3", "/x/agent.py"]);
    assert_eq!(
        (code, stderr),
        (Some(2), why("python3", "python3 /x/agent.py"))
    );
    let (code, _, stderr) = ran(&["run", "--agent", "python3", "agent.py"]);
    assert_eq!(
        (code, stderr),
        (Some(2), why("agent.py", "python3 agent.py"))
    );
}

#[test]
fn what_makes_no_sense_is_refused_and_what_is_not_there_is_told() {
    let folder = folder();
    let run = ["run", path(folder.path()), "--agent", MUTE];
    for option in ["--jobs", "--patience"] {
        let (code, _, stderr) = ran(&[&run[..], &[option, "0"]].concat());
        assert!(stderr.contains("0 is not in 1.."), "{stderr}");
        assert_eq!(code, Some(2));
    }
    let (code, _, stderr) = ran(&[&run[..], &["--pass", "NO_SUCH_VARIABLE,PATH"]].concat());
    let why = "acp-conformance: warning: --pass NO_SUCH_VARIABLE: there is no such variable\n";
    assert_eq!((code, stderr.as_str()), (Some(0), why));
}

#[test]
fn the_mutations_need_no_folder_of_cases() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    command.args(["mutations", "--agent", "false", "--only", "banner"]);
    let output = command
        .current_dir(folder.path())
        .output()
        .expect("the runner");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // So far it comes: this agent cannot be broken.
    let why = "acp-conformance: the agent does not answer `initialize`: ";
    assert!(stderr.starts_with(why), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_is_expected_and_chosen_is_looked_up_in_the_whole_table() {
    let folder = folder();
    let expected = folder.path().join("expected");
    // One that is chosen, and one that is not.
    fs::write(&expected, "RPC-12\nInit-3 # a bug of theirs\n").expect("a file");
    let cases = path(folder.path());
    let run = [
        "run",
        cases,
        "--agent",
        MUTE,
        "--expected-failures",
        path(&expected),
    ];
    let with = |more: &[&str]| {
        let (code, _, stderr) = ran(&[&run[..], more].concat());
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
        path(&expected)
    );
    assert_eq!(with(&["--only", "TR-6"]), (Some(2), why));
}

#[test]
fn an_expected_failure_of_which_nothing_was_seen_is_a_warning() {
    let folder = folder();
    let expected = folder.path().join("expected");
    fs::write(&expected, "V2-1\n").expect("a file");
    let case = folder.path().join("ends.case");
    let rest = ["--agent", MUTE, "--expected-failures", path(&expected)];
    let warning = "warning: V2-1 was expected to be broken, but is unchecked\n";
    let (code, stdout, _) = ran(&[&["run", path(folder.path())], &rest[..]].concat());
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains(warning), "{stdout}");
    // The other cases may see something of it.
    let (code, stdout, _) = ran(&[&["run", path(&case)], &rest[..]].concat());
    assert_eq!(code, Some(0));
    assert!(!stdout.contains("warning"), "{stdout}");
}

#[test]
fn a_fault_or_a_profile_that_is_not_there_is_an_error() {
    let mutations = |only: &str| ran(&["mutations", "--agent", "cat", "--only", only]);
    let (code, stdout, stderr) = mutations("banner,line_limit_64_kb");
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    let why = "acp-conformance: \"line_limit_64_kb\" is no fault; there is line_limit_64_kib";
    assert!(stderr.starts_with(why), "{stderr}");
    let scratch = tempfile::tempdir().expect("a folder");
    let (code, _, stderr) = ran(&[
        "scoreboard",
        "--scratch",
        path(scratch.path()),
        "--only",
        "gemini-cli,turnry",
    ]);
    let why = "acp-conformance: \"turnry\" is no profile; there is turnery";
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with(why), "{stderr}");
}

/// Plays this case with more options.
fn played(agent: &str, case: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("odd.case");
    fs::write(&file, case).expect("a case");
    ran(&[&["run", path(&file), "--agent", agent], more].concat())
}

#[test]
fn a_case_fails_on_stderr_only_if_it_makes_the_run_fail() {
    let case = "# It warns.\nstart\nexit any\nvalue 1 2 @ RPC-9\n";
    let (code, stdout, stderr) = played(MUTE, case, &[]);
    assert_eq!((code, stderr.as_str()), (Some(0), "warn odd\n"));
    let last = "exit 0: no rule that counts is broken; 1 would count with --strict\n";
    assert!(stdout.ends_with(last), "{stdout}");
    let (code, stdout, stderr) = played(MUTE, case, &["--strict"]);
    assert_eq!((code, stderr.as_str()), (Some(1), "FAIL odd\n"));
    assert!(stdout.ends_with("exit 1: 1 rule broken\n"), "{stdout}");
}

#[test]
fn a_case_at_fault_does_not_cost_the_report() {
    let fault = "the case odd is at fault itself: line 2: no agent has been started";
    let (code, stdout, stderr) = played(MUTE, "# It is odd.\neof\n", &[]);
    assert_eq!(code, Some(2));
    assert_eq!(stderr, format!("fault odd\nacp-conformance: {fault}\n"));
    assert!(stdout.contains(&format!("{fault}\n")), "{stdout}");
    assert!(
        stdout.ends_with("\nexit 2: 1 case at fault itself\n"),
        "{stdout}"
    );
}

#[test]
fn an_agent_that_names_itself_nothing_is_named_by_its_profile() {
    let folder = folder();
    let case = folder.path().join("ends.case");
    let profile = folder.path().join("p.toml");
    let text = "name = \"mine\"\nabout = \"An agent.\"\ncommand = [\"true\", \"--acp\"]\n";
    fs::write(&profile, text).expect("a profile");
    let agent = |more: &[&str]| {
        let run = ["run", path(&case), "--format", "json"];
        let (_, stdout, _) = ran(&[&run[..], more].concat());
        let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        let text = |key: &str| report["agent"][key].as_str().map(str::to_owned);
        (
            text("name").expect("a name"),
            text("command").expect("a command"),
        )
    };
    let words = |name: &str, command: &str| (name.to_owned(), command.to_owned());
    let profile = path(&profile);
    assert_eq!(agent(&["--profile", profile]), words("mine", "true --acp"));
    let both = ["--profile", profile, "--agent", "true -v"];
    assert_eq!(agent(&both), words("mine", "true -v"));
    assert_eq!(agent(&["--", "true", "-x"]), words("true -x", "true -x"));
}

#[test]
fn a_case_is_shown_as_it_is_written() {
    let (code, stdout, _) = ran(&["show", "framing"]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/cases/framing.case");
    assert_eq!(code, Some(0));
    assert_eq!(stdout, fs::read_to_string(file).expect("a case"));
}

#[test]
fn a_rule_is_shown_with_all_that_is_known_of_it() {
    let (code, stdout, _) = ran(&["show", "auth-2"]);
    let known = "AUTH-2 (MUST NOT): a terminal method is offered only to a client that takes it\n\
                 source: docs page Authentication; schema\n\
                 official test kit: ACP-AUTH-002\n\
                 checked by: (always watched), auth\n";
    assert_eq!((code, stdout.as_str()), (Some(0), known));
    let (_, stdout, _) = ran(&["show", "TR-13"]);
    let reason = "untestable: the suite speaks stdio; another transport is another suite\n";
    assert!(stdout.ends_with(reason), "{stdout}");
    let (code, stdout, stderr) = ran(&["show", "framng"]);
    let near = "acp-conformance: \"framng\" is no rule and no case; there is framing\n";
    assert_eq!((code, &*stdout, &*stderr), (Some(2), "", near));
}

#[test]
fn a_case_that_cites_no_rule_is_told_which_is_meant() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = folder.path().join("ends.case");
    fs::write(&case, "# It ends.\nstart\nexit 0 @ MCP-77\n").expect("a case");
    let (code, _, stderr) = ran(&["run", path(&case), "--agent", MUTE]);
    let why = "acp-conformance: the case ends: \"MCP-77\" is no rule; there is MCP-7";
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with(why), "{stderr}");
}

#[test]
fn an_agent_that_ends_by_itself_is_told_of_with_its_last_words() {
    let answers = |rest: &str| format!("sh -c 'read line; echo \"{{}}\"; {rest}'");
    let asks = "# It asks.\nstart\n>! {\"id\": 1}\n<* {\"id\": 1} @ RPC-9\n";
    let told = "the agent's process ended by itself (exit status: 3) in 1 case (odd); its last words on stderr:\n    \
                no more\n";
    let (_, stdout, _) = played(&answers("echo no more >&2; exit 3"), asks, &[]);
    assert!(stdout.starts_with(told), "{stdout}");
    // At the end of the case it is still there, or it was told to end.
    let begins = "# It begins.\nstart\n>! {\"id\": 1}\n< {}\nexit 3 @ RPC-9\n";
    let stays = "case \"$line\" in *initialize*) ;; *) read line ;; esac; exit 3";
    let (_, stdout, _) = played(&answers(stays), begins, &[]);
    assert!(!stdout.contains("by itself"), "{stdout}");
    assert!(stdout.contains("1 pass"), "{stdout}");
}

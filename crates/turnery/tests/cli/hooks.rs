//! Hook commands of the configuration observe real prompts and stop some of them.

use crate::{
    editor::StartedProcess,
    home::{CommandOutput, Home, wait_with_output},
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _};

/// Runs a prompt in mode `auto` with `config` as the user's configuration, these model responses and
/// additional arguments.
async fn run_prompt(home: &Home, config: &str, answers: Value, more: &[&str]) -> CommandOutput {
    home.write_file("turnery/config.toml", config);
    let model = home.scripted_model(answers);
    let mut run = vec![
        "run", "--mode", "auto", "--format", "json", "--model", &model,
    ];
    run.extend(more);
    run.push("do it");
    home.run(&run).await
}

/// Returns the events that hooks appended to the project's file `told`, after validating each against
/// schemas/hooks.json.
fn received_events(home: &Home) -> Vec<Value> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/hooks.json");
    let text = fs::read_to_string(file).expect("a schema");
    let mut schema: Value = serde_json::from_str(&text).expect("JSON");
    schema["required"] = json!(["stdin"]);
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let told = fs::read_to_string(home.project_folder().join("told")).expect("it ran");
    let lines = told.lines().map(|line| {
        let told: Value = serde_json::from_str(line).expect("JSON");
        let asked = json!({ "stdin": told });
        let valid = schema.validate(&asked);
        assert!(valid.is_ok(), "{told}: {:?}", valid.err());
        told
    });
    lines.collect()
}

fn write_file_step(path: &str) -> Value {
    let args = json!({"path": path, "content": "x"});
    json!({"steps": [{"tool_call": {"name": "write_file", "args": args}}]})
}

/// In mode `auto`, without a user to ask, the model cannot write a file that a hook's command runs, even one
/// that does not exist yet; it can write other files.
#[tokio::test]
async fn editing_a_hook_program_needs_permission() {
    let home = Home::new();
    for name in ["guard.sh", "other.sh", "with blank/guard.sh"] {
        home.write_file(format!("project/{name}"), "#!/bin/sh\nexit 0\n");
        let path = home.project_folder().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let path = |name: &str| home.project_folder().join(name).display().to_string();
    let line = |name: &str| json!(["sh", "-c", format!("test ! -f '{0}' || {0}", path(name))]);
    let quoted = format!("'{}'; true", path("with blank/guard.sh"));
    let escaped = format!("{}; true", path("with blank/guard.sh").replace(' ', "\\ "));
    for (command, name, is_changed) in [
        (json!([path("guard.sh")]), "guard.sh", false),
        (line("guard.sh"), "guard.sh", false),
        (
            json!(["env", format!("X={}", path("guard.sh")), "true"]),
            "guard.sh",
            false,
        ),
        (json!(["sh", "-c", quoted]), "with blank/guard.sh", false),
        (line("later.sh"), "later.sh", false),
        (json!(["sh", "-c", escaped]), "with blank/guard.sh", false),
        (line("tools/later.sh"), "tools/later.sh", false),
        (json!([path("guard.sh")]), "other.sh", true),
    ] {
        let hooks = format!("[[hooks]]\non = \"before_loop\"\ncommand = {command}\n");
        let answers = json!([write_file_step(name), {"steps": [{"text": "done"}]}]);
        run_prompt(&home, &hooks, answers, &[]).await;
        let text = fs::read_to_string(home.project_folder().join(name));
        assert_eq!(
            text.is_ok_and(|text| text == "x"),
            is_changed,
            "{command} {name}"
        );
    }
}

#[tokio::test]
async fn editing_a_server_program_needs_permission() {
    let home = Home::new();
    home.write_file("project/server.sh", "#!/bin/sh\nexit 0\n");
    let path = home
        .project_folder()
        .join("server.sh")
        .display()
        .to_string();
    let server = format!("[mcp.s]\ncommand = \"sh\"\nargs = [{path:?}]\n");
    for (name, is_changed) in [("server.sh", false), ("other.sh", true)] {
        let answers = json!([write_file_step(name), {"steps": [{"text": "done"}]}]);
        run_prompt(&home, &server, answers, &[]).await;
        let text = fs::read_to_string(home.project_folder().join(name));
        assert_eq!(text.is_ok_and(|text| text == "x"), is_changed, "{name}");
    }
}

/// Hooks run in a project's folder, but no file of the project runs in their place.
#[tokio::test]
async fn project_cannot_supply_hook_program() {
    let home = Home::new();
    for (folder, name) in [("turnery", "user"), ("project", "project")] {
        let script = format!("#!/bin/sh\ntouch ran-{name}\n");
        home.write_file(format!("{folder}/guard.sh"), &script);
        let path = home
            .project_folder()
            .with_file_name(folder)
            .join("guard.sh");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    home.write_file("project/json.py", "open('ran-python', 'w')\n");
    home.write_file("project/bin/helper", "#!/bin/sh\ntouch ran-helper\n");
    let helper = home.project_folder().join("bin/helper");
    fs::set_permissions(helper, fs::Permissions::from_mode(0o755)).expect("executable");
    let hooks = "[[hooks]]\non = \"before_loop\"\ncommand = [\"./guard.sh\"]\n\
                 [[hooks]]\non = \"before_loop\"\ncommand = [\"python3\", \"-c\", \"import json\"]\n\
                 [[hooks]]\non = \"after_loop\"\ncommand = \"helper\"\n";
    home.write_file("turnery/config.toml", hooks);
    let model = home.scripted_model(json!([{"steps": [{"text": "done"}]}]));
    let mut run = home.command(&["run", "--mode", "auto", "--model", &model, "do it"]);
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let project = home.project_folder().join("bin");
    let folders = [project, "bin".into()]
        .into_iter()
        .chain(std::env::split_paths(&usual));
    let path = std::env::join_paths(folders).expect("a path");
    run.env("PATH", path).env("PYTHONPATH", ":/opt/x");
    let done = wait_with_output(run.spawn().expect("started")).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let ran = ["user", "project", "python", "helper"];
    let ran = ran.map(|name| home.project_folder().join(format!("ran-{name}")).exists());
    assert_eq!(ran, [true, false, false, false]);
}

// proves: TURN-23, TURN-25, LOOP-55, LOOP-56, LOOP-57, UP-7
#[tokio::test]
async fn hook_receives_every_event_in_order() {
    let home = Home::new();
    let points = [
        "before_loop",
        "input",
        "before_turn",
        "before_tool",
        "after_tool",
        "after_turn",
        "checkpoint",
        "after_loop",
    ];
    let hook = |on: &&str| format!("[[hooks]]\non = \"{on}\"\ncommand = \"cat >> told\"\n");
    let hooks: String = points.iter().map(hook).collect();
    let answers = json!([
        write_file_step("a.txt"),
        {"steps": [{"text": "done"}], "usage": {"input": 7, "output": 2}},
    ]);
    let done = run_prompt(&home, &hooks, answers, &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let told = received_events(&home);
    let on: Vec<&str> = told.iter().filter_map(|it| it["on"].as_str()).collect();
    assert_eq!(
        on,
        [
            "before_loop",
            "input",
            "before_turn",
            "before_tool",
            "after_tool",
            "after_turn",
            "before_turn",
            "after_turn",
            "checkpoint",
            "after_loop"
        ],
    );
    let session = &done.stdout_json()["session_id"];
    assert!(told.iter().all(|it| it["session_id"] == *session));
    let cwd = home.project_folder().canonicalize().expect("a folder");
    assert!(told.iter().all(|it| it["cwd"] == json!(cwd)), "{told:?}");
    assert_eq!(told[1]["text"], "do it");
    assert_eq!(told[3]["tool"], "write_file");
    assert_eq!(told[3]["args"]["path"], "a.txt");
    assert_eq!(
        (&told[4]["failed"], &told[6]["turn"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(told[7]["usage"]["input"], 7);
    assert_eq!(told[8]["text"], "done");
    assert_eq!(told[9]["status"], "completed");
    assert_eq!(told[9]["text"], "done");
    assert_eq!(told[9]["usage"]["input"], 7);
}

#[tokio::test]
async fn hook_stops_matching_tool_call_and_prints_reason() {
    let home = Home::new();
    let hooks = r#"
[[hooks]]
on = "before_tool"
tools = ["write_file"]
command = ["sh", "-c", "echo '{\"verdict\": \"stop\", \"text\": \"not on a Friday\"}'"]
"#;
    let list = json!({"steps": [{"tool_call": {"name": "list_dir", "args": {}}}]});
    let answers = json!([list, write_file_step("a.txt"), {"steps": [{"text": "done"}]}]);
    let done = run_prompt(&home, hooks, answers, &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("List"), "{done:?}");
    assert!(done.stderr.contains("not on a Friday"), "{done:?}");
    assert!(!home.project_folder().join("a.txt").exists());
}

// proves: LASH-23, C-26, TURN-26, UP-9
#[tokio::test]
async fn exit_code_2_ends_prompt() {
    let home = Home::new();
    // A checkpoint comes after a turn, which has said something.
    for (on, text, turns) in [
        ("before_turn", "", 0),
        ("before_loop", "", 0),
        ("checkpoint", "no", 1),
    ] {
        let hooks =
            format!("[[hooks]]\non = \"{on}\"\ncommand = \"echo out of budget >&2; exit 2\"\n");
        let done = run_prompt(&home, &hooks, json!([{"steps": [{"text": "no"}]}]), &[]).await;
        assert_eq!(done.code, Some(3), "{on}: {done:?}");
        let result = done.stdout_json();
        assert_eq!(result["outcome"], "plugin_abort", "{on}: {result}");
        assert_eq!(result["error"], "out of budget", "{on}: {result}");
        assert_eq!(
            (&result["text"], &result["turns"]),
            (&json!(text), &json!(turns))
        );
        let id = result["session_id"].as_str().expect("an id");
        let records = home
            .run(&["sessions", "show", id, "--json"])
            .await
            .stdout_json();
        let kept = if on == "before_loop" { 0 } else { 1 };
        assert_eq!(records.as_array().map(Vec::len), Some(kept), "{on}");
    }
}

// proves: UP-7
#[tokio::test]
async fn input_hook_warns_or_refuses() {
    let home = Home::new();
    let warn = r#"
[[hooks]]
on = "input"
command = "echo '{\"verdict\": \"warn\", \"text\": \"be careful\"}'"
"#;
    let answers = json!([
        {"when": {"last_user_contains": "[Warning: be careful]"}, "steps": [{"text": "warned"}]},
        {"steps": [{"text": "not warned"}]},
    ]);
    let done = run_prompt(&home, warn, answers.clone(), &[]).await;
    assert_eq!(done.stdout_json()["text"], "warned", "{done:?}");
    let refuse = "[[hooks]]\non = \"input\"\ncommand = \"echo a secret is in it >&2; exit 2\"\n";
    let done = run_prompt(&home, refuse, answers, &[]).await;
    assert_eq!(done.code, Some(3), "{done:?}");
    let result = done.stdout_json();
    assert_eq!(result["outcome"], "rejected");
    assert_eq!(result["error"], "a secret is in it");
}

#[tokio::test]
async fn checkpoint_hook_continues_prompt_unless_hooks_are_off() {
    let home = Home::new();
    let hooks = r#"
[[hooks]]
on = "checkpoint"
command = "test -e once || { touch once; echo '{\"verdict\": \"inject\", \"text\": \"run the tests too\"}'; }"
"#;
    let answers = json!([
        {"when": {"last_user_contains": "run the tests too"}, "steps": [{"text": "tested"}]},
        {"steps": [{"text": "done"}]},
    ]);
    let done = run_prompt(&home, hooks, answers.clone(), &[]).await;
    assert_eq!(done.stdout_json()["text"], "tested", "{done:?}");
    fs::remove_file(home.project_folder().join("once")).expect("it ran");
    let done = run_prompt(&home, hooks, answers, &["--no-hooks"]).await;
    assert_eq!(done.stdout_json()["text"], "done", "{done:?}");
    assert!(!home.project_folder().join("once").exists());
}

#[tokio::test]
async fn failing_hook_blocks_before_and_warns_after() {
    let home = Home::new();
    for (command, why) in [
        ("echo broken >&2; exit 1", "exit code 1: broken"),
        ("echo fine", "its answer is none"),
        ("yes", "it printed more than 1 MiB to stdout"),
        ("yes >&2", "it printed more than 1 MiB to stderr"),
        ("kill -9 $$", "it was killed by a signal"),
        ("exec /nonexistent", "exit code 127"),
    ] {
        let hook = |on: &str| format!("[[hooks]]\non = \"{on}\"\ncommand = \"{command}\"\n");
        let answers = json!([{"steps": [{"text": "done"}]}]);
        let before = run_prompt(&home, &hook("before_turn"), answers.clone(), &[]).await;
        let error = before.stdout_json()["error"].clone();
        let error = error.as_str().expect("an error");
        assert!(error.contains(why), "{command}: {error}");
        assert!(error.starts_with("the hook before_turn \""), "{error}");
        assert_eq!(before.code, Some(3), "{before:?}");
        let after = run_prompt(&home, &hook("after_turn"), answers.clone(), &[]).await;
        assert_eq!(after.stdout_json()["text"], "done", "{after:?}");
        assert!(after.stderr.contains(why), "{after:?}");
        let told = run_prompt(&home, &hook("after_loop"), answers, &[]).await;
        assert_eq!(told.code, Some(0), "{told:?}");
        assert!(told.stderr.contains(why), "{told:?}");
    }
}

#[tokio::test]
async fn hanging_hook_is_killed_with_its_children() {
    // On a busy machine a second may be over before the hook has begun.
    for seconds in [1, 5, 60] {
        let home = Home::new();
        let hooks = format!(
            "[[hooks]]\non = \"before_turn\"\ntimeout = {seconds}\ncommand = \"trap '' TERM INT HUP; \
             mkfifo fifo; (read -r _ < fifo) & echo $! > pid; wait\"\n"
        );
        let done = run_prompt(&home, &hooks, json!([{"steps": [{"text": "no"}]}]), &[]).await;
        assert_eq!(done.code, Some(3), "{done:?}");
        let error = done.stdout_json()["error"].clone();
        let error = error.as_str().expect("an error");
        let why = format!("failed: it did not end within {seconds} s");
        assert!(error.ends_with(&why), "{error}");
        let pid = home.project_folder().join("pid");
        if fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
            // Killed: it is dead already, or about to be.
            if let Some(reader) = StartedProcess::try_from_pid_file(&pid) {
                reader.wait_for_exit();
            }
            return;
        }
    }
    panic!("the hook did not begin within a minute");
}

#[tokio::test]
async fn project_hook_is_ignored_with_warning() {
    let home = Home::new();
    home.write_file(
        "project/.turnery/config.toml",
        "[[hooks]]\non = \"before_loop\"\ncommand = \"touch owned\"\n",
    );
    let done = run_prompt(&home, "", json!([{"steps": [{"text": "done"}]}]), &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!home.project_folder().join("owned").exists());
    assert!(
        done.stderr
            .contains("the project's hook before_loop \"touch owned\" is not run"),
        "{done:?}"
    );
}

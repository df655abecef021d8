//! turnery in shell pipes: the commands in examples/shell/README.md work, and a closed stdout prints no
//! error.

use crate::home::{Home, wait_with_output};
use serde_json::json;
use std::path::Path;

const QUESTION: &str = "list the TODOs\n";
const LOG: &str = "a.c:3:5: error: expected ';'\n";

/// Runs a shell command line in the project, with turnery in `PATH`; asserts exit code 0 and returns stdout.
async fn run_line(home: &Home, line: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_turnery"));
    let folder = program.parent().expect("a folder").display();
    let script = format!("PATH=\"{folder}:$PATH\"; {line}");
    let mut command = home.command(&[]);
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args(["-c", &script])
        .current_dir(home.project_folder());
    shell.env_clear().kill_on_drop(true);
    for (name, value) in command.as_std_mut().get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let done = wait_with_output(shell.spawn().expect("started")).await;
    assert_eq!(done.code, Some(0), "{line}: {done:?}");
    done.stdout
}

#[tokio::test]
async fn documented_shell_lines_work() {
    let home = Home::new();
    home.write_file("project/a.rs", "fn old() {}\n// TODO: one\n");
    home.write_file("project/build.log", LOG);
    home.write_file("project/question.txt", QUESTION);
    let schema = include_str!("../../../../examples/shell/todos.schema.json");
    home.write_file("project/todos.schema.json", schema);
    let author = "-c user.name=a -c user.email=a@b";
    run_line(
        &home,
        &format!("git init -q -b main . && git add a.rs && git {author} commit -qm first"),
    )
    .await;
    home.write_file("project/a.rs", "fn old() {}\nfn added() {}\n// TODO: one\n");

    let text = include_str!("../../../../examples/shell/README.md");
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .collect();
    let expected = [
        "Uncommitted (branch: main): 1 file changed, 1 insertion(+)",
        "I recognise 1 failure:\n- a.c:3:5: error: expected ';'",
        "TODO: one",
        "finished\n",
        "\"tool_name\":\"search\"\n",
        "added",
        "Replaced `old` with `new` in 1 place in 1 file.",
        "> replace `old` with `new`",
        "a.rs\n",
        "2 turns\n",
    ];
    assert_eq!(lines.len(), expected.len());
    for (number, (command, part)) in lines.into_iter().zip(expected).enumerate() {
        if command.contains("--output-schema") {
            let value = json!({"count": 1, "files": ["a.rs"]});
            let call = json!({"tool_call": {"name": "finish", "args": {"value": value}}});
            let model = home.scripted_model(json!([{"steps": [call]}]));
            home.write_file("turnery/config.toml", &format!("model = {model:?}\n"));
        }
        if command.contains("twenty-files.json") {
            let scenario = include_str!("../../../../examples/scenarios/twenty-files.json");
            home.write_file("project/twenty-files.json", scenario);
            for page in 0..20 {
                home.write_file(format!("project/docs/{page:02}.md"), "a line\nanother\n");
            }
        }
        let said = run_line(&home, command).await;
        assert!(said.contains(part), "line {number}, {command}: {said}");
    }
    // The calls of the only block.
    let list = run_line(&home, "turnery sessions list --json").await;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let id = list[0]["id"].as_str().expect("an id");
    let shown = run_line(
        &home,
        &format!(
            "turnery sessions show {id} --json | python3 -c 'import json, sys; \
         events = json.load(sys.stdin)[-1][\"events\"]; \
         calls = [event for event in events if event[\"event\"] == \"tool_execution_end\"]; \
         print([call[\"tool_name\"] for call in calls].count(\"read_file\"))'"
        ),
    )
    .await;
    assert_eq!(shown, "20\n");
    let changed = std::fs::read_to_string(home.project_folder().join("a.rs")).expect("a file");
    assert_eq!(changed, "fn new() {}\nfn added() {}\n// TODO: one\n");
}

#[tokio::test]
async fn closed_stdout_prints_no_error() {
    let home = Home::new();
    let text: Vec<String> = (0..4000).map(|n| format!("word {n} ")).collect();
    let model = home.scripted_model(json!([{"steps": [{"text": text}]}]));
    let mut child = home
        .command(&["run", "--model", &model, "hi"])
        .spawn()
        .expect("started");
    drop(child.stdout.take());
    let done = wait_with_output(child).await;
    assert_eq!(done.stderr, "");
    // The list is printed at once: nobody may read it from the start.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = home.command(&["models"]).stdout(writer).spawn();
    let done = wait_with_output(child.expect("started")).await;
    assert_eq!((done.stderr.as_str(), done.code), ("", Some(141)));
}

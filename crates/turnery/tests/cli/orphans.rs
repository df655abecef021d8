//! No process that turnery has started outlives it, or its own call.

use crate::{
    editor::{Editor, StartedProcess},
    home::{Home, send_signal, wait_with_output},
    lifeline::{DETACHED_PROCESS_COUNT, DETACHED_PROCESSES_SCRIPT, Lifeline},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    process::{Command, Stdio},
    thread,
};
use turnery_tools::processes::{self, ChildStdio, ProcessTree, ProgramSpec, StopReport};

/// Returns a command that starts processes in every possible way and then waits forever.
fn endless_command() -> String {
    format!(
        "exec 9>lifeline\n{DETACHED_PROCESSES_SCRIPT}\necho $PPID > supervisor; printf u >&9; wait"
    )
}

/// Returns the name of a model that calls the shell tool once.
fn shell_model(home: &Home, args: &Value) -> String {
    home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": args}}]},
        {"steps": [{"text": "done"}]},
    ]))
}

/// Starts an editor whose agent runs a command with `args`.
async fn start_command(home: &Home, args: Value) -> Editor {
    start_command_with(home, args, &[]).await
}

/// Flags for commands that signal their supervisor, which the sandbox forbids.
const UNCONFINED: &[&str] = &["--sandbox", "off"];

async fn start_command_with(home: &Home, args: Value, flags: &[&str]) -> Editor {
    let model = shell_model(home, &args);
    let args = [&["acp", "--model", &model, "--mode", "auto"], flags].concat();
    let (mut editor, session) = Editor::with_session(home, &args).await;
    editor.send_prompt(2, &session).await;
    editor
}

async fn cancel(editor: &mut Editor) {
    let session = json!({"sessionId": editor.said[1]["result"]["sessionId"]});
    editor
        .send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": session}))
        .await;
}

/// Returns the result text of each call.
fn result_texts(said: &[Value]) -> Vec<&str> {
    let updates = said.iter().map(|message| &message["params"]["update"]);
    let ended = updates.filter(|update| {
        ["failed", "completed"].contains(&update["status"].as_str().unwrap_or_default())
    });
    ended
        .map(|update| {
            let text = update["content"][0]["content"]["text"].as_str();
            text.unwrap_or_else(|| panic!("{update}"))
        })
        .collect()
}

fn result_text(said: &[Value]) -> &str {
    result_texts(said).pop().expect("an end")
}

// proves: G-9, THEME-1
#[tokio::test]
async fn killed_agent_leaves_no_command() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let editor = start_command(&home, json!({ "command": endless_command() })).await;
    lifeline
        .wait_until_started(DETACHED_PROCESS_COUNT + 1)
        .await;
    let supervisor = StartedProcess::from_pid_file(&home.project_folder().join("supervisor"));
    editor.kill().await;
    lifeline.wait_until_gone().await;
    supervisor.wait_for_exit();
}

/// Returns the script of a server that ignores the end of input and signals, and has started other processes.
fn stubborn_server() -> String {
    let server = include_str!("stubborn_server.sh");
    format!("exec 9>lifeline\n{DETACHED_PROCESSES_SCRIPT}\n{server}")
}

/// Starts an agent with a session that uses the stubborn server.
async fn with_server(home: &Home) -> (Editor, Lifeline) {
    let mut lifeline = Lifeline::new(home);
    let script = home.write_file("server.sh", &stubborn_server());
    let mut editor = Editor::spawn(home, &["acp"], &[]);
    editor.initialize().await;
    let server = json!({"name": "s", "command": "/bin/sh", "args": [script], "env": []});
    let params = json!({"cwd": home.project_folder(), "mcpServers": [server]});
    editor.request(1, "session/new", params).await;
    lifeline
        .wait_until_started(DETACHED_PROCESS_COUNT + 1)
        .await;
    (editor, lifeline)
}

// proves: THEME-1
#[tokio::test]
async fn killed_agent_leaves_no_mcp_server() {
    let home = Home::new();
    let (editor, lifeline) = with_server(&home).await;
    editor.kill().await;
    lifeline.wait_until_gone().await;
}

#[tokio::test]
async fn end_of_input_leaves_no_mcp_server() {
    let home = Home::new();
    let (editor, lifeline) = with_server(&home).await;
    assert_eq!(editor.close_input().await.code, Some(0));
    lifeline.wait_until_gone().await;
}

/// The servers of a session end with it, while the agent goes on.
// proves: THEME-1
#[tokio::test]
async fn ended_session_leaves_no_mcp_server() {
    for method in ["session/close", "session/delete"] {
        let home = Home::new();
        let (mut editor, lifeline) = with_server(&home).await;
        let opened = editor
            .said
            .iter()
            .find_map(|it| it["result"]["sessionId"].as_str());
        let session = opened.expect("a session").to_owned();
        let answer = editor
            .request(2, method, json!({"sessionId": session}))
            .await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        lifeline.wait_until_gone().await;
        let params = json!({"cwd": home.project_folder(), "mcpServers": []});
        let next = editor.request(3, "session/new", params).await;
        assert!(next.get("error").is_none(), "{method}: {next}");
        editor.close_input().await;
    }
}

#[tokio::test]
async fn killed_run_leaves_no_hook() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let script = home.write_file("hook.sh", &endless_command());
    home.write_file(
        "turnery/config.toml",
        &format!(
            "[[hooks]]\non = \"before_turn\"\ncommand = [\"sh\", \"{}\"]\n",
            script.display()
        ),
    );
    let model = home.scripted_model(json!([{"steps": [{"text": "no"}]}]));
    let mut child = home
        .command(&["run", "--model", &model, "go"])
        .spawn()
        .expect("started");
    lifeline
        .wait_until_started(DETACHED_PROCESS_COUNT + 1)
        .await;
    child.kill().await.expect("it runs");
    lifeline.wait_until_gone().await;
}

// proves: THEME-1
#[tokio::test]
async fn cancelled_command_leaves_no_process() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let mut editor = start_command(&home, json!({ "command": endless_command() })).await;
    lifeline
        .wait_until_started(DETACHED_PROCESS_COUNT + 1)
        .await;
    cancel(&mut editor).await;
    editor.wait_for(|message| message["id"] == 2).await;
    // The agent still runs, so the cancel stopped the processes.
    lifeline.wait_until_gone().await;
    assert_eq!(
        result_text(&editor.said),
        "cancelled: the command and all that it started were stopped"
    );
    editor.close_input().await;
}

/// Runs a command until it times out, after all its processes have started. Returns the timeout in seconds and
/// the text of the result.
async fn run_until_timeout(command: &str, flags: &[&str]) -> (u64, String) {
    // On a busy machine the processes may take longer to start than the timeout.
    for seconds in [2, 8, 32] {
        let home = Home::new();
        let lifeline = Lifeline::new(&home);
        let args = json!({ "command": command, "timeout_ms": 1000 * seconds });
        let mut editor = start_command_with(&home, args, flags).await;
        editor.wait_for(|message| message["id"] == 2).await;
        let count = lifeline.wait_until_gone().await;
        let text = result_text(&editor.said).to_owned();
        editor.close_input().await;
        if count == DETACHED_PROCESS_COUNT + 1 {
            return (seconds, text);
        }
    }
    panic!("its processes did not start");
}

// proves: THEME-1
#[tokio::test]
async fn timed_out_command_leaves_no_process() {
    let (seconds, text) = run_until_timeout(&endless_command(), &[]).await;
    let all = "the command and all that it started were stopped.";
    let expected = format!("timed out after {seconds} s: {all}");
    assert!(text.starts_with(&expected), "{text}");
}

// proves: THEME-1
#[tokio::test]
async fn finished_command_leaves_no_daemon() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let wait = "until [ -e all_up ]; do sleep 0.01; done";
    let command = format!("exec 9>lifeline\n{DETACHED_PROCESSES_SCRIPT}\n{wait}; echo done");
    let mut editor = start_command(&home, json!({ "command": command })).await;
    lifeline.wait_until_started(DETACHED_PROCESS_COUNT).await;
    home.write_file("project/all_up", "");
    editor.wait_for(|message| message["id"] == 2).await;
    assert!(result_text(&editor.said).contains("done\nexit code: 0"));
    lifeline.wait_until_gone().await;
    editor.close_input().await;
}

/// A command that kills its supervisor is found by its tag, as are processes that left its group.
#[tokio::test]
async fn killed_supervisor_leaves_no_tagged_process() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let command = "exec 9>lifeline; setsid sh -c '>left; exec sleep 600' & \
                   until [ -e left ]; do sleep 0.01; done; \
                   printf u >&9; kill -9 $PPID; exec sleep 600";
    let mut editor = start_command_with(&home, json!({ "command": command }), UNCONFINED).await;
    lifeline.wait_until_started(1).await;
    editor.wait_for(|message| message["id"] == 2).await;
    lifeline.wait_until_gone().await;
    assert_eq!(result_text(&editor.said), "ended without an exit code");
    editor.close_input().await;
}

/// Returns `program`, run as root without the right to signal other users' processes; `None` if not possible.
fn without_kill(program: &Command) -> Option<Command> {
    let mut limited = Command::new("setpriv");
    limited.args(["--bounding-set=-kill", "--inh-caps=-kill"]);
    let is_possible = Command::new("setpriv")
        .args([
            "--bounding-set=-kill",
            "--reuid=65534",
            "--clear-groups",
            "true",
        ])
        .output()
        .is_ok_and(|output| output.status.success());
    limited
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(program.get_current_dir()?)
        .env_clear()
        .envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    is_possible.then_some(limited)
}

/// The report is sent before a cancelled call is dropped. Only root can start a process that it may not kill.
#[tokio::test]
async fn unkillable_process_is_named_after_a_cancel() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let command = "exec 9>lifeline; trap '' TERM; \
                   setpriv --reuid=65534 --clear-groups sh -c 'printf u >&9; exec sleep 600' & wait";
    let model = shell_model(&home, &json!({ "command": command }));
    let agent = home.command(&["acp", "--model", &model, "--mode", "auto"]);
    let Some(agent) = without_kill(agent.as_std()) else {
        // Printed directly, since the macros' output is captured: the result would only say that the test passed.
        let why =
            "unkillable_process_is_named_after_a_cancel was not run: it needs root and setpriv";
        writeln!(io::stderr(), "{why}").expect("written");
        return;
    };
    let mut agent = tokio::process::Command::from(agent);
    agent.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut editor = Editor::spawn_command(agent);
    editor.initialize().await;
    let session = editor.new_session(&home.project_folder()).await;
    editor.send_prompt(2, &session).await;
    lifeline.wait_until_started(1).await;
    cancel(&mut editor).await;
    editor.wait_for(|message| message["id"] == 2).await;
    let text = result_text(&editor.said).to_owned();
    editor.close_input().await;
    let named = text.strip_prefix(
        "cancelled: the command and all that it started were stopped, except for processes that \
         have not ended yet: ",
    );
    let pid = named.and_then(|named| named.split(' ').next()?.parse().ok());
    let pid = pid.and_then(Pid::from_raw);
    let pid = pid.unwrap_or_else(|| panic!("{text}"));
    kill_process(pid, Signal::KILL).expect("it lives");
    lifeline.wait_until_gone().await;
}

/// Returns a command that stops its supervisor, which is resumed for the shutdown.
fn supervisor_stopping_command() -> String {
    format!(
        "exec 9>lifeline\n{DETACHED_PROCESSES_SCRIPT}\necho $PPID > supervisor; kill -STOP $PPID; \
         printf u >&9; while :; do kill -STOP $PPID; sleep 0.01; done"
    )
}

#[tokio::test]
async fn stopped_supervisor_is_woken_by_a_cancel() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let mut editor = start_command_with(
        &home,
        json!({ "command": supervisor_stopping_command() }),
        UNCONFINED,
    )
    .await;
    lifeline
        .wait_until_started(DETACHED_PROCESS_COUNT + 1)
        .await;
    cancel(&mut editor).await;
    editor.wait_for(|message| message["id"] == 2).await;
    lifeline.wait_until_gone().await;
    editor.close_input().await;
}

#[tokio::test]
async fn stopped_supervisor_is_woken_by_a_timeout() {
    let (seconds, text) = run_until_timeout(&supervisor_stopping_command(), UNCONFINED).await;
    let expected = format!("timed out after {seconds} s: the command and ");
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test]
async fn stopped_supervisor_is_woken_by_the_end_of_the_agent() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let command = format!(
        "exec 9>lifeline\n{DETACHED_PROCESSES_SCRIPT}\necho $PPID > supervisor; kill -STOP $PPID; printf u >&9; wait"
    );
    let editor = start_command_with(&home, json!({ "command": command }), UNCONFINED).await;
    lifeline
        .wait_until_started(DETACHED_PROCESS_COUNT + 1)
        .await;
    let supervisor = StartedProcess::from_pid_file(&home.project_folder().join("supervisor"));
    editor.kill().await;
    lifeline.wait_until_gone().await;
    supervisor.wait_for_exit();
}

/// Variables and folders that change how programs are loaded do not affect the supervisor, and it receives no keys.
#[tokio::test]
async fn supervisor_lacks_program_environment_and_folder() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let script = "exec 9>lifeline; env > own; cat /proc/$PPID/environ > supervisor; \
                  readlink /proc/$PPID/cwd > folder; \
                  printf u >&9; exec sleep 600";
    let script = home.write_file("server.sh", script);
    let mut editor = Editor::spawn(&home, &["acp"], &[("LD_BIND_NOT", "1")]);
    editor.initialize().await;
    // More than a socket buffer holds.
    let large = "x".repeat(100_000);
    let env: Vec<Value> = [
        ("LD_BIND_NOW", "1"),
        ("L1", &large),
        ("L2", &large),
        ("L3", &large),
    ]
    .iter()
    .map(|(name, value)| json!({"name": name, "value": value}))
    .collect();
    let server = json!({"name": "s", "command": "/bin/sh", "args": [script], "env": env});
    let params = json!({"cwd": home.project_folder(), "mcpServers": [server]});
    editor.send_request(1, "session/new", params).await;
    lifeline.wait_until_started(1).await;
    let read = |name: &str| fs::read_to_string(home.project_folder().join(name)).expect("written");
    let own = read("own");
    for line in ["LD_BIND_NOW=1".to_owned(), format!("L3={large}")] {
        assert!(own.lines().any(|own| own == line), "{line}");
    }
    assert_eq!(
        (read("supervisor"), read("folder")),
        (String::new(), "/\n".to_owned())
    );
    editor.close_input().await;
    lifeline.wait_until_gone().await;
}

/// Server whose first call never ends; the first call of its successor is answered.
const HANGING_SERVER: &str = r#"exec 9>lifeline
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
        case $line in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"hang","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*)
            result='{"content":[{"type":"text","text":"answered"}]}'
            if [ ! -e supervisor ]; then
                echo $PPID > supervisor
                printf u >&9
                sleep 600
            fi ;;
        *) continue ;;
        esac
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    done"#;

#[tokio::test]
async fn mcp_server_ends_with_its_supervisor() {
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let script = home.write_file("server.sh", HANGING_SERVER);
    let call = json!({"tool_call": {"name": "mcp__s__hang", "args": {}}});
    let model = home.scripted_model(json!([
        {"steps": [call]}, {"steps": [call]}, {"steps": [{"text": "done"}]},
    ]));
    let mut editor = Editor::spawn(&home, &["acp", "--model", &model, "--mode", "auto"], &[]);
    editor.initialize().await;
    let server = json!({"name": "s", "command": "/bin/sh", "args": [script], "env": []});
    let params = json!({"cwd": home.project_folder(), "mcpServers": [server]});
    let made = editor.request(1, "session/new", params).await;
    let session = made["result"]["sessionId"].as_str().expect("a session");
    editor.send_prompt(2, session).await;
    lifeline.wait_until_started(1).await;
    let pid = fs::read_to_string(home.project_folder().join("supervisor")).expect("its number");
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a number"), Signal::KILL).expect("killed");
    editor.wait_for(|message| message["id"] == 2).await;
    assert_eq!(
        result_texts(&editor.said),
        [
            "the MCP server s: it ended before it answered; it is started again when it is used again",
            "answered"
        ]
    );
    editor.close_input().await;
    lifeline.wait_until_gone().await;
}

/// Closing the terminal ends a run gracefully, as SIGTERM does.
#[tokio::test]
async fn hangup_ends_a_run_like_termination() {
    let mut ends = Vec::new();
    for kind in [Signal::TERM, Signal::HUP] {
        let home = Home::new();
        let mut lifeline = Lifeline::new(&home);
        let model = shell_model(&home, &json!({ "command": endless_command() }));
        let args = ["run", "--model", &model, "--mode", "auto", "go"];
        let child = home.command(&args).spawn().expect("started");
        lifeline
            .wait_until_started(DETACHED_PROCESS_COUNT + 1)
            .await;
        send_signal(&child, kind);
        let done = wait_with_output(child).await;
        lifeline.wait_until_gone().await;
        assert!(done.stderr.contains("stopping"), "{done:?}");
        ends.push(done.code);
    }
    assert_eq!(ends[0], ends[1]);
}

/// An embedding program uses another executable as supervisor, and ends all processes from a thread without a
/// runtime.
#[tokio::test]
async fn kill_all_ends_every_tree_from_any_thread() {
    processes::supervise_with(env!("CARGO_BIN_EXE_turnery"));
    let home = Home::new();
    let mut lifeline = Lifeline::new(&home);
    let start = || async {
        let null = || -> std::os::fd::OwnedFd {
            let options = File::options().read(true).write(true).open("/dev/null");
            options.expect("opened").into()
        };
        let program = ProgramSpec {
            program: "sh".into(),
            args: vec!["-c".into(), endless_command().into()],
            working_directory: home.project_folder(),
            environment: std::env::vars_os().collect(),
            confinement: None,
        };
        let stdio = ChildStdio {
            stdin: null(),
            stdout: null(),
            stderr: null(),
        };
        ProcessTree::spawn(program, stdio).await
    };
    let trees = [
        start().await.expect("started"),
        start().await.expect("started"),
    ];
    lifeline
        .wait_until_started(2 * (DETACHED_PROCESS_COUNT + 1))
        .await;
    thread::spawn(processes::kill_all).join().expect("ended");
    lifeline.wait_until_gone().await;
    for tree in trees {
        let finished = tree.finish().await.expect("finished");
        // The report could not be sent, so it claims nothing more.
        assert_eq!(finished.stopped, StopReport::GroupAndTagged);
    }
    let refused = start().await.expect_err("nothing is started any more");
    assert!(
        refused.to_string().contains("turnery is ending"),
        "{refused}"
    );
}

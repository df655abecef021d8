//! Regenerates `crates/turnery/link_order.ld`, which places what a usual session runs in one part of the program: the
//! system reads and maps programs in blocks, and turnery has far more code than a session uses.
//!
//! A session runs under valgrind, which tells the functions, and the linker's map tells their sections. It runs under strace
//! too, which makes `prctl` fail: one of its calls returns the address of a page of the system that valgrind takes away.

mod agent;
mod model;
mod script;

use crate::{
    packages::{ensure_installed, is_installed},
    workspace::{cargo, recreate_empty_home, root, run_checked, target_folder},
};
use agent::Agent;
use anyhow::{Context as _, Result, ensure};
use std::{fs, path::Path, process::Command};

/// Builds the program, runs sessions with it, and writes the script.
pub(crate) fn write() -> Result<()> {
    for program in ["strace", "valgrind"] {
        ensure_installed(program, program, || is_installed(program))?;
    }
    let folder = recreate_empty_home()?;
    fs::create_dir(folder.join("project"))?;
    fs::write(folder.join("project/hello.txt"), "hello\n")?;
    let map = folder.join("program.map");
    let mut build = cargo();
    build.args(["rustc", "--release", "--package=turnery", "--bin=turnery"]);
    build.args(["--locked", "--", "-C", "strip=none", "-C"]);
    run_checked(build.arg(format!("link-arg=-Wl,-Map={}", map.display())))?;
    let program = target_folder().join("release/turnery");
    let address = model::serve()?;
    // The database is created once, so that is not part of a usual session.
    begin(&mut Agent::start(&[], &program, &folder, &address)?)?;
    let mut recorded = Vec::new();
    for (name, session) in [
        ("start", begin as fn(&mut Agent) -> Result<()>),
        ("work", work),
    ] {
        let calls = folder.join(name);
        let out = format!("--cachegrind-out-file={}", calls.display());
        let traced = "strace -f -qq -o /dev/null -e trace=prctl -e inject=prctl:error=EINVAL \
                      valgrind -q --tool=cachegrind --cache-sim=no --demangle=no";
        let wrapper: Vec<&str> = traced.split_whitespace().chain([&*out]).collect();
        let mut agent = Agent::start(&wrapper, &program, &folder, &address)?;
        session(&mut agent)?;
        agent.end()?;
        recorded.extend(script::functions(&read(&calls)?));
    }
    let symbols = output_of(Command::new("nm").arg(&program))?;
    let script = script::write(&read(&map)?, &symbols, &recorded)?;
    fs::write(root().join("crates/turnery/link_order.ld"), script)?;
    Ok(())
}

/// Sends the requests of an editor that starts.
fn begin(agent: &mut Agent) -> Result<()> {
    agent.initialize()?;
    agent.request("session/new", &agent.folder_params())?;
    agent.request("session/list", &agent.folder_params())?;
    Ok(())
}

/// Opens a session, sends two prompts, of which the first calls three tools, and loads the session.
fn work(agent: &mut Agent) -> Result<()> {
    agent.initialize()?;
    let created = agent.request("session/new", &agent.folder_params())?;
    let (_, rest) = created
        .split_once("\"sessionId\":\"")
        .context("the session has no id")?;
    let (id, _) = rest.split_once('"').context("the id has no end")?;
    for text in ["Look at hello.txt.", "Again."] {
        let answer = agent.request(
            "session/prompt",
            &format!(
                "{{\"sessionId\":\"{id}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}"
            ),
        )?;
        ensure!(
            answer.contains("\"end_turn\""),
            "the prompt failed: {answer}"
        );
    }
    let folder = agent.folder_params();
    let opened = folder.replacen('{', &format!("{{\"sessionId\":\"{id}\","), 1);
    agent.request("session/load", &opened)?;
    agent.request("session/list", &folder)?;
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("could not start {:?}", command.get_program()))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

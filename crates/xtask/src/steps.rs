//! steps: what each step of `cargo xtask ci` does.

use crate::{
    ci::Retries,
    tee::{tee, tee_stderr},
    test_step,
};
use anyhow::{Context, Result, ensure};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Cargo without the variables that `cargo run` sets: build scripts that track them would run again, and all that
/// depends on them would be built again.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("could not start {:?}", command.get_program()))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

pub(crate) fn fmt() -> Result<()> {
    succeed(cargo().args(["fmt", "--all", "--check"]))
}

pub(crate) fn clippy() -> Result<()> {
    succeed(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "--deny",
        "warnings",
    ]))
}

pub(crate) fn doc() -> Result<()> {
    succeed(
        cargo()
            .args([
                "doc",
                "--workspace",
                "--no-deps",
                "--document-private-items",
                "--locked",
            ])
            // Module pages link to private items: they are for the reader of the code.
            .env(
                "RUSTDOCFLAGS",
                "--deny warnings --allow rustdoc::private-intra-doc-links",
            ),
    )
}

/// Write `schemas/` anew: the tests that compare them write instead when told to.
pub(crate) fn write_schemas() -> Result<()> {
    succeed(
        cargo()
            .args(["test", "--workspace", "--locked", "schema"])
            .env("UPDATE_SCHEMAS", "1"),
    )
}

/// Builds the suite and what it is played against; where they lie.
fn built() -> Result<PathBuf> {
    test_step::build()?;
    Ok(target().join("debug"))
}

/// The protocol cases, against the binary and the suite's own model, in both versions of the protocol.
pub(crate) fn cases(retries: &mut Retries) -> Result<()> {
    let built = built()?;
    for (version, option) in [("version 1", None), ("version 2", Some("--acp-v2"))] {
        retries.run(version, || {
            let mut command = Command::new(built.join("acp-conformance"));
            command
                .args(["run", "conformance/cases", "--profile", "turnery"])
                .args(["--strict", "--"])
                .arg(built.join("turnery"))
                .args(["acp", "--model", "openai/fake-model"])
                .args(option)
                .current_dir(root());
            let printed = tee(command)?;
            let broken = words_behind("fail  ", &printed.lines);
            ensure!(printed.status.success(), "broken rules: {broken:?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// The suite of cases against every fault of the broken agent, with a `turnery` that is right behind it.
/// The table itself lies in `target/mutations.md` then; the faults are named as they are tried.
pub(crate) fn mutations(retries: &mut Retries) -> Result<()> {
    let built = built()?;
    let agent = built.join("turnery").display().to_string();
    let agent = format!("{agent} acp --acp-v2 --model openai/fake-model");
    let page = target().join("mutations.md");
    // The faults that came out wrong; the second time only these.
    let mut wrong: Vec<String> = Vec::new();
    let mut flaky: Vec<String> = Vec::new();
    retries.run("table", || {
        let table = fs::File::create(&page).with_context(|| page.display().to_string())?;
        let mut command = Command::new(built.join("acp-conformance"));
        command
            .args(["mutations", "--profile", "turnery", "--agent", &agent])
            .current_dir(root());
        if !wrong.is_empty() {
            command.arg("--only").arg(wrong.join(","));
        }
        let printed = tee_stderr(command, Some(table))?;
        wrong = words_behind("WRONG ", &printed.lines);
        let lines = printed.lines.iter();
        flaky.extend(lines.filter(|line| line.contains(" (flaky, ")).cloned());
        let page = page.display();
        ensure!(
            printed.status.success(),
            "wrong faults: {wrong:?}; the table is {page}"
        );
        Ok(())
    })?;
    flaky.into_iter().for_each(|row| retries.record(row));
    Ok(())
}

/// The first word behind this, of each line that begins so.
fn words_behind(begin: &str, lines: &[String]) -> Vec<String> {
    let behind = lines.iter().filter_map(|line| line.strip_prefix(begin));
    let words = behind.filter_map(|rest| rest.split([' ', ':']).next());
    words.map(str::to_owned).collect()
}

/// How the README's first command starts: cargo builds the default package, and hands over what follows.
const RUN_RELEASE: &str = "cargo run --release -- ";

/// The README's first command, as it stands there, in an empty home.
///
/// It runs in the binary of the other steps, since building another takes most of the time of a whole run. That binary
/// has the features that any package asks for; that it compiles with its own alone is checked apart.
pub(crate) fn readme(retries: &mut Retries) -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md")).context("README.md")?;
    let mut lines = readme.lines().map(str::trim);
    let arguments = lines
        .find_map(|line| line.strip_prefix(RUN_RELEASE))
        .with_context(|| format!("README.md has no line that starts with `{RUN_RELEASE}`"))?;
    succeed(cargo().args(["check", "--locked"]))?;
    let turnery = built()?.join("turnery");
    retries.run("the command", || try_readme(&turnery, arguments))
}

/// Has a shell read the arguments, as they stand in the README.
fn try_readme(turnery: &Path, arguments: &str) -> Result<()> {
    let home = target().join("empty-home");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home)?;
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("exec \"$0\" {arguments}"))
        .arg(turnery)
        .current_dir(root())
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    ensure!(
        output.status.success(),
        "`turnery {arguments}` ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    // The command asks where something is; the answer must name the file and come from tools.
    for expected in ["crates/turnery-engine/src/", "struct Loop"] {
        ensure!(
            said.contains(expected),
            "`turnery {arguments}` did not say {expected:?}"
        );
    }
    Ok(())
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

//! Implements the steps of `cargo xtask ci`.

use crate::{
    ci::Retries,
    tee::{tee, tee_stderr},
    test_step,
    workspace::{cargo, recreate_empty_home, root, run_checked, target_folder},
};
use anyhow::{Context, Result, ensure};
use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Stdio},
};

pub(crate) fn fmt() -> Result<()> {
    run_checked(cargo().args(["fmt", "--all", "--check"]))?;
    run_checked(
        Command::new("rustfmt")
            .args(["--check", "--edition", "2024"])
            .args(macro_declared_files()?),
    )
}

/// Returns the source files of modules that a macro declares, which `cargo fmt` does not find.
fn macro_declared_files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in [
        "crates/turnery-tools/src/tools",
        "crates/turnery-models/src/providers",
    ] {
        for entry in
            fs::read_dir(root().join(folder)).with_context(|| format!("could not list {folder}"))?
        {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "rs") {
                files.push(path);
            }
        }
    }
    Ok(files)
}

pub(crate) fn clippy() -> Result<()> {
    // The second build has no telemetry.
    for packages in [
        &["--workspace"][..],
        &["--package", "turnery", "--no-default-features"],
    ] {
        let mut command = cargo();
        command.arg("clippy").args(packages).args([
            "--all-targets",
            "--locked",
            "--",
            "--deny",
            "warnings",
        ]);
        run_checked(&mut command)?;
    }
    Ok(())
}

pub(crate) fn doc() -> Result<()> {
    run_checked(
        cargo()
            .args([
                "doc",
                "--workspace",
                "--no-deps",
                "--document-private-items",
                "--locked",
            ])
            // Module docs link to private items, since they are for readers of the code.
            .env(
                "RUSTDOCFLAGS",
                "--deny warnings --allow rustdoc::private-intra-doc-links",
            ),
    )
}

/// Regenerates `schemas/`, by running the schema tests in write mode.
pub(crate) fn write_schemas() -> Result<()> {
    run_checked(
        cargo()
            .args(["test", "--workspace", "--locked", "schema"])
            .env("UPDATE_SCHEMAS", "1"),
    )
}

/// Builds all test targets of the workspace, and with them its binaries; returns the folder of the binaries.
fn build_binaries() -> Result<PathBuf> {
    test_step::build()?;
    Ok(target_folder().join("debug"))
}

/// Runs the protocol cases in both protocol versions, against the binary and the suite's own model.
pub(crate) fn cases(retries: &mut Retries) -> Result<()> {
    let binaries = build_binaries()?;
    for (version, option) in [("version 1", None), ("version 2", Some("--acp-v2"))] {
        retries.run(version, || {
            let mut command = Command::new(binaries.join("acp-conformance"));
            command
                .args(["run", "conformance/cases", "--profile", "turnery"])
                .args(["--strict", "--"])
                .arg(binaries.join("turnery"))
                .args(["acp", "--model", "openai/fake-model"])
                .args(option)
                .current_dir(root());
            let printed = tee(command)?;
            let broken = first_words_after("fail  ", &printed.lines);
            ensure!(printed.status.success(), "broken rules: {broken:?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Runs the cases against every fault of the broken agent, which wraps a correct `turnery`. Writes the table to
/// `mutations.md` in the target folder, and prints each fault as it is tried.
pub(crate) fn mutations(retries: &mut Retries) -> Result<()> {
    let binaries = build_binaries()?;
    let agent = binaries.join("turnery").display().to_string();
    let agent = format!("{agent} acp --acp-v2 --model openai/fake-model");
    let page = target_folder().join("mutations.md");
    // Faults with an unexpected result; the retry runs only these.
    let mut wrong: Vec<String> = Vec::new();
    let mut flaky: Vec<String> = Vec::new();
    retries.run("table", || {
        let table = fs::File::create(&page).with_context(|| page.display().to_string())?;
        let mut command = Command::new(binaries.join("acp-conformance-dev"));
        command
            .args(["mutations", "--profile", "turnery", "--agent", &agent])
            .current_dir(root());
        if !wrong.is_empty() {
            command.arg("--only").arg(wrong.join(","));
        }
        let printed = tee_stderr(command, Some(table))?;
        wrong = first_words_after("WRONG ", &printed.lines);
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

/// Returns the first word after `begin` of each line that starts with it.
fn first_words_after(begin: &str, lines: &[String]) -> Vec<String> {
    let behind = lines.iter().filter_map(|line| line.strip_prefix(begin));
    let words = behind.filter_map(|rest| rest.split([' ', ':']).next());
    words.map(str::to_owned).collect()
}

/// Start of the README's first command.
const FIRST_COMMAND: &str = "cargo run ";

/// Runs the README's first command as it is written, in an empty home folder.
///
/// It builds the binary with its own features only; the binary of the other steps has those that any package enables.
pub(crate) fn readme(retries: &mut Retries) -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md")).context("README.md")?;
    let mut lines = readme.lines().map(str::trim);
    let command = lines
        .find(|line| line.starts_with(FIRST_COMMAND))
        .with_context(|| format!("README.md has no line that starts with `{FIRST_COMMAND}`"))?;
    retries.run("the command", || try_first_command(command))
}

/// Runs `command` in a shell. Its environment is what cargo needs to find itself and the crates that are already here.
fn try_first_command(command: &str) -> Result<()> {
    let home = recreate_empty_home()?;
    let user_home = env::home_dir().context("there is no home folder")?;
    let tool_home = |name: &str, folder: &str| {
        env::var_os(name).unwrap_or_else(|| user_home.join(folder).into_os_string())
    };
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(root())
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("CARGO_HOME", tool_home("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", tool_home("RUSTUP_HOME", ".rustup"))
        .envs(env::var_os("RUSTUP_TOOLCHAIN").map(|name| ("RUSTUP_TOOLCHAIN", name)))
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TARGET_DIR", target_folder())
        .env("HOME", &home)
        .stdin(Stdio::null())
        .output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    print!("{stdout}");
    ensure!(
        output.status.success(),
        "`{command}` ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    // The prompt asks where something is defined; the answer must come from tools and name the file.
    for expected in ["crates/turnery-engine/src/", "struct Loop"] {
        ensure!(
            stdout.contains(expected),
            "`{command}` did not say {expected:?}"
        );
    }
    Ok(())
}

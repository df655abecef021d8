//! steps: what each step of `cargo xtask ci` does.

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

pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
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

pub(crate) fn test() -> Result<()> {
    succeed(cargo().args(["test", "--workspace", "--locked"]))
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
    succeed(cargo().args([
        "build",
        "--locked",
        "--package",
        "turnery",
        "--package",
        "acp-conformance",
    ]))?;
    Ok(target().join("debug"))
}

/// The protocol cases, against the binary and the suite's own model, in both versions of the protocol.
pub(crate) fn cases() -> Result<()> {
    let built = built()?;
    for version in [&[][..], &["--acp-v2"]] {
        succeed(
            Command::new(built.join("acp-conformance"))
                .args(["run", "conformance/cases", "--profile", "turnery"])
                .args(["--strict", "--"])
                .arg(built.join("turnery"))
                .args(["acp", "--model", "openai/fake-model"])
                .args(version)
                .current_dir(root()),
        )?;
    }
    Ok(())
}

/// The suite of cases against every fault of the broken agent, with a `turnery` that is right behind it.
/// The table itself lies in `target/mutations.md` then; the faults are named as they are tried.
pub(crate) fn mutations() -> Result<()> {
    let built = built()?;
    let agent = format!(
        "{} acp --acp-v2 --model openai/fake-model",
        built.join("turnery").display()
    );
    let page = target().join("mutations.md");
    let table = fs::File::create(&page).with_context(|| page.display().to_string())?;
    succeed(
        Command::new(built.join("acp-conformance"))
            .args(["mutations", "--profile", "turnery", "--agent"])
            .arg(&agent)
            .current_dir(root())
            .stdout(table),
    )
    .with_context(|| format!("the table is {}", page.display()))
}

/// The README's first command, as it stands there, in an empty home.
pub(crate) fn readme() -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md")).context("README.md")?;
    let line = readme
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("cargo run --release"))
        .context("README.md has no line that starts with `cargo run --release`")?;
    succeed(cargo().args(["build", "--release", "--locked"]))?;
    let home = target().join("empty-home");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home)?;
    // Only cargo itself keeps its home, so that nothing is fetched twice.
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    let rustup_home = env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".rustup")))
        .context("neither RUSTUP_HOME nor HOME is set")?;
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(root())
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .env("CARGO_HOME", cargo_home)
        .env("RUSTUP_HOME", rustup_home)
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_NET_OFFLINE", "true")
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    ensure!(
        output.status.success(),
        "{line:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    // The command asks where something is; the answer must name the file and come from tools.
    for expected in ["crates/turnery-engine/src/", "struct Loop"] {
        ensure!(said.contains(expected), "{line:?} did not say {expected:?}");
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

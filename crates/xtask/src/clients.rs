//! clients: the official clients and the reference MCP servers, installed and run against the binary. The
//! Rust client needs no installing: it is among the tests of the crate `turnery`.

use crate::{
    ci::Retries,
    steps::{root, succeed, target},
    test_step,
};
use anyhow::{Context, Result, bail};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The whole session, by each client, and one in which real MCP servers are used.
pub(crate) fn run(retries: &mut Retries) -> Result<()> {
    test_step::build()?;
    let binary = target().join("debug/turnery");
    require("npm", "nodejs npm", || found("npm"))?;
    retries.run("TypeScript client", || node("clients/typescript", &binary))?;
    retries.run("Python client", || python(&binary))?;
    // It uses what the TypeScript client brings.
    retries.run("MCP servers", || node("mcp", &binary))
}

/// Folder of the published schemas, which come with the TypeScript client; `None` without npm.
///
/// # Errors
/// npm could not install the client.
pub(crate) fn published_schemas() -> Result<Option<PathBuf>> {
    if !found("npm") {
        return Ok(None);
    }
    let client = root().join("conformance/clients/typescript");
    install(&client)?;
    Ok(Some(
        client.join("node_modules/@agentclientprotocol/sdk/schema"),
    ))
}

/// Runs the tests of a folder with what its lock file names.
fn node(folder: &str, binary: &Path) -> Result<()> {
    let folder = root().join("conformance").join(folder);
    install(&folder)?;
    succeed(
        Command::new("node")
            .args(["--test", "--test-reporter=spec"])
            .current_dir(&folder)
            .env("TURNERY", binary),
    )
}

/// Installs what a folder's lock file names.
fn install(folder: &Path) -> Result<()> {
    let installed = folder.join("node_modules/.installed");
    once(&installed, &folder.join("package-lock.json"), || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
            .arg("--loglevel=error")
            .current_dir(folder);
        succeed(&mut npm).context("npm could not install what package-lock.json names")
    })
}

fn python(binary: &Path) -> Result<()> {
    let folder = root().join("conformance/clients/python");
    let packages = "python3 (3.10 or newer) and python3-venv";
    require(packages, "python3 python3-venv", || {
        says_yes("import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))")
    })?;
    let home = target().join("python-client");
    let python = home.join("bin/python");
    let installed = home.join("installed");
    if !python.is_file() {
        // The Python that it was made with is gone, and it with it.
        let _ = fs::remove_file(&installed);
    }
    once(&installed, &folder.join("requirements.txt"), || {
        let mut venv = Command::new("python3");
        succeed(venv.args(["-m", "venv", "--clear"]).arg(&home))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--require-hashes"])
            .args(["--only-binary=:all:", "--requirement", "requirements.txt"])
            .current_dir(&folder);
        succeed(&mut pip).context("pip could not install the Python client")
    })?;
    succeed(
        Command::new(python)
            .args(["-B", "-m", "unittest", "--verbose"])
            .current_dir(&folder)
            .env("TURNERY", binary),
    )
}

/// Install what the file `lock` names, unless that was done before: then `installed` is a copy of it.
fn once(installed: &Path, lock: &Path, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = fs::read(lock).with_context(|| lock.display().to_string())?;
    if fs::read(installed).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(installed, wanted).with_context(|| installed.display().to_string())
}

/// Make sure that something is there; install it from Debian's packages where that is allowed.
fn require(what: &str, packages: &str, there: impl Fn() -> bool) -> Result<()> {
    if there() {
        return Ok(());
    }
    if found("apt-get") {
        let install = format!("apt-get update && apt-get install --yes {packages}");
        let installed = Command::new("sh")
            .args(["-c", &install])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .status();
        if installed.is_ok_and(|status| status.success()) && there() {
            return Ok(());
        }
    }
    bail!("{what} is missing and could not be installed: install {packages}, then run this again")
}

fn found(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether this program of Python ends well.
fn says_yes(program: &str) -> bool {
    let status = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

//! Installs the official clients and the reference MCP servers and runs them against the binary. The Rust
//! client needs no installation: it is part of the tests of the crate `turnery`.

use crate::{
    ci::Retries,
    steps::{root, run_checked, target_folder},
    test_step,
};
use anyhow::{Context, Result, bail};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Runs the whole-session test with each client, and a session with real MCP servers.
pub(crate) fn run(retries: &mut Retries) -> Result<()> {
    test_step::build()?;
    let binary = target_folder().join("debug/turnery");
    ensure_installed("npm", "nodejs npm", || is_installed("npm"))?;
    retries.run("TypeScript client", || {
        run_node_tests("clients/typescript", &binary)
    })?;
    retries.run("Python client", || run_python_tests(&binary))?;
    // These tests use packages of the TypeScript client.
    retries.run("MCP servers", || run_node_tests("mcp", &binary))
}

/// Installs the TypeScript client and returns its folder of published schemas; `None` without npm.
///
/// # Errors
/// npm could not install the client.
pub(crate) fn published_schemas() -> Result<Option<PathBuf>> {
    if !is_installed("npm") {
        return Ok(None);
    }
    let client = root().join("conformance/clients/typescript");
    install_npm_packages(&client)?;
    Ok(Some(
        client.join("node_modules/@agentclientprotocol/sdk/schema"),
    ))
}

/// Runs the tests of a folder with the packages of its lock file.
fn run_node_tests(folder: &str, binary: &Path) -> Result<()> {
    let folder = root().join("conformance").join(folder);
    install_npm_packages(&folder)?;
    run_checked(
        Command::new("node")
            .args(["--test", "--test-reporter=spec"])
            .current_dir(&folder)
            .env("TURNERY", binary),
    )
}

/// Installs the packages of a folder's lock file.
fn install_npm_packages(folder: &Path) -> Result<()> {
    let installed = folder.join("node_modules/.installed");
    install_once(&installed, &folder.join("package-lock.json"), || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
            .arg("--loglevel=error")
            .current_dir(folder);
        run_checked(&mut npm).context("npm could not install what package-lock.json names")
    })
}

fn run_python_tests(binary: &Path) -> Result<()> {
    let folder = root().join("conformance/clients/python");
    let packages = "python3 (3.10 or newer) and python3-venv";
    ensure_installed(packages, "python3 python3-venv", || {
        python_succeeds("import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))")
    })?;
    let home = target_folder().join("python-client");
    let python = home.join("bin/python");
    let installed = home.join("installed");
    if !python.is_file() {
        // The Python of this environment was removed, so it must be created again.
        let _ = fs::remove_file(&installed);
    }
    install_once(&installed, &folder.join("requirements.txt"), || {
        let mut venv = Command::new("python3");
        run_checked(venv.args(["-m", "venv", "--clear"]).arg(&home))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--require-hashes"])
            .args(["--only-binary=:all:", "--requirement", "requirements.txt"])
            .current_dir(&folder);
        run_checked(&mut pip).context("pip could not install the Python client")
    })?;
    run_checked(
        Command::new(python)
            .args(["-B", "-m", "unittest", "--verbose"])
            .current_dir(&folder)
            .env("TURNERY", binary),
    )
}

/// Installs the packages of the file `lock`, unless `installed` is a copy of it from an earlier installation.
fn install_once(installed: &Path, lock: &Path, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = fs::read(lock).with_context(|| lock.display().to_string())?;
    if fs::read(installed).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(installed, wanted).with_context(|| installed.display().to_string())
}

/// Checks that a program is installed; installs it from Debian packages where that is allowed.
fn ensure_installed(what: &str, packages: &str, there: impl Fn() -> bool) -> Result<()> {
    if there() {
        return Ok(());
    }
    if is_installed("apt-get") {
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

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns true if this Python program succeeds.
fn python_succeeds(program: &str) -> bool {
    let status = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

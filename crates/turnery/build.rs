//! Packs the program's 35,000 relocations, which otherwise take 1 MiB of memory.

use std::{env, process::Command};

/// First version of glibc that loads packed relocations.
const FIRST_GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_for_this_machine = env::var("HOST").ok() == env::var("TARGET").ok();
    let has_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if has_glibc && is_for_this_machine && glibc_version().is_some_and(|it| it >= FIRST_GLIBC) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of this machine's glibc.
fn glibc_version() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let version = text.trim().strip_prefix("glibc ")?;
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

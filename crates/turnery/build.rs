//! Makes the program smaller in memory: packs its 35,000 relocations, which otherwise take 1 MiB, and places the code of a
//! usual session in one part of it (`cargo xtask link-order`), without which the system maps 8 MiB more of its code.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{self, PathBuf},
    process::Command,
};

/// First version of glibc that loads packed relocations.
const FIRST_GLIBC: (u32, u32) = (2, 36);

/// Linker script that names the sections of a usual session.
const LINK_ORDER: &str = "link_order.ld";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={LINK_ORDER}");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_for_this_machine = env::var("HOST").ok() == env::var("TARGET").ok();
    let has_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if !has_glibc || !is_for_this_machine {
        return;
    }
    if glibc_version().is_some_and(|it| it >= FIRST_GLIBC) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // Other builds are for trying and testing: they link in a fraction of the time.
    if is("PROFILE", "release")
        && let Ok(script) = path::absolute(LINK_ORDER)
    {
        let argument = format!("-Wl,-T,{}", script.display());
        if can_link_with(&argument) == Some(true) {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
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

/// Returns true if a program that is linked with this argument runs: not every linker knows the script's statements.
fn can_link_with(argument: &str) -> Option<bool> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let (source, program) = (folder.join("probe.rs"), folder.join("probe"));
    fs::write(&source, "fn main() {}").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc.arg("-C").arg(format!("link-arg={argument}"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    let linked = rustc.arg(&source).arg("-o").arg(&program).output().ok()?;
    Some(linked.status.success() && Command::new(&program).status().ok()?.success())
}

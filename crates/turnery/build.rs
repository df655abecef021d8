//! Makes the program smaller in memory: packs its 35,000 relocations, which otherwise take 1 MiB, and places the code of a
//! usual session in one part of it (`cargo xtask link-order`), without which the system maps 8 MiB more of its code.
//! Makes it start faster: it brings the code that unwinds panics along, instead of loading a library for it.

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

/// Library that unwinds panics, as part of the program.
const UNWINDER: &str = "static:-bundle=gcc_eh";

/// Program that fails unless panics are caught.
const PROBE: &str = "fn main() { assert!(std::panic::catch_unwind(|| panic!()).is_err()); }";

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
    if !is("PROFILE", "release") {
        return;
    }
    if let Ok(script) = path::absolute(LINK_ORDER) {
        let argument = format!("-Wl,-T,{}", script.display());
        if can_link_with(&["-C", &format!("link-arg={argument}")]) == Some(true) {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
    if can_link_with(&["-l", UNWINDER]) == Some(true) {
        println!("cargo::rustc-link-lib={UNWINDER}");
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

/// Returns true if a program that is linked with these arguments of the compiler unwinds a panic: not every linker knows
/// the script's statements, and not every system has the library.
fn can_link_with(arguments: &[&str]) -> Option<bool> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let (source, program) = (folder.join("probe.rs"), folder.join("probe"));
    fs::write(&source, PROBE).ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc.args(arguments);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    let linked = rustc.arg(&source).arg("-o").arg(&program).output().ok()?;
    Some(linked.status.success() && Command::new(&program).output().ok()?.status.success())
}

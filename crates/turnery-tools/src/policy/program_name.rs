//! Names of a program: the one by which it is called, and those by which the tables of the policy know it.

use crate::Workspace;
use std::path::PathBuf;

/// Ends of names that distributions add to tell builds of a program apart.
const BUILD_SUFFIXES: &[&str] = &[
    ".athena", ".basic", ".bin", ".distrib", ".exe", ".gtk", ".gtk3", ".motif", ".nox", ".real",
    ".tiny",
];

/// GNU tools, which are installed with a `g` before their name where the system has its own.
const GNU_TOOLS: &[&str] = &[
    "awk", "cat", "chgrp", "chmod", "chown", "chroot", "cp", "dd", "env", "find", "grep",
    "install", "kill", "ln", "make", "mkdir", "mkfifo", "mktemp", "mv", "nice", "nohup", "rm",
    "rmdir", "sed", "shred", "split", "stdbuf", "sync", "tar", "tee", "time", "timeout", "touch",
    "truncate", "unlink", "xargs",
];

/// Names of a program, in lowercase and without its folder.
pub(crate) struct ProgramName {
    names: Vec<String>,
}

impl ProgramName {
    /// Derives the names from the first word of a command: `/usr/bin/Perl5.36-x86_64-linux-gnu` is also `perl`,
    /// `vim.basic` is also `vim`, `gxargs` is also `xargs`.
    pub(crate) fn new(called: &str) -> Self {
        let called = base_name(called).to_ascii_lowercase();
        let mut names = vec![called.clone()];
        let strips: [fn(&str) -> Option<&str>; 7] = [
            strip_environment,
            strip_requirement,
            strip_platform,
            strip_build,
            strip_minor_version,
            strip_version,
            strip_gnu_prefix,
        ];
        let mut shortest = called.as_str();
        for strip in strips {
            if let Some(rest) = strip(shortest).filter(|rest| !rest.is_empty()) {
                shortest = rest;
                names.push(rest.to_owned());
            }
        }
        Self { names }
    }

    /// Returns true if the program has this name. Case is ignored, because some file systems treat `RM` as `rm`.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Returns true if the table contains the program.
    pub(crate) fn is_in(&self, table: &[&str]) -> bool {
        table.iter().any(|name| self.is(name))
    }

    /// Returns true if a name of the program begins with the text, which is in lowercase.
    pub(crate) fn starts_with(&self, text: &str) -> bool {
        self.names.iter().any(|name| name.starts_with(text))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.iter().all(String::is_empty)
    }
}

/// Returns the program's name without its folder: `/bin/rm` becomes `rm`.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Folders of the system's programs.
const SYSTEM_FOLDERS: &[&str] = &["/bin", "/opt/homebrew/bin", "/usr/bin", "/usr/local/bin"];

/// Returns true if the name is that of a program of the system, and not of a script of the project (`./grep`, or `grep`
/// in a folder of `PATH`).
pub(crate) fn is_system_program(name: &str, bases: &[PathBuf], workspace: &Workspace) -> bool {
    match name.rsplit_once('/') {
        Some((folder, _)) => SYSTEM_FOLDERS.contains(&folder),
        None => !bases
            .iter()
            .any(|base| workspace.may_provide_program(name, base)),
    }
}

/// Removes an environment of Hatch: `default:`.
fn strip_environment(name: &str) -> Option<&str> {
    name.rsplit_once(':').map(|(_, program)| program)
}

/// Removes the version that a runner is to install: `@10`, `==0.5`, `[extra]`.
fn strip_requirement(name: &str) -> Option<&str> {
    let end = name.find(['@', '=', '[', '<', '>', '~', '!'])?;
    name.get(..end)
}

/// Removes a platform: `-x86_64-linux-gnu`.
fn strip_platform(name: &str) -> Option<&str> {
    let (program, platform) = name.split_once('-')?;
    ["-linux", "-darwin", "-freebsd"]
        .iter()
        .any(|system| platform.contains(system))
        .then_some(program)
}

fn strip_build(name: &str) -> Option<&str> {
    BUILD_SUFFIXES
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
}

/// Removes the last part of a version: `python3.11` becomes `python3`.
fn strip_minor_version(name: &str) -> Option<&str> {
    let (rest, minor) = name.rsplit_once('.')?;
    let is_version = minor.starts_with(|c: char| c.is_ascii_digit())
        && rest.ends_with(|c: char| c.is_ascii_digit());
    is_version.then_some(rest)
}

/// Removes a version, also with the letter of a build of Python: `8.6`, `3.13t`.
fn strip_version(name: &str) -> Option<&str> {
    let is_version = |c: char| c.is_ascii_digit() || c == '.';
    let end = name.strip_suffix(['d', 'm', 't', 'u']).unwrap_or(name);
    let version = if end.ends_with(is_version) { end } else { name };
    let rest = version.trim_end_matches(is_version);
    (rest.len() < version.len()).then(|| rest.trim_end_matches('-'))
}

fn strip_gnu_prefix(name: &str) -> Option<&str> {
    name.strip_prefix('g')
        .filter(|tool| GNU_TOOLS.contains(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_has_names_without_folder_version_and_build() {
        for (called, name) in [
            ("/usr/bin/perl5.36-x86_64-linux-gnu", "perl"),
            ("NICE", "nice"),
            ("Rscript", "rscript"),
            ("genv", "env"),
            ("GXARGS", "xargs"),
            ("pip3.11", "pip"),
            ("pip3.11", "pip3"),
            ("python3.13t", "python"),
            ("tclsh8.6", "tclsh"),
            ("default:touch", "touch"),
            ("@scope/eslint@8", "eslint"),
            ("ruff==0.5", "ruff"),
            ("valgrind.bin", "valgrind"),
            ("vim.basic", "vim"),
            ("uname26", "uname26"),
            ("x86_64", "x86_64"),
        ] {
            assert!(ProgramName::new(called).is(name), "{called}");
        }
        for (called, name) in [
            ("build.sh", "build"),
            ("git", "it"),
            ("node-gyp", "node"),
            ("ssh-keygen", "ssh"),
            ("watch.sh", "watch"),
            ("26", ""),
        ] {
            assert!(!ProgramName::new(called).is(name), "{called}");
        }
    }
}

//! Specification of a program to start, and its standard streams.

use crate::Confinement;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::PathBuf,
};
use tokio::net::unix::pipe;

/// A program to start. Not `Debug`, since variables may be secrets.
pub struct ProgramSpec {
    /// Path of the program, or a name that is looked up in the `PATH` of `environment`.
    pub program: OsString,
    /// Arguments, in order, without the program's name.
    pub args: Vec<OsString>,
    /// Working directory.
    pub working_directory: PathBuf,
    /// The whole environment; nothing is inherited. Empty and relative entries of `LD_LIBRARY_PATH` and
    /// similar variables are removed, so that no libraries are loaded from the working directory, which may
    /// be a project's.
    pub environment: BTreeMap<OsString, OsString>,
    /// Access granted to the program and its descendants; `None` for unrestricted.
    pub confinement: Option<Confinement>,
}

/// Standard streams of a program.
#[derive(Debug)]
pub struct ChildStdio {
    /// Standard input.
    pub stdin: OwnedFd,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error; may be a duplicate of `stdout`.
    pub stderr: OwnedFd,
}

/// This process's ends of the pipes to a program.
#[derive(Debug)]
pub struct ChildPipes {
    /// Write end of its standard input.
    pub stdin: pipe::Sender,
    /// Read end of its standard output.
    pub stdout: pipe::Receiver,
    /// Read end of its standard error.
    pub stderr: pipe::Receiver,
}

impl ChildPipes {
    /// Creates the pipes. Returns this process's ends and the program's.
    pub(super) fn new() -> io::Result<(Self, ChildStdio)> {
        let (stdin, our_stdin) = io::pipe()?;
        let (our_stdout, stdout) = io::pipe()?;
        let (our_stderr, stderr) = io::pipe()?;
        let pipes = Self {
            stdin: pipe::Sender::from_owned_fd(OwnedFd::from(our_stdin))?,
            stdout: pipe::Receiver::from_owned_fd(OwnedFd::from(our_stdout))?,
            stderr: pipe::Receiver::from_owned_fd(OwnedFd::from(our_stderr))?,
        };
        let stdio = ChildStdio {
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        Ok((pipes, stdio))
    }
}

/// Variables that name libraries or folders of libraries, the separators of their entries, and whether an
/// entry may be a name that is looked up in those folders.
const LIBRARY_VARIABLES: &[(&str, &[u8], bool)] = &[
    ("LD_AUDIT", b":", true),
    ("LD_LIBRARY_PATH", b":;", false),
    ("LD_PRELOAD", b": ", true),
];

/// Removes empty and relative entries from the variables by which libraries are found.
pub(super) fn drop_relative_libraries(environment: &mut BTreeMap<OsString, OsString>) {
    for (variable, separators, may_be_name) in LIBRARY_VARIABLES {
        let variable = OsStr::new(variable);
        let Some(value) = environment.get(variable) else {
            continue;
        };
        let is_safe = |entry: &&[u8]| {
            let is_name = *may_be_name && !entry.is_empty() && !entry.contains(&b'/');
            entry.starts_with(b"/") || is_name
        };
        let entries = value
            .as_bytes()
            .split(|byte| separators.contains(byte))
            .filter(is_safe);
        match entries.collect::<Vec<_>>().join(&b':') {
            left if left.is_empty() => environment.remove(variable),
            left => environment.insert(variable.to_owned(), OsString::from_vec(left)),
        };
    }
}

/// Encodes an environment as the kernel does: `NAME=value` and a NUL for each variable.
pub(super) fn encode_environment(
    environment: &BTreeMap<OsString, OsString>,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (name, value) in environment {
        if name.as_bytes().contains(&0) || value.as_bytes().contains(&0) {
            let message = "a variable of its environment holds a NUL character";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        for part in [name.as_bytes(), b"=", value.as_bytes(), &[0]] {
            bytes.extend_from_slice(part);
        }
    }
    Ok(bytes)
}

/// Decodes the variables of an encoded environment. A variable without a name is skipped.
#[cfg(any(target_os = "linux", test))]
pub(super) fn decode_environment(bytes: &[u8]) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    bytes.split(|byte| *byte == 0).filter_map(|entry| {
        let end = entry.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&entry[..end], &entry[end + 1..]);
        (end > 0).then_some((OsStr::from_bytes(name), OsStr::from_bytes(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_entries_of_library_variables_are_dropped() {
        for (variable, value, expected) in [
            ("LD_LIBRARY_PATH", ":/opt/a;lib:./b:/c", Some("/opt/a:/c")),
            ("LD_LIBRARY_PATH", "name:", None),
            ("LD_LIBRARY_PATH", "", None),
            ("LD_PRELOAD", "a.so ./b.so:/c.so", Some("a.so:/c.so")),
            ("LD_PRELOAD", " lib/a.so", None),
            ("LD_AUDIT", "../a.so:/b.so", Some("/b.so")),
            ("PATH", ":bin", Some(":bin")),
        ] {
            let mut environment = BTreeMap::from([(variable.into(), value.into())]);
            drop_relative_libraries(&mut environment);
            let left = environment.get(OsStr::new(variable));
            assert_eq!(left, expected.map(OsString::from).as_ref(), "{value:?}");
        }
    }

    #[test]
    fn environment_round_trips() {
        let pairs = [("A", ""), ("B", "x=y\n"), ("C", "\u{fc}")];
        let environment = pairs.map(|(name, value)| (name.into(), value.into()));
        let mut environment = BTreeMap::from(environment);
        environment.insert("D".into(), OsString::from_vec(vec![0xff]));
        let encoded = encode_environment(&environment).unwrap();
        let decoded = decode_environment(&encoded);
        let decoded = decoded.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(decoded.collect::<BTreeMap<_, _>>(), environment);
        environment.insert("E".into(), "a\0b".into());
        assert!(encode_environment(&environment).is_err());
    }
}

//! Tests several processes on one database; the test binary starts itself as the other process.

mod crash;
mod pair;
mod role;

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// Environment variable with the role of the other process.
const ROLE: &str = "TURNERY_STORE_TEST_ROLE";
/// Environment variable with the path of the database.
const DATABASE: &str = "TURNERY_STORE_TEST_DATABASE";
/// Separates the test's own output from that of the test harness.
const LINE_MARK: char = '@';

/// Another running process. Killed when dropped.
struct OtherProcess {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start(role: &str, database: &Path) -> Self {
        Self::start_with(role, database, [])
    }

    /// Starts a process with more environment variables.
    fn start_with<const N: usize>(
        role: &str,
        database: &Path,
        variables: [(&str, String); N],
    ) -> Self {
        let program = std::env::current_exe().expect("this binary");
        let mut process = Command::new(program)
            .args(["--exact", "--nocapture", "processes::role::another_process"])
            .env(ROLE, role)
            .env(DATABASE, database)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("another process");
        let (to, from) = (process.stdin.take(), process.stdout.take());
        Self {
            stdin: to.expect("its input"),
            stdout: BufReader::with_capacity(512, from.expect("its output")),
            process,
        }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a line to the process.
    fn send_line(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("it listens");
    }

    /// Returns the next line meant for the test; `None` once the process has ended.
    fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).expect("its words") > 0 {
            if let Some((_, ours)) = line.trim_end().split_once(LINE_MARK) {
                return Some(ours.to_owned());
            }
            line.clear();
        }
        None
    }

    fn request(&mut self, line: &str) -> String {
        self.send_line(line);
        self.read_line().expect("an answer")
    }

    /// Reads this many more bytes.
    fn read_bytes(&mut self, bytes: usize) -> Vec<u8> {
        let mut skipped = Vec::new();
        let from = self.stdout.by_ref().take(bytes as u64);
        { from }.read_to_end(&mut skipped).expect("its words");
        skipped
    }

    /// Kills the process with SIGKILL, and returns its remaining output.
    fn kill(&mut self) -> Vec<u8> {
        self.process.kill().expect("killed");
        let mut last = Vec::new();
        self.stdout.read_to_end(&mut last).expect("its last words");
        self.process.wait().expect("it has ended");
        last
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! Process: one run of a hook's command, bounded in time and in what it may print.
//!
//! What must hold: nothing of it is left when [`run`] returns or its future is dropped. It has a
//! process group of its own, which is killed as a whole.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{io, path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
};

/// A command that prints more is stopped. Unit: bytes, for stdout and stderr each.
const LONGEST: u64 = 1 << 20;

/// What came of a command that ended by itself.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Run `words` in `cwd` with `stdin`.
pub(super) async fn run(
    words: &[String],
    cwd: &Path,
    stdin: Vec<u8>,
    limit: Duration,
) -> Result<Ended, String> {
    let mut group = Group::start(words, cwd)?;
    let ended = tokio::time::timeout(limit, group.attend(stdin)).await;
    let ended = ended.unwrap_or_else(|_| {
        let seconds = limit.as_secs();
        Err(format!("it did not end within {seconds} s"))
    });
    if ended.is_err() {
        kill(group.id.take());
        let _ = group.leader.wait().await;
    }
    ended
}

/// A running command and all that it started. Dropping this kills them all; the runtime buries the leader.
struct Group {
    leader: Child,
    /// There only while the leader is not waited for: until then nobody else can be given its number.
    id: Option<Pid>,
}

impl Group {
    fn start(words: &[String], cwd: &Path) -> Result<Self, String> {
        let (program, args) = words.split_first().ok_or("there is no command")?;
        let leader = Command::new(program)
            .args(args)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program:?} cannot be started: {error}"))?;
        let id = leader.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self {
            leader,
            id: id.and_then(Pid::from_raw),
        })
    }

    /// Talk to it until it has ended, or has printed too much.
    async fn attend(&mut self, stdin: Vec<u8>) -> Result<Ended, String> {
        let broken = |error: io::Error| format!("talking to it broke off: {error}");
        let (input, out, err) = (
            self.leader.stdin.take(),
            self.leader.stdout.take(),
            self.leader.stderr.take(),
        );
        let write = async {
            if let Some(mut input) = input {
                // Not every command wants to know what it is asked.
                let _ = input.write_all(&stdin).await;
                let _ = input.write_all(b"\n").await;
            }
            Ok(())
        };
        let wait = async {
            over(self.id).await.map_err(broken)?;
            // What it left behind holds the pipes open, and nobody waits for that.
            kill(self.id.take());
            self.leader.wait().await.map_err(broken)
        };
        let ((), stdout, stderr, status) =
            tokio::try_join!(write, all(out, "stdout"), all(err, "stderr"), wait)?;
        Ok(Ended {
            code: status.code(),
            stdout,
            stderr,
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        kill(self.id.take());
    }
}

/// Wait until the leader has ended, and leave it to be waited for.
async fn over(leader: Option<Pid>) -> io::Result<()> {
    let Some(id) = leader else { return Ok(()) };
    let mut children = signal(SignalKind::child())?;
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while waitid(WaitId::Pid(id), how)?.is_none() {
        children.recv().await;
    }
    Ok(())
}

fn kill(group: Option<Pid>) {
    if let Some(id) = group {
        // The only failure that can be is that nobody is left.
        let _ = kill_process_group(id, Signal::KILL);
    }
}

async fn all(pipe: Option<impl AsyncRead + Unpin>, name: &str) -> Result<Vec<u8>, String> {
    let mut read = Vec::new();
    if let Some(pipe) = pipe {
        let mut pipe = pipe.take(LONGEST + 1);
        let done = pipe.read_to_end(&mut read).await;
        done.map_err(|error| format!("its {name} cannot be read: {error}"))?;
    }
    match read.len() as u64 > LONGEST {
        true => Err(format!("it printed more than 1 MiB to {name}")),
        false => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::test_kill_process;

    #[tokio::test]
    async fn a_leader_that_has_ended_keeps_its_number_until_its_group_is_killed() {
        let words = ["sh", "-c", "exit 3"].map(str::to_owned);
        let mut group = Group::start(&words, Path::new("/")).unwrap();
        let id = group.id.unwrap();
        over(group.id).await.unwrap();
        assert_eq!(test_kill_process(id), Ok(()), "nobody has waited for it");
        assert_eq!(kill_process_group(id, Signal::KILL), Ok(()));
        let ended = group.attend(Vec::new()).await.unwrap();
        assert_eq!(ended.code, Some(3));
        assert_eq!(group.id, None, "the number is no longer ours");
        assert!(test_kill_process(id).is_err());
    }
}

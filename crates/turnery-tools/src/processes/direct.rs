//! A program in a process group of its own, without a supervisor.
//!
//! What must hold: no signal is sent to a number that may be another process's by now. A leader keeps its
//! number until it is waited for, so the group is killed first.

use super::{
    leftovers,
    process_tree::{FinishedTree, RunningProcess, StopReport},
    program::{ChildStdio, ProgramSpec},
    registry::{Registration, Target, check_open},
};
#[cfg(target_os = "linux")]
use crate::sandbox::start_confined;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{io, process::ExitStatus, thread, time::Duration};
use tokio::{
    process::{Child, Command},
    select,
    signal::unix::{Signal as SignalStream, SignalKind, signal},
    task::spawn_blocking,
};

/// How long a killed leader may take to end, in short waits: a busy machine delays each of them as well.
const MOST_PAUSES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A running program and its process group. Dropping this kills the group and all that has the tag.
///
/// Tokio's own kill on drop reaches the leader alone.
#[derive(Debug)]
pub(super) struct DirectGroup {
    leader: Child,
    /// File name of the program.
    program: String,
    /// `None` once the leader was waited for.
    id: Option<Pid>,
    /// Becomes ready when a child of this process ends.
    endings: SignalStream,
    registration: Option<Registration>,
    /// `None` once it was searched for.
    tag: Option<String>,
}

impl DirectGroup {
    pub(super) fn spawn(program: ProgramSpec, stdio: ChildStdio, tag: String) -> io::Result<Self> {
        let endings = signal(SignalKind::child())?;
        let name = program.program.to_string_lossy().into_owned();
        #[cfg(target_os = "macos")]
        let program = confined_by_system(program);
        let mut command = Command::new(program.program);
        command
            .args(program.args)
            .current_dir(program.folder)
            .env_clear()
            .envs(program.environment)
            .stdin(stdio.stdin)
            .stdout(stdio.stdout)
            .stderr(stdio.stderr)
            .process_group(0)
            .kill_on_drop(true);
        check_open()?;
        let leader = match &program.confinement {
            None => command.spawn()?,
            #[cfg(target_os = "linux")]
            Some(confinement) => {
                let runtime = tokio::runtime::Handle::current();
                start_confined(confinement, || {
                    let _entered = runtime.enter();
                    command.spawn()
                })?
            }
            #[cfg(target_os = "macos")]
            Some(_) => command.spawn()?,
            #[cfg(not(any(target_os = "linux", target_os = "macos")))]
            Some(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let id = leader
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let mut group = Self {
            leader,
            program: name,
            id,
            endings,
            registration: None,
            tag: Some(tag),
        };
        if let Some(id) = id {
            group.registration = Some(Registration::new(Target::Group(id))?);
        }
        Ok(group)
    }

    /// Waits until the leader has ended, and leaves it to be waited for.
    pub(super) async fn wait_exit(&mut self) -> io::Result<()> {
        let Some(id) = self.id else { return Ok(()) };
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while waitid(WaitId::Pid(id), how)?.is_none() {
            self.endings.recv().await;
        }
        Ok(())
    }

    pub(super) fn request_stop(&self) {
        self.signal(Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills what is left of the group, waits for the leader, and kills all that has the tag. Takes a bounded
    /// time.
    pub(super) async fn finish(self) -> io::Result<FinishedTree> {
        self.finish_within(MOST_PAUSES).await
    }

    async fn finish_within(mut self, pauses: u32) -> io::Result<FinishedTree> {
        self.kill();
        // Before the leader is waited for: its number is ours no longer after that.
        self.registration = None;
        self.id = None;
        let status = self.wait_for_leader(pauses).await?;
        let mut stopped = match self.tag.take() {
            Some(tag) => leftovers::sweep(tag).await,
            None => StopReport::GroupAndTagged,
        };
        if status.is_none() {
            stopped = self.with_leader(stopped);
        }
        Ok(FinishedTree { status, stopped })
    }

    /// Waits for a leader that was killed. `None` if it does not end: it may be another user's, which may not
    /// be killed, or the kernel is not done with it.
    async fn wait_for_leader(&mut self, pauses: u32) -> io::Result<Option<ExitStatus>> {
        for _ in 0..pauses {
            if let Some(status) = self.leader.try_wait()? {
                return Ok(Some(status));
            }
            // The time is for the kernel, so it passes on no clock that a test has paused.
            let pause = spawn_blocking(|| thread::sleep(PAUSE));
            select! {
                biased;
                status = self.leader.wait() => return status.map(Some),
                // An error means that the runtime ends.
                _ = pause => {}
            }
        }
        self.leader.try_wait()
    }

    /// Adds the leader, which has not ended, to the report.
    fn with_leader(&self, stopped: StopReport) -> StopReport {
        let mut remaining = match stopped {
            StopReport::Remaining(remaining) => remaining,
            StopReport::Everything | StopReport::GroupAndTagged => Vec::new(),
        };
        let pid = self.leader.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid
            && remaining.iter().all(|process| process.pid != pid)
        {
            let command = leftovers::command_line(pid);
            remaining.push(RunningProcess {
                pid,
                command: command.unwrap_or_else(|| self.program.clone()),
            });
        }
        StopReport::Remaining(remaining)
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // The only failure that can be is that no process is left.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for DirectGroup {
    fn drop(&mut self) {
        self.kill();
        // Before the leader is dropped, which may wait for it.
        self.registration = None;
        if let Some(tag) = self.tag.take() {
            leftovers::sweep_in_background(tag);
        }
    }
}

/// The same program, below the system's own program for confining others.
#[cfg(target_os = "macos")]
fn confined_by_system(mut program: ProgramSpec) -> ProgramSpec {
    if let Some(confinement) = &program.confinement {
        let profile = crate::sandbox::profile(confinement);
        let mut args = vec!["-p".into(), profile.into(), program.program];
        args.append(&mut program.args);
        program.program = crate::sandbox::SANDBOX_EXEC.into();
        program.args = args;
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::new_tag;
    use rustix::process::test_kill_process;
    #[cfg(target_os = "linux")]
    use std::path::Path;

    fn group(line: &str) -> DirectGroup {
        let program = ProgramSpec {
            program: "sh".into(),
            args: vec!["-c".into(), line.into()],
            folder: "/".into(),
            environment: std::env::vars_os().collect(),
            confinement: None,
        };
        let null = || std::fs::File::open("/dev/null").unwrap().into();
        let stdio = ChildStdio {
            stdin: null(),
            stdout: null(),
            stderr: null(),
        };
        DirectGroup::spawn(program, stdio, new_tag()).unwrap()
    }

    #[tokio::test]
    async fn ended_leader_keeps_its_number_until_finished() {
        let mut group = group("exit 3");
        let id = group.id.unwrap();
        group.wait_exit().await.unwrap();
        assert_eq!(test_kill_process(id), Ok(()), "nobody has waited for it");
        let status = group.finish().await.unwrap().status.unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(
            test_kill_process(id).is_err(),
            "the number is no longer ours"
        );
    }

    /// A leader that may not be killed is not waited for.
    #[tokio::test]
    async fn leader_that_does_not_end_is_named() {
        let mut group = group("exec sleep 600");
        let pid = group.id.unwrap();
        // Nothing kills it before the group is dropped.
        group.id = None;
        group.tag = None;
        let finished = group.finish_within(1).await.unwrap();
        assert_eq!(finished.status, None);
        let StopReport::Remaining(remaining) = finished.stopped else {
            panic!("{finished:?}");
        };
        let [process] = &remaining[..] else {
            panic!("{remaining:?}");
        };
        assert_eq!(process.pid, pid.as_raw_nonzero().get());
        assert!(!process.command.is_empty());
    }

    /// Whoever ends all at this moment must not signal a number that was given away.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn registration_is_dropped_before_the_leader() {
        let mut group = group("exit 3");
        let id = group.id.unwrap();
        group.wait_exit().await.unwrap();
        let (thread, sent) = std::sync::mpsc::sync_channel(1);
        let registry = crate::processes::registry::lock();
        let dropping = thread::spawn(move || {
            thread
                .send(std::fs::read_link("/proc/thread-self").unwrap())
                .unwrap();
            drop(group);
        });
        // It sleeps for nothing but the registry.
        let stat = Path::new("/proc").join(sent.recv().unwrap()).join("stat");
        while !std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S ")) {
            thread::yield_now();
        }
        assert_eq!(test_kill_process(id), Ok(()), "nobody has waited for it");
        drop(registry);
        dropping.join().unwrap();
    }
}

//! Runs a program in its own process group, without a supervisor.
//!
//! Invariant: no signal is sent to a process id that may have been reused. A leader keeps its id until it is
//! reaped, so the group is killed first.

use super::{
    program::{ChildStdio, ProgramSpec},
    registry::{KillTarget, TreeRegistration, check_open},
    stop_report::{FinishedTree, RunningProcess, StopReport},
    tagged_processes,
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

/// Maximum number of pauses for a killed leader to exit. Counted in pauses, which a busy machine delays as
/// well.
const MAX_PAUSES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A running program and its process group. Dropping this kills the group and all processes with the tag.
///
/// Tokio's own kill on drop reaches only the leader.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    leader: Child,
    /// File name of the program.
    program: String,
    /// `None` once the leader was reaped.
    group_id: Option<Pid>,
    /// Becomes ready when a child of this process exits.
    child_exits: SignalStream,
    registration: Option<TreeRegistration>,
    /// `None` once processes with the tag were searched for.
    tag: Option<String>,
}

impl ProcessGroup {
    pub(super) fn spawn(program: ProgramSpec, stdio: ChildStdio, tag: String) -> io::Result<Self> {
        let child_exits = signal(SignalKind::child())?;
        let name = program.program.to_string_lossy().into_owned();
        #[cfg(target_os = "macos")]
        let program = confined_by_system(program);
        let mut command = Command::new(program.program);
        command
            .args(program.args)
            .current_dir(program.working_directory)
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
            group_id: id,
            child_exits,
            registration: None,
            tag: Some(tag),
        };
        if let Some(id) = id {
            group.registration = Some(TreeRegistration::new(KillTarget::Group(id))?);
        }
        Ok(group)
    }

    /// Waits until the leader has exited, without reaping it.
    pub(super) async fn wait_exit(&mut self) -> io::Result<()> {
        let Some(id) = self.group_id else {
            return Ok(());
        };
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while waitid(WaitId::Pid(id), how)?.is_none() {
            self.child_exits.recv().await;
        }
        Ok(())
    }

    pub(super) fn request_stop(&self) {
        self.signal(Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills the rest of the group, reaps the leader, and kills all processes with the tag. Takes a bounded
    /// time.
    pub(super) async fn finish(self) -> io::Result<FinishedTree> {
        self.finish_within(MAX_PAUSES).await
    }

    async fn finish_within(mut self, pauses: u32) -> io::Result<FinishedTree> {
        self.kill();
        // Dropped before the leader is reaped, since its id may be reused after that.
        self.registration = None;
        self.group_id = None;
        let status = self.wait_for_leader(pauses).await?;
        let mut stopped = match self.tag.take() {
            Some(tag) => tagged_processes::sweep(tag).await,
            None => StopReport::GroupAndTagged,
        };
        if status.is_none() {
            stopped = self.add_leader(stopped);
        }
        Ok(FinishedTree { status, stopped })
    }

    /// Waits for a killed leader. Returns `None` if it does not exit: it may belong to another user and not
    /// be killable, or the kernel has not finished with it.
    async fn wait_for_leader(&mut self, pauses: u32) -> io::Result<Option<ExitStatus>> {
        for _ in 0..pauses {
            if let Some(status) = self.leader.try_wait()? {
                return Ok(Some(status));
            }
            // The kernel needs real time, so the pause does not use the runtime's clock, which a test may
            // have paused.
            let pause = spawn_blocking(|| thread::sleep(PAUSE));
            select! {
                biased;
                status = self.leader.wait() => return status.map(Some),
                // An error means that the runtime is shutting down.
                _ = pause => {}
            }
        }
        self.leader.try_wait()
    }

    /// Adds the leader, which has not exited, to the report.
    fn add_leader(&self, stopped: StopReport) -> StopReport {
        let mut remaining = match stopped {
            StopReport::Remaining(remaining) => remaining,
            StopReport::Everything | StopReport::GroupAndTagged => Vec::new(),
        };
        let pid = self.leader.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid
            && remaining.iter().all(|process| process.pid != pid)
        {
            let command = tagged_processes::command_line(pid);
            remaining.push(RunningProcess {
                pid,
                command: command.unwrap_or_else(|| self.program.clone()),
            });
        }
        StopReport::Remaining(remaining)
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.group_id {
            // Fails only if no process is left.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        // Must happen before the leader is dropped, which may reap it.
        self.registration = None;
        if let Some(tag) = self.tag.take() {
            tagged_processes::sweep_in_background(tag);
        }
    }
}

/// Wraps a program in the system's own sandboxing program.
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
    use crate::processes::supervision::new_tag;
    use rustix::process::test_kill_process;
    #[cfg(target_os = "linux")]
    use std::path::Path;

    fn spawn_group(line: &str) -> ProcessGroup {
        let program = ProgramSpec {
            program: "sh".into(),
            args: vec!["-c".into(), line.into()],
            working_directory: "/".into(),
            environment: std::env::vars_os().collect(),
            confinement: None,
        };
        let null = || std::fs::File::open("/dev/null").unwrap().into();
        let stdio = ChildStdio {
            stdin: null(),
            stdout: null(),
            stderr: null(),
        };
        ProcessGroup::spawn(program, stdio, new_tag()).unwrap()
    }

    #[tokio::test]
    async fn exited_leader_keeps_pid_until_finish() {
        let mut group = spawn_group("exit 3");
        let id = group.group_id.unwrap();
        group.wait_exit().await.unwrap();
        assert_eq!(test_kill_process(id), Ok(()), "nobody has waited for it");
        let status = group.finish().await.unwrap().status.unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(
            test_kill_process(id).is_err(),
            "the number is no longer ours"
        );
    }

    /// The leader is not waited for if it may not be killed.
    #[tokio::test]
    async fn unkillable_leader_is_reported() {
        let mut group = spawn_group("exec sleep 600");
        let pid = group.group_id.unwrap();
        // Nothing kills the process before the group is dropped.
        group.group_id = None;
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

    /// Ending all trees at this moment must not signal a reused process id.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn registration_is_dropped_before_the_leader() {
        let mut group = spawn_group("exit 3");
        let id = group.group_id.unwrap();
        group.wait_exit().await.unwrap();
        let (thread, sent) = std::sync::mpsc::sync_channel(1);
        let registry = crate::processes::registry::lock_registry();
        let dropping = thread::spawn(move || {
            thread
                .send(std::fs::read_link("/proc/thread-self").unwrap())
                .unwrap();
            drop(group);
        });
        // The thread sleeps only for the registry.
        let stat = Path::new("/proc").join(sent.recv().unwrap()).join("stat");
        while !std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S ")) {
            thread::yield_now();
        }
        assert_eq!(test_kill_process(id), Ok(()), "nobody has waited for it");
        drop(registry);
        dropping.join().unwrap();
    }
}

//! Finds and kills processes without a supervisor, by the tag that they inherited.

use super::process_tree::StopReport;
#[cfg(target_os = "linux")]
pub(super) use linux::command_line;

/// Kills every process with this tag. Takes a bounded time.
#[cfg(target_os = "linux")]
pub(super) async fn sweep(tag: &str) -> StopReport {
    linux::sweep(tag).await
}

/// Nothing can be found here.
#[cfg(not(target_os = "linux"))]
pub(super) async fn sweep(_tag: &str) -> StopReport {
    StopReport::GroupAndTagged
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::processes::{
        TAG_VARIABLE,
        process_tree::{RunningProcess, StopReport},
    };
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::{fs, time::Duration};
    use tokio::time::sleep;

    /// Looks that find something, before what is left is reported.
    const MOST_LOOKS: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(10);
    /// What is told of a command line. Unit: bytes.
    const LONGEST_COMMAND: usize = 120;

    pub(super) async fn sweep(tag: &str) -> StopReport {
        let variable = format!("{TAG_VARIABLE}={tag}");
        for _ in 0..MOST_LOOKS {
            let found = tagged(&variable);
            if found.is_empty() {
                return StopReport::GroupAndTagged;
            }
            found.iter().for_each(|pid| kill(*pid, &variable));
            sleep(PAUSE).await;
        }
        let left = tagged(&variable).into_iter().filter_map(|pid| {
            Some(RunningProcess {
                pid,
                command: command_line(pid)?,
            })
        });
        let left: Vec<RunningProcess> = left.collect();
        match left.is_empty() {
            true => StopReport::GroupAndTagged,
            false => StopReport::Remaining(left),
        }
    }

    /// Processes with this variable in their environment. One that has ended has none.
    fn tagged(variable: &str) -> Vec<i32> {
        let Ok(processes) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        processes
            .filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| has(*pid, variable))
            .collect()
    }

    fn has(pid: i32, variable: &str) -> bool {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == variable.as_bytes())
        })
    }

    /// Kills the process if it still has the variable once it can no longer be mistaken for another.
    fn kill(pid: i32, variable: &str) {
        let Some(number) = Pid::from_raw(pid) else {
            return;
        };
        if let Ok(process) = pidfd_open(number, PidfdFlags::empty())
            && has(pid, variable)
        {
            // One that may not be killed is reported in the end.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }

    /// Command line of a process, shortened and on one line; `None` once it has ended.
    pub(in crate::processes) fn command_line(pid: i32) -> Option<String> {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = String::from_utf8_lossy(&bytes).replace(|c: char| c.is_control(), " ");
        if words.trim().is_empty() {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            words = name.replace(|c: char| c.is_control(), " ");
        }
        words.truncate(words.floor_char_boundary(LONGEST_COMMAND));
        Some(words.trim().to_owned())
    }
}

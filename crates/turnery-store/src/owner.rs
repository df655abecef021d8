//! Identifies the process that holds a lane, and detects whether that process still runs (UP-27).
//!
//! A process is identified by its pid, and where `/proc` is available also by its start time, the boot and the
//! pid namespace, so that reused pids, other machines and other containers are not confused with it. In doubt
//! a holder counts as alive, and its lease must expire.

use crate::Owner;
#[cfg(test)]
use crate::simulation::machine::SimulatedMachine;
use std::{fs, sync::OnceLock};

/// State of a holder's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// A process with this pid runs on this machine; it may be another one if no start time was recorded.
    AliveHere,
    /// The state of the process is unknown.
    MaybeAlive,
    /// The process is gone and cannot write any more.
    Gone,
}

impl Owner {
    /// Returns a new owner in this process.
    #[must_use]
    pub fn for_this_process() -> Self {
        Self {
            id: crate::clock::new_uuid().to_string(),
            process: process_identity().to_owned(),
        }
    }
}

pub(crate) fn process_identity() -> &'static str {
    #[cfg(test)]
    if let Some(machine) = SimulatedMachine::here() {
        return machine.place;
    }
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let pid = std::process::id();
        match (process_start("self"), boot_and_namespace()) {
            (Some(start), Some(place)) => format!("pid={pid} start={} {place}", start.ticks),
            _ => format!("pid={pid}"),
        }
    })
}

/// Identifies the boot and the pid namespace, within which a pid is meaningful.
fn boot_and_namespace() -> Option<String> {
    #[cfg(test)]
    if let Some(machine) = SimulatedMachine::here() {
        return Some(machine.place.to_owned());
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("boot={} ns={}", boot.trim(), namespace.display()))
}

/// Identifies the machine within which process ids are meaningful. Without `/proc`, only this process counts.
#[cfg(feature = "postgres")]
pub(crate) fn machine_identity() -> &'static str {
    #[cfg(test)]
    if let Some(machine) = SimulatedMachine::here() {
        return machine.place;
    }
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| boot_and_namespace().unwrap_or_else(|| crate::new_uuid().to_string()))
}

struct ProcessStart {
    /// Start time since boot, in clock ticks: field 22 of `/proc/PID/stat`.
    ticks: u64,
    /// True if the process has ended but was not reaped by its parent.
    zombie: bool,
}

fn process_start(pid: &str) -> Option<ProcessStart> {
    #[cfg(test)]
    if let Some(machine) = SimulatedMachine::here() {
        let is_running = pid.parse().is_ok_and(|pid| machine.is_running(pid));
        return is_running.then_some(ProcessStart {
            ticks: 1,
            zombie: false,
        });
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in field 2 may contain blanks and brackets, so fields are counted after the last bracket.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let ticks = fields.nth(18)?.parse().ok()?;
    Some(ProcessStart { ticks, zombie })
}

/// Returns the value of a `name=value` field of a process description. A description is a list of such fields
/// separated by spaces: `pid`, and where `/proc` is available also `start`, `boot` and `ns`.
pub(crate) fn process_field<'a>(process: &'a str, name: &str) -> Option<&'a str> {
    process
        .split(' ')
        .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

/// Returns true if the holder was recorded on this machine since its last boot; false if the description does
/// not say.
pub(crate) fn is_same_boot(process: &str) -> bool {
    let boot = process_field(process, "boot");
    boot.is_some() && boot == process_field(process_identity(), "boot")
}

/// Returns the state of the holder's process, even if its lease has expired. Without a recorded start time only
/// the pid is compared, so a reused pid counts as alive, and on systems other than Unix any pid does.
pub(crate) fn process_state(process: &str) -> ProcessState {
    let Some(pid) = process_field(process, "pid").and_then(|pid| pid.parse::<u32>().ok()) else {
        return ProcessState::MaybeAlive;
    };
    let Some(ticks) = process_field(process, "start").and_then(|start| start.parse::<u64>().ok())
    else {
        return state_of_pid(pid);
    };
    if !boot_and_namespace().is_some_and(|here| process.ends_with(&here)) {
        return ProcessState::MaybeAlive;
    }
    match process_start(&pid.to_string()) {
        Some(found) if found.ticks == ticks && !found.zombie => ProcessState::AliveHere,
        Some(_) | None => ProcessState::Gone,
    }
}

#[cfg(unix)]
fn state_of_pid(pid: u32) -> ProcessState {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    match pid.map(rustix::process::test_kill_process) {
        Some(Err(rustix::io::Errno::SRCH)) => ProcessState::Gone,
        Some(_) => ProcessState::AliveHere,
        None => ProcessState::MaybeAlive,
    }
}

#[cfg(not(unix))]
fn state_of_pid(_pid: u32) -> ProcessState {
    ProcessState::AliveHere
}

/// Describes the holder for the user.
pub(crate) fn describe_holder(process: &str) -> String {
    match process_field(process, "pid") {
        Some(pid) if pid == std::process::id().to_string() => {
            "another client of this process".to_owned()
        }
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_owner_ids_differ() {
        let (one, two) = (Owner::for_this_process(), Owner::for_this_process());
        assert_eq!(process_state(&one.process), ProcessState::AliveHere);
        assert_eq!(one.process, two.process);
        assert_ne!(one.id, two.id);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn reused_pid_is_another_process() {
        let text = process_identity();
        let ticks = process_field(text, "start").unwrap();
        let other = text.replace(&format!("start={ticks}"), "start=1");
        assert_eq!(process_state(&other), ProcessState::Gone);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn process_of_another_machine_may_be_alive() {
        let text = process_identity();
        let ticks = process_field(text, "start").unwrap();
        let dead = text.replace(&format!("start={ticks}"), "start=1");
        assert_eq!(
            process_state(&dead.replace("boot=", "boot=x")),
            ProcessState::MaybeAlive
        );
        assert_eq!(
            process_state(&dead.replace("ns=pid", "ns=dip")),
            ProcessState::MaybeAlive
        );
    }

    #[test]
    #[cfg(unix)]
    fn reaped_child_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(process_state(&format!("pid={pid}")), ProcessState::Gone);
        assert_eq!(
            process_state(&format!("pid={}", std::process::id())),
            ProcessState::AliveHere
        );
    }

    #[test]
    fn foreign_process_text_may_be_alive() {
        assert_eq!(process_state(""), ProcessState::MaybeAlive);
        assert_eq!(process_state("pid=x start=y"), ProcessState::MaybeAlive);
        assert_eq!(process_state("pid=x"), ProcessState::MaybeAlive);
        assert_eq!(process_state("pid=4194304999"), ProcessState::MaybeAlive);
    }
}

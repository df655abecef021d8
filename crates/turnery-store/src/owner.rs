//! Owner: who holds a lane, and whether its process still lives on this machine (UP-27).
//!
//! A process is named by its pid, and where `/proc` tells it also by its start, the boot and the pid
//! namespace, so that a pid which was given out again, another machine and another container are
//! not taken for it. In doubt a holder counts as alive: then its time must run out.

use crate::Owner;
use std::{fs, sync::OnceLock};

/// What is known of a holder's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs, or nobody here can tell.
    Possible,
    /// It is gone: nobody can write in its name any more.
    Gone,
}

impl Owner {
    /// A new handle in this process.
    #[must_use]
    pub fn this_process() -> Self {
        Self {
            id: crate::clock::new_uuid().to_string(),
            process: this_process().to_owned(),
        }
    }
}

fn this_process() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let pid = std::process::id();
        match (start("self"), place()) {
            (Some(start), Some(place)) => format!("pid={pid} start={} {place}", start.ticks),
            _ => format!("pid={pid}"),
        }
    })
}

/// The machine since its boot, and the pid namespace: where a pid means something.
fn place() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("boot={} ns={}", boot.trim(), namespace.display()))
}

struct Start {
    /// Since boot, in clock ticks: field 22 of `/proc/PID/stat`.
    ticks: u64,
    /// Dead already, but its parent has not asked.
    zombie: bool,
}

fn start(pid: &str) -> Option<Start> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in field 2 may hold blanks and brackets: what counts is after the last bracket.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let ticks = fields.nth(18)?.parse().ok()?;
    Some(Start { ticks, zombie })
}

pub(crate) fn field<'a>(process: &'a str, name: &str) -> Option<&'a str> {
    process
        .split(' ')
        .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

/// Whether the process of a holder runs on this machine, since the same start of it. False if it does
/// not say.
pub(crate) fn same_boot(process: &str) -> bool {
    let boot = field(process, "boot");
    boot.is_some() && boot == field(this_process(), "boot")
}

/// Whether the process of a holder can still be at work.
pub(crate) fn life(process: &str) -> Life {
    let Some(pid) = field(process, "pid").and_then(|pid| pid.parse::<u32>().ok()) else {
        return Life::Possible;
    };
    let Some(ticks) = field(process, "start").and_then(|start| start.parse::<u64>().ok()) else {
        return life_of_pid(pid);
    };
    if !place().is_some_and(|here| process.ends_with(&here)) {
        return Life::Possible;
    }
    match start(&pid.to_string()) {
        Some(found) if found.ticks == ticks && !found.zombie => Life::Possible,
        Some(_) | None => Life::Gone,
    }
}

/// Whether the process of a holder certainly runs, on this machine: its lane may have run out, but it
/// is not dead.
pub(crate) fn lives_here(process: &str) -> bool {
    let pid = field(process, "pid").and_then(|pid| pid.parse::<i32>().ok());
    if life(process) == Life::Gone || pid.is_none_or(|pid| pid <= 0) {
        return false;
    }
    // Without its start a pid was looked up above, in this very namespace.
    field(process, "start").is_none() || place().is_some_and(|here| process.ends_with(&here))
}

#[cfg(unix)]
fn life_of_pid(pid: u32) -> Life {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    match pid.map(rustix::process::test_kill_process) {
        Some(Err(rustix::io::Errno::SRCH)) => Life::Gone,
        Some(_) | None => Life::Possible,
    }
}

#[cfg(not(unix))]
fn life_of_pid(_pid: u32) -> Life {
    Life::Possible
}

/// The holder, for a person.
pub(crate) fn describe(process: &str) -> String {
    match field(process, "pid") {
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
    fn this_process_lives_and_handles_differ() {
        let (one, two) = (Owner::this_process(), Owner::this_process());
        assert_eq!(life(&one.process), Life::Possible);
        assert!(lives_here(&one.process));
        assert_eq!(one.process, two.process);
        assert_ne!(one.id, two.id);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn another_start_of_the_same_pid_is_another_process() {
        let text = this_process();
        let ticks = field(text, "start").unwrap();
        let other = text.replace(&format!("start={ticks}"), "start=1");
        assert_eq!(life(&other), Life::Gone);
        assert!(!lives_here(&other));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn another_machine_or_container_is_not_judged() {
        let text = this_process();
        let ticks = field(text, "start").unwrap();
        let dead = text.replace(&format!("start={ticks}"), "start=1");
        assert_eq!(life(&dead.replace("boot=", "boot=x")), Life::Possible);
        assert!(!lives_here(&dead.replace("boot=", "boot=x")));
        assert_eq!(life(&dead.replace("ns=pid", "ns=dip")), Life::Possible);
    }

    #[test]
    #[cfg(unix)]
    fn a_child_that_was_reaped_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(life(&format!("pid={pid}")), Life::Gone);
        assert_eq!(life(&format!("pid={}", std::process::id())), Life::Possible);
    }

    #[test]
    fn text_that_is_not_ours_is_not_judged() {
        assert_eq!(life(""), Life::Possible);
        assert!(!lives_here(""));
        assert_eq!(life("pid=x start=y"), Life::Possible);
        assert!(!lives_here("pid=x"));
        assert!(!lives_here("pid=4194304999"));
    }
}

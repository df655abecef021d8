//! Drops the capabilities of the calling thread that reach around the sandbox. Only root has any: some of
//! them let a process look into others whatever landlock says.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::io;

/// What building and installing as root needs: other users' files and accounts, and low ports.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Confines the calling thread. Without new privileges, no program that it starts gets them back.
pub(super) fn restrict() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective &= KEPT;
    sets.permitted &= KEPT;
    sets.inheritable &= KEPT;
    Ok(set_capabilities(None, sets)?)
}

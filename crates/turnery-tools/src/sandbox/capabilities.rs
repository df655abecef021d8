//! Drops the capabilities of the calling thread that bypass the sandbox. Only root has any: some of them let
//! a process inspect others regardless of landlock.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::io;

/// Capabilities for building and installing as root: other users' files and accounts, and low ports.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Drops all capabilities of the calling thread except [`KEPT_CAPABILITIES`]. Programs started without new
/// privileges do not get them back.
pub(super) fn restrict() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective &= KEPT_CAPABILITIES;
    sets.permitted &= KEPT_CAPABILITIES;
    sets.inheritable &= KEPT_CAPABILITIES;
    Ok(set_capabilities(None, sets)?)
}

//! Registers processes as hosts, and decides how long a host keeps what it holds (UP-27). All times are those of the
//! server's clock, so that the clocks of the hosts do not matter.

use super::{connection::Connection, pg_error::PgError, rows::Columns};
use crate::{
    LEASE_DURATION, Owner,
    lease::COMMIT_TIMEOUT,
    owner::{ProcessState, describe_holder, machine_identity, process_state},
};
use std::{cell::RefCell, collections::HashMap};
use turnery_engine::Timestamp;

/// Adds a process, or returns the host that it is. Removes hosts that were silent for a month.
const REGISTER: &str = "WITH forgotten AS ( \
         DELETE FROM hosts WHERE heartbeat_at < coalesce($3::timestamptz, clock_timestamp()) - interval '30 days') \
     INSERT INTO hosts (machine, process, heartbeat_at) \
     VALUES ($1, $2, coalesce($3::timestamptz, clock_timestamp())) \
     ON CONFLICT (machine, process) DO UPDATE SET heartbeat_at = excluded.heartbeat_at RETURNING host";

/// Hosts that this process has registered, by the description of the process.
#[derive(Default)]
pub(super) struct Hosts(RefCell<HashMap<String, i64>>);

impl Hosts {
    /// Returns the host of an owner.
    pub(super) async fn register(
        &self,
        connection: &Connection,
        owner: &Owner,
        now: Option<Timestamp>,
    ) -> Result<i64, PgError> {
        if let Some(host) = self.0.borrow().get(&owner.process) {
            return Ok(*host);
        }
        let rows = connection
            .query(REGISTER, &[&machine_identity(), &owner.process, &now])
            .await?;
        let host = rows.first().map_or(Ok(0), |row| Columns(row).integer(0))?;
        self.0.borrow_mut().insert(owner.process.clone(), host);
        Ok(host)
    }

    /// Forgets a host whose row is gone.
    pub(super) fn forget(&self, owner: &Owner) {
        self.0.borrow_mut().remove(&owner.process);
    }
}

/// Process that holds a lane or an effect, with the end of its lease.
#[derive(Debug)]
pub(super) struct HostHold {
    pub(super) machine: String,
    pub(super) process: String,
    pub(super) until: Timestamp,
}

impl HostHold {
    /// Returns the hold of a host with this heartbeat.
    pub(super) fn since(machine: String, process: String, heartbeat_at: Timestamp) -> Self {
        Self {
            machine,
            process,
            until: heartbeat_at + LEASE_DURATION,
        }
    }

    fn state(&self) -> ProcessState {
        match self.machine == machine_identity() {
            true => process_state(&self.process),
            false => ProcessState::MaybeAlive,
        }
    }

    /// Returns true if nobody else may take what the process holds: it is not known to be gone, and its lease has not
    /// expired. A process that runs on this machine keeps it for the time that its commit may wait.
    pub(super) fn is_held(&self, now: Timestamp) -> bool {
        match self.state() {
            ProcessState::Gone => false,
            ProcessState::AliveHere => now < self.until + COMMIT_TIMEOUT,
            ProcessState::MaybeAlive => now < self.until,
        }
    }

    /// Returns true if the lane is held, or if the process runs on this machine, even after its lease expired.
    pub(super) fn may_be_active(&self, now: Timestamp) -> bool {
        self.state() == ProcessState::AliveHere || self.is_held(now)
    }

    /// Describes the process for the user.
    pub(super) fn describe(&self) -> String {
        match self.machine == machine_identity() {
            true => describe_holder(&self.process),
            false => {
                let described = describe_holder(&self.process);
                format!("{described} of another machine")
            }
        }
    }
}

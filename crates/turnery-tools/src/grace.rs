//! Grace periods of commands and calls that must stop, in one place because each must fit into the next.
//! Callers wait for [`CALL`]; after a client disconnects, the agent waits slightly longer for all remaining
//! work.

use std::time::Duration;

/// Grace period of a command, from SIGTERM until its process group is killed.
pub const COMMAND: Duration = Duration::from_secs(1);

/// Grace period of a call until its future is dropped, which kills what is left of it at once: a command's
/// grace period and time to collect its output.
pub const CALL: Duration = Duration::from_millis(1250);

const _: () = assert!(COMMAND.as_millis() < CALL.as_millis());

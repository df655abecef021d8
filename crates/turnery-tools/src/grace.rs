//! Grace: how long what was told to stop may take, in one place because each must fit into the next.
//! Whoever waits for a call waits for [`CALL`]; a client that leaves waits a little longer for all.

use std::time::Duration;

/// A command, from the request to end (SIGTERM) until it is killed with its group.
pub const COMMAND: Duration = Duration::from_secs(1);

/// A call, until it is dropped, which kills at once what is left of it: a command's grace, and time
/// to collect what it printed.
pub const CALL: Duration = Duration::from_millis(1250);

const _: () = assert!(COMMAND.as_millis() < CALL.as_millis());

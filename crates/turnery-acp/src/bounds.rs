//! Bounds: every queue and buffer of a connection, and how large it may grow.

use std::time::Duration;

/// The longest line that is read. Unit: bytes (TR-9).
pub const LINE_LIMIT: usize = 64 << 20;
/// Bytes that the reader asks the operating system for at once.
pub(crate) const READ_BLOCK: usize = 64 << 10;
/// Blocks of whole lines that wait for the connection.
pub(crate) const READ_QUEUE: usize = 4;
/// Batches of lines that wait for stdout. When it is full, sessions wait.
pub(crate) const WRITE_QUEUE: usize = 256;
/// Bytes that are joined into one write.
pub(crate) const WRITE_BLOCK: usize = 64 << 10;
/// A session with a larger batch in the write queue waits until it is written, so that the queue is
/// bounded in bytes as well. Unit: bytes.
pub(crate) const LARGE_BATCH: usize = 64 << 10;
/// Answers that wait for room in the write queue before no more lines are read.
pub(crate) const ANSWERS_WAITING: usize = 256;
/// Requests of the client at work at once; more are refused.
pub(crate) const REQUESTS_AT_WORK: usize = 4096;
/// Requests to the client that wait for an answer at once.
pub(crate) const ASKS_OPEN: usize = 4096;
/// How long nothing may advance once the input has ended, before work that is left is dropped (TR-6).
/// Longer than a call may take to stop. See [`crate::quiet_time`].
pub(crate) const QUIET_AT_THE_END: Duration = Duration::from_millis(1500);
/// How much longer a client may read nothing of what was said.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(300);
/// Steps in which the time without progress is counted.
pub(crate) const QUIET_STEP: Duration = Duration::from_millis(50);
/// How long the end of a connection may take in all, however much advances: for a machine that is so
/// busy that answers are given, but slowly (TR-7).
pub(crate) const LEAVE_AT_MOST: Duration = Duration::from_secs(10);
/// How much of a command's output is shown while it runs: its end. Unit: bytes.
pub(crate) const PREVIEW: usize = 8 << 10;
/// A preview is sent again at the latest after this long, if there is more to show.
pub(crate) const PREVIEW_PAUSE_MS: i64 = 250;
/// A text that is longer is told in several pieces, so that a client with a short memory for lines can load what
/// another one sent. Unit: bytes (TR-9).
pub(crate) const LONGEST_TEXT: usize = 256 << 10;
/// Arguments and results larger than this are left out of `rawInput` and `rawOutput`. Unit: bytes.
pub(crate) const RAW_LIMIT: usize = 64 << 10;

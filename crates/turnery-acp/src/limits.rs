//! Limits of the queues, buffers and waits of a connection.

use std::time::Duration;

/// Maximum length of an input line. Unit: bytes (TR-9).
pub const LINE_LIMIT: usize = 64 << 20;
/// Size of one read. Unit: bytes.
pub(crate) const READ_BLOCK: usize = 64 << 10;
/// Maximum number of queued blocks of input lines.
pub(crate) const READ_QUEUE: usize = 4;
/// Maximum number of queued batches of output lines. Sessions wait while the queue is full.
pub(crate) const WRITE_QUEUE: usize = 256;
/// Size up to which batches are joined into one write. Unit: bytes.
pub(crate) const WRITE_BLOCK: usize = 64 << 10;
/// Size above which a session waits until its batch is written, so that the queue is bounded in bytes too.
/// Unit: bytes.
pub(crate) const LARGE_BATCH_THRESHOLD: usize = 64 << 10;
/// Number of responses waiting for the write queue at which input is no longer read.
pub(crate) const MAX_QUEUED_RESPONSES: usize = 256;
/// Maximum number of concurrent requests of the client; more are rejected.
pub(crate) const MAX_CONCURRENT_REQUESTS: usize = 4096;
/// Maximum number of pending requests to the client.
pub(crate) const MAX_CLIENT_REQUESTS: usize = 4096;
/// Time without progress after the end of input, after which remaining work is dropped (TR-6). Longer than a
/// call may take to stop. See [`crate::transport::stall_timer`].
pub(crate) const SHUTDOWN_STALL_LIMIT: Duration = Duration::from_millis(1500);
/// Additional time without progress for the client to read the remaining output.
pub(crate) const FLUSH_STALL_LIMIT: Duration = Duration::from_millis(300);
/// Interval at which progress is checked.
pub(crate) const STALL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum duration of the shutdown, whatever the progress: bounds it on a machine so busy that responses are
/// slow (TR-7).
pub(crate) const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);
/// Size of the preview of a running command's output, taken from its end. Unit: bytes.
pub(crate) const PREVIEW_LIMIT: usize = 8 << 10;
/// Time since the last preview after which any further output sends a new one, even if the output has grown
/// by less than a quarter. Unit: milliseconds.
pub(crate) const PREVIEW_INTERVAL_MS: i64 = 250;
/// Length above which a text is sent in several chunks, so that a client with a smaller line limit can load
/// it. Unit: bytes (TR-9).
pub(crate) const TEXT_CHUNK_LIMIT: usize = 256 << 10;
/// Size above which arguments and results are omitted from `rawInput` and `rawOutput`. Unit: bytes.
pub(crate) const RAW_VALUE_LIMIT: usize = 64 << 10;

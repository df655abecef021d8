//! Inline: a runtime that does the short jobs of a store itself.

use std::{fmt, sync::Arc};
use tokio::runtime::Handle;

/// A runtime that does the short jobs of a store itself, since changing threads would take longer than they do. It
/// has two threads at least, so that a disk which hangs does not keep it from everything else.
#[derive(Clone)]
pub struct Inline {
    /// Where the jobs are done.
    pub runtime: Handle,
    /// Called while one of its threads hangs in a job, every 50 ms: others must take over what that would do.
    pub on_stall: Arc<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline").finish_non_exhaustive()
    }
}

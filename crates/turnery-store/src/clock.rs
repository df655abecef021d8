//! Clock: where a store takes the time from. Only lanes need it; a test turns it by hand.

use std::{fmt, sync::Arc, time::SystemTime};
use turnery_engine::Timestamp;

/// Tells the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The clock on the wall, which all processes of a machine share.
    #[must_use]
    pub fn system() -> Self {
        Self::new(|| SystemTime::now().into())
    }

    /// Any other clock.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

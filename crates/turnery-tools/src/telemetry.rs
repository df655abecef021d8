//! Reports tool calls to subscribers and to the log (JIDO-55).
//!
//! There are three events, whose paths only this module builds: `<prefix>.tool.execute.start`, `.stop` and
//! `.exception` (JIDO-62). Each start is followed by exactly one of the others, even if the call's future is
//! dropped. A timeout is an exception; every other failure is a stop whose result is an error (UP-23).
//! Parameters and results are sanitised before subscribers receive them (JIDO-64). Events are also logged
//! through `tracing` at debug level. Without subscribers and logging, no event is built.

mod call_span;
mod sanitise;

pub(crate) use call_span::CallSpan;
pub use sanitise::sanitise;

use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, PoisonError, RwLock},
};
use tracing::Level;

/// Log target of these events.
const TARGET: &str = "turnery::tool";

/// Stage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallStage {
    /// The call starts.
    Start,
    /// The call ended with a result or a failure.
    Stop,
    /// The call timed out.
    Exception,
}

impl CallStage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Exception => "exception",
        }
    }
}

/// Path of an event: segments separated by dots.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventPath(Arc<str>);

impl EventPath {
    /// Returns the segments of the path.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }
}

impl From<&str> for EventPath {
    fn from(path: &str) -> Self {
        Self(path.into())
    }
}

impl fmt::Display for EventPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Measurements of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Measurements {
    /// Start of a call (JIDO-56).
    Began {
        /// Wall-clock time. Unit: nanoseconds since 1970, UTC.
        system_time: u64,
    },
    /// End of a call (JIDO-58, JIDO-60).
    Ended {
        /// Duration of the call. Unit: milliseconds.
        duration_ms: u64,
        /// Duration of the call. Unit: nanoseconds.
        duration: u64,
    },
}

/// Metadata of an event. Each stage has a fixed set of keys; unknown values are null.
pub type EventMetadata = Map<String, Value>;

/// Receives an event's path, measurements and metadata, and the config it was attached with.
type EventHandler = dyn Fn(&EventPath, &Measurements, &EventMetadata, &Value) + Send + Sync;

struct Subscriber {
    id: String,
    path: EventPath,
    handler: Box<EventHandler>,
    config: Value,
}

/// Error of attaching a subscriber whose id is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a subscriber {id:?} is attached already; detach it first, or choose another id")]
pub struct AttachError {
    /// Id of the subscriber.
    pub id: String,
}

/// Handle for subscribing to the events of a toolbox. Clones share their subscribers.
#[derive(Clone)]
pub struct ToolTelemetry(Arc<TelemetryInner>);

struct TelemetryInner {
    prefix: String,
    paths: [EventPath; 3],
    /// Replaced as a whole, so that no lock is held while a handler runs.
    subscribers: RwLock<Arc<[Arc<Subscriber>]>>,
}

impl Default for ToolTelemetry {
    fn default() -> Self {
        Self::new("turnery")
    }
}

impl fmt::Debug for ToolTelemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolTelemetry")
            .field(&self.0.prefix)
            .finish()
    }
}

impl ToolTelemetry {
    /// Creates a handle whose event paths begin with `prefix`.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        let path = |stage: CallStage| {
            let path = format!("{prefix}.tool.execute.{}", stage.as_str());
            EventPath(path.into())
        };
        Self(Arc::new(TelemetryInner {
            prefix: prefix.to_owned(),
            paths: [CallStage::Start, CallStage::Stop, CallStage::Exception].map(path),
            subscribers: RwLock::new(Arc::new([])),
        }))
    }

    /// Returns the path of the event at this stage (JIDO-62).
    #[must_use]
    pub fn event_path(&self, stage: CallStage) -> &EventPath {
        let [start, stop, exception] = &self.0.paths;
        match stage {
            CallStage::Start => start,
            CallStage::Stop => stop,
            CallStage::Exception => exception,
        }
    }

    /// Calls `handler` with `config` for every event of this path (JIDO-63). The handler runs on the thread
    /// of the call, so it should be quick. A handler that panics is detached.
    pub fn attach(
        &self,
        id: &str,
        path: EventPath,
        handler: impl Fn(&EventPath, &Measurements, &EventMetadata, &Value) + Send + Sync + 'static,
        config: Value,
    ) -> Result<(), AttachError> {
        let mut subscribers = self
            .0
            .subscribers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if subscribers.iter().any(|subscriber| subscriber.id == id) {
            return Err(AttachError { id: id.to_owned() });
        }
        let subscriber = Arc::new(Subscriber {
            id: id.to_owned(),
            path,
            handler: Box::new(handler),
            config,
        });
        *subscribers = subscribers.iter().cloned().chain([subscriber]).collect();
        Ok(())
    }

    /// Detaches a subscriber. Returns false if there is none with that id.
    pub fn detach(&self, id: &str) -> bool {
        self.retain_subscribers(|subscriber| subscriber.id != id)
    }

    /// Returns true if the event has a subscriber or is logged.
    fn has_listener(&self, path: &EventPath) -> bool {
        is_logging_enabled() || self.subscribers().iter().any(|one| one.path == *path)
    }

    fn emit(
        &self,
        stage: CallStage,
        measurements: Measurements,
        metadata: impl FnOnce() -> EventMetadata,
    ) {
        let path = self.event_path(stage);
        if !self.has_listener(path) {
            return;
        }
        let metadata = metadata();
        if is_logging_enabled() {
            let about = Value::Object(metadata.clone());
            tracing::debug!(target: TARGET, event = %path, ?measurements, metadata = %about);
        }
        for one in self.subscribers().iter().filter(|one| one.path == *path) {
            let tell = || (one.handler)(path, &measurements, &metadata, &one.config);
            if catch_unwind(AssertUnwindSafe(tell)).is_err() {
                self.retain_subscribers(|kept| !std::ptr::eq(kept, &raw const **one));
                tracing::warn!(target: TARGET, id = one.id, "a subscriber panicked and was detached");
            }
        }
    }

    fn subscribers(&self) -> Arc<[Arc<Subscriber>]> {
        let subscribers = self.0.subscribers.read();
        Arc::clone(&subscribers.unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the subscribers for which `keeps` is true. Returns true if others were removed.
    fn retain_subscribers(&self, keeps: impl Fn(&Subscriber) -> bool) -> bool {
        let mut subscribers = self
            .0
            .subscribers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let before = subscribers.len();
        *subscribers = subscribers
            .iter()
            .filter(|one| keeps(one))
            .cloned()
            .collect();
        subscribers.len() < before
    }
}

fn is_logging_enabled() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

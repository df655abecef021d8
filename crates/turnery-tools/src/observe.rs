//! Observe: what happens to tool calls, for whoever wants to measure or log it (JIDO-55).
//!
//! Three events, whose paths this module alone builds: `<prefix>.tool.execute.start`, `.stop` and
//! `.exception` (JIDO-62). Each start is followed by exactly one of the others, also when the call
//! is dropped in the middle. A timeout is an exception; every other failure is a stop whose result
//! is an error (UP-23). Parameters and results are sanitised before anybody sees them (JIDO-64).
//! Everything is logged through `tracing` at debug level as well. Where nobody listens, nothing is
//! built.

mod sanitise;
mod watch;

pub use sanitise::sanitise;
pub(crate) use watch::Watch;

use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, PoisonError, RwLock},
};
use tracing::Level;

/// Where `tracing` finds these events.
const TARGET: &str = "turnery::tool";

/// The point in a call's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It begins.
    Start,
    /// It is over: a result, or a failure.
    Stop,
    /// It ran too long.
    Exception,
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Exception => "exception",
        }
    }
}

/// The path of an event: words with dots between them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventPath(Arc<str>);

impl EventPath {
    /// The words of the path.
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

/// What an event measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Measurements {
    /// At the start (JIDO-56).
    Began {
        /// The wall clock. Unit: nanoseconds since 1970, UTC.
        system_time: u64,
    },
    /// At the end (JIDO-58, JIDO-60).
    Ended {
        /// How long it took. Unit: milliseconds.
        duration_ms: u64,
        /// The same. Unit: nanoseconds.
        duration: u64,
    },
}

/// What an event is about. The keys of each stage are always there; what is unknown is null.
pub type Metadata = Map<String, Value>;

/// Takes an event: its path, what it measures, what it is about, and what it was attached with.
type Handler = dyn Fn(&EventPath, &Measurements, &Metadata, &Value) + Send + Sync;

struct Subscriber {
    id: String,
    path: EventPath,
    handler: Box<Handler>,
    config: Value,
}

/// Why a subscriber was not attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a subscriber {id:?} is attached already; detach it first, or choose another id")]
pub struct AlreadyAttached {
    /// Its id.
    pub id: String,
}

/// A handle on the events of some tools. Clones share their subscribers.
#[derive(Clone)]
pub struct Observe(Arc<Inner>);

struct Inner {
    prefix: String,
    paths: [EventPath; 3],
    /// Replaced as a whole, so that no lock is held while a subscriber is at work.
    subscribers: RwLock<Arc<[Arc<Subscriber>]>>,
}

impl Default for Observe {
    fn default() -> Self {
        Self::new("turnery")
    }
}

impl fmt::Debug for Observe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observe").field(&self.0.prefix).finish()
    }
}

impl Observe {
    /// Events whose paths begin with `prefix`.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        let path = |stage: Stage| {
            let path = format!("{prefix}.tool.execute.{}", stage.as_str());
            EventPath(path.into())
        };
        Self(Arc::new(Inner {
            prefix: prefix.to_owned(),
            paths: [Stage::Start, Stage::Stop, Stage::Exception].map(path),
            subscribers: RwLock::new(Arc::new([])),
        }))
    }

    /// The path of the event at this stage (JIDO-62).
    #[must_use]
    pub fn tool_execute(&self, stage: Stage) -> &EventPath {
        let [start, stop, exception] = &self.0.paths;
        match stage {
            Stage::Start => start,
            Stage::Stop => stop,
            Stage::Exception => exception,
        }
    }

    /// Hand every event of this path to `handler`, with `config` (JIDO-63). It is called where the
    /// tool runs, so it should be quick. One that panics is detached.
    pub fn attach(
        &self,
        id: &str,
        path: EventPath,
        handler: impl Fn(&EventPath, &Measurements, &Metadata, &Value) + Send + Sync + 'static,
        config: Value,
    ) -> Result<(), AlreadyAttached> {
        let mut subscribers = self
            .0
            .subscribers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if subscribers.iter().any(|subscriber| subscriber.id == id) {
            return Err(AlreadyAttached { id: id.to_owned() });
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

    /// Take a subscriber away. False if there was none of that id.
    pub fn detach(&self, id: &str) -> bool {
        self.keep(|subscriber| subscriber.id != id)
    }

    /// Whether anybody wants the event.
    fn is_heard(&self, path: &EventPath) -> bool {
        is_logged() || self.subscribers().iter().any(|one| one.path == *path)
    }

    fn emit(&self, stage: Stage, measurements: Measurements, metadata: impl FnOnce() -> Metadata) {
        let path = self.tool_execute(stage);
        if !self.is_heard(path) {
            return;
        }
        let metadata = metadata();
        if is_logged() {
            let about = Value::Object(metadata.clone());
            tracing::debug!(target: TARGET, event = %path, ?measurements, metadata = %about);
        }
        for one in self.subscribers().iter().filter(|one| one.path == *path) {
            let tell = || (one.handler)(path, &measurements, &metadata, &one.config);
            if catch_unwind(AssertUnwindSafe(tell)).is_err() {
                self.keep(|kept| !std::ptr::eq(kept, &raw const **one));
                tracing::warn!(target: TARGET, id = one.id, "a subscriber broke and was detached");
            }
        }
    }

    fn subscribers(&self) -> Arc<[Arc<Subscriber>]> {
        let subscribers = self.0.subscribers.read();
        Arc::clone(&subscribers.unwrap_or_else(PoisonError::into_inner))
    }

    /// Keep some subscribers. True if others went.
    fn keep(&self, keeps: impl Fn(&Subscriber) -> bool) -> bool {
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

fn is_logged() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

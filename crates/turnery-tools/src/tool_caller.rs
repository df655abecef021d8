//! Lets a running tool call other tools. Its calls are judged, recorded and shown like those of the model.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use turnery_engine::{ToolEnvelope, ToolError, ToolErrorKind};

/// Tool calls that a running tool requests at once.
#[derive(Debug)]
pub struct NestedCalls {
    /// Name and arguments of each call.
    pub calls: Vec<(String, Value)>,
    /// Takes the results, in call order. Dropped if the calls will not run.
    pub reply: oneshot::Sender<Vec<ToolEnvelope>>,
}

/// Handle with which a running tool calls other tools.
#[derive(Clone, Debug)]
pub struct ToolCaller(mpsc::Sender<NestedCalls>);

impl ToolCaller {
    /// Creates a handle, and the receiver for the host that runs the calls.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<NestedCalls>) {
        let (sender, requests) = mpsc::channel(1);
        (Self(sender), requests)
    }

    /// Calls tools, those side by side that may run in parallel, and returns the results in call order (C-6,
    /// LASH-71). A failed call is a result, not an error; the error is that nothing can be called any more.
    pub async fn call(&self, calls: Vec<(String, Value)>) -> Result<Vec<ToolEnvelope>, ToolError> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let (reply, results) = oneshot::channel();
        let sent = self.0.send(NestedCalls { calls, reply }).await;
        match (sent, results.await) {
            (Ok(()), Ok(results)) => Ok(results),
            (Ok(()) | Err(_), _) => Err(ToolError::new(
                ToolErrorKind::Cancelled,
                "the call that requested these has ended",
            )),
        }
    }
}

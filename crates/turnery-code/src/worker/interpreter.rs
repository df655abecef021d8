//! The interpreter of a session: runs blocks and makes snapshots.

use super::{
    awaited_calls,
    block_execution::{BlockExecution, RunEnd},
    host_channel::HostChannel,
    json,
    memory_limit::MemoryLimit,
};
use crate::{
    output::OutputBuffer,
    protocol::{BlockEnd, MAX_VALUE_BYTES, OUT_OF_MEMORY_EXIT, WorkerMessage, WorkerStart},
    snapshot::{FunctionNames, decode_snapshot, encode_snapshot},
};
use monty::{Dump, MontyRepl, Session, SessionRef, dump};
use monty_types::{
    CompileOptions, ExcType, MontyException, MontyObject, ResourceLimits, ResourceTracker,
};
use serde_json::Value;
use std::{io, mem};

/// Name of the script in dumps; tracebacks name the blocks instead.
const SCRIPT_NAME: &str = "code.py";
/// Largest error text that is sent; the host cuts it further. Unit: bytes.
const MAX_ERROR_BYTES: usize = 1 << 20;
/// Beginning of the message of the interpreter's own `MemoryError`.
const OUT_OF_MEMORY: &str = "memory limit exceeded";

/// Interpreter of a session.
pub(super) struct Interpreter {
    repl: MontyRepl,
    names: FunctionNames,
    memory_limit: MemoryLimit,
    snapshot_bytes: usize,
    limits: ResourceLimits,
}

impl Interpreter {
    /// Starts without variables, or with those of a snapshot.
    ///
    /// # Errors
    ///
    /// Returns the reason if the snapshot is damaged or of another version.
    pub(super) fn start(
        start: &WorkerStart,
        snapshot: Option<&[u8]>,
        memory_limit: MemoryLimit,
    ) -> Result<Self, String> {
        // The interpreter counts no memory, but compares the size of single large results with this limit.
        let limits = ResourceLimits::default()
            .max_memory(usize::try_from(start.memory_bytes).unwrap_or(usize::MAX))
            .max_recursion_depth(start.recursion_depth);
        let tracker = ResourceTracker::new(limits.clone());
        let (names, repl) = match snapshot {
            None => {
                let repl = MontyRepl::new(SCRIPT_NAME, tracker, CompileOptions::default());
                (FunctionNames::default(), repl)
            }
            Some(snapshot) => {
                let (names, dump) = decode_snapshot(snapshot)?;
                let dump = Dump::load(dump).map_err(|error| error.to_string())?;
                let Session::Idle(mut repl) = dump.state else {
                    return Err("they were saved in the middle of a block".to_owned());
                };
                *repl.tracker_mut() = tracker;
                (names, *repl)
            }
        };
        Ok(Self {
            repl,
            names,
            memory_limit,
            snapshot_bytes: start.snapshot_bytes,
            limits,
        })
    }

    /// Runs a block and sends its output, its end and the snapshot after it.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is gone.
    pub(super) fn run_block(
        &mut self,
        code: &str,
        functions: &[String],
        channel: &mut HostChannel,
    ) -> io::Result<()> {
        let code = awaited_calls::mark(code, functions, &mut self.names);
        let empty = MontyRepl::new(
            SCRIPT_NAME,
            ResourceTracker::new(self.limits.clone()),
            CompileOptions::default(),
        );
        let repl = mem::replace(&mut self.repl, empty);
        let (repl, end) = BlockExecution::new(functions, channel).run(repl, &code)?;
        self.repl = repl;
        let end = match end {
            RunEnd::Completed(value) => BlockEnd::Completed(final_value(value)),
            RunEnd::Ended => BlockEnd::Ended,
            RunEnd::Failed(error) if is_out_of_memory(&error) => {
                std::process::exit(OUT_OF_MEMORY_EXIT)
            }
            RunEnd::Failed(error) => {
                let text = awaited_calls::unmark(&error.to_string(), functions, &self.names);
                BlockEnd::Failed(OutputBuffer::cut(&text, MAX_ERROR_BYTES))
            }
        };
        channel.send(&WorkerMessage::Finished(end))?;
        let limit = self.memory_limit;
        match limit.with_room_for_snapshot(|| self.snapshot())? {
            Some(snapshot) => channel.send_snapshot(&snapshot),
            None => channel.send(&WorkerMessage::NoSnapshot),
        }
    }

    /// Returns a snapshot, or `None` if it is too large or the variables cannot be saved.
    fn snapshot(&self) -> Option<Vec<u8>> {
        // Looks at the size first, so that too large variables are not copied.
        let size = postcard::experimental::serialized_size(&self.repl).ok()?;
        if size > self.snapshot_bytes {
            return None;
        }
        let dump = dump(SCRIPT_NAME, None, SessionRef::Idle(&self.repl)).ok()?;
        let snapshot = encode_snapshot(&self.names, &dump).ok()?;
        (snapshot.len() <= self.snapshot_bytes).then_some(snapshot)
    }
}

/// Converts the value of the last expression.
fn final_value(object: MontyObject) -> Option<Value> {
    if let MontyObject::None = object {
        return None;
    }
    let value = json::to_json(&object).unwrap_or_else(|_| Value::String(json::repr(&object)));
    // Strings may need more bytes in JSON than in memory, so the length is that of the JSON text.
    let length = serde_json::to_vec(&value).map_or(usize::MAX, |json| json.len());
    Some(match length <= MAX_VALUE_BYTES {
        true => value,
        false => Value::String(format!("<{} too large to return>", object.type_name())),
    })
}

/// Returns true for the error by which the interpreter refuses an allocation.
fn is_out_of_memory(error: &MontyException) -> bool {
    let is_refusal = |message: &str| message.starts_with(OUT_OF_MEMORY);
    error.exc_type() == ExcType::MemoryError && error.message().is_some_and(is_refusal)
}

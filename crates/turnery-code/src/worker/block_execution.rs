//! Runs one block: answers what the interpreter asks for until the block ends.

use super::{
    awaited_calls::{self, FunctionReference},
    host_channel::HostChannel,
    json,
    print_buffer::PrintBuffer,
};
use crate::{
    host::{CallReply, CodeCall},
    protocol::{HostMessage, MAX_VALUE_BYTES, WorkerMessage, invalid_data},
};
use monty::{MontyRepl, ReplFunctionCall, ReplProgress, ReplResolveFutures, ReplStartError};
use monty_types::{
    ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult, OsFunctionCall,
    PrintWriter,
};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, io};

/// End of a run of the interpreter.
pub(super) enum RunEnd {
    Completed(MontyObject),
    /// The host ended the block.
    Ended,
    Failed(MontyException),
}

/// Call whose result the code awaits, or may await.
struct PendingCall {
    call: CodeCall,
    /// Size of its arguments as JSON. Unit: bytes.
    bytes: usize,
}

/// State of the interpreter after a step, or the error that ended the block.
type StepResult = Result<ReplProgress, Box<ReplStartError>>;

/// Execution of one block.
pub(super) struct BlockExecution<'a> {
    functions: &'a [String],
    print: PrintBuffer<'a>,
    /// Calls that were made but not sent to the host, by their number.
    pending: BTreeMap<u32, PendingCall>,
    is_ended: bool,
}

impl<'a> BlockExecution<'a> {
    pub(super) fn new(functions: &'a [String], channel: &'a mut HostChannel) -> Self {
        Self {
            functions,
            print: PrintBuffer::new(channel),
            pending: BTreeMap::new(),
            is_ended: false,
        }
    }

    /// Runs code and returns the interpreter with its variables.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is gone.
    pub(super) fn run(mut self, repl: MontyRepl, code: &str) -> io::Result<(MontyRepl, RunEnd)> {
        let mut step = repl.feed_start(code, vec![], PrintWriter::Callback(&mut self.print));
        let (repl, end) = loop {
            step = match step {
                Ok(ReplProgress::Complete { repl, value }) => {
                    break (repl, RunEnd::Completed(value));
                }
                Ok(ReplProgress::FunctionCall(call)) => self.call_function(call)?,
                Ok(ReplProgress::ResolveFutures(futures)) => self.resolve(futures)?,
                Ok(ReplProgress::NameLookup(lookup)) => {
                    let function = match lookup.object_id() {
                        None => FunctionReference::resolve(&lookup.name, self.functions),
                        Some(_) => None,
                    };
                    let function = function.map(|function| function.to_object());
                    let result = NameLookupResult::from(function);
                    lookup.resume(result, PrintWriter::Callback(&mut self.print))
                }
                Ok(ReplProgress::OsCall(call)) => {
                    let refusal = refuse_os_call(&call.function_call);
                    call.resume(refusal, PrintWriter::Callback(&mut self.print))
                }
                Err(failed) if self.is_ended => break (failed.repl, RunEnd::Ended),
                Err(failed) => break (failed.repl, RunEnd::Failed(failed.error)),
            };
        };
        self.print.flush()?;
        Ok((repl, end))
    }

    /// Calls a function at once, or keeps the call until the code awaits it.
    fn call_function(&mut self, mut call: ReplFunctionCall) -> io::Result<StepResult> {
        let function = match call.object_id {
            None => FunctionReference::resolve(&call.function_name, self.functions),
            Some(_) => None,
        };
        let Some(FunctionReference { name, is_awaited }) = function else {
            let result =
                ExtFunctionResult::NotFound(awaited_calls::original_name(&call.function_name));
            return Ok(call.resume(result, PrintWriter::Callback(&mut self.print)));
        };
        let args = std::mem::take(&mut call.args);
        let kwargs = std::mem::take(&mut call.kwargs);
        let pending = match encode_call(name, &args, &kwargs) {
            Ok(pending) => pending,
            Err(reason) => {
                let message = format!("{name}(): {reason}");
                let error = MontyException::new(ExcType::TypeError, Some(message));
                return Ok(call.resume(error, PrintWriter::Callback(&mut self.print)));
            }
        };
        if is_awaited {
            self.pending.insert(call.call_id, pending);
            return Ok(call.resume_pending(PrintWriter::Callback(&mut self.print)));
        }
        Ok(match self.ask_host(vec![pending.call])? {
            CallReply::End => call.abort(end_exception(), PrintWriter::Callback(&mut self.print)),
            CallReply::Results(results) => {
                let result = results.into_iter().next().map(to_result);
                let result = result.ok_or_else(|| invalid_data("a call has no result"))?;
                call.resume(result, PrintWriter::Callback(&mut self.print))
            }
        })
    }

    /// Sends the awaited calls to the host; those that are too large together, in several steps.
    fn resolve(&mut self, futures: ReplResolveFutures) -> io::Result<StepResult> {
        let mut ids = Vec::new();
        let mut calls = Vec::new();
        let mut bytes = 0;
        let mut awaited = futures.pending_call_ids().to_vec();
        // In the order of the calls.
        awaited.sort_unstable();
        for id in awaited {
            let Some(pending) = self.pending.get(&id) else {
                continue;
            };
            bytes += pending.bytes;
            if bytes > MAX_VALUE_BYTES && !calls.is_empty() {
                break;
            }
            ids.push(id);
            calls.extend(self.pending.remove(&id).map(|pending| pending.call));
        }
        if calls.is_empty() {
            // Left over from an earlier block, whose calls nobody awaited then.
            let results = futures.pending_call_ids().iter().map(|id| {
                let message = "a function called in an earlier block can no longer be awaited";
                let error = MontyException::runtime_error(message);
                (*id, ExtFunctionResult::Error(error))
            });
            let results = results.collect();
            return Ok(futures.resume(results, PrintWriter::Callback(&mut self.print)));
        }
        Ok(match self.ask_host(calls)? {
            CallReply::End => {
                futures.abort(end_exception(), PrintWriter::Callback(&mut self.print))
            }
            CallReply::Results(results) => {
                let results = results.into_iter().map(to_result);
                let results = ids.into_iter().zip(results).collect();
                futures.resume(results, PrintWriter::Callback(&mut self.print))
            }
        })
    }

    fn ask_host(&mut self, calls: Vec<CodeCall>) -> io::Result<CallReply> {
        let count = calls.len();
        let channel = self.print.flush()?;
        channel.send(&WorkerMessage::Calls(calls))?;
        match channel.receive()? {
            HostMessage::Results(results) if results.len() == count => {
                Ok(CallReply::Results(results))
            }
            HostMessage::End => {
                self.is_ended = true;
                Ok(CallReply::End)
            }
            HostMessage::Results(_) | HostMessage::Start(_) | HostMessage::Run { .. } => {
                Err(invalid_data("expected one result for each call"))
            }
        }
    }
}

/// Encodes a call, or returns the reason why an argument cannot be passed on.
fn encode_call(
    name: &str,
    args: &[MontyObject],
    kwargs: &[(MontyObject, MontyObject)],
) -> Result<PendingCall, String> {
    let mut values = Vec::with_capacity(args.len());
    for (index, arg) in args.iter().enumerate() {
        let of_arg = |reason| format!("argument {}: {reason}", index + 1);
        values.push(json::to_json(arg).map_err(of_arg)?);
    }
    let mut fields = Map::new();
    for (key, arg) in kwargs {
        let key = match key {
            MontyObject::String(key) => key.clone(),
            other => {
                return Err(format!(
                    "keywords must be strings, not {}",
                    other.type_name()
                ));
            }
        };
        let value = json::to_json(arg).map_err(|reason| format!("argument '{key}': {reason}"))?;
        fields.insert(key, value);
    }
    let call = CodeCall {
        function: name.to_owned(),
        args: values,
        kwargs: fields,
    };
    let bytes = serde_json::to_vec(&call).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_VALUE_BYTES {
        return Err(format!(
            "the arguments are too large: {bytes} bytes as JSON, at most {MAX_VALUE_BYTES} are possible"
        ));
    }
    Ok(PendingCall { call, bytes })
}

/// Converts the result of a call.
fn to_result(result: Result<Value, String>) -> ExtFunctionResult {
    match result {
        Ok(value) => ExtFunctionResult::Return(json::from_json(value)),
        Err(message) => ExtFunctionResult::Error(MontyException::runtime_error(message)),
    }
}

/// Returns the exception of a call of the operating system.
fn refuse_os_call(call: &OsFunctionCall) -> MontyException {
    let message = format!(
        "{} is not available: this code has no access to files, the environment or the clock. Call the \
         functions that are provided for it instead",
        call.name()
    );
    MontyException::new(ExcType::PermissionError, Some(message))
}

/// Returns the exception that ends a block; nobody sees it.
fn end_exception() -> MontyException {
    MontyException::new(ExcType::SystemExit, None)
}

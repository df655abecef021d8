//! Functions and output of the program that runs the code.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Functions that code can call, and the receiver of what it prints.
pub trait CodeHost: Send {
    /// Calls functions: one, or those that the code awaits together. Results are in the order of the calls.
    fn call<'a>(&'a mut self, calls: Vec<CodeCall>) -> BoxFuture<'a, CallReply>;

    /// Receives the text printed since the last call of this method.
    fn print(&mut self, text: &str);
}

/// Call of a host function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeCall {
    /// Name of the function: one of those given to [`CodeSession::run`](crate::CodeSession::run).
    pub function: String,
    /// Positional arguments, in order.
    pub args: Vec<Value>,
    /// Keyword arguments.
    pub kwargs: Map<String, Value>,
}

/// Reply of the host to calls.
#[derive(Clone, Debug, PartialEq)]
pub enum CallReply {
    /// Results in the order of the calls. An error becomes a Python `RuntimeError` with this message.
    Results(Vec<Result<Value, String>>),
    /// Ends the block at once, without an exception that the code could catch.
    End,
}

//! A host for tests, and a session with it.

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::Value;
use std::sync::Once;
use turnery_code::{CallReply, CodeCall, CodeEnd, CodeHost, CodeLimits, CodeOutput, CodeSession};

/// Names of the functions of a [`TestHost`].
const FUNCTIONS: &[&str] = &["echo", "fail", "end"];

/// Records batches of calls and printed text. `echo` returns its first argument, or all its keyword arguments;
/// `fail` fails; `end` ends the block.
#[derive(Debug, Default)]
pub(crate) struct TestHost {
    pub(crate) batches: Vec<Vec<CodeCall>>,
    pub(crate) printed: String,
}

impl CodeHost for TestHost {
    fn call<'a>(&'a mut self, calls: Vec<CodeCall>) -> BoxFuture<'a, CallReply> {
        self.batches.push(calls.clone());
        async move {
            let mut results = Vec::new();
            for call in calls {
                results.push(match call.function.as_str() {
                    "fail" => Err("it failed".to_owned()),
                    "end" => return CallReply::End,
                    _ => Ok(match call.args.into_iter().next() {
                        Some(first) => first,
                        None => Value::Object(call.kwargs),
                    }),
                });
            }
            CallReply::Results(results)
        }
        .boxed()
    }

    fn print(&mut self, text: &str) {
        self.printed.push_str(text);
    }
}

/// Session with a host.
pub(crate) struct TestSession {
    pub(crate) session: CodeSession,
    pub(crate) host: TestHost,
}

impl TestSession {
    pub(crate) fn new() -> Self {
        Self::with_limits(CodeLimits::default())
    }

    pub(crate) fn with_limits(limits: CodeLimits) -> Self {
        Self::with_session(CodeSession::new(limits))
    }

    pub(crate) fn restore(snapshot: Vec<u8>) -> Self {
        Self::with_session(CodeSession::restore(CodeLimits::default(), snapshot))
    }

    fn with_session(session: CodeSession) -> Self {
        static USE_WORKER: Once = Once::new();
        USE_WORKER
            .call_once(|| turnery_code::use_worker(env!("CARGO_BIN_EXE_turnery-code-worker")));
        Self {
            session,
            host: TestHost::default(),
        }
    }

    pub(crate) async fn run(&mut self, code: &str) -> CodeOutput {
        let functions: Vec<String> = FUNCTIONS.iter().map(|&name| name.to_owned()).collect();
        self.session.run(code, &functions, &mut self.host).await
    }

    /// Runs code that must complete, and returns its value; `null` if there is none.
    pub(crate) async fn value(&mut self, code: &str) -> Value {
        let output = self.run(code).await;
        assert_eq!(output.end, CodeEnd::Completed, "{code}");
        output.value.unwrap_or_default()
    }

    /// Runs code that must fail, and returns the error.
    pub(crate) async fn error(&mut self, code: &str) -> String {
        match self.run(code).await.end {
            CodeEnd::Failed(error) => error,
            end => panic!("{code}: {end:?}"),
        }
    }
}

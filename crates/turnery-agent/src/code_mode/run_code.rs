//! `run_code`: runs the block of code of a response.

use super::{
    code_block::CODE_TOOL,
    code_model::{fenced_code, fenced_text},
    functions::{CodeFunction, code_functions},
    nested_call_budget::NestedCallBudget,
    variables::{CodeVariables, SessionInterpreter, encode_snapshot},
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{borrow::Cow, sync::Arc, time::Duration};
use tokio::sync::{Mutex, watch};
use turnery_code::{CallReply, CodeCall, CodeEnd, CodeHost, CodeOutput};
use turnery_engine::{
    Artifact, CallDetail, CallKind, Content, ToolEnvelope, ToolError, ToolErrorKind, ToolSpec,
};
use turnery_tools::{Progress, ToolCx, TypedTool, Workspace};

const UNCLOSED: &str =
    "the block of code has no closing line ```, so nothing was run: write it again, whole";

const CANCELLED: &str = "cancelled: variables are as before this block";

const VARIABLES_LOST: &str =
    "(The variables of earlier blocks are gone: they were too large to be kept.)\n";

const IMAGES_LEFT_OUT: &str =
    "(Images that functions returned are left out, because the block failed: read them again.)";

/// Maximum number of characters of a title.
const MAX_TITLE: usize = 80;

/// Time limit of a block, most of which its calls may take. The interpreter limits its own time.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Arguments of `run_code`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RunCodeArgs {
    /// The code.
    #[serde(default)]
    code: String,
    /// True if the block has no end, so that the code may be cut off.
    #[serde(default)]
    unclosed: bool,
}

/// Runs code with the session's other tools as its functions (UP-33).
pub(crate) struct RunCodeTool {
    /// Tools that are functions of the code.
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) variables: CodeVariables,
    pub(crate) interpreter: Arc<Mutex<SessionInterpreter>>,
}

impl TypedTool for RunCodeTool {
    type Args = RunCodeArgs;
    const NAME: &'static str = CODE_TOOL;
    const KIND: CallKind = CallKind::Execute;

    fn description(&self) -> Cow<'static, str> {
        "Runs Python.".into()
    }

    fn describe(&self, args: &RunCodeArgs, _workspace: &Workspace) -> CallDetail {
        let mut lines = args.code.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or("Python").trim();
        let mut title: String = first.chars().take(MAX_TITLE).collect();
        if lines.next().is_some() || title.len() < first.len() {
            title.push_str(" …");
        }
        CallDetail {
            title,
            kind: Self::KIND,
            artifacts: vec![code_artifact(&args.code)],
            ..CallDetail::default()
        }
    }

    async fn run(&self, args: RunCodeArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        if args.unclosed {
            let unclosed = ToolEnvelope::failed(ToolErrorKind::Validation, UNCLOSED);
            return Ok(with_code(unclosed, &args.code));
        }
        let mut interpreter = self.interpreter.lock().await;
        let (session, is_lost) = interpreter.with_variables(&self.variables);
        let functions = code_functions(self.tools.iter());
        let names: Vec<String> = functions.iter().map(|it| it.name.clone()).collect();
        let (calling, mut calls) = watch::channel(false);
        let mut host = NestedCallHost {
            functions: &functions,
            cx,
            calling,
            budget: NestedCallBudget::default(),
            images: Vec::new(),
        };
        // Calls that are running are stopped by themselves, and end before the block.
        let cancelled = async {
            cx.cancel.cancelled().await;
            let _ = calls.wait_for(|is_calling| !is_calling).await;
        };
        let output = tokio::select! {
            output = session.run(&args.code, &names, &mut host) => Some(output),
            () = cancelled => None,
        };
        let Some(output) = output.filter(|_| !cx.cancel.is_cancelled()) else {
            let cancelled = ToolEnvelope::failed(ToolErrorKind::Cancelled, CANCELLED);
            return Ok(with_code(cancelled, &args.code));
        };
        let images = host.images;
        let state = encode_snapshot(session.snapshot().unwrap_or_default());
        interpreter.end_block(&cx.call_id, &self.interpreter);
        let mut envelope = render_output(output, is_lost, images);
        envelope.state = Some(state);
        Ok(with_code(envelope, &args.code))
    }

    fn timeout(&self, _args: &RunCodeArgs) -> Duration {
        TIMEOUT
    }
}

fn code_artifact(code: &str) -> Artifact {
    Artifact::Content(Content::text(fenced_code(code)))
}

/// Shows the code beside its output, which is text and no Markdown.
fn with_code(envelope: ToolEnvelope, code: &str) -> ToolEnvelope {
    let as_text = |item: &Content| match item {
        Content::Text { text } => Content::text(fenced_text("", text)),
        other => other.clone(),
    };
    let output: Vec<Content> = match &envelope.result {
        Ok(content) => content.iter().map(as_text).collect(),
        Err(error) => vec![Content::text(fenced_text("", &error.message))],
    };
    let output = output.into_iter().map(Artifact::Content);
    ToolEnvelope {
        artifacts: std::iter::once(code_artifact(code)).chain(output).collect(),
        ..envelope
    }
}

/// Returns the result of a block for the model.
fn render_output(output: CodeOutput, is_lost: bool, images: Vec<Content>) -> ToolEnvelope {
    let CodeOutput {
        text: printed,
        value,
        end,
        has_lost_variables,
    } = output;
    let mut text = String::new();
    if is_lost || has_lost_variables {
        text.push_str(VARIABLES_LOST);
    }
    text.push_str(&printed);
    if let Some(value) = &value {
        push_line(&mut text, &render_value(value));
    }
    let failure = match end {
        CodeEnd::Completed | CodeEnd::Ended => None,
        CodeEnd::Failed(traceback) => Some(traceback),
        CodeEnd::Stopped(limit) => Some(limit.to_string()),
        CodeEnd::WorkerFailed(reason) => Some(reason),
    };
    match failure {
        None => {
            if text.is_empty() && images.is_empty() {
                text.push_str("(no output)");
            }
            let texts = (!text.is_empty()).then(|| Content::text(text));
            ToolEnvelope {
                value,
                ..ToolEnvelope::ok(texts.into_iter().chain(images).collect())
            }
        }
        Some(failure) => {
            push_line(&mut text, &failure);
            // The result of a failed call is text only.
            if !images.is_empty() {
                push_line(&mut text, IMAGES_LEFT_OUT);
            }
            ToolEnvelope::failed(ToolErrorKind::ExecutionError, text)
        }
    }
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

fn render_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Calls the session's tools for the code.
struct NestedCallHost<'a> {
    functions: &'a [CodeFunction],
    cx: &'a ToolCx,
    /// True while calls are running.
    calling: watch::Sender<bool>,
    budget: NestedCallBudget,
    /// Images that tools returned, for the model.
    images: Vec<Content>,
}

impl CodeHost for NestedCallHost<'_> {
    fn call<'a>(&'a mut self, calls: Vec<CodeCall>) -> BoxFuture<'a, CallReply> {
        Box::pin(async move {
            let bound: Vec<Result<(String, Value), String>> =
                calls.into_iter().map(|call| self.bind(call)).collect();
            let requested = bound.iter().filter_map(|call| call.as_ref().ok().cloned());
            let Some(caller) = &self.cx.caller else {
                return CallReply::End;
            };
            self.calling.send_replace(true);
            let results = caller.call(requested.collect()).await;
            self.calling.send_replace(false);
            let Ok(results) = results else {
                return CallReply::End;
            };
            if self.cx.cancel.is_cancelled()
                || results.iter().any(|result| result.control.is_some())
            {
                return CallReply::End;
            }
            let mut results = results.into_iter();
            let replies = bound.into_iter().map(|call| match call {
                Ok(_) => match results.next() {
                    Some(result) => self.value_of(result),
                    None => Err("the call was not answered".to_owned()),
                },
                Err(error) => Err(error),
            });
            CallReply::Results(replies.collect())
        })
    }

    fn print(&mut self, text: &str) {
        // The whole output follows with the result.
        let _ = self.cx.progress.try_send(Progress::Output(text.to_owned()));
    }
}

impl NestedCallHost<'_> {
    /// Returns the tool and its arguments.
    fn bind(&mut self, call: CodeCall) -> Result<(String, Value), String> {
        let mut functions = self.functions.iter();
        let Some(function) = functions.find(|function| function.name == call.function) else {
            return Err(format!("there is no function {}", call.function));
        };
        let args = function.bind_arguments(call.args, call.kwargs)?;
        self.budget.take_arguments(&args)?;
        Ok((function.tool.clone(), args))
    }

    /// Returns the result of a call as a value of the code; its images go to the model with the block's output.
    fn value_of(&mut self, result: ToolEnvelope) -> Result<Value, String> {
        self.budget.take_result(&result);
        let content = result.result.map_err(|error| error.message)?;
        let mut texts = Vec::new();
        for item in content {
            match item {
                Content::Text { text } => texts.push(text),
                other => self.images.push(other),
            }
        }
        Ok(Value::String(texts.join("\n")))
    }
}

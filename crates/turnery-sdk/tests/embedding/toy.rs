//! Scripted model and tools for these tests.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Notify;
use turnery_engine::{
    ChildUsage, Content, ModelDelta, ModelError, ModelErrorKind, ModelStop, Response, SessionId,
    ToolCall, ToolControl, ToolEnvelope, ToolErrorKind, ToolSpec, Usage, usage::source,
};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelName, ModelRequest, RetryNotice};
use turnery_tools::{Progress, Tool, ToolCx};

/// One step of the toy model.
#[derive(Clone, Debug)]
pub(crate) enum ToyStep {
    Say(&'static str),
    Think(&'static str),
    /// Call id and tool name.
    Call(&'static str, &'static str),
    /// Usage claimed by the response.
    Spend(Usage),
    /// A failed attempt that is retried a second later.
    Retry(u32),
    Wait(Arc<Notify>),
    Pause(Duration),
    Hang,
    Fail,
    Refuse,
}

/// Scripted model.
pub(crate) struct TestModel {
    info: ModelInfo,
    script: Mutex<VecDeque<Vec<ToyStep>>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
    /// Fragments sent so far.
    pub(crate) sent: Arc<Mutex<usize>>,
    /// Calls in progress.
    pub(crate) alive: Arc<Mutex<usize>>,
    /// Responses so far.
    pub(crate) answered: Mutex<Vec<ToyResponse>>,
    /// Failed attempts so far.
    pub(crate) failed: Arc<Mutex<usize>>,
}

/// Response with the usage it claimed.
#[derive(Clone, Debug)]
pub(crate) struct ToyResponse {
    pub(crate) session_id: SessionId,
    pub(crate) source: &'static str,
    pub(crate) model: String,
    pub(crate) usage: Option<Usage>,
}

/// Guard that counts a call in progress, and as failed unless it ends with a response.
struct RunningCall {
    alive: Arc<Mutex<usize>>,
    failed: Arc<Mutex<usize>>,
    has_answered: bool,
}

impl RunningCall {
    fn succeed(mut self) {
        self.has_answered = true;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        *self.alive.lock().unwrap() -= 1;
        *self.failed.lock().unwrap() += usize::from(!self.has_answered);
    }
}

/// Returns the purpose of a request, as the model can tell it.
fn request_source(request: &ModelRequest) -> &'static str {
    let is_of = |mark: &str| request.messages[0].message.text().contains(mark);
    if request.system.starts_with("be good") {
        source::TURN
    } else if is_of("<answer number=") {
        source::EVALUATION
    } else {
        assert!(is_of("<conversation>"), "{request:?}");
        source::COMPACTION
    }
}

pub(crate) fn model_error() -> ModelError {
    ModelError {
        status: Some(529),
        ..ModelError::new(ModelErrorKind::Overloaded, "too much to do")
    }
}

/// Returns a usage of `n` input and reasoning tokens, 10 `n` output, 100 `n` cache read and 1000 `n` cache
/// write tokens.
pub(crate) fn usage_of(n: u64) -> Usage {
    Usage {
        input: n,
        output: 10 * n,
        reasoning: n,
        cache_read: 100 * n,
        cache_write: 1000 * n,
    }
}

impl TestModel {
    pub(crate) fn new(name: &str, script: Vec<Vec<ToyStep>>) -> Arc<Self> {
        Self::with_window(name, None, script)
    }

    pub(crate) fn with_window(
        name: &str,
        context_window: Option<u32>,
        script: Vec<Vec<ToyStep>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            info: ModelInfo {
                context_window,
                max_output: 100,
                images: true,
                reasoning: true,
                ..ModelInfo::new(ModelName::new("toy", name), "toy")
            },
            script: Mutex::new(script.into()),
            requests: Mutex::default(),
            sent: Arc::default(),
            alive: Arc::default(),
            answered: Mutex::default(),
            failed: Arc::default(),
        })
    }

    async fn perform(
        &self,
        acts: Vec<ToyStep>,
        out: ModelEventSender,
    ) -> Result<Response, ModelError> {
        let mut content = Vec::new();
        let mut stop = ModelStop::EndTurn;
        let mut usage = None;
        for perform in acts {
            let block = u32::try_from(content.len()).unwrap();
            match perform {
                ToyStep::Say(text) => {
                    content.push(Content::text(text));
                    let text = text.to_owned();
                    out.send_delta(ModelDelta::Text { block, text }).await;
                    *self.sent.lock().unwrap() += 1;
                }
                ToyStep::Think(text) => {
                    let text = text.to_owned();
                    content.push(Content::Thinking {
                        text: text.clone(),
                        signature: None,
                    });
                    out.send_delta(ModelDelta::Thinking { block, text }).await;
                }
                ToyStep::Call(id, name) => {
                    stop = ModelStop::ToolUse;
                    let args = match name {
                        "task" => json!({"title": id, "prompt": "dig ".repeat(500)}),
                        _ => json!({"of": id}),
                    };
                    content.push(Content::ToolCall(ToolCall::new(id, name, args)));
                }
                ToyStep::Spend(usage_of) => usage = Some(usage_of),
                ToyStep::Retry(attempt) => {
                    let wait = Duration::from_secs(1);
                    out.send_retry(RetryNotice {
                        attempt,
                        error: model_error(),
                        wait,
                        takeover: None,
                    })
                    .await;
                    *self.failed.lock().unwrap() += 1;
                    tokio::time::sleep(wait).await;
                }
                ToyStep::Wait(signal) => signal.notified().await,
                ToyStep::Pause(time) => tokio::time::sleep(time).await,
                ToyStep::Hang => std::future::pending().await,
                ToyStep::Fail => return Err(model_error()),
                ToyStep::Refuse => stop = ModelStop::Refusal,
            }
        }
        Ok(Response {
            content,
            stop,
            raw_stop: None,
            usage,
            model: self.info.name.model.clone(),
            provider: self.info.name.provider.clone(),
            tool_results: Vec::new(),
            request: None,
        })
    }
}

impl Model for TestModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        let acts = self.script.lock().unwrap().pop_front().unwrap_or_default();
        let answered = (request.session_id.clone(), request_source(&request));
        self.requests.lock().unwrap().push(request);
        *self.alive.lock().unwrap() += 1;
        let alive = RunningCall {
            alive: Arc::clone(&self.alive),
            failed: Arc::clone(&self.failed),
            has_answered: false,
        };
        Box::pin(async move {
            let end = self.perform(acts, out).await;
            if let Ok(response) = &end {
                alive.succeed();
                self.answered.lock().unwrap().push(ToyResponse {
                    session_id: answered.0,
                    source: answered.1,
                    model: self.info.name.to_string(),
                    usage: response.usage,
                });
            }
            end
        })
    }
}

/// Tool whose behavior follows from its name.
pub(crate) struct TestTool {
    spec: ToolSpec,
    ran: Arc<Mutex<Vec<String>>>,
    /// Usage of all external children.
    external_usage: Arc<Mutex<Usage>>,
}

impl TestTool {
    pub(crate) fn all(
        ran: &Arc<Mutex<Vec<String>>>,
        external_usage: &Arc<Mutex<Usage>>,
    ) -> Vec<Arc<dyn Tool>> {
        let make = |name: &str| -> Arc<dyn Tool> {
            Arc::new(Self {
                spec: ToolSpec::new(name, "", json!({"type": "object"})),
                ran: Arc::clone(ran),
                external_usage: Arc::clone(external_usage),
            })
        };
        [
            "look", "fail", "hang", "rate", "submit", "give_up", "switch", "hire",
        ]
        .map(make)
        .to_vec()
    }
}

/// Reports the usage of a child session of two turns that exists nowhere else.
async fn run_external_child(
    number: usize,
    external_usage: &Mutex<Usage>,
    cx: &ToolCx,
) -> ToolEnvelope {
    for (iteration, n, sum) in [(0, 3, 3), (1, 4, 7)] {
        let child = ChildUsage {
            session_id: format!("kid-{number}").into(),
            source: source::SUBAGENT.to_owned(),
            model: "toy/kid".to_owned(),
            iteration,
            usage: Some(usage_of(n)),
            cumulative: usage_of(sum),
        };
        if cx.progress.send(Progress::ChildUsage(child)).await.is_ok() {
            *external_usage.lock().unwrap() += usage_of(n);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ToolEnvelope::text("hired")
}

fn control_envelope(control: ToolControl) -> ToolEnvelope {
    ToolEnvelope {
        control: Some(Box::new(control)),
        ..ToolEnvelope::text("decided")
    }
}

impl Tool for TestTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn run<'a>(&'a self, _args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        let number = {
            let mut ran = self.ran.lock().unwrap();
            ran.push(self.spec.name.clone());
            ran.len()
        };
        Box::pin(async move {
            match &*self.spec.name {
                "fail" => ToolEnvelope::failed(ToolErrorKind::ExecutionError, "it broke"),
                "hang" => {
                    cx.cancel.cancelled().await;
                    ToolEnvelope::text("stopped when asked to")
                }
                "rate" => control_envelope(ToolControl::Finish(json!({"rating": 3}))),
                "submit" => control_envelope(ToolControl::Submit(json!(["a", "b"]))),
                "hire" => run_external_child(number, &self.external_usage, cx).await,
                "switch" => control_envelope(ToolControl::SwitchFrame {
                    task: "do the rest".to_owned(),
                }),
                "give_up" => control_envelope(ToolControl::FailWith(json!("no way"))),
                _ => ToolEnvelope::text("done"),
            }
        })
    }

    fn timeout(&self, _args: &Value) -> Duration {
        Duration::from_secs(3600)
    }
}

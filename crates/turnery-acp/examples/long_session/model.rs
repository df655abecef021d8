//! A model that answers at once, and an agent that uses it with one tool.

use super::{BenchResult, SessionShape, resource_usage::ResourceUsage};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use turnery_agent::{Agent, Settings};
use turnery_engine::{
    CallDetail, Content, Limits, ModelDelta, ModelError, ModelStop, Response, SessionId, ToolCall,
    ToolEnvelope, ToolError, ToolSpec,
};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelName, ModelRegistry, ModelRequest};
use turnery_store::{SessionPatch, SqliteStore, Store as _};
use turnery_tools::{Access, PreparedCall, Tool, ToolCx, Toolbox, Workspace};

/// Model that calls a tool in every turn except the last of each prompt, and samples the resource usage.
pub(crate) struct BenchModel {
    info: ModelInfo,
    session: SessionShape,
    store: Arc<SqliteStore>,
    calls: AtomicU32,
    samples: Mutex<Vec<ResourceUsage>>,
}

impl BenchModel {
    pub(crate) fn new(session: SessionShape, store: Arc<SqliteStore>) -> Self {
        Self {
            info: ModelInfo {
                name: ModelName {
                    provider: "clockwork".to_owned(),
                    model: "one".to_owned(),
                },
                display_name: "Clockwork".to_owned(),
                context_window: None,
                max_output: u32::MAX,
                images: false,
                audio: false,
                documents: false,
                reasoning: false,
                api: "clockwork",
                base_url: None,
            },
            session,
            store,
            calls: AtomicU32::new(0),
            samples: Mutex::default(),
        }
    }

    /// Returns the resource usage of early turns and of late ones.
    pub(crate) fn measured_usage(&self) -> BenchResult<[ResourceUsage; 2]> {
        let seen = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        match seen[..] {
            [a, b, c, d] => Ok([b - a, d - c]),
            _ => Err("not all turns were run".into()),
        }
    }
}

impl Model for BenchModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        drop(request);
        let n = self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let ends = (n + 1).is_multiple_of(self.session.turns_per_prompt);
            // A real model is slower than the store's journalling, so everything would be written by now. This
            // call waits for the same, in the order of the store's jobs.
            let nobody = SessionId::from("nobody");
            let _ = self.store.patch(&nobody, SessionPatch::default()).await;
            if self.session.measurement_bounds().contains(&n) {
                let mut seen = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
                seen.push(ResourceUsage::now());
            }
            let text = format!("This is what I think in turn {n}.");
            let block = 0;
            let delta = text.clone();
            out.send_delta(ModelDelta::Text { block, text: delta })
                .await;
            let mut content = vec![Content::text(text)];
            if !ends {
                content.push(Content::ToolCall(ToolCall::new(
                    format!("call-{n}"),
                    "look",
                    json!({"at": n}),
                )));
            }
            Ok(Response {
                content,
                stop: match ends {
                    true => ModelStop::EndTurn,
                    false => ModelStop::ToolUse,
                },
                raw_stop: None,
                usage: None,
                tool_results: Vec::new(),
                model: "one".to_owned(),
                provider: "clockwork".to_owned(),
                request: None,
            })
        })
    }
}

/// Tool that returns a page of text.
struct LookTool(ToolSpec);

impl Tool for LookTool {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }
    fn describe(&self, _: &Value, _: &Workspace) -> CallDetail {
        CallDetail::default()
    }
    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        let access = Access::Nothing;
        let detail = self.describe(args, &cx.workspace);
        Box::pin(async move { Ok(PreparedCall { access, detail }) })
    }
    fn run<'a>(&'a self, _: &'a Value, _: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async { ToolEnvelope::text("one line of what there is to see\n".repeat(30)) })
    }
}

pub(crate) fn agent(store: Arc<SqliteStore>, model: Arc<BenchModel>) -> Agent {
    let mut settings = Settings::new(model.info().name.clone(), "You look around.");
    settings.limits = Limits {
        turns: u32::MAX,
        tokens: u64::MAX,
        duration: Duration::from_secs(24 * 3600),
        cost: None,
        ..Limits::default()
    };
    let look = LookTool(ToolSpec {
        name: "look".to_owned(),
        description: "Looks around.".to_owned(),
        schema: json!({"type": "object", "properties": {"at": {"type": "integer"}}}).into(),
    });
    Agent::new(
        store,
        Arc::new(ModelRegistry::new(Vec::new()).with_model(model)),
        Toolbox::new(vec![Arc::new(look)]),
        Arc::new(settings),
    )
}

//! Clockwork: a model that answers at once, and an agent of it with one tool.

use super::{Ran, Session, meter::Used};
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
    CallDetail, CallId, Content, Limits, ModelDelta, ModelFault, ModelStop, Response, SessionId,
    ToolCall, ToolEnvelope, ToolFailure, ToolSpec,
};
use turnery_models::{Catalogue, DeltaSender, Model, ModelInfo, ModelName, ModelRequest};
use turnery_store::{SessionPatch, SqliteStore, Store as _};
use turnery_tools::{Access, Prepared, Tool, ToolCx, Toolbox, Workspace};

/// A model that calls a tool in every turn but the last of each prompt, and looks at the meter.
pub(crate) struct Clockwork {
    info: ModelInfo,
    session: Session,
    store: Arc<SqliteStore>,
    calls: AtomicU32,
    seen: Mutex<Vec<Used>>,
}

impl Clockwork {
    pub(crate) fn new(session: Session, store: Arc<SqliteStore>) -> Self {
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
                reasoning: false,
                api: "clockwork",
                base_url: None,
            },
            session,
            store,
            calls: AtomicU32::new(0),
            seen: Mutex::default(),
        }
    }

    /// What early turns used up, and what the last ones did.
    pub(crate) fn windows(&self) -> Ran<[Used; 2]> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen[..] {
            [a, b, c, d] => Ok([b - a, d - c]),
            _ => Err("not all turns were run".into()),
        }
    }
}

impl Model for Clockwork {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: DeltaSender,
    ) -> BoxFuture<'_, Result<Response, ModelFault>> {
        drop(request);
        let n = self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let ends = (n + 1).is_multiple_of(self.session.each);
            // Any other model takes longer than the store waits for more to be journalled: by now all
            // of it would be written. So it is here, and in the order of the store's jobs.
            let nobody = SessionId::from("nobody");
            let _ = self.store.patch(&nobody, SessionPatch::default()).await;
            if self.session.marks().contains(&n) {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.push(Used::so_far());
            }
            let text = format!("This is what I think in turn {n}.");
            let block = 0;
            let delta = text.clone();
            out.send(ModelDelta::Text { block, text: delta }).await;
            let mut content = vec![Content::text(text)];
            if !ends {
                content.push(Content::ToolCall(ToolCall {
                    call_id: CallId::from(format!("call-{n}")),
                    name: "look".to_owned(),
                    args: Arc::new(json!({"at": n})),
                }));
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
            })
        })
    }
}

/// Gives back a page of text.
struct Look(ToolSpec);

impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn describe(&self, _: &Value, _: &Workspace) -> CallDetail {
        CallDetail::default()
    }
    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let access = Access::Nothing;
        let detail = self.describe(args, &cx.workspace);
        Box::pin(async move { Ok(Prepared { access, detail }) })
    }
    fn run<'a>(&'a self, _: &'a Value, _: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async { ToolEnvelope::text("one line of what there is to see\n".repeat(30)) })
    }
}

pub(crate) fn agent(store: Arc<SqliteStore>, model: Arc<Clockwork>) -> Agent {
    let mut settings = Settings::new(model.info().name.clone(), "You look around.");
    settings.limits = Limits {
        turns: u32::MAX,
        tokens: u64::MAX,
        duration: Duration::from_secs(24 * 3600),
        cost: None,
        ..Limits::default()
    };
    let look = Look(ToolSpec {
        name: "look".to_owned(),
        description: "Looks around.".to_owned(),
        schema: json!({"type": "object", "properties": {"at": {"type": "integer"}}}).into(),
    });
    Agent::new(
        store,
        Arc::new(Catalogue::new(Vec::new()).with_model(model)),
        Toolbox::new(vec![Arc::new(look)]),
        Arc::new(settings),
    )
}

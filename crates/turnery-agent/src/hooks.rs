//! Defines hooks: code of the host that inspects a prompt and may reject steps of it. Without hooks there is
//! no overhead (LOOP-59).
//!
//! Hooks run one after the other, in order. The first rejection wins; warnings and injected content
//! accumulate. A hook that panics or times out counts as a rejection before a step, and is only reported
//! after one.

use futures_util::{FutureExt as _, future::BoxFuture};
use std::{
    any::type_name,
    fmt,
    future::ready,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use turnery_engine::{
    Content, HookRequest, HookSet, HookVerdict, LlmMessage, LoopId, LoopRecord, SessionId,
};

/// Default time limit of a hook; see [`Settings::hook_timeout`](crate::Settings::hook_timeout).
pub const DEFAULT_HOOK_TIMEOUT: Duration = Duration::from_secs(60);

const ALL_HOOKS: HookSet = HookSet {
    input: true,
    before_turn: true,
    after_turn: true,
    before_tool: true,
    after_tool: true,
    compaction: true,
    on_error: true,
    checkpoint: true,
};

/// Hooks of a host. All methods do nothing by default.
///
/// Dropping a returned future must stop its work: that happens when the prompt is cancelled, and on a
/// timeout.
pub trait Hooks: Send + Sync + 'static {
    /// Name of the hook in messages to the user.
    fn name(&self) -> &str {
        type_name::<Self>()
    }

    /// Returns the requests that [`ask_hook`](Self::ask_hook) handles. Read when a prompt begins.
    fn hook_set(&self) -> HookSet {
        HookSet::default()
    }

    /// Handles a hook request.
    fn ask_hook<'a>(&'a self, cx: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        let _ = (cx, hook);
        Box::pin(ready(HookVerdict::Continue))
    }

    /// Decides whether a loop with this input may begin. A rejection leaves neither event nor record behind
    /// (UP-9, D-10).
    fn before_loop<'a>(
        &'a self,
        cx: &'a HookCx,
        input: &'a [Content],
    ) -> BoxFuture<'a, Result<(), String>> {
        let _ = (cx, input);
        Box::pin(ready(Ok(())))
    }

    /// Called after a loop is stored and its end has been shown; `record` holds its new messages and usage
    /// (LOOP-57). Nothing can be undone here.
    fn after_loop<'a>(&'a self, cx: &'a HookCx, record: &'a LoopRecord) -> BoxFuture<'a, ()> {
        let _ = (cx, record);
        Box::pin(ready(()))
    }
}

/// Context of a hook call.
#[derive(Clone, Debug)]
pub struct HookCx {
    /// The session.
    pub session_id: SessionId,
    /// The loop.
    pub loop_id: LoopId,
    /// Messages that the model is going to see, in order (TURN-25). Shared: do not keep them after the call.
    pub messages: Arc<Vec<Arc<LlmMessage>>>,
}

impl fmt::Debug for dyn Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Combined result of all hooks.
#[derive(Debug, PartialEq)]
pub(crate) struct CombinedVerdict {
    pub(crate) verdict: HookVerdict,
    /// Errors of hooks that do not affect the verdict.
    pub(crate) issues: Vec<String>,
}

/// Hooks of one prompt, in call order.
#[derive(Clone, Debug)]
pub(crate) struct HookList {
    hooks: Arc<[(HookSet, Arc<dyn Hooks>)]>,
    timeout: Duration,
}

impl HookList {
    /// Creates a list of hooks, each with a time limit per call.
    pub(crate) fn new<'h>(
        hooks: impl IntoIterator<Item = &'h Arc<dyn Hooks>>,
        limit: Duration,
    ) -> Self {
        // A hook that panics even here may have wanted to reject something, so it is asked everything.
        let set = |hooks: &Arc<dyn Hooks>| {
            let set = catch_unwind(AssertUnwindSafe(|| hooks.hook_set()));
            (set.unwrap_or(ALL_HOOKS), Arc::clone(hooks))
        };
        Self {
            hooks: hooks.into_iter().map(set).collect(),
            timeout: limit,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    pub(crate) fn to_vec(&self) -> Vec<Arc<dyn Hooks>> {
        let hooks = self.hooks.iter();
        hooks.map(|(_, hooks)| Arc::clone(hooks)).collect()
    }

    /// Returns the union of the hooks' sets.
    pub(crate) fn hook_set(&self) -> HookSet {
        self.hooks
            .iter()
            .fold(HookSet::default(), |all, (set, _)| HookSet {
                input: all.input || set.input,
                before_turn: all.before_turn || set.before_turn,
                after_turn: all.after_turn || set.after_turn,
                before_tool: all.before_tool || set.before_tool,
                after_tool: all.after_tool || set.after_tool,
                compaction: all.compaction || set.compaction,
                on_error: all.on_error || set.on_error,
                checkpoint: all.checkpoint || set.checkpoint,
            })
    }

    pub(crate) async fn ask_hook(self, cx: HookCx, hook: HookRequest) -> CombinedVerdict {
        let mut issues = Vec::new();
        let mut warnings: Vec<String> = Vec::new();
        let mut injected = Vec::new();
        let subscribed = self
            .hooks
            .iter()
            .filter(|(set, _)| is_subscribed(set, &hook));
        for (_, hooks) in subscribed {
            let answer = async { hooks.ask_hook(&cx, &hook).await };
            match self.run_bounded(&**hooks, answer).await {
                Ok(HookVerdict::Stop(reason)) if is_blocking(&hook) => {
                    return CombinedVerdict {
                        verdict: HookVerdict::Stop(reason),
                        issues,
                    };
                }
                Ok(HookVerdict::Warn(text)) => warnings.push(text),
                Ok(HookVerdict::Inject(mut content)) => injected.append(&mut content),
                // The step is already done: a rejection can only be reported.
                Ok(HookVerdict::Stop(why)) => issues.push(why),
                Ok(HookVerdict::Continue) => {}
                Err(broken) if is_blocking(&hook) && !faulty!(BrokenHookApproves) => {
                    return CombinedVerdict {
                        verdict: HookVerdict::Stop(broken),
                        issues,
                    };
                }
                Err(broken) => issues.push(broken),
            }
        }
        // A verdict carries one of the two, and only a checkpoint can use injected content.
        let verdict = if !injected.is_empty() && matches!(hook, HookRequest::Checkpoint) {
            issues.append(&mut warnings);
            HookVerdict::Inject(injected)
        } else if !warnings.is_empty() {
            HookVerdict::Warn(warnings.join("; "))
        } else {
            HookVerdict::Continue
        };
        CombinedVerdict { verdict, issues }
    }

    /// Asks the hooks whether a loop may begin.
    pub(crate) async fn before_loop(self, cx: HookCx, input: Vec<Content>) -> Result<(), String> {
        for (_, hooks) in &*self.hooks {
            let answer = async { hooks.before_loop(&cx, &input).await };
            self.run_bounded(&**hooks, answer).await??;
        }
        Ok(())
    }

    /// Reports the end of a loop to the hooks and returns their errors.
    pub(crate) async fn after_loop(self, cx: HookCx, record: Arc<LoopRecord>) -> Vec<String> {
        let mut issues = Vec::new();
        for (_, hooks) in &*self.hooks {
            let work = async { hooks.after_loop(&cx, &record).await };
            issues.extend(self.run_bounded(&**hooks, work).await.err());
        }
        issues
    }

    async fn run_bounded<T>(
        &self,
        hooks: &dyn Hooks,
        work: impl Future<Output = T>,
    ) -> Result<T, String> {
        let work = AssertUnwindSafe(work).catch_unwind();
        match tokio::time::timeout(self.timeout, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(format!("the hook {} panicked", hook_name(hooks))),
            Err(_) => Err(format!(
                "the hook {} did not answer within {:?}",
                hook_name(hooks),
                self.timeout
            )),
        }
    }
}

fn hook_name(hooks: &dyn Hooks) -> &str {
    catch_unwind(AssertUnwindSafe(|| hooks.name())).unwrap_or("without a name")
}

/// Returns true if a step waits for the verdict.
fn is_blocking(hook: &HookRequest) -> bool {
    match hook {
        HookRequest::Input { .. }
        | HookRequest::BeforeTurn { .. }
        | HookRequest::BeforeTool(_)
        | HookRequest::BeforeCompaction(_)
        | HookRequest::Checkpoint => true,
        HookRequest::AfterTurn { .. }
        | HookRequest::AfterTool { .. }
        | HookRequest::AfterCompaction { .. }
        | HookRequest::OnError { .. } => false,
    }
}

fn is_subscribed(set: &HookSet, hook: &HookRequest) -> bool {
    match hook {
        HookRequest::Input { .. } => set.input,
        HookRequest::BeforeTurn { .. } => set.before_turn,
        HookRequest::AfterTurn { .. } => set.after_turn,
        HookRequest::BeforeTool(_) => set.before_tool,
        HookRequest::AfterTool { .. } => set.after_tool,
        HookRequest::BeforeCompaction(_) | HookRequest::AfterCompaction { .. } => set.compaction,
        HookRequest::OnError { .. } => set.on_error,
        HookRequest::Checkpoint => set.checkpoint,
    }
}

#[cfg(test)]
mod tests;

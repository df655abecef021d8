//! Hooks: code of the host that looks into a prompt and may say no (engine.md, section 6.3). Without
//! any, nothing is asked and nothing is paid (LOOP-59).
//!
//! Several hooks are asked one after the other, in order. The first that says no has the last word;
//! warnings add up, and so does what is injected. A hook that breaks or takes too long counts as a no
//! where it was asked before something, and is only reported where it was told afterwards.

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
    Content, Hook, HookSet, HookVerdict, LlmMessage, LoopId, LoopRecord, SessionId,
};

/// How long a hook may take, unless [`Settings::hook_time`](crate::Settings::hook_time) says otherwise.
pub const HOOK_TIME: Duration = Duration::from_secs(60);

const EVERYTHING: HookSet = HookSet {
    input: true,
    before_turn: true,
    after_turn: true,
    before_tool: true,
    after_tool: true,
    compaction: true,
    on_error: true,
    checkpoint: true,
};

/// One host's hooks. All of them are absent by default.
///
/// Dropping a future that they return must be enough to stop what it does: that happens when the
/// prompt is cancelled, and when it takes too long.
pub trait Hooks: Send + Sync + 'static {
    /// For people, where one has to be told that a hook said no or broke.
    fn name(&self) -> &str {
        type_name::<Self>()
    }

    /// Which questions [`ask`](Self::ask) is to be asked. Read when a prompt begins.
    fn set(&self) -> HookSet {
        HookSet::default()
    }

    /// One of those questions.
    fn ask<'a>(&'a self, cx: &'a HookCx, hook: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        let _ = (cx, hook);
        Box::pin(ready(HookVerdict::Go))
    }

    /// May a loop with this input begin? A no leaves neither event nor record behind (UP-9, D-10).
    fn before_loop<'a>(
        &'a self,
        cx: &'a HookCx,
        input: &'a [Content],
    ) -> BoxFuture<'a, Result<(), String>> {
        let _ = (cx, input);
        Box::pin(ready(Ok(())))
    }

    /// A loop is stored and its end has been shown: its new messages and its usage are in the record
    /// (LOOP-57). Nothing can be undone here.
    fn after_loop<'a>(&'a self, cx: &'a HookCx, record: &'a LoopRecord) -> BoxFuture<'a, ()> {
        let _ = (cx, record);
        Box::pin(ready(()))
    }
}

/// Where a hook is asked.
#[derive(Clone, Debug)]
pub struct HookCx {
    /// The session.
    pub session_id: SessionId,
    /// The loop.
    pub loop_id: LoopId,
    /// What the model is going to see, in order (TURN-25). Shared: not to be kept past the answer.
    pub messages: Arc<Vec<Arc<LlmMessage>>>,
}

impl fmt::Debug for dyn Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What all hooks together say.
#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) verdict: HookVerdict,
    /// Hooks that broke where that changes nothing.
    pub(crate) issues: Vec<String>,
}

/// The hooks of one prompt, in the order in which they are asked.
#[derive(Clone, Debug)]
pub(crate) struct HookList {
    hooks: Arc<[(HookSet, Arc<dyn Hooks>)]>,
    limit: Duration,
}

impl HookList {
    /// These hooks, each with so much time to answer.
    pub(crate) fn new<'h>(
        hooks: impl IntoIterator<Item = &'h Arc<dyn Hooks>>,
        limit: Duration,
    ) -> Self {
        // One that breaks even here may have wanted to say no: it is asked everything.
        let set = |hooks: &Arc<dyn Hooks>| {
            let set = catch_unwind(AssertUnwindSafe(|| hooks.set()));
            (set.unwrap_or(EVERYTHING), Arc::clone(hooks))
        };
        Self {
            hooks: hooks.into_iter().map(set).collect(),
            limit,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<dyn Hooks>> {
        let hooks = self.hooks.iter();
        hooks.map(|(_, hooks)| Arc::clone(hooks)).collect()
    }

    /// All that somebody wants to be asked.
    pub(crate) fn set(&self) -> HookSet {
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

    /// Ask those that want to be asked.
    pub(crate) async fn ask(self, cx: HookCx, hook: Hook) -> Said {
        let mut issues = Vec::new();
        let mut warnings: Vec<String> = Vec::new();
        let mut injected = Vec::new();
        let asked = self.hooks.iter().filter(|(set, _)| wants(set, &hook));
        for (_, hooks) in asked {
            let answer = async { hooks.ask(&cx, &hook).await };
            match self.bounded(&**hooks, answer).await {
                Ok(HookVerdict::Stop(reason)) if is_before(&hook) => {
                    return Said {
                        verdict: HookVerdict::Stop(reason),
                        issues,
                    };
                }
                Ok(HookVerdict::Warn(text)) => warnings.push(text),
                Ok(HookVerdict::Inject(mut content)) => injected.append(&mut content),
                // It is over already: all that can be done is to tell a person.
                Ok(HookVerdict::Stop(why)) => issues.push(why),
                Ok(HookVerdict::Go) => {}
                Err(broken) if is_before(&hook) && !faulty!(BrokenHookMeansYes) => {
                    return Said {
                        verdict: HookVerdict::Stop(broken),
                        issues,
                    };
                }
                Err(broken) => issues.push(broken),
            }
        }
        // An answer carries one of the two, and only a checkpoint has a use for what is injected.
        let verdict = if !injected.is_empty() && matches!(hook, Hook::Checkpoint) {
            issues.append(&mut warnings);
            HookVerdict::Inject(injected)
        } else if !warnings.is_empty() {
            HookVerdict::Warn(warnings.join("; "))
        } else {
            HookVerdict::Go
        };
        Said { verdict, issues }
    }

    /// May a loop begin?
    pub(crate) async fn before_loop(self, cx: HookCx, input: Vec<Content>) -> Result<(), String> {
        for (_, hooks) in &*self.hooks {
            let asked = async { hooks.before_loop(&cx, &input).await };
            self.bounded(&**hooks, asked).await??;
        }
        Ok(())
    }

    /// A loop is over. Returns what went wrong.
    pub(crate) async fn after_loop(self, cx: HookCx, record: Arc<LoopRecord>) -> Vec<String> {
        let mut issues = Vec::new();
        for (_, hooks) in &*self.hooks {
            let told = async { hooks.after_loop(&cx, &record).await };
            issues.extend(self.bounded(&**hooks, told).await.err());
        }
        issues
    }

    async fn bounded<T>(
        &self,
        hooks: &dyn Hooks,
        work: impl Future<Output = T>,
    ) -> Result<T, String> {
        let work = AssertUnwindSafe(work).catch_unwind();
        match tokio::time::timeout(self.limit, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(format!("the hook {} broke", name(hooks))),
            Err(_) => Err(format!(
                "the hook {} did not answer within {:?}",
                name(hooks),
                self.limit
            )),
        }
    }
}

fn name(hooks: &dyn Hooks) -> &str {
    catch_unwind(AssertUnwindSafe(|| hooks.name())).unwrap_or("without a name")
}

/// Whether something waits for the answer to say yes.
fn is_before(hook: &Hook) -> bool {
    match hook {
        Hook::Input { .. }
        | Hook::BeforeTurn { .. }
        | Hook::BeforeTool(_)
        | Hook::BeforeCompaction(_)
        | Hook::Checkpoint => true,
        Hook::AfterTurn { .. }
        | Hook::AfterTool { .. }
        | Hook::AfterCompaction { .. }
        | Hook::OnError { .. } => false,
    }
}

fn wants(set: &HookSet, hook: &Hook) -> bool {
    match hook {
        Hook::Input { .. } => set.input,
        Hook::BeforeTurn { .. } => set.before_turn,
        Hook::AfterTurn { .. } => set.after_turn,
        Hook::BeforeTool(_) => set.before_tool,
        Hook::AfterTool { .. } => set.after_tool,
        Hook::BeforeCompaction(_) | Hook::AfterCompaction { .. } => set.compaction,
        Hook::OnError { .. } => set.on_error,
        Hook::Checkpoint => set.checkpoint,
    }
}

#[cfg(test)]
mod tests;

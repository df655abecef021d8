//! Toolbox: the table of tools, looked up by name, with arguments normalised before a tool sees them.

use crate::{
    EffectPolicies, EffectPolicy, Observe, Prepared, Shell, Tool, ToolCx, Workspace,
    edit_file::EditFile,
    execute::{self, bounded, failure, limit_of},
    find_files::FindFiles,
    list_dir::ListDir,
    normalise,
    read_file::ReadFile,
    search::Search,
    update_plan::UpdatePlan,
    write_file::WriteFile,
};
use serde_json::Value;
use std::{
    collections::HashSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use turnery_engine::{
    Announced, CallDetail, FailureKind, ToolCall, ToolEnvelope, ToolFailure, ToolSpec,
};

/// The tools on offer, who watches them at work, and which of their effects are kept.
#[derive(Clone)]
pub struct Toolbox {
    tools: Arc<[Arc<dyn Tool>]>,
    specs: Arc<[ToolSpec]>,
    observe: Observe,
    effects: EffectPolicies,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A box of one tool (JIDO-20).
impl<T: Tool> From<T> for Toolbox {
    fn from(tool: T) -> Self {
        Self::new(vec![Arc::new(tool)])
    }
}

impl Toolbox {
    /// A box of these tools. Later ones of the same name are left out.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let empty = Self {
            tools: Arc::new([]),
            specs: Arc::new([]),
            observe: Observe::default(),
            effects: EffectPolicies::default(),
        };
        empty.with(tools)
    }

    /// A box of these tools instead, watched and narrowed like this one.
    #[must_use]
    pub fn with(self, mut tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut names = HashSet::new();
        tools.retain(|tool| names.insert(tool.spec().name.clone()));
        Self {
            specs: tools.iter().map(|tool| tool.spec().clone()).collect(),
            tools: tools.into(),
            ..self
        }
    }

    /// The same tools, watched by the subscribers of `observe` (JIDO-55).
    #[must_use]
    pub fn observed(self, observe: Observe) -> Self {
        Self { observe, ..self }
    }

    /// The same tools; of their effects only those are kept that this policy keeps too.
    #[must_use]
    pub fn narrowed(self, policy: EffectPolicy) -> Self {
        Self {
            effects: self.effects.and(policy),
            ..self
        }
    }

    /// The tools of a coding agent.
    #[must_use]
    pub fn coding() -> Self {
        Self::coding_with(Shell::default())
    }

    /// The same, with a shell of the host's making.
    #[must_use]
    pub fn coding_with(shell: Shell) -> Self {
        Self::new(vec![
            Arc::new(ReadFile::new()),
            Arc::new(ListDir::new()),
            Arc::new(FindFiles::new()),
            Arc::new(Search::new()),
            Arc::new(EditFile::new()),
            Arc::new(WriteFile::new()),
            Arc::new(shell),
            Arc::new(UpdatePlan::new()),
        ])
    }

    /// The same box with one tool more. It takes the place of one of the same name.
    #[must_use]
    pub fn and(self, tool: impl Tool) -> Self {
        let mut tools = self.tools.to_vec();
        let tool: Arc<dyn Tool> = Arc::new(tool);
        let known = tools
            .iter_mut()
            .find(|it| it.spec().name == tool.spec().name);
        match known {
            Some(known) => *known = tool,
            None => tools.push(tool),
        }
        self.with(tools)
    }

    /// The same box with these tools besides; of one name with another, the later is left out.
    #[must_use]
    pub fn and_all(self, more: Vec<Arc<dyn Tool>>) -> Self {
        let mut tools = self.tools.to_vec();
        tools.extend(more);
        self.with(tools)
    }

    /// The same box without the tool of that name.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        let mut tools = self.tools.to_vec();
        tools.retain(|tool| tool.spec().name != name);
        self.with(tools)
    }

    /// Where to subscribe to what the tools do.
    #[must_use]
    pub fn observe(&self) -> &Observe {
        &self.observe
    }

    pub(crate) fn effects(&self) -> &EffectPolicies {
        &self.effects
    }

    /// The names that the tools are called by, in table order (JIDO-67).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|spec| spec.name.as_str())
    }

    /// What the model is told, in table order.
    #[must_use]
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// How to show a call: no IO. One with bad arguments gets its tool's name and kind, one of an unknown tool
    /// its name.
    #[must_use]
    pub fn describe(&self, call: &ToolCall, workspace: &Workspace) -> CallDetail {
        self.announce(call, workspace).detail
    }

    /// The same, and whether it may run beside others: not if nobody knows what it does.
    #[must_use]
    pub fn announce(&self, call: &ToolCall, workspace: &Workspace) -> Announced {
        let announced = self.look_up(call).ok().and_then(|(tool, args)| {
            let announce = || Announced {
                detail: tool.describe(&args, workspace),
                parallel: tool.parallel(&args),
            };
            catch_unwind(AssertUnwindSafe(announce)).ok()
        });
        let mut announced = announced.unwrap_or_else(|| Announced {
            detail: CallDetail::default(),
            parallel: false,
        });
        if announced.detail.title.is_empty() {
            let kind = || self.get(&call.name).map(|tool| tool.kind());
            let kind = catch_unwind(AssertUnwindSafe(kind)).ok().flatten();
            announced.detail = CallDetail {
                title: call.name.clone(),
                kind: kind.unwrap_or_default(),
                ..announced.detail
            };
        }
        announced
    }

    /// Look up, normalise, and find out what the call is going to touch. Unknown tool:
    /// `NotFound` with the names there are; bad arguments: `Validation`, naming the field.
    pub async fn prepare(&self, call: &ToolCall, cx: &ToolCx) -> Result<Prepared, ToolFailure> {
        let prepared = self.prepared(call, cx).await;
        if let Err(failure) = &prepared {
            // The call is over, though it never ran.
            execute::never_ran(self, call, cx, failure);
        }
        prepared
    }

    /// Run the call, bounded by the tool's timeout (JIDO-68, JIDO-69). Does not ask for permission.
    /// This is the seam of [`execute`](mod@crate::execute): it is observed, and effects pass the policies.
    pub async fn run(&self, call: &ToolCall, cx: &ToolCx) -> ToolEnvelope {
        self.run_within(call, cx, None).await
    }

    /// Run the call, bounded by `limit` in place of the tool's own timeout, if there is one (JIDO-28).
    pub async fn run_within(
        &self,
        call: &ToolCall,
        cx: &ToolCx,
        limit: Option<Duration>,
    ) -> ToolEnvelope {
        execute::run(self, call, cx, limit).await
    }

    /// Turn what a model wrote into arguments that fit the schema: a JSON string becomes its value,
    /// `"6"` becomes 6 where a number is wanted, an absent optional stays absent (JIDO-39, JIDO-40).
    pub fn normalise(spec: &ToolSpec, args: &Value) -> Result<Value, ToolFailure> {
        normalise::normalise(spec, args)
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    async fn prepared(&self, call: &ToolCall, cx: &ToolCx) -> Result<Prepared, ToolFailure> {
        let (tool, args) = self.look_up(call)?;
        let limit = limit_of(tool, &args)?;
        let work = async { tool.prepare(&args, cx).await };
        bounded(&call.name, cx, limit, work).await?
    }

    /// The tool that a call names, and its arguments as that tool's schema wants them (JIDO-66).
    pub(crate) fn look_up(&self, call: &ToolCall) -> Result<(&dyn Tool, Value), ToolFailure> {
        if call.name.is_empty() {
            let message = "the call names no tool".to_owned();
            return Err(failure(FailureKind::Validation, message));
        }
        let tool = self.get(&call.name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            failure(
                FailureKind::NotFound,
                format!(
                    "there is no tool {:?}; the tools are {}",
                    call.name,
                    names.join(", ")
                ),
            )
        })?;
        let args = Self::normalise(tool.spec(), &call.args)?;
        Ok((&**tool, args))
    }
}

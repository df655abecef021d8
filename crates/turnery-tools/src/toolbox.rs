//! Looks tools up by name and normalises their arguments before they run.

use crate::{
    execute::{
        bounds::{run_bounded, tool_timeout},
        effects::{EffectPolicies, EffectPolicy},
        run_call,
    },
    normalise_args,
    telemetry::ToolTelemetry,
    tool::{PreparedCall, Tool, ToolCx},
    tools::{self, Shell},
    workspace::Workspace,
};
use serde_json::Value;
use std::{
    collections::HashSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
    time::Duration,
};
use turnery_engine::{
    CallAnnouncement, CallDetail, ToolCall, ToolEnvelope, ToolError, ToolErrorKind, ToolSpec,
};

/// A set of tools, with the telemetry they report to and the policy for their effects.
#[derive(Clone)]
pub struct Toolbox {
    tools: Arc<[ToolEntry]>,
    /// Specifications of the tools, set when they are first needed.
    specs: Arc<OnceLock<Arc<[ToolSpec]>>>,
    telemetry: ToolTelemetry,
    effect_policies: EffectPolicies,
}

#[derive(Clone)]
struct ToolEntry {
    name: String,
    tool: Arc<dyn Tool>,
    /// Set when it is first needed.
    spec: Arc<OnceLock<ToolSpec>>,
}

impl From<Arc<dyn Tool>> for ToolEntry {
    fn from(tool: Arc<dyn Tool>) -> Self {
        Self {
            name: tool.name(),
            tool,
            spec: Arc::default(),
        }
    }
}

impl ToolEntry {
    fn spec(&self) -> &ToolSpec {
        self.spec.get_or_init(|| self.tool.spec())
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Creates a toolbox with one tool (JIDO-20).
impl<T: Tool> From<T> for Toolbox {
    fn from(tool: T) -> Self {
        Self::new(vec![Arc::new(tool)])
    }
}

impl Toolbox {
    /// Creates a toolbox. If several tools have the same name, only the first is kept.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let empty = Self {
            tools: Arc::new([]),
            specs: Arc::default(),
            telemetry: ToolTelemetry::default(),
            effect_policies: EffectPolicies::default(),
        };
        empty.with_tools(tools)
    }

    /// Replaces the tools, keeping telemetry and effect policies.
    #[must_use]
    pub fn with_tools(self, tools: Vec<Arc<dyn Tool>>) -> Self {
        self.with_entries(tools.into_iter().map(ToolEntry::from))
    }

    /// Replaces the tools; of tools with the same name, the first is kept.
    fn with_entries(self, entries: impl Iterator<Item = ToolEntry>) -> Self {
        let mut names = HashSet::new();
        let tools: Vec<ToolEntry> = entries
            .filter(|entry| names.insert(entry.name.clone()))
            .collect();
        Self {
            tools: tools.into(),
            specs: Arc::default(),
            ..self
        }
    }

    fn entries(&self) -> impl Iterator<Item = ToolEntry> + use<> {
        let tools = Arc::clone(&self.tools);
        (0..tools.len()).map(move |at| tools[at].clone())
    }

    /// Reports calls to the subscribers of this telemetry handle (JIDO-55).
    #[must_use]
    pub fn with_telemetry(self, observe: ToolTelemetry) -> Self {
        Self {
            telemetry: observe,
            ..self
        }
    }

    /// Adds an effect policy; effects are kept only if all policies allow them.
    #[must_use]
    pub fn with_effect_policy(self, policy: EffectPolicy) -> Self {
        Self {
            effect_policies: self.effect_policies.with_policy(policy),
            ..self
        }
    }

    /// Creates a toolbox with the tools of a coding agent.
    #[must_use]
    pub fn coding() -> Self {
        Self::new(tools::all())
    }

    /// Creates a toolbox with the tools of a coding agent, with `shell` as the shell tool.
    #[must_use]
    pub fn coding_with(shell: Shell) -> Self {
        Self::coding().with_tool(shell)
    }

    /// Adds a tool, replacing any tool of the same name.
    #[must_use]
    pub fn with_tool(self, tool: impl Tool) -> Self {
        let mut entries: Vec<_> = self.entries().collect();
        let entry = ToolEntry::from(Arc::new(tool) as Arc<dyn Tool>);
        match entries.iter_mut().find(|it| it.name == entry.name) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
        self.with_entries(entries.into_iter())
    }

    /// Adds tools; a tool whose name is taken is ignored.
    #[must_use]
    pub fn with_extra_tools(self, more: Vec<Arc<dyn Tool>>) -> Self {
        let entries = self.entries().chain(more.into_iter().map(ToolEntry::from));
        self.with_entries(entries)
    }

    /// Removes all tools but those with these names.
    #[must_use]
    pub fn with_only(self, names: &[String]) -> Self {
        let entries = self.entries().filter(|it| names.contains(&it.name));
        self.with_entries(entries)
    }

    /// Removes the tool called `name`.
    #[must_use]
    pub fn without_tool(self, name: &str) -> Self {
        let entries = self.entries().filter(|it| it.name != name);
        self.with_entries(entries)
    }

    /// Returns the telemetry handle to subscribe to.
    #[must_use]
    pub fn telemetry(&self) -> &ToolTelemetry {
        &self.telemetry
    }

    pub(crate) fn effect_policies(&self) -> &EffectPolicies {
        &self.effect_policies
    }

    /// Returns the names of the tools, in the order in which they were added and the model receives them
    /// (JIDO-67).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|it| it.name.as_str())
    }

    /// Returns the tool specifications that the model receives, in the order in which the tools were added.
    #[must_use]
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        let list = || self.tools.iter().map(|it| it.spec().clone()).collect();
        Arc::clone(self.specs.get_or_init(list))
    }

    /// Returns how to show a call, without IO. A call with invalid arguments shows its tool's name and kind,
    /// a call of an unknown tool shows the name only.
    #[must_use]
    pub fn describe(&self, call: &ToolCall, workspace: &Workspace) -> CallDetail {
        self.announce(call, workspace).detail
    }

    /// Returns how to show a call and whether it may run in parallel. Calls of unknown tools never do.
    #[must_use]
    pub fn announce(&self, call: &ToolCall, workspace: &Workspace) -> CallAnnouncement {
        let announced = self.resolve_call(call).ok().and_then(|(tool, args)| {
            let announce = || CallAnnouncement {
                detail: tool.describe(&args, workspace),
                is_parallel: tool.can_run_in_parallel(&args),
            };
            catch_unwind(AssertUnwindSafe(announce)).ok()
        });
        let mut announced = announced.unwrap_or_else(|| CallAnnouncement {
            detail: CallDetail::default(),
            is_parallel: false,
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

    /// Looks up the tool, normalises the arguments, and determines what the call will access. An unknown tool
    /// is `NotFound` and lists the tools there are; invalid arguments are `Validation` and name the field.
    pub async fn prepare(&self, call: &ToolCall, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        let prepared = self.prepare_unreported(call, cx).await;
        if let Err(failure) = &prepared {
            // The call ends here without having run, so it is reported here.
            run_call::report_unstarted(self, call, cx, failure);
        }
        prepared
    }

    /// Runs the call within the tool's time limit (JIDO-68, JIDO-69), without asking for permission. Like
    /// every function of [`execute`](mod@crate::execute), reports to telemetry and applies the effect
    /// policies.
    pub async fn run(&self, call: &ToolCall, cx: &ToolCx) -> ToolEnvelope {
        self.run_with_timeout(call, cx, None).await
    }

    /// Runs the call within `limit`, or within the tool's own time limit if `limit` is `None` (JIDO-28).
    pub async fn run_with_timeout(
        &self,
        call: &ToolCall,
        cx: &ToolCx,
        limit: Option<Duration>,
    ) -> ToolEnvelope {
        run_call::run_call(self, call, cx, limit).await
    }

    /// Converts arguments written by a model to fit the schema: a JSON string becomes its value, `"6"`
    /// becomes 6 where a number is expected, an absent optional stays absent (JIDO-39, JIDO-40).
    pub fn normalise_args(spec: &ToolSpec, args: &Value) -> Result<Value, ToolError> {
        normalise_args::normalise_args(spec, args)
    }

    /// Returns the tool called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.find(name).map(|it| &it.tool)
    }

    fn find(&self, name: &str) -> Option<&ToolEntry> {
        self.tools.iter().find(|it| it.name == name)
    }

    async fn prepare_unreported(
        &self,
        call: &ToolCall,
        cx: &ToolCx,
    ) -> Result<PreparedCall, ToolError> {
        let (tool, args) = self.resolve_call(call)?;
        let limit = tool_timeout(&call.name, tool, &args)?;
        let work = async { tool.prepare(&args, cx).await };
        run_bounded(&call.name, cx, limit, work).await?
    }

    /// Returns the tool that a call names, and the arguments normalised to its schema (JIDO-66).
    pub(crate) fn resolve_call(&self, call: &ToolCall) -> Result<(&dyn Tool, Value), ToolError> {
        if call.name.is_empty() {
            let message = "the call names no tool".to_owned();
            return Err(ToolError::new(ToolErrorKind::Validation, message));
        }
        let found = self.find(&call.name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            ToolError::new(
                ToolErrorKind::NotFound,
                format!(
                    "there is no tool {:?}; the tools are {}",
                    call.name,
                    names.join(", ")
                ),
            )
        })?;
        let args = Self::normalise_args(found.spec(), &call.args)?;
        Ok((&*found.tool, args))
    }
}

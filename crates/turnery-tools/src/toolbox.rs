//! Toolbox: the table of tools, looked up by name, with arguments normalised before a tool sees them.

use crate::{
    Prepared, Shell, Tool, ToolCx, Workspace, edit_file::EditFile, find_files::FindFiles, grace,
    list_dir::ListDir, normalise, read_file::ReadFile, search::Search, tool::end,
    update_plan::UpdatePlan, write_file::WriteFile,
};
use futures_util::FutureExt as _;
use serde_json::Value;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::time::timeout;
use turnery_engine::{CallDetail, FailureKind, ToolCall, ToolEnvelope, ToolFailure, ToolSpec};

/// The tools on offer.
#[derive(Clone)]
pub struct Toolbox {
    tools: Arc<[Arc<dyn Tool>]>,
    specs: Arc<[ToolSpec]>,
}

impl Toolbox {
    /// A box of these tools. Later ones of the same name are left out.
    #[must_use]
    pub fn new(mut tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut names = std::collections::HashSet::new();
        tools.retain(|tool| names.insert(tool.spec().name.clone()));
        let specs = tools.iter().map(|tool| tool.spec().clone()).collect();
        Self {
            tools: tools.into(),
            specs,
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

    /// What the model is told, in table order (JIDO-67).
    #[must_use]
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// How to show a call: no IO; an unknown tool or bad arguments get the tool's name as title.
    #[must_use]
    pub fn describe(&self, call: &ToolCall, workspace: &Workspace) -> CallDetail {
        self.look_up(call)
            .ok()
            .and_then(|(tool, args)| {
                catch_unwind(AssertUnwindSafe(|| tool.describe(&args, workspace))).ok()
            })
            .unwrap_or_else(|| CallDetail {
                title: call.name.clone(),
                ..CallDetail::default()
            })
    }

    /// Look up, normalise, and find out what the call is going to touch. Unknown tool:
    /// `NotFound` with the names there are; bad arguments: `Validation`, naming the field.
    pub async fn prepare(&self, call: &ToolCall, cx: &ToolCx) -> Result<Prepared, ToolFailure> {
        let (tool, args) = self.look_up(call)?;
        let limit = tool.timeout(&args);
        bounded(call, cx, limit, tool.prepare(&args, cx)).await?
    }

    /// Run the call, bounded by the tool's timeout (JIDO-68, JIDO-69). Does not ask for permission.
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
        let ran = match self.look_up(call) {
            Ok((tool, args)) => {
                let limit = limit.unwrap_or_else(|| tool.timeout(&args));
                bounded(call, cx, limit, tool.run(&args, cx)).await
            }
            Err(failure) => Err(failure),
        };
        end(ran)
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

    fn look_up(&self, call: &ToolCall) -> Result<(&dyn Tool, Value), ToolFailure> {
        let tool = self.get(&call.name).ok_or_else(|| {
            let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
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

/// Whatever a tool does, its call ends: by itself, by its timeout, by a cancel, or by its panic.
async fn bounded<T>(
    call: &ToolCall,
    cx: &ToolCx,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ToolFailure> {
    let name = &call.name;
    let work = AssertUnwindSafe(work).catch_unwind();
    tokio::pin!(work);
    let done = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => timeout(grace::CALL, work).await.map_err(|_| {
            failure(FailureKind::Cancelled, format!("{name} was cancelled"))
        }),
        done = timeout(limit, &mut work) => done.map_err(|_| failure(
            FailureKind::Timeout,
            format!("{name} ran longer than {limit:?} and was stopped"),
        )),
    }?;
    done.map_err(|panic| {
        failure(
            FailureKind::Exception,
            format!("{name} broke: {}", words_of(&*panic)),
        )
    })
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it did not say why")
}

fn failure(kind: FailureKind, message: String) -> ToolFailure {
    ToolFailure {
        kind,
        message,
        details: None,
    }
}

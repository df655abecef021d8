//! Applies the changes of a winner to the session's folder: in a loop of its own with one call, which the policy judges,
//! the user is asked about and the record keeps, like any call. A fixed script takes the place of the model.

use super::super::{
    Budget, PromptError, PromptResult, loop_plan::LoopPlan, prompt_guard::PromptGuard,
    prompt_scope::PromptScope, result::WinnerChanges, task::SessionTask,
};
use crate::{code_mode::Protocol, finish::PromptTools};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use turnery_engine::{
    CommitError, Content, Limits, LoopId, Message, ModelDelta, ModelError, ModelStop, Outcome,
    Response, Termination, ToolCall, TurnStop, Usage, parallel_group::JudgeReport,
};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelName, ModelRequest};
use turnery_tools::{ApplyChanges, FolderChanges, FolderChangesError, PendingChanges};

/// Name of the script in records: it is no model of a provider.
const SCRIPT: (&str, &str) = ("turnery", "apply-changes");

impl SessionTask {
    /// Applies the changes of the winner, whose loop is stored, and adds the loop that does so to the result. The
    /// prompt's outcome stays that of the winner. Changes that are not applied are kept.
    pub(super) async fn apply_winner(
        &mut self,
        pending: Arc<PendingChanges>,
        winner: LoopId,
        mut result: PromptResult,
        scope: &mut PromptScope,
        guard: &mut PromptGuard,
    ) -> Result<PromptResult, PromptError> {
        let mut own_scope = PromptScope {
            model: Some(Arc::new(ApplyScript::new(
                &pending,
                self.env.workspace.cwd(),
            ))),
            protocol: Protocol::Tools,
            // The script spends nothing, and changes must not be lost because a limit is reached.
            budget: Budget::new(Limits::default()),
            termination: Termination::Natural,
            prompt_tools: PromptTools::single(ApplyChanges::new(Arc::clone(&pending))),
            takes_interjections: false,
            may_switch: false,
            ..scope.clone()
        };
        let plan = LoopPlan::after_winner(winner, self.conversation.frame_id.clone());
        let none = PromptResult::new(Outcome::Stopped(TurnStop::Cancelled));
        let applied = self
            .run_loops(plan, none, None, &mut own_scope, guard)
            .await;
        scope.last_loop_number = own_scope.last_loop_number;
        let failure = match &applied {
            Ok(applied) => find_failure(applied),
            Err(error) => Some(error.to_string()),
        };
        result.changes = Some(match failure {
            Some(reason) => keep(&pending, &reason).await,
            None => WinnerChanges::Applied {
                files: changed_files(&pending),
            },
        });
        let applied = match applied {
            Ok(applied) => applied,
            Err(error) => return Err(keep_unstored(error, Some(&pending)).await),
        };
        result.is_stored = applied.is_stored;
        result.loops.extend(applied.loops);
        Ok(result)
    }
}

/// Returns the changes of a winner that are to be applied, and the result for those that are not: they cannot be, or a
/// command judged the candidates and did not succeed for this one.
pub(super) async fn check_changes(
    changes: Result<FolderChanges, FolderChangesError>,
    label: String,
    winner: &LoopId,
    report: &mut JudgeReport,
) -> (Option<Arc<PendingChanges>>, Option<WinnerChanges>) {
    let pending = match changes {
        Ok(changes) if changes.is_empty() => return (None, None),
        Ok(changes) => Arc::new(PendingChanges::new(changes, label)),
        Err(error) => {
            add_issue(report, &error);
            let not_applied = WinnerChanges::NotApplied {
                files: Vec::new(),
                reason: error.to_string(),
                kept: None,
            };
            return (None, Some(not_applied));
        }
    };
    let mut judged = report.command.iter();
    match judged.all(|judged| judged.has_passed(winner)) {
        true => (Some(pending), None),
        false => {
            let reason = "the judging command failed for every candidate";
            (None, Some(keep(&pending, reason).await))
        }
    }
}

/// Reports changes of the winner that cannot be applied.
fn add_issue(report: &mut JudgeReport, error: &FolderChangesError) {
    let text = format!("the winner's changes were not applied: {error}");
    report.issue = Some(match report.issue.take() {
        Some(issue) => format!("{issue}; {text}"),
        None => text,
    });
}

/// Returns why the changes were not applied; `None` if they were.
fn find_failure(applied: &PromptResult) -> Option<String> {
    let executions = applied.executions();
    let call = executions
        .iter()
        .rev()
        .find(|it| it.call.name == ApplyChanges::NAME);
    match call.map(|call| &call.envelope.result) {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(error.message.to_string()),
        None => Some(match &applied.outcome {
            Outcome::Stopped(stop) => stop.describe().into_owned(),
            Outcome::Finished(..) | Outcome::FrameSwitch { .. } => "it was not called".to_owned(),
        }),
    }
}

fn changed_files(pending: &PendingChanges) -> Vec<PathBuf> {
    pending.changes().paths().map(Path::to_owned).collect()
}

/// Keeps changes that were not applied for this reason.
pub(super) async fn keep(pending: &Arc<PendingChanges>, reason: &str) -> WinnerChanges {
    let kept = pending.keep().await;
    if let Err(error) = &kept {
        tracing::warn!("changes that were not applied could not be kept: {error}");
    }
    WinnerChanges::NotApplied {
        files: changed_files(pending),
        reason: reason.to_owned(),
        kept: kept.ok(),
    }
}

/// Returns the error of a prompt, after keeping the winner's changes if a loop could not be stored: it says where they
/// are.
pub(super) async fn keep_unstored(
    error: PromptError,
    pending: Option<&Arc<PendingChanges>>,
) -> PromptError {
    let (PromptError::Lost(lost), Some(pending)) = (&error, pending) else {
        return error;
    };
    let lost = match lost {
        CommitError::Store(reason) => reason.clone(),
        CommitError::LaneLost | CommitError::HeadConflict => lost.to_string(),
    };
    let (candidate, kept) = (pending.candidate(), pending.describe_kept().await);
    let reason = format!("{lost}; look whether the changes of {candidate} were applied; {kept}");
    PromptError::Lost(CommitError::Store(reason))
}

/// Script in place of a model: calls [`ApplyChanges`], then says what came of it.
struct ApplyScript {
    info: ModelInfo,
    pending: Arc<PendingChanges>,
    /// The session's folder.
    folder: PathBuf,
    has_called: AtomicBool,
}

impl ApplyScript {
    fn new(pending: &Arc<PendingChanges>, folder: &Path) -> Self {
        let (provider, model) = SCRIPT;
        Self {
            info: ModelInfo::new(ModelName::new(provider, model), "scripted"),
            pending: Arc::clone(pending),
            folder: folder.to_owned(),
            has_called: AtomicBool::new(false),
        }
    }

    fn call_apply(&self) -> Content {
        Content::ToolCall(ToolCall::new("apply", ApplyChanges::NAME, json!({})))
    }

    /// Describes the result of the call to the user, and to the model of the next prompt.
    async fn describe(&self, request: &ModelRequest) -> String {
        let (candidate, folder) = (self.pending.candidate(), self.folder.display());
        let is_error = request
            .messages
            .iter()
            .rev()
            .find_map(|it| match &it.message {
                Message::ToolResult { is_error, .. } => Some(*is_error),
                Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => None,
            });
        match is_error {
            Some(false) => {
                format!("The changes of {candidate}, made in a copy, are now in {folder}.")
            }
            Some(true) | None => {
                let kept = self.pending.describe_kept().await;
                format!("The changes of {candidate} were not applied to {folder}; {kept}.")
            }
        }
    }

    fn respond(&self, content: Content, stop: ModelStop) -> Response {
        Response {
            content: vec![content],
            stop,
            raw_stop: None,
            usage: Some(Usage::default()),
            model: self.info.name.model.clone(),
            provider: self.info.name.provider.clone(),
            tool_results: Vec::new(),
            request: None,
        }
    }
}

impl Model for ApplyScript {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        Box::pin(async move {
            if !self.has_called.swap(true, Ordering::Relaxed) {
                return Ok(self.respond(self.call_apply(), ModelStop::ToolUse));
            }
            let text = self.describe(&request).await;
            let delta = ModelDelta::Text {
                block: 0,
                text: text.clone(),
            };
            out.send_delta(delta).await;
            Ok(self.respond(Content::text(text), ModelStop::EndTurn))
        })
    }
}

//! Decides whether a call may run: its tool prepares it, the policy judges it, and the user is asked if
//! necessary.

use super::approvals::{ApprovalRule, RememberedApprovals};
use crate::client::{
    Client, PermissionAnswer, PermissionChoice, PermissionChoiceKind, PermissionRequest,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{task::spawn_blocking, time::timeout};
use turnery_engine::{CallDetail, CallId, SessionId, ToolCall, ToolError, Verdict};
use turnery_store::Store;
use turnery_tools::{
    Access, CommandLineLimits, Judgement, Policy, PreparedCall, Rule, ToolCx, Toolbox, Workspace,
};

/// Time limit for judging a command: the disk inspected for it may hang.
const JUDGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pending verdict of a call.
pub(crate) struct CallGate {
    call_id: CallId,
    step: BoxFuture<'static, GateResult>,
}

/// Permission request with the rule that "always" would add.
pub(crate) struct PendingPermission {
    pub(crate) request: PermissionRequest,
    pub(crate) rule: Option<Rule>,
    /// Call that requested the call in question.
    pub(crate) parent_call_id: Option<CallId>,
}

impl PendingPermission {
    fn find_choice(&self, id: &str) -> Option<&PermissionChoice> {
        self.request.options.iter().find(|option| option.id == id)
    }

    /// Returns the approval to remember from an answer.
    fn approval_rule(&self, answer: &PermissionAnswer) -> Option<ApprovalRule> {
        let PermissionAnswer::Selected(id) = answer else {
            return None;
        };
        let rule = self.rule.clone()?;
        match self.find_choice(id)?.kind {
            PermissionChoiceKind::AllowAlways => Some(ApprovalRule::Allow(rule)),
            PermissionChoiceKind::RejectAlways => Some(ApprovalRule::Reject(rule)),
            PermissionChoiceKind::AllowOnce | PermissionChoiceKind::RejectOnce => None,
        }
    }
}

/// Prepared call with the judgement of a policy.
pub(crate) struct JudgedCall {
    pub(crate) call: ToolCall,
    pub(crate) prepared: PreparedCall,
    pub(crate) policy: Policy,
    pub(crate) judgement: Judgement,
    /// Limits within which an allowed command line runs.
    pub(crate) limits: CommandLineLimits,
}

/// Result of a step of the gate.
pub(crate) enum GateResult {
    /// The call was prepared, or cannot run at all.
    Prepared(ToolCall, Result<PreparedCall, ToolError>),
    /// The policy has judged the call.
    Judged(Box<JudgedCall>),
    /// The user has answered.
    Answered(Box<PendingPermission>, PermissionAnswer),
}

impl CallGate {
    /// Starts to prepare a call, once its toolbox is available.
    pub(crate) fn prepare(
        call: ToolCall,
        toolbox: impl Future<Output = Toolbox> + Send + 'static,
        cx: ToolCx,
    ) -> Self {
        Self {
            call_id: call.call_id.clone(),
            step: Box::pin(async move {
                let prepared = toolbox.await.prepare(&call, &cx).await;
                GateResult::Prepared(call, prepared)
            }),
        }
    }

    /// Judges a prepared call. Commands are judged on another thread, since that involves parsing and disk
    /// access.
    pub(crate) fn judge(
        call: ToolCall,
        prepared: PreparedCall,
        policy: Policy,
        workspace: Arc<Workspace>,
    ) -> Self {
        Self {
            call_id: call.call_id.clone(),
            step: Box::pin(async move {
                let judged = match &prepared.access {
                    Access::Run { .. } | Access::RunOutside { .. } => {
                        let (policy, access) = (policy.clone(), prepared.access.clone());
                        let name = call.name.clone();
                        let judging = spawn_blocking(move || {
                            policy.judge_with_limits(&name, &access, &workspace)
                        });
                        timeout(JUDGE_TIMEOUT, judging)
                            .await
                            .ok()
                            .and_then(Result::ok)
                    }
                    Access::Nothing | Access::Read(_) | Access::Edit(_) | Access::Server { .. } => {
                        Some(policy.judge_with_limits(&call.name, &prepared.access, &workspace))
                    }
                };
                let unjudged = || {
                    (
                        policy.judgement_on_timeout(&call.name),
                        CommandLineLimits::default(),
                    )
                };
                let (judgement, limits) = judged.unwrap_or_else(unjudged);
                GateResult::Judged(Box::new(JudgedCall {
                    call,
                    prepared,
                    policy,
                    judgement,
                    limits,
                }))
            }),
        }
    }

    /// Asks the user. An "always" answer is remembered (PERM-6).
    pub(crate) fn request_permission(
        question: Box<PendingPermission>,
        client: Arc<dyn Client>,
        known: RememberedApprovals,
        store: Arc<dyn Store>,
    ) -> Self {
        Self {
            call_id: question.request.call_id.clone(),
            step: Box::pin(async move {
                let answer = async { client.request_permission(question.request.clone()).await };
                let answered = AssertUnwindSafe(answer).catch_unwind().await;
                let answer = answered.unwrap_or_else(|_| {
                    PermissionAnswer::NoAnswer("the client panicked when it was asked".to_owned())
                });
                if let Some(always) = question.approval_rule(&answer) {
                    known.remember(always, &*store).await;
                }
                GateResult::Answered(question, answer)
            }),
        }
    }

    pub(crate) fn call_id(&self) -> &CallId {
        &self.call_id
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<GateResult> {
        self.step.as_mut().poll(cx)
    }
}

/// Decision on a prepared call.
pub(crate) enum GateDecision {
    Settled(Verdict),
    Ask(Box<PendingPermission>),
}

/// Converts a judgement to a decision.
pub(crate) fn decide(
    judgement: Judgement,
    session_id: &SessionId,
    call: &ToolCall,
    detail: CallDetail,
) -> GateDecision {
    match judgement {
        Judgement::Allow => GateDecision::Settled(Verdict::Allow),
        Judgement::Deny(reason) => GateDecision::Settled(Verdict::Deny(reason)),
        Judgement::Ask { always } => GateDecision::Ask(Box::new(PendingPermission {
            request: permission_request(session_id, call, detail, always.as_ref()),
            rule: always,
            parent_call_id: call.parent_call_id.clone(),
        })),
    }
}

impl GateDecision {
    /// Denies the call instead of asking the user, who rejected another call of the same code: code in a loop must
    /// not ask again and again.
    pub(crate) fn reject_question(&mut self) {
        if matches!(self, Self::Ask(_)) {
            let reason =
                "the user was not asked, because they rejected an earlier call of this code";
            *self = Self::Settled(Verdict::Deny(reason.to_owned()));
        }
    }
}

fn permission_request(
    session_id: &SessionId,
    call: &ToolCall,
    detail: CallDetail,
    always: Option<&Rule>,
) -> PermissionRequest {
    use PermissionChoiceKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let once = |name: &str| Some(name.to_owned());
    let for_all = |verb| always.map(|rule| format!("Always {verb} {rule} in this session"));
    let options = [
        ("allow_once", once("Allow"), AllowOnce),
        ("allow_always", for_all("allow"), AllowAlways),
        ("reject_once", once("Reject"), RejectOnce),
        ("reject_always", for_all("reject"), RejectAlways),
    ];
    let options = options.into_iter().filter_map(|(id, name, kind)| {
        let id = id.to_owned();
        name.map(|name| PermissionChoice { id, name, kind })
    });
    PermissionRequest {
        session_id: session_id.clone(),
        call_id: call.call_id.clone(),
        tool_name: call.name.clone(),
        args: Arc::clone(&call.args),
        detail,
        options: options.collect(),
        rule: always.cloned(),
    }
}

/// Converts an answer to a verdict. Only an offered option that allows counts as approval (PERM-3).
pub(crate) fn verdict_of_answer(question: &PendingPermission, answer: PermissionAnswer) -> Verdict {
    let id = match answer {
        PermissionAnswer::Selected(id) => id,
        PermissionAnswer::Cancelled => return Verdict::Cancelled,
        PermissionAnswer::NoAnswer(why) => {
            return Verdict::Deny(format!("the call was not allowed: {why}"));
        }
    };
    let Some(chosen) = question.find_choice(&id) else {
        return Verdict::Deny(format!(
            "the call was not allowed: the client answered {id:?}, which was not offered"
        ));
    };
    match chosen.kind {
        PermissionChoiceKind::AllowOnce | PermissionChoiceKind::AllowAlways => Verdict::Allow,
        PermissionChoiceKind::RejectOnce => Verdict::Deny("the user rejected this call".to_owned()),
        PermissionChoiceKind::RejectAlways => {
            Verdict::Deny("the user rejected this call and all like it".to_owned())
        }
    }
}

//! Gate: may this call run? Prepared by its tool, judged by the policy, and where that says so, asked about.

use super::known::{Always, Known};
use crate::{Answer, Ask, AskOption, Client, OptionKind};
use futures_util::{FutureExt as _, future::BoxFuture};
use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{task::spawn_blocking, time::timeout};
use turnery_engine::{CallDetail, CallId, SessionId, ToolCall, ToolFailure, Verdict};
use turnery_store::Store;
use turnery_tools::{
    Access, Judgement, LineLimits, Policy, Prepared, Rule, ToolCx, Toolbox, Workspace,
};

/// Longest time that judging a command may take: the disk that is looked at for it may hang.
const JUDGING: Duration = Duration::from_secs(5);

/// A call that waits for its verdict.
pub(crate) struct Gate {
    call_id: CallId,
    found: BoxFuture<'static, Found>,
}

/// A question, and what "always" would mean.
pub(crate) struct Question {
    pub(crate) ask: Ask,
    pub(crate) always: Option<Rule>,
}

impl Question {
    fn chosen(&self, id: &str) -> Option<&AskOption> {
        self.ask.options.iter().find(|option| option.id == id)
    }

    /// What an answer says for good.
    fn always(&self, answer: &Answer) -> Option<Always> {
        let Answer::Chose(id) = answer else {
            return None;
        };
        let rule = self.always.clone()?;
        match self.chosen(id)?.kind {
            OptionKind::AllowAlways => Some(Always::Allow(rule)),
            OptionKind::RejectAlways => Some(Always::Reject(rule)),
            OptionKind::AllowOnce | OptionKind::RejectOnce => None,
        }
    }
}

/// A prepared call, and what a policy says of it.
pub(crate) struct JudgedCall {
    pub(crate) call: ToolCall,
    pub(crate) prepared: Prepared,
    /// The policy by which it was judged.
    pub(crate) policy: Policy,
    pub(crate) judgement: Judgement,
    /// Limits that an allowed command line runs within.
    pub(crate) limits: LineLimits,
}

/// What a gate has found out.
pub(crate) enum Found {
    /// What the call touches, or why it cannot be run at all.
    Prepared(ToolCall, Result<Prepared, ToolFailure>),
    /// What a policy says of the call.
    Judged(Box<JudgedCall>),
    /// What the person said.
    Answered(Box<Question>, Answer),
}

impl Gate {
    /// Begin with what the call touches, once there is the toolbox for it.
    pub(crate) fn prepare(
        call: ToolCall,
        toolbox: impl Future<Output = Toolbox> + Send + 'static,
        cx: ToolCx,
    ) -> Self {
        Self {
            call_id: call.call_id.clone(),
            found: Box::pin(async move {
                let prepared = toolbox.await.prepare(&call, &cx).await;
                Found::Prepared(call, prepared)
            }),
        }
    }

    /// Judge a prepared call. Commands are judged on another thread, since they are parsed and the disk is looked
    /// at for them.
    pub(crate) fn judge(
        call: ToolCall,
        prepared: Prepared,
        policy: Policy,
        workspace: Arc<Workspace>,
    ) -> Self {
        Self {
            call_id: call.call_id.clone(),
            found: Box::pin(async move {
                let judged = match &prepared.access {
                    Access::Run { .. } | Access::RunOutside { .. } => {
                        let (policy, access) = (policy.clone(), prepared.access.clone());
                        let name = call.name.clone();
                        let judging = spawn_blocking(move || {
                            policy.judge_with_limits(&name, &access, &workspace)
                        });
                        timeout(JUDGING, judging).await.ok().and_then(Result::ok)
                    }
                    Access::Nothing | Access::Read(_) | Access::Edit(_) | Access::Server { .. } => {
                        Some(policy.judge_with_limits(&call.name, &prepared.access, &workspace))
                    }
                };
                let unjudged = || (policy.unjudged(&call.name), LineLimits::default());
                let (judgement, limits) = judged.unwrap_or_else(unjudged);
                Found::Judged(Box::new(JudgedCall {
                    call,
                    prepared,
                    policy,
                    judgement,
                    limits,
                }))
            }),
        }
    }

    /// Ask the person. What they say for good is remembered (PERM-6).
    pub(crate) fn ask(
        question: Box<Question>,
        client: Arc<dyn Client>,
        known: Known,
        store: Arc<dyn Store>,
    ) -> Self {
        Self {
            call_id: question.ask.call_id.clone(),
            found: Box::pin(async move {
                let asked = async { client.ask(question.ask.clone()).await };
                let answered = AssertUnwindSafe(asked).catch_unwind().await;
                let answer = answered.unwrap_or_else(|_| {
                    Answer::NoAnswer("the client broke when it was asked".to_owned())
                });
                if let Some(always) = question.always(&answer) {
                    known.remember(always, &*store).await;
                }
                Found::Answered(question, answer)
            }),
        }
    }

    pub(crate) fn call_id(&self) -> &CallId {
        &self.call_id
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Found> {
        self.found.as_mut().poll(cx)
    }
}

/// What the policy makes of a prepared call.
pub(crate) enum Judged {
    Settled(Verdict),
    Ask(Box<Question>),
}

/// What follows from a judgement.
pub(crate) fn follow(
    judgement: Judgement,
    session_id: &SessionId,
    call: &ToolCall,
    detail: CallDetail,
) -> Judged {
    match judgement {
        Judgement::Allow => Judged::Settled(Verdict::Allow),
        Judgement::Deny(reason) => Judged::Settled(Verdict::Deny(reason)),
        Judgement::Ask { always } => Judged::Ask(Box::new(Question {
            ask: ask(session_id, call, detail, always.as_ref()),
            always,
        })),
    }
}

fn ask(session_id: &SessionId, call: &ToolCall, detail: CallDetail, always: Option<&Rule>) -> Ask {
    let option = |id: &str, name: String, kind| AskOption {
        id: id.to_owned(),
        name,
        kind,
    };
    let mut options = vec![option(
        "allow_once",
        "Allow".to_owned(),
        OptionKind::AllowOnce,
    )];
    if let Some(rule) = always {
        options.push(option(
            "allow_always",
            format!("Always allow {rule} in this session"),
            OptionKind::AllowAlways,
        ));
    }
    options.push(option(
        "reject_once",
        "Reject".to_owned(),
        OptionKind::RejectOnce,
    ));
    if let Some(rule) = always {
        options.push(option(
            "reject_always",
            format!("Always reject {rule} in this session"),
            OptionKind::RejectAlways,
        ));
    }
    Ask {
        session_id: session_id.clone(),
        call_id: call.call_id.clone(),
        tool_name: call.name.clone(),
        args: Arc::clone(&call.args),
        detail,
        options,
        rule: always.cloned(),
    }
}

/// What an answer means. Only an option that was offered and means allow allows (PERM-3).
pub(crate) fn settle(question: &Question, answer: Answer) -> Verdict {
    let id = match answer {
        Answer::Chose(id) => id,
        Answer::Cancelled => return Verdict::Cancelled,
        Answer::NoAnswer(why) => {
            return Verdict::Deny(format!("the call was not allowed: {why}"));
        }
    };
    let Some(chosen) = question.chosen(&id) else {
        return Verdict::Deny(format!(
            "the call was not allowed: the client answered {id:?}, which was not offered"
        ));
    };
    match chosen.kind {
        OptionKind::AllowOnce | OptionKind::AllowAlways => Verdict::Allow,
        OptionKind::RejectOnce => Verdict::Deny("the user rejected this call".to_owned()),
        OptionKind::RejectAlways => {
            Verdict::Deny("the user rejected this call and all like it".to_owned())
        }
    }
}

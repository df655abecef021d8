//! Selects the winner of a group: by rule, by a judge model or by a command.

use super::{
    super::{
        loop_plan::LoopPlan,
        prompt_guard::PromptGuard,
        prompt_scope::PromptScope,
        running_call::{RunningModel, StreamItem},
        task::SessionTask,
    },
    resolve::Evaluation,
};
use crate::{
    evaluate::{JudgeCommand, JudgeInput, SelectionStrategy, final_answer},
    trace_sink::ModelCallContext,
};
use std::{future::poll_fn, sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use turnery_engine::{
    CallId, CandidateCheck, CommandJudgement, Content, LoopRecord, Outcome, ReachedLimit, Usage,
    parallel_group::{
        JudgeReport, eligible_candidates, parse_judge_reply, select_by_command, select_candidate,
    },
    usage::source,
};
use turnery_tools::{CommandLineLimits, Origin, ToolCx, TraceContext, Workspace, run_user_command};

/// Winner, the judge's report, and the limit that kept the judge from choosing.
pub(super) struct WinnerDecision {
    pub(super) winner: usize,
    pub(super) judge_report: JudgeReport,
    pub(super) limit: Option<ReachedLimit>,
}

/// Reason why a judge did not come to an end, with the limit that was reached, if one was.
struct JudgeInterruption {
    reason: String,
    limit: Option<ReachedLimit>,
}

impl SessionTask {
    /// Selects the winner, with the judge's help if the prompt has a turn left for that.
    pub(super) async fn choose_winner(
        &mut self,
        plan: &LoopPlan,
        evaluation: &Evaluation,
        records: &[LoopRecord],
        workspaces: &[Arc<Workspace>],
        scope: &PromptScope,
        guard: &mut PromptGuard,
    ) -> WinnerDecision {
        let eligible = eligible_candidates(records);
        let rule = evaluation.strategy.selection_rule();
        let mut decision = WinnerDecision {
            winner: select_candidate(records, &eligible, rule),
            judge_report: JudgeReport::default(),
            limit: None,
        };
        match &evaluation.strategy {
            SelectionStrategy::Command(command) => {
                let finished = eligible.iter().filter(|it| has_finished(&records[**it]));
                let finished: Vec<usize> = finished.copied().collect();
                return self
                    .judge_by_command(
                        command, decision, &finished, records, workspaces, scope, guard,
                    )
                    .await;
            }
            SelectionStrategy::Judge(_) if eligible.len() > 1 => {}
            SelectionStrategy::Judge(_)
            | SelectionStrategy::First
            | SelectionStrategy::FewestTokens
            | SelectionStrategy::MostTokens => return decision,
        }
        let name = evaluation.judge.info().name.clone();
        let undecided = |what: &str, why: &str| {
            Some(format!(
                "the judge {name} {what} ({why}), so the first answer was taken"
            ))
        };
        if let Err(limit) = scope.budget.take_turn() {
            decision.judge_report.issue = undecided("was not asked", &limit.text);
            decision.limit = Some(limit);
            return decision;
        }
        let history = plan
            .base_history
            .as_ref()
            .unwrap_or(&self.conversation.history);
        let answers = eligible.iter().map(|it| final_answer(&records[*it]));
        let request = JudgeInput {
            session_id: self.conversation.info.id.clone(),
            earlier: &history.messages(),
            input: &plan.input,
            answers: answers.collect(),
        }
        .to_request();
        let call = ModelCallContext {
            session_id: self.conversation.info.id.clone(),
            prompt_id: scope.prompt_id.clone(),
            loop_id: records[0].loop_id.clone(),
            source: source::EVALUATION,
            model: &name,
        };
        let tracer = self.env.tracer.clone();
        let judge = Arc::clone(&evaluation.judge);
        let judging = async {
            let mut running = RunningModel::start(judge, request, tracer.begin_call(call));
            loop {
                if let StreamItem::End(end) = poll_fn(|cx| running.poll(cx, true)).await {
                    return end;
                }
            }
        };
        decision.judge_report.model = Some(name.to_string());
        let why = match self.run_judge(judging, scope, guard).await {
            Ok(Ok(response)) => {
                let usage = response.usage.map(Usage::normalized).unwrap_or_default();
                let price = self.env.price(&*evaluation.judge);
                scope.budget.add_call_usage(&usage, price);
                decision.judge_report.usage = usage;
                let reply = response.content.iter().filter_map(Content::as_text);
                let choice = parse_judge_reply(&reply.collect::<String>(), eligible.len());
                if let Some(place) = choice {
                    decision.winner = eligible[place];
                    return decision;
                }
                "it named no answer".to_owned()
            }
            Ok(Err(error)) => error.to_string(),
            Err(interruption) => {
                decision.limit = interruption.limit;
                interruption.reason
            }
        };
        decision.judge_report.issue = undecided("did not choose", &why);
        decision
    }

    /// Runs the work of a judge within the time that the prompt has left, while the task serves commands.
    async fn run_judge<T>(
        &mut self,
        work: impl Future<Output = T>,
        scope: &PromptScope,
        guard: &mut PromptGuard,
    ) -> Result<T, JudgeInterruption> {
        let work = timeout(scope.budget.time_left(), work);
        let reason = match guard.run_guarded(self, work, Duration::ZERO).await {
            Ok(Some(Ok(done))) => return Ok(done),
            Ok(Some(Err(_))) => {
                let limit = scope.budget.duration_limit();
                return Err(JudgeInterruption {
                    reason: limit.text.clone(),
                    limit: Some(limit),
                });
            }
            Ok(None) => "the prompt was cancelled",
            // The commit will report it.
            Err(_) => "the session was taken over",
        };
        Err(JudgeInterruption {
            reason: reason.to_owned(),
            limit: None,
        })
    }

    /// Runs the command in the folder of each candidate that finished, one after the other.
    #[expect(clippy::too_many_arguments, reason = "the state of one group")]
    async fn judge_by_command(
        &mut self,
        command: &JudgeCommand,
        mut decision: WinnerDecision,
        finished: &[usize],
        records: &[LoopRecord],
        workspaces: &[Arc<Workspace>],
        scope: &PromptScope,
        guard: &mut PromptGuard,
    ) -> WinnerDecision {
        let mut results: Vec<CandidateCheck> = Vec::new();
        let contexts: Vec<ToolCx> = finished
            .iter()
            .filter_map(|place| workspaces.get(*place))
            .map(|workspace| self.judge_cx(workspace))
            .collect();
        let hidden_env = Arc::clone(&self.env.hidden_env);
        let checking = async {
            for (place, cx) in finished.iter().zip(&contexts) {
                let output = run_user_command(&command.line, command.timeout, &hidden_env, cx);
                let output = output.await;
                results.push(CandidateCheck {
                    loop_id: records[*place].loop_id.clone(),
                    exit_code: output.exit_code,
                    output: output.text,
                });
            }
        };
        let interruption = self.run_judge(checking, scope, guard).await.err();
        let line = &command.line;
        decision.judge_report.issue = match interruption {
            Some(JudgeInterruption { reason, limit }) => {
                decision.limit = limit;
                Some(format!("`{line}` did not judge all candidates ({reason})"))
            }
            None if results.iter().any(CandidateCheck::is_passed) || results.is_empty() => None,
            None => Some(format!(
                "`{line}` failed for all candidates, so the first of them was taken"
            )),
        };
        let judged = CommandJudgement {
            command: line.clone(),
            results,
        };
        if !finished.is_empty() {
            decision.winner = select_by_command(records, finished, &judged);
        }
        decision.judge_report.command = Some(judged);
        decision
    }

    /// Returns the context of a judging command in the folder of a candidate.
    fn judge_cx(&self, workspace: &Arc<Workspace>) -> ToolCx {
        // Nobody reads its progress.
        let (progress, _) = mpsc::channel(1);
        let policy = self.env.policy.clone();
        let policy = policy.for_copy_of(self.env.workspace.cwd(), workspace.cwd());
        ToolCx {
            call_id: CallId::from("judge"),
            origin: Origin::default(),
            workspace: Arc::clone(workspace),
            hidden: policy.hidden_files_for("shell"),
            line_limits: CommandLineLimits::default(),
            progress,
            cancel: CancellationToken::new(),
            trace: TraceContext::default(),
            caller: None,
            host: None,
        }
    }
}

/// Returns true if a loop ended by itself.
pub(super) fn has_finished(record: &LoopRecord) -> bool {
    record.outcome.as_ref().is_some_and(Outcome::is_finished)
}

//! Checks an evaluation before anything begins: its models, and what its candidates may do.

use super::super::{PromptError, command::EvaluationRequest, task::SessionTask};
use crate::{
    cancels::Cancels,
    code_mode::Protocol,
    evaluate::{Candidate, JudgeCommand, SelectionStrategy},
};
use std::sync::Arc;
use turnery_engine::{CommandJudgement, LoopId};
use turnery_models::Model;
use turnery_tools::{CandidateFoldersError, Mode};

/// Evaluation that can run.
pub(in crate::session) struct Evaluation {
    pub(super) candidates: Vec<ResolvedCandidate>,
    pub(super) strategy: SelectionStrategy,
    pub(super) judge: Arc<dyn Model>,
    pub(super) cancels: Cancels,
}

/// Candidate with its model and its permission mode.
pub(super) struct ResolvedCandidate {
    pub(super) model: Arc<dyn Model>,
    pub(super) mode: Mode,
    pub(super) config: Candidate,
}

impl Evaluation {
    /// Returns the models that the evaluation may call.
    pub(in crate::session) fn models(&self) -> Vec<&Arc<dyn Model>> {
        let judge = match self.strategy {
            SelectionStrategy::Judge(_) => Some(&self.judge),
            SelectionStrategy::First
            | SelectionStrategy::FewestTokens
            | SelectionStrategy::MostTokens
            | SelectionStrategy::Command(_) => None,
        };
        let candidates = self.candidates.iter().map(|candidate| &candidate.model);
        candidates.chain(judge).collect()
    }

    /// Returns the command that judges the candidates, if one does.
    pub(super) fn judge_command(&self) -> Option<&JudgeCommand> {
        match &self.strategy {
            SelectionStrategy::Command(command) => Some(command),
            SelectionStrategy::First
            | SelectionStrategy::FewestTokens
            | SelectionStrategy::MostTokens
            | SelectionStrategy::Judge(_) => None,
        }
    }

    /// Describes a candidate to the user.
    pub(super) fn label(&self, index: usize) -> String {
        let model = self.candidates.get(index).map(|it| &it.config.model);
        let model = model.map_or_else(String::new, ToString::to_string);
        format!("candidate {} ({model})", index + 1)
    }

    /// Describes a candidate to the user, with the result of the command that judged it.
    pub(super) fn label_with_check(
        &self,
        index: usize,
        loop_id: &LoopId,
        judged: Option<&CommandJudgement>,
    ) -> String {
        let label = self.label(index);
        let checked = judged.and_then(|judged| Some((&judged.command, judged.check_of(loop_id)?)));
        match checked {
            Some((line, check)) => {
                let end = match check.exit_code {
                    Some(code) => format!("exit code {code}"),
                    None => "no exit code".to_owned(),
                };
                format!("{label}, for which `{line}` ended with {end}")
            }
            None => label,
        }
    }

    /// Returns true if each candidate needs a folder of its own: one of them may change files, or a command judges
    /// them, which may.
    pub(super) fn needs_folders(&self) -> bool {
        let mut modes = self.candidates.iter().map(|candidate| candidate.mode);
        self.judge_command().is_some() || modes.any(|mode| mode != Mode::Plan)
    }
}

impl SessionTask {
    /// Resolves the models of an evaluation and checks its candidates. Starts nothing.
    pub(in crate::session) fn resolve_evaluation(
        &self,
        request: EvaluationRequest,
        own: Option<&Arc<dyn Model>>,
        cancels: Cancels,
    ) -> Result<Evaluation, PromptError> {
        let own = own.unwrap_or(&self.env.model);
        let mut configs = request.candidates;
        if configs.is_empty() {
            configs.push(own.info().name.clone().into());
        }
        let judge = match &request.strategy {
            SelectionStrategy::Judge(Some(name)) => self.env.models.model(name)?,
            SelectionStrategy::Judge(None)
            | SelectionStrategy::First
            | SelectionStrategy::FewestTokens
            | SelectionStrategy::MostTokens
            | SelectionStrategy::Command(_) => Arc::clone(own),
        };
        let candidates = configs.into_iter().map(|config| {
            let is_own = config.model == own.info().name;
            Ok(ResolvedCandidate {
                model: match is_own {
                    true => Arc::clone(own),
                    false => self.env.models.model(&config.model)?,
                },
                mode: config.mode.unwrap_or(Mode::Plan),
                config,
            })
        });
        let evaluation = Evaluation {
            candidates: candidates.collect::<Result<_, PromptError>>()?,
            strategy: request.strategy,
            judge,
            cancels,
        };
        if let Some(command) = evaluation.judge_command()
            && command.line.trim().is_empty()
        {
            return Err(PromptError::EmptyJudgeCommand);
        }
        let needs_folders = evaluation.needs_folders();
        if needs_folders && self.env.workspace.roots().is_empty() {
            return Err(CandidateFoldersError::NoFolder.into());
        }
        for (candidate, number) in evaluation.candidates.iter().zip(1..) {
            self.check_candidate(candidate, needs_folders)
                .map_err(|reason| PromptError::Candidate { number, reason })?;
            if candidate.config.protocol == Some(Protocol::Code) && !turnery_code::is_available() {
                return Err(PromptError::NoInterpreter);
            }
        }
        Ok(evaluation)
    }

    /// Returns why a candidate is not possible: it may do no more than the session.
    fn check_candidate(
        &self,
        candidate: &ResolvedCandidate,
        needs_folders: bool,
    ) -> Result<(), String> {
        let (mode, own) = (candidate.mode, self.env.policy.mode);
        if mode.is_more_permissive_than(own) {
            return Err(format!(
                "mode {mode} allows more than the session's mode {own}; set the session's mode first"
            ));
        }
        for name in candidate.config.tools.iter().flatten() {
            if self.tools.has_own(name) {
                continue;
            }
            match self.tools.may_have_server_tool(name, &self.env.toolbox) {
                true if !needs_folders => {}
                true => {
                    return Err(format!(
                        "the tool {name} belongs to an MCP server, which works in the session's folder and not in \
                         the candidate's"
                    ));
                }
                false => return Err(format!("the session has no tool {name}")),
            }
        }
        Ok(())
    }
}

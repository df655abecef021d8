//! Defines what all loops of one prompt share.

use super::{budget::Budget, request_prefix::RequestPrefix, task::SessionTask};
use crate::{
    code_mode::{Protocol, code_system_prompt},
    evaluate::Candidate,
    finish::{FinalAnswerFormat, FinishRule, PromptTools},
    hooks::HookList,
    settings::Settings,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use turnery_engine::{LoopId, PromptId, Termination};
use turnery_models::{Model, Thinking};
use turnery_tools::{Toolbox, TraceContext};

/// Parameters shared by all loops of one prompt.
#[derive(Clone)]
pub(crate) struct PromptScope {
    pub(crate) prompt_id: PromptId,
    /// Model to use instead of the session's.
    pub(crate) model: Option<Arc<dyn Model>>,
    /// Model that has taken over for the rest of the prompt, because the chosen one was not available.
    pub(crate) takeover: Arc<Mutex<Option<Arc<dyn Model>>>>,
    pub(crate) protocol: Protocol,
    /// Thinking level to use instead of the session's.
    pub(crate) thinking: Option<Thinking>,
    /// Temperature to use instead of the session's.
    pub(crate) temperature: Option<f32>,
    pub(crate) budget: Budget,
    pub(crate) forced_reply: bool,
    pub(crate) termination: Termination,
    /// Rule that the prompt was given, before it is adapted to the protocol.
    pub(crate) finish_rule: FinishRule,
    pub(crate) prompt_tools: PromptTools,
    /// True if interjections are delivered to its loops; otherwise they become the next prompt.
    pub(crate) takes_interjections: bool,
    pub(crate) metadata: Option<Value>,
    pub(crate) spawned_by: Option<LoopId>,
    pub(crate) hooks: HookList,
    pub(crate) trace: TraceContext,
    /// True if the next loop may open a frame: their number is limited.
    pub(crate) may_switch: bool,
    /// Highest loop number used in the session.
    pub(super) last_loop_number: u64,
}

impl PromptScope {
    /// Returns the scope of a candidate with this model. `format` is the usual form of final values.
    pub(super) fn for_candidate(
        &self,
        model: &Arc<dyn Model>,
        candidate: &Candidate,
        format: FinalAnswerFormat,
    ) -> Self {
        let scope = Self {
            model: Some(Arc::clone(model)),
            takeover: Arc::default(),
            thinking: candidate.thinking.or(self.thinking),
            temperature: candidate.temperature.or(self.temperature),
            ..self.clone()
        };
        match candidate.protocol {
            Some(protocol) => scope.with_protocol(protocol, format),
            None => scope,
        }
    }

    /// Sets how the model acts, and thereby how the prompt may end.
    fn with_protocol(self, protocol: Protocol, format: FinalAnswerFormat) -> Self {
        let rule = self.finish_rule.for_protocol(protocol);
        Self {
            protocol,
            termination: rule.termination(),
            prompt_tools: rule.tools(format),
            ..self
        }
    }

    /// Returns the model of the prompt, given that of its session.
    pub(super) fn model_or(&self, session_model: &Arc<dyn Model>) -> Arc<dyn Model> {
        let takeover = self.lock_takeover();
        let own = takeover.as_ref().or(self.model.as_ref());
        Arc::clone(own.unwrap_or(session_model))
    }

    /// Uses another model for the rest of the prompt.
    pub(super) fn take_over(&self, model: Arc<dyn Model>) {
        *self.lock_takeover() = Some(model);
    }

    fn lock_takeover(&self) -> MutexGuard<'_, Option<Arc<dyn Model>>> {
        self.takeover.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the thinking level of the prompt, given the settings of its session.
    pub(super) fn thinking_or(&self, settings: &Settings) -> Thinking {
        self.thinking.unwrap_or(settings.thinking)
    }

    /// Returns the temperature of the prompt, given the settings of its session.
    pub(super) fn temperature_or(&self, settings: &Settings) -> Option<f32> {
        self.temperature.or(settings.temperature)
    }

    /// Returns the fixed part of every request of the prompt.
    pub(super) fn request_prefix<'a>(&self, task: &'a SessionTask) -> Cow<'a, RequestPrefix> {
        let env = &task.env;
        let system = &env.settings.system;
        let toolbox = || self.prompt_tools.add_to(&env.toolbox);
        match self.protocol {
            Protocol::Tools if self.prompt_tools.is_empty() => {
                Cow::Borrowed(task.tools.prefix(env))
            }
            Protocol::Tools => Cow::Owned(RequestPrefix::new(&toolbox(), system)),
            Protocol::Code => {
                let system = code_system_prompt(system, &toolbox().specs());
                Cow::Owned(RequestPrefix::new(&Toolbox::new(Vec::new()), &system))
            }
        }
    }

    /// Returns the id of the prompt's next loop (LOOP-10). Its number is greater than that of any earlier
    /// loop of the session, and so of any with the same configuration (LOOP-12).
    pub(super) fn next_loop_id(&mut self, session: &SessionTask) -> LoopId {
        let model = self.model_or(&session.env.model);
        let segment = model.info().name.loop_id_segment();
        self.last_loop_number += 1;
        LoopId::from_parts(
            &session.conversation.info.id,
            &segment,
            self.last_loop_number,
        )
    }
}

//! `scripted:FILE` plays a scenario, for tests, demonstrations and bug reports: the same scenario always
//! yields the same deltas, calls and endings.

mod error;
mod play;
mod position;
mod scenario;

pub use error::ScenarioError;
pub use scenario::{
    AnswerCondition, AnswerEnd, AnswerStep, Scenario, ScriptedAnswer, ScriptedError, ScriptedText,
    ScriptedUsage, ToolUse,
};

use crate::{
    model::{Model, ModelEventSender, ModelInfo, ModelRequest},
    model_name::ModelName,
};
use futures_util::future::BoxFuture;
use position::ScenarioPosition;
use std::path::Path;
use turnery_engine::{Message, ModelError, ModelErrorKind, Response};

/// Returns the JSON Schema of a scenario file, as stored in `schemas/scenario.json`.
#[must_use]
pub fn scenario_schema() -> schemars::Schema {
    schemars::schema_for!(Scenario)
}

/// A model that plays a scenario.
#[derive(Debug)]
pub struct ScriptedModel {
    info: ModelInfo,
    scenario: Scenario,
    position: ScenarioPosition,
}

impl ScriptedModel {
    /// Creates a model from a scenario.
    #[must_use]
    pub fn new(scenario: Scenario) -> Self {
        let name = scenario.name.clone().unwrap_or_default();
        Self::with_model_name(scenario, name)
    }

    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// The error names the file, the line and, for a mistyped key, the nearest valid one.
    pub fn open(path: &Path) -> Result<Self, ScenarioError> {
        let scenario = Scenario::read(path)?;
        Ok(Self::with_model_name(scenario, path.display().to_string()))
    }

    fn with_model_name(scenario: Scenario, model: String) -> Self {
        let title = scenario.name.as_deref().unwrap_or(&model);
        Self {
            info: ModelInfo {
                display_name: format!("Scripted ({title})"),
                images: true,
                audio: scenario.audio,
                reasoning: true,
                ..ModelInfo::new(ModelName::new("scripted", model), "scripted")
            },
            position: ScenarioPosition::new(&scenario),
            scenario,
        }
    }

    pub(crate) fn info_mut(&mut self) -> &mut ModelInfo {
        &mut self.info
    }

    fn exhausted_error(&self) -> ModelError {
        let count = self.scenario.ordered_answers().count();
        let message = format!(
            "the scenario {} is over: all of its {count} answers in order have been played; add one, or set \"repeat\": true",
            self.info.name.model
        );
        ModelError::new(ModelErrorKind::BadRequest, message)
    }
}

impl Model for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        let messages: Vec<&Message> = request.messages.iter().map(|it| &it.message).collect();
        let answer = self.position.next_answer(&self.scenario, &messages);
        let answer_count = messages
            .iter()
            .filter(|message| matches!(message, Message::Assistant { .. }))
            .count();
        Box::pin(async move {
            let answer = answer.ok_or_else(|| self.exhausted_error())?;
            play::play_answer(answer, answer_count, &self.info.name, &out).await
        })
    }
}

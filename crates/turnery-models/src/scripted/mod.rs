//! `scripted:FILE`: a model that plays a scenario. For tests, demonstrations and bug reports: the
//! same scenario gives the same deltas, calls and ends each time.

mod error;
mod play;
mod position;
mod scenario;

pub use error::ScenarioError;
pub use scenario::{Answer, End, Fault, FaultWord, Scenario, Step, Tokens, ToolUse, When, Words};

use crate::{DeltaSender, Model, ModelInfo, ModelName, ModelRequest};
use futures_util::future::BoxFuture;
use position::Position;
use std::path::Path;
use turnery_engine::{FaultKind, Message, ModelFault, Response};

/// The JSON Schema of a scenario file, as kept in `schemas/scenario.json`.
#[must_use]
pub fn scenario_schema() -> schemars::Schema {
    schemars::schema_for!(Scenario)
}

/// A model that plays a scenario.
#[derive(Debug)]
pub struct Scripted {
    info: ModelInfo,
    scenario: Scenario,
    position: Position,
}

impl Scripted {
    /// Play this scenario.
    #[must_use]
    pub fn new(scenario: Scenario) -> Self {
        let name = scenario.name.clone().unwrap_or_default();
        Self::named(scenario, name)
    }

    /// Read a scenario from a file and play it.
    ///
    /// # Errors
    /// Names the file, the line and, for a mistyped key, the nearest valid one.
    pub fn open(path: &Path) -> Result<Self, ScenarioError> {
        let scenario = Scenario::read(path)?;
        Ok(Self::named(scenario, path.display().to_string()))
    }

    fn named(scenario: Scenario, model: String) -> Self {
        let title = scenario.name.as_deref().unwrap_or(&model);
        Self {
            info: ModelInfo {
                display_name: format!("Scripted ({title})"),
                name: ModelName {
                    provider: "scripted".to_owned(),
                    model,
                },
                context_window: None,
                max_output: u32::MAX,
                images: true,
                audio: scenario.audio,
                reasoning: true,
                api: "scripted",
                base_url: None,
            },
            position: Position::new(&scenario),
            scenario,
        }
    }

    pub(crate) fn info_mut(&mut self) -> &mut ModelInfo {
        &mut self.info
    }

    fn over(&self) -> ModelFault {
        let count = self.scenario.in_order().count();
        ModelFault {
            kind: FaultKind::BadRequest,
            message: format!(
                "the scenario {} is over: all of its {count} answers in order have been played; add one, or set \"repeat\": true",
                self.info.name.model
            ),
            status: None,
            retry_after: None,
        }
    }
}

impl Model for Scripted {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: DeltaSender,
    ) -> BoxFuture<'_, Result<Response, ModelFault>> {
        let messages: Vec<&Message> = request.messages.iter().map(|kept| &kept.message).collect();
        let answer = self.position.choose(&self.scenario, &messages);
        let said = messages
            .iter()
            .filter(|message| matches!(message, Message::Assistant { .. }))
            .count();
        Box::pin(async move {
            let answer = answer.ok_or_else(|| self.over())?;
            play::play(answer, said, &self.info.name, &out).await
        })
    }
}

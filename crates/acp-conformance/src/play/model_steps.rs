//! Steps that script the fake model and check its requests.

use super::{StepError, case_run::CaseRun};
use crate::{
    case::{CountRange, Need},
    model::{Exchange, ExchangeRole, ExchangeState, FakeModel, ScriptedResponse},
    pattern::fill_text,
};
use serde_json::Value;

impl CaseRun<'_> {
    pub(super) fn require_fake_model(&self) -> Result<&FakeModel, StepError> {
        let fault = "there is no fake model without a profile: say `needs model`";
        self.fake_model
            .as_ref()
            .ok_or_else(|| StepError::SuiteError(fault.to_owned()))
    }

    pub(super) fn set_script(
        &self,
        prompt: Option<&str>,
        answers: &[ScriptedResponse],
    ) -> Result<(), StepError> {
        let fill = |text: &str| fill_text(text, &self.captures);
        let answers = answers
            .iter()
            .map(|answer| answer.with_substitutions(&fill))
            .collect();
        let prompt = prompt.map(fill);
        self.require_fake_model()?
            .set_script(prompt.as_deref(), answers);
        Ok(())
    }

    /// Updates the set of missing tools from the fake model and returns true if it has grown.
    pub(super) fn update_missing_tools(&mut self) -> bool {
        let Some(fake) = &self.fake_model else {
            return false;
        };
        let before = std::mem::replace(&mut self.missing_tools, fake.missing_tools());
        !self.missing_tools.is_subset(&before)
    }

    /// Returns a message if the model was to call this tool and the agent did not offer it.
    pub(super) fn missing_tool(&self, need: &Need) -> Option<String> {
        let Need::Tool(tool) = need else {
            return None;
        };
        let is_missing = self.missing_tools.iter().any(|lacked| tool.covers(lacked));
        is_missing.then(|| {
            format!(
                "the agent offered the model no tool that {}",
                tool.description()
            )
        })
    }

    pub(super) fn check_model_request(&self, has: bool, text: &str) -> Result<(), StepError> {
        let text = fill_text(text, &self.captures);
        let holds = self.require_fake_model()?.read_exchanges(|exchanges| {
            let last = exchanges.iter().rfind(|exchange| exchange.is_main());
            last.map(|last| contains_text(&last.body, &text))
        });
        let Some(holds) = holds else {
            return Err(StepError::mismatch(
                self.explain_side_requests("the model was not asked anything")?,
            ));
        };
        match (holds, has) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err(StepError::mismatch(format!("the model saw {text:?}"))),
            (false, true) => Err(StepError::mismatch(format!(
                "the model did not see {text:?}"
            ))),
        }
    }

    pub(super) fn check_request_count(&self, range: CountRange) -> Result<(), StepError> {
        let count =
            self.require_fake_model()?.count_conversation_exchanges() - self.model_requests_before;
        if range.contains(count) {
            return Ok(());
        }
        let why = format!("the model was asked {count} times, not {range}");
        Err(StepError::mismatch(self.explain_side_requests(&why)?))
    }

    /// Adds a hint if requests without tools were taken for side requests.
    fn explain_side_requests(&self, why: &str) -> Result<String, StepError> {
        let is_side = |exchange: &Exchange| {
            let request = exchange.request.as_ref();
            exchange.role == ExchangeRole::Side
                && request.is_some_and(|request| request.tools.is_empty())
        };
        let fake = self.require_fake_model()?;
        let has_side = fake.read_exchanges(|exchanges| exchanges.iter().any(is_side));
        Ok(if has_side {
            format!(
                "{why}; a request came without tools and was taken for a side request (a title, a summary): set \
                 offers_tools = false in the profile, under [requests], if the agent never offers tools"
            )
        } else {
            why.to_owned()
        })
    }

    pub(super) fn check_model_stream_dropped(&self) -> Result<(), StepError> {
        let is_dropped = |exchange: &Exchange| exchange.state == ExchangeState::Dropped;
        let fake = self.require_fake_model()?;
        if fake.read_exchanges(|exchanges| exchanges.iter().any(is_dropped)) {
            return Ok(());
        }
        Err(StepError::mismatch("no answer of the model was let go of"))
    }
}

/// Returns true if any string in the value contains `text`.
pub(super) fn contains_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(items) => items.iter().any(|item| contains_text(item, text)),
        Value::Object(members) => members.values().any(|member| contains_text(member, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

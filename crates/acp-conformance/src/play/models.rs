//! Models: what the fake model says in a case, and what it heard.

use super::{Miss, stage::Stage};
use crate::{
    case::{Need, Range},
    model::{Answer, Exchange, FakeModel, Fate, Role},
    pattern::fill_text,
};
use serde_json::Value;

impl Stage<'_> {
    pub(super) fn fake(&self) -> Result<&FakeModel, Miss> {
        let fault = "there is no fake model without a profile: say `needs model`";
        self.fake
            .as_ref()
            .ok_or_else(|| Miss::Fault(fault.to_owned()))
    }

    pub(super) fn model(&self, prompt: Option<&str>, answers: &[Answer]) -> Result<(), Miss> {
        let fill = |text: &str| fill_text(text, &self.vars);
        let answers = answers.iter().map(|answer| answer.filled(&fill)).collect();
        let prompt = prompt.map(fill);
        self.fake()?.says(prompt.as_deref(), answers);
        Ok(())
    }

    /// Whether the agent has just turned out to lack a tool.
    pub(super) fn misses_more(&mut self) -> bool {
        let Some(fake) = &self.fake else {
            return false;
        };
        let before = std::mem::replace(&mut self.lacking, fake.lacking());
        !self.lacking.is_subset(&before)
    }

    /// What is to be said of a tool that the model was to call and that the agent did not offer it.
    pub(super) fn unoffered(&self, need: &Need) -> Option<String> {
        let Need::Tool(tool) = need else {
            return None;
        };
        let is_missing = self.lacking.iter().any(|lacked| tool.is_meant_by(lacked));
        is_missing.then(|| format!("the agent offered the model no tool that {}", tool.does()))
    }

    pub(super) fn saw(&self, has: bool, text: &str) -> Result<(), Miss> {
        let text = fill_text(text, &self.vars);
        let holds = self.fake()?.read_exchanges(|exchanges| {
            let last = exchanges.iter().rfind(|exchange| exchange.is_main());
            last.map(|last| holds(&last.body, &text))
        });
        let Some(holds) = holds else {
            return Err(Miss::wrong(
                self.but_for_side("the model was not asked anything")?,
            ));
        };
        match (holds, has) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err(Miss::wrong(format!("the model saw {text:?}"))),
            (false, true) => Err(Miss::wrong(format!("the model did not see {text:?}"))),
        }
    }

    pub(super) fn asked(&self, range: Range) -> Result<(), Miss> {
        let asked = self.fake()?.count_conversation() - self.asked_before;
        if range.holds(asked) {
            return Ok(());
        }
        let why = format!("the model was asked {asked} times, not {range}");
        Err(Miss::wrong(self.but_for_side(&why)?))
    }

    /// It may have been asked without tools.
    fn but_for_side(&self, why: &str) -> Result<String, Miss> {
        let is_side = |exchange: &Exchange| {
            let asked = exchange.asked.as_ref();
            exchange.role == Role::Side && asked.is_some_and(|asked| asked.offered.is_empty())
        };
        let fake = self.fake()?;
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

    pub(super) fn dropped(&self) -> Result<(), Miss> {
        let is_dropped = |exchange: &Exchange| exchange.fate == Fate::Dropped;
        let fake = self.fake()?;
        if fake.read_exchanges(|exchanges| exchanges.iter().any(is_dropped)) {
            return Ok(());
        }
        Err(Miss::wrong("no answer of the model was let go of"))
    }
}

/// Whether some string in the value holds this.
pub(super) fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(members) => members.values().any(|member| holds(member, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

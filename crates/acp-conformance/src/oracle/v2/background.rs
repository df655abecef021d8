//! Checks background work of version 2: listed in every state once it was listed, each item after its
//! announcement, and removed only after its end was reported (V2-9).

use super::{super::recorder::RuleRecorder, items::SessionItems};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct BackgroundWork {
    /// Latest list, if any was sent.
    listed: Option<Vec<BackgroundItem>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BackgroundItem {
    Terminal(String),
    Call(String),
    Subagent(String),
}

impl BackgroundItem {
    fn from_json(item: &Value) -> Option<Self> {
        let id = |key: &str| item[key].as_str().map(str::to_owned);
        match item["type"].as_str()? {
            "terminal" => id("terminalId").map(Self::Terminal),
            "tool_call" => id("toolCallId").map(Self::Call),
            "subagent" => id("sessionId").map(Self::Subagent),
            // Unknown kinds cannot be checked.
            _ => None,
        }
    }

    fn is_announced(&self, session_items: &SessionItems) -> bool {
        match self {
            Self::Terminal(id) => session_items.terminal(id).is_some(),
            Self::Call(id) => session_items.call(id).is_some(),
            Self::Subagent(id) => session_items.subagents.contains(id),
        }
    }

    /// Returns true if the end of the item was reported or need not be.
    fn may_disappear(&self, session_items: &SessionItems) -> bool {
        match self {
            Self::Terminal(id) => session_items
                .terminal(id)
                .is_none_or(|terminal| terminal.is_over),
            Self::Call(id) => session_items.call(id).is_none_or(|call| call.is_over),
            Self::Subagent(_) => true,
        }
    }
}

impl BackgroundWork {
    /// Checks the background work of a state update.
    pub(super) fn on_state_update(
        &mut self,
        background: &Value,
        session_items: &SessionItems,
        recorder: &mut RuleRecorder,
    ) {
        let Some(items) = background.as_array() else {
            if self.listed.is_some() {
                recorder
                    .record_violation("V2-9", "background work was told of before, and is not now");
            }
            return;
        };
        let items: Vec<BackgroundItem> =
            items.iter().filter_map(BackgroundItem::from_json).collect();
        let before = self.listed.take().unwrap_or_default();
        let unknown = items.iter().find(|item| !item.is_announced(session_items));
        let again = items
            .iter()
            .enumerate()
            .find(|(index, item)| items[..*index].contains(item));
        let gone = before
            .iter()
            .find(|item| !items.contains(item) && !item.may_disappear(session_items));
        if let Some(item) = unknown {
            recorder.record_violation("V2-9", format!("{item:?} was not announced"));
        } else if let Some((_, item)) = again {
            recorder.record_violation("V2-9", format!("{item:?} is listed twice"));
        } else if let Some(item) = gone {
            recorder.record_violation(
                "V2-9",
                format!("{item:?} is gone, but its end was not reported"),
            );
        } else {
            recorder.record_observed("V2-9");
        }
        self.listed = Some(items);
    }
}

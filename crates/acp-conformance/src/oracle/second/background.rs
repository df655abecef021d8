//! Background work of a session of version 2: told in every state once it was told of, each item after it was
//! announced, and gone only after its end was told (V2-9).

use super::{super::Found, things::Things};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Background {
    /// What was listed last, if it was ever told of.
    listed: Option<Vec<Item>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Terminal(String),
    Call(String),
    Subagent(String),
}

impl Item {
    fn of(item: &Value) -> Option<Self> {
        let id = |key: &str| item[key].as_str().map(str::to_owned);
        match item["type"].as_str()? {
            "terminal" => id("terminalId").map(Self::Terminal),
            "tool_call" => id("toolCallId").map(Self::Call),
            "subagent" => id("sessionId").map(Self::Subagent),
            // What it is nobody knows.
            _ => None,
        }
    }

    fn is_announced(&self, things: &Things) -> bool {
        match self {
            Self::Terminal(id) => things.terminal(id).is_some(),
            Self::Call(id) => things.call(id).is_some(),
            Self::Subagent(id) => things.children.contains(id),
        }
    }

    /// Its end was told, or need not be.
    fn may_go(&self, things: &Things) -> bool {
        match self {
            Self::Terminal(id) => things.terminal(id).is_none_or(|terminal| terminal.is_over),
            Self::Call(id) => things.call(id).is_none_or(|call| call.is_over),
            Self::Subagent(_) => true,
        }
    }
}

impl Background {
    /// A state has come with this as its background work.
    pub(super) fn told(&mut self, background: &Value, things: &Things, found: &mut Found) {
        let Some(items) = background.as_array() else {
            if self.listed.is_some() {
                found.broken("V2-9", "background work was told of before, and is not now");
            }
            return;
        };
        let items: Vec<Item> = items.iter().filter_map(Item::of).collect();
        let before = self.listed.take().unwrap_or_default();
        let unknown = items.iter().find(|item| !item.is_announced(things));
        let again = items
            .iter()
            .enumerate()
            .find(|(index, item)| items[..*index].contains(item));
        let gone = before
            .iter()
            .find(|item| !items.contains(item) && !item.may_go(things));
        if let Some(item) = unknown {
            found.broken("V2-9", format!("{item:?} was not announced"));
        } else if let Some((_, item)) = again {
            found.broken("V2-9", format!("{item:?} is listed twice"));
        } else if let Some(item) = gone {
            found.broken(
                "V2-9",
                format!("{item:?} is gone, and its end was not told"),
            );
        } else {
            found.seen("V2-9");
        }
        self.listed = Some(items);
    }
}

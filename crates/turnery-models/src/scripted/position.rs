//! Position: which answer comes next, read off the history so that it survives a restart.

use super::scenario::{Answer, Scenario, When};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnery_engine::Message;

/// Where a scenario stands.
#[derive(Debug)]
pub(super) enum Position {
    /// Counted from the history of each request: sessions do not disturb one another, and a
    /// session that is loaded in another process goes on with its next answer.
    History,
    /// Counted over all calls of this process.
    Calls(AtomicUsize),
}

impl Position {
    pub(super) fn new(scenario: &Scenario) -> Self {
        if scenario.by_history {
            Self::History
        } else {
            Self::Calls(AtomicUsize::new(0))
        }
    }

    /// The answer to this history: the first whose `when` fits, or else the next in order.
    pub(super) fn choose<'a>(
        &self,
        scenario: &'a Scenario,
        messages: &[&Message],
    ) -> Option<&'a Answer> {
        if let Some(answer) = matched(scenario, messages) {
            return Some(answer);
        }
        let at = match self {
            Self::History => played_in_order(scenario, messages),
            Self::Calls(count) => count.fetch_add(1, Ordering::Relaxed),
        };
        let count = scenario.in_order().count();
        let at = if scenario.repeat && count > 0 {
            at % count
        } else {
            at
        };
        scenario.in_order().nth(at)
    }
}

/// How many answers of the history were taken in order: those for which no `when` fitted then.
fn played_in_order(scenario: &Scenario, messages: &[&Message]) -> usize {
    messages
        .iter()
        .enumerate()
        .filter(|(_, message)| matches!(message, Message::Assistant { .. }))
        .filter(|(at, _)| matched(scenario, &messages[..*at]).is_none())
        .count()
}

fn matched<'a>(scenario: &'a Scenario, messages: &[&Message]) -> Option<&'a Answer> {
    scenario.answers.iter().find(|answer| {
        answer
            .when
            .as_ref()
            .is_some_and(|when| fits(when, messages))
    })
}

fn fits(when: &When, messages: &[&Message]) -> bool {
    let last = messages
        .iter()
        .rev()
        .find(|message| !matches!(message, Message::System { .. }));
    let user = messages
        .iter()
        .rev()
        .find(|message| matches!(message, Message::User { .. }));
    let user_fits = when
        .last_user_contains
        .as_ref()
        .is_none_or(|part| user.is_some_and(|message| message.text().contains(part)));
    let place_fits = match &when.last_tool_result_contains {
        Some(part) => last.is_some_and(|message| {
            matches!(message, Message::ToolResult { .. }) && message.text().contains(part)
        }),
        None => last.is_some_and(|message| matches!(message, Message::User { .. })),
    };
    user_fits && place_fits
}

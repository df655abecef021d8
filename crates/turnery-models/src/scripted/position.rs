//! Finds the next answer of a scenario, by the history of the request or by counting calls.

use super::scenario::{AnswerCondition, Scenario, ScriptedAnswer};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnery_engine::Message;

/// Position in a scenario.
#[derive(Debug)]
pub(super) enum ScenarioPosition {
    /// Counted from the history of each request: sessions are independent, and a session loaded in another
    /// process continues with its next answer.
    History,
    /// Counted over all calls of this process.
    Calls(AtomicUsize),
}

impl ScenarioPosition {
    pub(super) fn new(scenario: &Scenario) -> Self {
        if scenario.by_history {
            Self::History
        } else {
            Self::Calls(AtomicUsize::new(0))
        }
    }

    /// Returns the answer to this history: the first whose `when` matches, else the next in order.
    pub(super) fn next_answer<'a>(
        &self,
        scenario: &'a Scenario,
        messages: &[&Message],
    ) -> Option<&'a ScriptedAnswer> {
        if let Some(answer) = find_matching_answer(scenario, messages) {
            return Some(answer);
        }
        let at = match self {
            Self::History => count_ordered_answers(scenario, messages),
            Self::Calls(count) => count.fetch_add(1, Ordering::Relaxed),
        };
        let count = scenario.ordered_answers().count();
        let at = if scenario.repeat && count > 0 {
            at % count
        } else {
            at
        };
        scenario.ordered_answers().nth(at)
    }
}

/// Counts the answers of the history that were taken in order, because no `when` matched then.
fn count_ordered_answers(scenario: &Scenario, messages: &[&Message]) -> usize {
    messages
        .iter()
        .enumerate()
        .filter(|(_, message)| matches!(message, Message::Assistant { .. }))
        .filter(|(at, _)| find_matching_answer(scenario, &messages[..*at]).is_none())
        .count()
}

fn find_matching_answer<'a>(
    scenario: &'a Scenario,
    messages: &[&Message],
) -> Option<&'a ScriptedAnswer> {
    scenario.answers.iter().find(|answer| {
        answer
            .when
            .as_ref()
            .is_some_and(|when| condition_holds(when, messages))
    })
}

fn condition_holds(when: &AnswerCondition, messages: &[&Message]) -> bool {
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

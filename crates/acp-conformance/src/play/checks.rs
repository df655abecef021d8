//! Steps that match received lines against patterns.

use super::{
    StepError,
    case_run::{CaseRun, ReceiveError, ReceivedLine},
};
use crate::{
    case::{ChunkAuthor, CountRange},
    pattern::{fill_text, fill_value, is_match, match_pattern, short_json},
};
use serde_json::Value;

impl CaseRun<'_> {
    pub(super) async fn check_next_line(&mut self, pattern: &Value) -> Result<(), StepError> {
        let index = match self.next_unread().await {
            Ok(index) => index,
            Err(silence) => return Err(self.error(&silence)),
        };
        let fits = match_pattern(pattern, &self.received[index].value, &mut self.captures);
        fits.map_err(|why| self.mismatch_at(why, index))
    }

    pub(super) async fn read_until(&mut self, pattern: &Value) -> Result<(), StepError> {
        let mut nearest = String::new();
        loop {
            match self.next_unread().await {
                Ok(index) => {
                    match match_pattern(pattern, &self.received[index].value, &mut self.captures) {
                        Ok(()) => return Ok(()),
                        Err(why) => nearest = format!("; the last line: {why}"),
                    }
                }
                Err(silence) => {
                    return Err(match (self.error(&silence), silence) {
                        (StepError::NoLine(why), ReceiveError::Timeout) => {
                            StepError::NoLine(why + &nearest)
                        }
                        (
                            miss,
                            ReceiveError::Timeout | ReceiveError::Closed | ReceiveError::NotStarted,
                        ) => miss,
                    });
                }
            }
        }
    }

    /// Returns the lines from the mark to the last line read.
    fn marked_lines(&self) -> &[ReceivedLine] {
        &self.received[self.mark_index.min(self.read_count)..self.read_count]
    }

    /// Returns the indices of the lines that match.
    fn matching_lines(&self, pattern: &Value) -> Vec<usize> {
        let fit = |line: &ReceivedLine| is_match(pattern, &line.value, &self.captures);
        let lines = self.marked_lines().iter().enumerate();
        let fitting = lines.filter(|(_, line)| fit(line));
        fitting.map(|(index, _)| self.mark_index + index).collect()
    }

    pub(super) fn check_none(&self, pattern: &Value) -> Result<(), StepError> {
        match self.matching_lines(pattern).first() {
            None => Ok(()),
            Some(index) => Err(self.mismatch_at("there should be no such line".to_owned(), *index)),
        }
    }

    pub(super) fn check_some(&mut self, pattern: &Value) -> Result<(), StepError> {
        let Some(index) = self.matching_lines(pattern).first().copied() else {
            let lines = self.marked_lines().len();
            return Err(StepError::mismatch(format!(
                "none of {lines} lines fits {pattern}"
            )));
        };
        match_pattern(pattern, &self.received[index].value, &mut self.captures)
            .map_err(StepError::mismatch)
    }

    pub(super) fn capture_if_present(&mut self, pattern: &Value) {
        if let Some(index) = self.matching_lines(pattern).first().copied() {
            let fits = match_pattern(pattern, &self.received[index].value, &mut self.captures);
            debug_assert!(fits.is_ok(), "it fitted");
        }
    }

    pub(super) fn check_count(&self, range: CountRange, pattern: &Value) -> Result<(), StepError> {
        let fitting = self.matching_lines(pattern);
        if range.contains(fitting.len()) {
            return Ok(());
        }
        let why = format!("{} lines fit, not {range}", fitting.len());
        match fitting.last() {
            Some(index) => Err(self.mismatch_at(why, *index)),
            None => Err(StepError::mismatch(why)),
        }
    }

    pub(super) fn check_order(&mut self, patterns: &[Value]) -> Result<(), StepError> {
        let mut captures = self.captures.clone();
        let mut lines = self.marked_lines().iter();
        for pattern in patterns {
            if !lines.any(|line| match_pattern(pattern, &line.value, &mut captures).is_ok()) {
                let why = format!("behind those before it no line fits {pattern}");
                return Err(StepError::mismatch(why));
            }
        }
        self.captures = captures;
        Ok(())
    }

    pub(super) fn check_message_text(
        &self,
        author: ChunkAuthor,
        text: &str,
        session: &str,
        not: bool,
    ) -> Result<(), StepError> {
        let session = self.variable(session)?;
        let chunk = match author {
            ChunkAuthor::Agent => "agent_message_chunk",
            ChunkAuthor::Thought => "agent_thought_chunk",
            ChunkAuthor::User => "user_message_chunk",
        };
        let joined: String = self
            .marked_lines()
            .iter()
            .filter(|line| line.value["params"]["sessionId"] == session)
            .map(|line| &line.value["params"]["update"])
            .filter(|update| update["sessionUpdate"] == chunk)
            .filter_map(|update| update["content"]["text"].as_str())
            .collect();
        if joined.contains(&fill_text(text, &self.captures)) != not {
            return Ok(());
        }
        let joined = short_json(&joined.into());
        let why = if not { "it was said" } else { "what was said" };
        Err(StepError::mismatch(format!("{why}: {joined}")))
    }

    pub(super) fn check_value(&mut self, value: &Value, pattern: &Value) -> Result<(), StepError> {
        let value = fill_value(value, &self.captures);
        match_pattern(pattern, &value, &mut self.captures).map_err(StepError::mismatch)
    }
}

impl CountRange {
    pub(super) fn contains(self, number: usize) -> bool {
        number >= self.min && self.max.is_none_or(|to| number <= to)
    }
}

impl std::fmt::Display for CountRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.max {
            Some(to) if to == self.min => write!(f, "{to}"),
            Some(to) => write!(f, "{}..{to}", self.min),
            None => write!(f, "{}..", self.min),
        }
    }
}

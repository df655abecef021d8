//! Checks: what came, against patterns.

use super::{
    Miss,
    stage::{Heard, Silence, Stage},
};
use crate::{
    case::{Range, Voice},
    pattern::{fill_text, fill_value, fits, short, would_fit},
};
use serde_json::Value;

impl Stage<'_> {
    pub(super) async fn next_line(&mut self, pattern: &Value) -> Result<(), Miss> {
        let index = match self.next().await {
            Ok(index) => index,
            Err(silence) => return Err(self.silence(&silence)),
        };
        let fits = fits(pattern, &self.heard[index].value, &mut self.vars);
        fits.map_err(|why| self.wrong(why, index))
    }

    pub(super) async fn until(&mut self, pattern: &Value) -> Result<(), Miss> {
        let mut nearest = String::new();
        loop {
            match self.next().await {
                Ok(index) => match fits(pattern, &self.heard[index].value, &mut self.vars) {
                    Ok(()) => return Ok(()),
                    Err(why) => nearest = format!("; the last line: {why}"),
                },
                Err(silence) => {
                    return Err(match (self.silence(&silence), silence) {
                        (Miss::Nothing(why), Silence::Patience) => Miss::Nothing(why + &nearest),
                        (miss, Silence::Patience | Silence::Ended | Silence::NotStarted) => miss,
                    });
                }
            }
        }
    }

    /// The lines from the mark up to what has been read.
    fn lines(&self) -> &[Heard] {
        &self.heard[self.mark.min(self.read)..self.read]
    }

    /// Those of them that fit, by their number.
    fn fitting(&self, pattern: &Value) -> Vec<usize> {
        let fit = |heard: &Heard| would_fit(pattern, &heard.value, &self.vars);
        let lines = self.lines().iter().enumerate();
        let fitting = lines.filter(|(_, heard)| fit(heard));
        fitting.map(|(index, _)| self.mark + index).collect()
    }

    pub(super) fn no(&self, pattern: &Value) -> Result<(), Miss> {
        match self.fitting(pattern).first() {
            None => Ok(()),
            Some(index) => Err(self.wrong("there should be no such line".to_owned(), *index)),
        }
    }

    pub(super) fn some(&mut self, pattern: &Value) -> Result<(), Miss> {
        let Some(index) = self.fitting(pattern).first().copied() else {
            let lines = self.lines().len();
            return Err(Miss::wrong(format!("none of {lines} lines fits {pattern}")));
        };
        fits(pattern, &self.heard[index].value, &mut self.vars).map_err(Miss::wrong)
    }

    pub(super) fn maybe(&mut self, pattern: &Value) {
        if let Some(index) = self.fitting(pattern).first().copied() {
            let fits = fits(pattern, &self.heard[index].value, &mut self.vars);
            debug_assert!(fits.is_ok(), "it fitted");
        }
    }

    pub(super) fn count(&self, range: Range, pattern: &Value) -> Result<(), Miss> {
        let fitting = self.fitting(pattern);
        if range.holds(fitting.len()) {
            return Ok(());
        }
        let why = format!("{} lines fit, not {range}", fitting.len());
        match fitting.last() {
            Some(index) => Err(self.wrong(why, *index)),
            None => Err(Miss::wrong(why)),
        }
    }

    pub(super) fn order(&mut self, patterns: &[Value]) -> Result<(), Miss> {
        let mut captures = self.vars.clone();
        let mut lines = self.lines().iter();
        for pattern in patterns {
            if !lines.any(|heard| fits(pattern, &heard.value, &mut captures).is_ok()) {
                let why = format!("behind those before it no line fits {pattern}");
                return Err(Miss::wrong(why));
            }
        }
        self.vars = captures;
        Ok(())
    }

    pub(super) fn said(
        &self,
        voice: Voice,
        text: &str,
        session: &str,
        not: bool,
    ) -> Result<(), Miss> {
        let session = self.var(session)?;
        let chunk = match voice {
            Voice::Agent => "agent_message_chunk",
            Voice::Thought => "agent_thought_chunk",
            Voice::User => "user_message_chunk",
        };
        let said: String = self
            .lines()
            .iter()
            .filter(|heard| heard.value["params"]["sessionId"] == session)
            .map(|heard| &heard.value["params"]["update"])
            .filter(|update| update["sessionUpdate"] == chunk)
            .filter_map(|update| update["content"]["text"].as_str())
            .collect();
        if said.contains(&fill_text(text, &self.vars)) != not {
            return Ok(());
        }
        let said = short(&said.into());
        let why = if not { "it was said" } else { "what was said" };
        Err(Miss::wrong(format!("{why}: {said}")))
    }

    pub(super) fn value(&mut self, value: &Value, pattern: &Value) -> Result<(), Miss> {
        let value = fill_value(value, &self.vars);
        fits(pattern, &value, &mut self.vars).map_err(Miss::wrong)
    }
}

impl Range {
    pub(super) fn holds(self, number: usize) -> bool {
        number >= self.from && self.to.is_none_or(|to| number <= to)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to {
            Some(to) if to == self.from => write!(f, "{to}"),
            Some(to) => write!(f, "{}..{to}", self.from),
            None => write!(f, "{}..", self.from),
        }
    }
}

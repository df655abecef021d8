//! Counts the tokens of the running prompt and, separately, of its child sessions (I7).

use crate::usage_report::UsageRow;
use turnery_engine::{ChildUsage, PromptId, Usage};

/// Usage of the running prompt so far.
#[derive(Debug, Default)]
pub struct PromptUsage {
    prompt_id: Option<PromptId>,
    /// Usage of the prompt's finished loops.
    finished_loops: Usage,
    running_loop: Usage,
    /// Latest usage by session, source and model (I6).
    children: Vec<ChildUsage>,
}

impl PromptUsage {
    /// Starts a loop. Loops of one prompt are counted together (I5).
    pub(super) fn begin_loop(&mut self, prompt_id: &PromptId) {
        if self.prompt_id.as_ref() == Some(prompt_id) {
            self.finished_loops += std::mem::take(&mut self.running_loop);
        } else {
            *self = Self {
                prompt_id: Some(prompt_id.clone()),
                ..Self::default()
            };
        }
    }

    /// Records the cumulative usage of the running loop after a turn.
    pub(super) fn record_turn(&mut self, cumulative: Usage) {
        self.running_loop = cumulative;
    }

    pub(super) fn record_child(&mut self, child: &ChildUsage) {
        ChildUsage::update_totals(&mut self.children, child);
    }

    /// Returns the usage of the prompt without its child sessions.
    #[must_use]
    pub fn own(&self) -> Usage {
        let mut own = self.finished_loops;
        own += self.running_loop;
        own
    }

    /// Returns the usage of the child sessions, one row for each source and model.
    #[must_use]
    pub fn children(&self) -> Vec<UsageRow> {
        let mut rows: Vec<UsageRow> = Vec::new();
        for child in &self.children {
            let same = |row: &&mut UsageRow| row.source == child.source && row.model == child.model;
            match rows.iter_mut().find(same) {
                Some(row) => row.usage += child.cumulative,
                None => rows.push(UsageRow {
                    source: child.source.clone(),
                    model: child.model.clone(),
                    usage: child.cumulative,
                }),
            }
        }
        rows
    }

    /// Returns the usage of the prompt and its child sessions.
    #[must_use]
    pub fn total(&self) -> Usage {
        let mut total = self.own();
        for child in &self.children {
            total += child.cumulative;
        }
        total
    }
}

//! Counts the tokens of the running prompt and, separately, of its child sessions (I7).

use serde_json::{Value, json};
use turnery_engine::{ChildUsage, PromptId, Usage};

/// Usage of the running prompt so far.
#[derive(Debug, Default)]
pub(crate) struct PromptUsage {
    prompt_id: Option<PromptId>,
    /// Usage of the prompt's finished loops, and of the running one.
    finished_loops: Usage,
    running_loop: Usage,
    /// Latest usage by session, source and model (I6).
    children: Vec<ChildUsage>,
}

impl PromptUsage {
    /// Starts a loop. Loops of one prompt are counted together (I5).
    pub(crate) fn begin_loop(&mut self, prompt_id: &PromptId) {
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
    pub(crate) fn record_turn(&mut self, cumulative: Usage) {
        self.running_loop = cumulative;
    }

    /// Records the usage of a child session.
    pub(crate) fn record_child(&mut self, child: &ChildUsage) {
        let same = |known: &&mut ChildUsage| {
            known.session_id == child.session_id
                && known.source == child.source
                && known.model == child.model
        };
        match self.children.iter_mut().find(same) {
            Some(known) => known.clone_from(child),
            None => self.children.push(child.clone()),
        }
    }

    /// Returns the usage for `_meta`. `None` without children, since the protocol's own fields then say it
    /// all.
    pub(crate) fn to_meta(&self) -> Option<Value> {
        if self.children.is_empty() {
            return None;
        }
        let mut own = self.finished_loops;
        own += self.running_loop;
        let mut total = own;
        let mut children: Vec<(&str, &str, Usage)> = Vec::new();
        for child in &self.children {
            total += child.cumulative;
            let row = (child.source.as_str(), child.model.as_str());
            match children.iter_mut().find(|(s, m, _)| (*s, *m) == row) {
                Some((_, _, sum)) => *sum += child.cumulative,
                None => children.push((row.0, row.1, child.cumulative)),
            }
        }
        let children: Vec<Value> = children
            .into_iter()
            .map(|(source, model, usage)| json!({"source": source, "model": model, "usage": usage}))
            .collect();
        Some(json!({"usage": own, "childrenUsage": children, "totalUsage": total}))
    }
}

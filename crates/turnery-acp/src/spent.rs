//! Spent: the tokens of a prompt, its children's beside its own (I7).

use serde_json::{Value, json};
use turnery_engine::{ChildUsage, PromptId, Usage};

/// What the running prompt has spent so far.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    prompt_id: Option<PromptId>,
    /// Of its loops that have ended, and of the one that runs.
    ended: Usage,
    running: Usage,
    /// The latest of each session, source and model (I6).
    children: Vec<ChildUsage>,
}

impl Spent {
    /// A loop begins; those of one prompt are counted together (I5).
    pub(crate) fn begin(&mut self, prompt_id: &PromptId) {
        if self.prompt_id.as_ref() == Some(prompt_id) {
            self.ended += std::mem::take(&mut self.running);
        } else {
            *self = Self {
                prompt_id: Some(prompt_id.clone()),
                ..Self::default()
            };
        }
    }

    /// A turn of the running loop has ended.
    pub(crate) fn turn(&mut self, cumulative: Usage) {
        self.running = cumulative;
    }

    /// A child has spent something.
    pub(crate) fn child(&mut self, child: &ChildUsage) {
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

    /// For `_meta`; nothing while there is no child: then the wire's own numbers say all.
    pub(crate) fn to_wire(&self) -> Option<Value> {
        if self.children.is_empty() {
            return None;
        }
        let mut own = self.ended;
        own += self.running;
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

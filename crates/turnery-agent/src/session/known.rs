//! Known: the session that a person knows, and what they have said there for good. It is one for that
//! session and all the sub-agents below it: whoever of them asked, all of them heed the answer.

use tokio::sync::watch;
use turnery_engine::SessionId;
use turnery_tools::{Policy, Rule};

/// What a person says of all calls like one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Always {
    Allow(Rule),
    Reject(Rule),
}

/// The session that a person knows.
#[derive(Clone)]
pub(crate) struct Known {
    session_id: SessionId,
    said: watch::Sender<Vec<Always>>,
}

impl Known {
    /// One in which nothing has been said yet.
    pub(crate) fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            said: watch::Sender::new(Vec::new()),
        }
    }

    pub(crate) fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Remember for that session (PERM-6).
    pub(crate) fn remember(&self, always: Always) {
        self.said.send_if_modified(|said| {
            let new = !said.contains(&always);
            if new {
                said.push(always);
            }
            new
        });
    }

    /// Make a policy heed all that was said. Neither its mode nor a rule that denies gives way to it.
    pub(crate) fn teach(&self, policy: &mut Policy) {
        for always in &*self.said.borrow() {
            match always {
                Always::Allow(rule) => policy.allow(rule.clone()),
                Always::Reject(rule) => policy.deny(rule.clone()),
            }
        }
    }
}

//! Known: the session that a person knows, and what they have said there for good. It is one for that
//! session and all the sub-agents below it: whoever of them asked, all of them heed the answer.

use tokio::sync::watch;
use turnery_engine::SessionId;
use turnery_store::{SessionInfo, SessionPatch, Store};
use turnery_tools::{Policy, Rule};

/// What a person says of all calls like one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Always {
    Allow(Rule),
    Reject(Rule),
}

impl Always {
    fn read(kept: &turnery_store::Always) -> Result<Self, turnery_tools::RuleError> {
        match kept {
            turnery_store::Always::Allow(rule) => rule.parse().map(Self::Allow),
            turnery_store::Always::Reject(rule) => rule.parse().map(Self::Reject),
        }
    }

    fn kept(&self) -> turnery_store::Always {
        match self {
            Self::Allow(rule) => turnery_store::Always::Allow(rule.to_string()),
            Self::Reject(rule) => turnery_store::Always::Reject(rule.to_string()),
        }
    }
}

/// The session that a person knows.
#[derive(Clone)]
pub(crate) struct Known {
    session_id: SessionId,
    said: watch::Sender<Vec<Always>>,
}

impl Known {
    /// A session with what was said in it before. A rule that this version does not understand is left
    /// out: what is not known to be allowed is asked about again.
    pub(crate) fn of(info: &SessionInfo) -> Self {
        let said = info.always.iter().filter_map(|kept| {
            let read = Always::read(kept);
            read.inspect_err(|error| {
                tracing::warn!("an answer for good is asked for again: {error}")
            })
            .ok()
        });
        Self {
            session_id: info.id.clone(),
            said: watch::Sender::new(said.collect()),
        }
    }

    pub(crate) fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Remember for that session, also when it is opened again (PERM-6). An answer that cannot be stored
    /// holds as long as the session is open.
    pub(crate) async fn remember(&self, always: Always, store: &dyn Store) {
        let patch = SessionPatch {
            always: Some(always.kept()),
            ..SessionPatch::default()
        };
        let is_new = self.said.send_if_modified(|said| {
            let is_new = !said.contains(&always);
            if is_new {
                said.push(always);
            }
            is_new
        });
        if is_new && let Err(error) = store.patch(&self.session_id, patch).await {
            tracing::warn!("an answer for good could not be stored: {error}");
        }
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

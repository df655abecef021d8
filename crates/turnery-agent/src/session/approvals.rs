//! Remembers "always" answers of the user for a session. A session shares them with all its sub-agents.

use tokio::sync::watch;
use turnery_engine::SessionId;
use turnery_store::{SessionInfo, SessionPatch, Store};
use turnery_tools::{Policy, Rule};

/// Answer of the user for all similar calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalRule {
    Allow(Rule),
    Reject(Rule),
}

impl ApprovalRule {
    fn from_stored(
        stored: &turnery_store::RememberedApproval,
    ) -> Result<Self, turnery_tools::RuleError> {
        match stored {
            turnery_store::RememberedApproval::Allow(rule) => rule.parse().map(Self::Allow),
            turnery_store::RememberedApproval::Reject(rule) => rule.parse().map(Self::Reject),
        }
    }

    fn to_stored(&self) -> turnery_store::RememberedApproval {
        match self {
            Self::Allow(rule) => turnery_store::RememberedApproval::Allow(rule.to_string()),
            Self::Reject(rule) => turnery_store::RememberedApproval::Reject(rule.to_string()),
        }
    }
}

/// Allow and reject rules remembered for a top-level session, shared with all its sub-agents.
#[derive(Clone)]
pub(crate) struct RememberedApprovals {
    session_id: SessionId,
    rules: watch::Sender<Vec<ApprovalRule>>,
}

impl RememberedApprovals {
    /// Restores the approvals of a stored session. A rule that this version does not understand is dropped,
    /// so that the user is asked again.
    pub(crate) fn from_info(info: &SessionInfo) -> Self {
        let rules = info.always.iter().filter_map(|stored| {
            let read = ApprovalRule::from_stored(stored);
            read.inspect_err(|error| {
                tracing::warn!(
                    "a remembered approval is ignored, so the user is asked again: {error}"
                )
            })
            .ok()
        });
        Self {
            session_id: info.id.clone(),
            rules: watch::Sender::new(rules.collect()),
        }
    }

    pub(crate) fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Remembers an answer for the session, also when it is opened again (PERM-6). If storing fails, the
    /// answer is valid while the session is open.
    pub(crate) async fn remember(&self, always: ApprovalRule, store: &dyn Store) {
        let patch = SessionPatch {
            always: Some(always.to_stored()),
            ..SessionPatch::default()
        };
        let is_new = self.rules.send_if_modified(|rules| {
            let is_new = !rules.contains(&always);
            if is_new {
                rules.push(always);
            }
            is_new
        });
        if is_new && let Err(error) = store.patch(&self.session_id, patch).await {
            tracing::warn!("failed to store an approval: {error}");
        }
    }

    /// Adds the remembered rules to a policy. Its mode and its deny rules take precedence.
    pub(crate) fn apply_to(&self, policy: &mut Policy) {
        for always in &*self.rules.borrow() {
            match always {
                ApprovalRule::Allow(rule) => policy.add_allow_rule(rule.clone()),
                ApprovalRule::Reject(rule) => policy.add_deny_rule(rule.clone()),
            }
        }
    }
}

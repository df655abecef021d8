//! Holds the first events of a loop that a claim has journalled.

use std::sync::Arc;
use turnery_engine::{Effect, Event, LoopId, SessionId};
use turnery_store::{ClaimedLane, LoopBeginning, Owner, Store, StoreError};

/// Compares everything except timestamps.
fn is_same_event(event: &Event, predicted: &Event) -> bool {
    event.session_id == predicted.session_id
        && event.loop_id == predicted.loop_id
        && event.seq == predicted.seq
        && event.turn_index == predicted.turn_index
        && event.kind == predicted.kind
}

/// First events of a loop, journalled by a claim. Unless the loop begins, dropping this removes them from the
/// journal, so that no later claim takes them for an interrupted prompt.
pub(crate) struct PendingBeginning {
    store: Arc<dyn Store>,
    session_id: SessionId,
    owner: Owner,
    beginning: Arc<LoopBeginning>,
    is_settled: bool,
}

impl PendingBeginning {
    /// Claims the session and journals these events. The second value is `None` if they were not journalled.
    pub(crate) async fn claim(
        store: &Arc<dyn Store>,
        session_id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> Result<(ClaimedLane, Option<Self>), StoreError> {
        let mut pending = Self {
            store: Arc::clone(store),
            session_id: session_id.clone(),
            owner: owner.clone(),
            beginning: Arc::clone(&beginning),
            is_settled: false,
        };
        let claimed = store.claim_and_journal(session_id, owner, beginning).await;
        // The claim may have succeeded even if its reply came too late.
        pending.is_settled = match &claimed {
            Ok(outcome) => !outcome.is_journalled,
            Err(StoreError::Broken(_)) => false,
            Err(_) => true,
        };
        let outcome = claimed?;
        Ok((
            outcome.claimed_lane,
            outcome.is_journalled.then_some(pending),
        ))
    }

    /// Returns the number of events already journalled for a loop that begins with `effects`. A differing
    /// journal of the same loop is replaced when the loop is journalled from its first event.
    pub(crate) fn confirm(mut self, loop_id: &LoopId, effects: &[Effect]) -> usize {
        self.is_settled = self.beginning.loop_id == *loop_id;
        let predicted = &self.beginning.events;
        let begins_so = emitted_events(effects).count() == predicted.len()
            && emitted_events(effects)
                .zip(predicted)
                .all(|(event, it)| is_same_event(event, it));
        match self.is_settled && begins_so {
            true => predicted.len(),
            false => 0,
        }
    }
}

impl Drop for PendingBeginning {
    fn drop(&mut self) {
        if !self.is_settled {
            let loop_id = &self.beginning.loop_id;
            self.store
                .forget_journal(&self.session_id, &self.owner, loop_id);
        }
    }
}

/// Returns the events among these effects.
pub(super) fn emitted_events(effects: &[Effect]) -> impl Iterator<Item = &Event> {
    effects.iter().filter_map(|effect| {
        if let Effect::Emit(event) = effect {
            return Some(event);
        }
        None
    })
}

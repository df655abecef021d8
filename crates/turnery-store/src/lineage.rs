//! Derives which loops of a session follow which from their parent links; never stored.

use std::sync::Arc;
use turnery_engine::{LoopId, LoopRecord};

/// Returns the direct children of `parent` within its session, in the order of `loops`: continuations, reruns
/// and branches, never the loops of child sessions (LOOP-62 to 64).
pub fn child_loop_ids<'a>(
    parent: &'a LoopRecord,
    loops: &'a [Arc<LoopRecord>],
) -> impl Iterator<Item = &'a LoopId> {
    let follows = |record: &&Arc<LoopRecord>| {
        record.session_id == parent.session_id
            && record.parent_loop_id.as_ref() == Some(&parent.loop_id)
    };
    loops.iter().filter(follows).map(|record| &record.loop_id)
}

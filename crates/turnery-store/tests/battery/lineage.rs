//! Checks that parent and child links agree.

use crate::samples::*;
use proptest::prelude::*;
use std::sync::Arc;
use turnery_engine::{ContinuationKind, LoopId, LoopRecord};
use turnery_store::lineage::child_loop_ids;

/// Loops of two sessions, of any kind. Each follows an earlier loop of either session, or none.
fn forest() -> impl Strategy<Value = Vec<(usize, Option<usize>, ContinuationKind)>> {
    use ContinuationKind::{Branch, Compaction, Default, Initial, Rerun};
    let node = (
        0..2_usize,
        prop::option::weighted(0.9, any::<prop::sample::Index>()),
        prop::sample::select(vec![Initial, Default, Rerun, Branch, Compaction]),
    );
    prop::collection::vec(node, 0..30).prop_map(|nodes| {
        let nodes = nodes.into_iter().enumerate();
        nodes
            .map(|(place, (session, parent, kind))| {
                let parent = parent.filter(|_| place > 0);
                (session, parent.map(|parent| parent.index(place)), kind)
            })
            .collect()
    })
}

proptest! {
    /// A loop is a child of another if and only if it names that loop as its parent and belongs to the same
    /// session; a sub-agent's loop names a parent in another session (LOOP-24).
    // proves: LOOP-62, LOOP-63, LOOP-64, LOOP-6
    #[test]
    fn parents_and_children_agree(forest in forest()) {
        let session = |place: usize| ["s1", "s2"][forest[place].0];
        let name = |place: usize| loop_id(session(place), u32::try_from(place).unwrap());
        let loops: Vec<Arc<LoopRecord>> = (0..forest.len())
            .map(|place| Arc::new(LoopRecord {
                loop_id: name(place),
                parent_loop_id: forest[place].1.map(name),
                continuation_kind: forest[place].2,
                ..LoopRecord::new_running(session(place).into(), name(place), "a".into(), at(0))
            }))
            .collect();
        for (place, record) in loops.iter().enumerate() {
            let mut expected: Vec<LoopId> = Vec::new();
            for (child, (of, parent, _)) in forest.iter().enumerate() {
                if *parent == Some(place) && *of == forest[place].0 {
                    expected.push(name(child));
                }
            }
            let found: Vec<LoopId> = child_loop_ids(record, &loops).cloned().collect();
            prop_assert_eq!(found, expected);
        }
    }
}

//! Tests exporting and importing sessions.

use crate::{World, battery, samples::*};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{fs, path::Path, sync::Arc};
use turnery_engine::{ContinuationKind, EventKind, LoopRecord, Message, ParallelGroup};
use turnery_store::{
    Commit, ImportError, SessionDocument, SessionPatch, Store, StoreError,
    export::{export_session, import_session},
};

battery!(
    document_with_new_id_uses_it_everywhere,
    import_does_not_overwrite_a_session,
    refused_document_leaves_nothing,
);

/// Stores a session with a custom title, a response with calls, and a group whose second branch was chosen.
async fn fill_store(store: &dyn Store) {
    store.create(new_session("s1")).await.expect("made");
    let lane = store
        .claim(&"s1".into(), &owner("a"))
        .await
        .expect("free")
        .lane;
    let first = Arc::new(with_calls(record("s1", 1, "Which way, s1.cfg.1?"), 2, "s1"));
    store
        .commit(commit_of(&lane, 0, &first))
        .await
        .expect("done");
    let branch = |number| {
        Arc::new(LoopRecord {
            parent_loop_id: Some(loop_id("s1", 1)),
            continuation_kind: ContinuationKind::Branch,
            parallel_group: Some(ParallelGroup {
                all_loop_ids: vec![loop_id("s1", 2), loop_id("s1", 3)],
                selected_loop_id: loop_id("s1", 2),
                selected_config_index: 0,
                evaluation_usage: usage(7, 3),
                judge: None,
                command: None,
                is_selected: number == 2,
            }),
            ..record("s1", number, "Both")
        })
    };
    let group = Commit {
        records: vec![branch(2), branch(3)],
        release: true,
        ..commit_of(&lane, 1, &first)
    };
    store.commit(group).await.expect("done");
    let patch = SessionPatch {
        title: Some(Some("Ways".into())),
        updated_at: Some(at(9000)),
        ..SessionPatch::default()
    };
    store.patch(&"s1".into(), patch).await.expect("patched");
}

async fn document() -> SessionDocument {
    let world = World::memory();
    fill_store(&*world.store).await;
    export_session(&*world.store, &"s1".into())
        .await
        .expect("exported")
}

fn document_text(document: &SessionDocument) -> String {
    serde_json::to_string(document).expect("JSON")
}

/// Normalizes the fields that an import changes: working directory and commit count.
fn with_existing_cwd(mut document: SessionDocument) -> SessionDocument {
    document.session.head_version = 0;
    document
}

async fn document_with_new_id_uses_it_everywhere(world: &World) {
    let renamed = document().await.with_session_id(&"s2".into()).unwrap();
    let made = import_session(&*world.store, renamed).await.unwrap();
    assert_eq!(made.id, "s2".into());
    assert_eq!(made.title.as_deref(), Some("Ways"));
    assert_eq!((made.created_at, made.updated_at), (at(0), at(9000)));
    assert_eq!(made.tip_loop_id, Some(loop_id("s2", 2)));
    let loops = world.store.loops(&"s2".into(), 0).await.unwrap();
    let ids: Vec<_> = loops.iter().map(|record| record.loop_id.clone()).collect();
    assert_eq!(ids, [1, 2, 3].map(|number| loop_id("s2", number)));
    assert_eq!(loops[2].parent_loop_id, Some(loop_id("s2", 1)));
    let group = loops[2].parallel_group.as_ref().unwrap();
    assert_eq!(group.all_loop_ids, [loop_id("s2", 2), loop_id("s2", 3)]);
    assert_eq!(loops[1].turns[0].turn_id.loop_id, loop_id("s2", 2));
    assert!(
        loops[1]
            .events
            .iter()
            .all(|event| event.loop_id == loop_id("s2", 2))
    );
    // The content is unchanged.
    assert_eq!(loops[0].messages[0].message.text(), "Which way, s1.cfg.1?");
    let Message::User { .. } = &loops[0].messages[0].message else {
        panic!("not the question");
    };
    let told = loops[0].events.iter().find_map(|event| match &event.kind {
        EventKind::ToolExecutionEnd { envelope, .. } => Some(envelope.clone()),
        _ => None,
    });
    assert_eq!(told, Some(turnery_engine::ToolEnvelope::text("s1")));
    // The session is usable.
    let opened = world.store.claim(&"s2".into(), &owner("a")).await.unwrap();
    assert_eq!(opened.last_number, 3);
    let next = record("s2", 4, "On").into();
    let head = opened.info.head_version;
    let committed = world.commit(&opened.lane, head, &next).await;
    assert_eq!(committed, Ok(head + 1));
}

async fn import_does_not_overwrite_a_session(world: &World) {
    fill_store(&*world.store).await;
    let before = export_session(&*world.store, &"s1".into()).await.unwrap();
    let refused = import_session(&*world.store, document().await).await;
    let exists = StoreError::Exists("s1".into());
    assert!(
        matches!(&refused, Err(ImportError::Store(error)) if *error == exists),
        "{refused:?}"
    );
    assert_eq!(
        export_session(&*world.store, &"s1".into()).await,
        Ok(before)
    );
}

// proves: D-13
async fn refused_document_leaves_nothing(world: &World) {
    let sound = document().await;
    let mut dotted = sound.clone();
    dotted.session.id = "a.b".into();
    let mut nameless = sound.clone();
    nameless.session.id = "".into();
    let mut stray = sound.clone();
    Arc::make_mut(&mut stray.loops[1]).session_id = "s2".into();
    let mut twice = sound.clone();
    twice.loops[2] = twice.loops[1].clone();
    let mut backwards = sound.clone();
    backwards.loops.reverse();
    let mut tipless = sound.clone();
    tipless.session.tip_loop_id = Some(loop_id("s1", 9));
    // Only the store detects this, after the session was created.
    let mut disordered = sound.clone();
    Arc::make_mut(&mut disordered.loops[0]).turns[0]
        .turn_id
        .turn_index = 7;
    for (bad, said) in [
        (dotted, "\"a.b\" cannot be the id of a session"),
        (nameless, "\"\" cannot be the id of a session"),
        (
            stray,
            "loop s1.cfg.2 of this document belongs to another session",
        ),
        (twice, "loop s1.cfg.2 of this document is there twice"),
        (
            backwards,
            "loop s1.cfg.3 of this document comes before its parent",
        ),
        (tipless, "loop s1.cfg.9 of this document is missing"),
        (
            disordered,
            "loop s1.cfg.1 cannot be stored: turn 0 is not in its place",
        ),
    ] {
        match import_session(&*world.store, bad).await {
            Err(error) => assert!(error.to_string().starts_with(said), "{error}"),
            // The memory store accepts any record.
            Ok(_) => assert_eq!(said.split(' ').nth(2), Some("cannot")),
        }
        world.store.delete(&"s1".into()).await.unwrap();
    }
    let page = world.store.list(turnery_store::ListQuery::default()).await;
    assert_eq!(page.unwrap().sessions, []);
    assert!(matches!(
        sound.with_session_id(&"x.y".into()),
        Err(ImportError::InvalidId(_))
    ));
}

// proves: LOOP-61
#[tokio::test]
async fn document_without_turns_loads() {
    let mut old: Value = serde_json::from_str(&document_text(&document().await)).unwrap();
    for record in old["loops"].as_array_mut().unwrap() {
        let fields = record.as_object_mut().unwrap();
        fields.remove("turns").unwrap();
        fields.remove("events").unwrap();
    }
    let world = World::sqlite();
    let document = SessionDocument::parse(&old.to_string()).unwrap();
    import_session(&*world.store, document).await.unwrap();
    let loops = world.loops().await.unwrap();
    assert_eq!(loops.len(), 3);
    assert!(loops.iter().all(|record| record.turns.is_empty()));
    assert_eq!(loops[0].messages.len(), 2);
}

#[tokio::test]
async fn unknown_fields_are_ignored() {
    let sound = document().await;
    let mut wider: Value = serde_json::from_str(&document_text(&sound)).unwrap();
    wider["colour"] = json!("green");
    wider["session"]["colour"] = json!({"deep": [1]});
    wider["loops"][0]["colour"] = json!(null);
    wider["loops"][0]["events"][0]["colour"] = json!(1);
    assert_eq!(SessionDocument::parse(&wider.to_string()).unwrap(), sound);
}

#[tokio::test]
async fn newer_format_and_non_document_differ() {
    let mut newer: Value = serde_json::from_str(&document_text(&document().await)).unwrap();
    newer["format"] = json!(2);
    // The format version is checked before the rest.
    newer["loops"] = json!("elsewhere");
    let refused = SessionDocument::parse(&newer.to_string()).unwrap_err();
    assert!(matches!(
        refused,
        ImportError::UnsupportedFormat { found: 2 }
    ));
    assert!(refused.to_string().contains("update turnery"), "{refused}");
    for text in ["", "{}", "[1]", "{\"format\": \"1\"}", "{\"format\": 1}"] {
        let refused = SessionDocument::parse(text);
        assert!(
            matches!(refused, Err(ImportError::InvalidJson(_))),
            "{text:?}"
        );
    }
}

#[tokio::test]
async fn an_exported_session_fits_the_schema() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/session.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let sound: Value = serde_json::from_str(&document_text(&document().await)).unwrap();
    let wrong: Vec<String> = validator
        .iter_errors(&sound)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
    let mut torn = sound.clone();
    torn["loops"][0]["messages"][0]["message"]["role"] = json!("ghost");
    assert!(!validator.is_valid(&torn));
}

/// Loops that follow any earlier loop or none, on or off the chain, with or without calls.
fn loops() -> impl Strategy<Value = Vec<LoopRecord>> {
    let any = (
        prop::option::of(any::<prop::sample::Index>()),
        any::<bool>(),
        0..3_usize,
    );
    prop::collection::vec(any, 0..8).prop_map(|all| {
        let all = (1_u32..).zip(all);
        all.map(|(number, (parent, on_chain, calls))| {
            let record = with_calls(record("s1", number, "Why?"), calls, "\u{0} \u{1F980}\n");
            let parent = parent.filter(|_| number > 1);
            let parent = parent.map(|parent| 1 + parent.index(number as usize - 1));
            LoopRecord {
                parent_loop_id: parent.map(|parent| loop_id("s1", parent.try_into().unwrap())),
                on_chain,
                ..record
            }
        })
        .collect()
    })
}

async fn assert_round_trip(loops: Vec<LoopRecord>, title: Option<String>) {
    let (here, there) = (World::sqlite(), World::memory());
    here.store.create(new_session("s1")).await.unwrap();
    let lane = here
        .store
        .claim(&"s1".into(), &owner("a"))
        .await
        .unwrap()
        .lane;
    for (head, record) in (0..).zip(loops) {
        let titled = Commit {
            title: title.clone(),
            ..commit_of(&lane, head, &Arc::new(record))
        };
        here.store.commit(titled).await.unwrap();
    }
    let first = export_session(&*here.store, &"s1".into()).await.unwrap();
    let read = SessionDocument::parse(&document_text(&first)).unwrap();
    assert_eq!(read, first);
    import_session(&*there.store, read).await.unwrap();
    let second = export_session(&*there.store, &"s1".into()).await.unwrap();
    assert_eq!(
        with_existing_cwd(second.clone()),
        with_existing_cwd(first.clone())
    );
    // Under another id, and back to the original id.
    let other = World::sqlite();
    let moved = second.with_session_id(&"s2".into()).unwrap();
    import_session(&*other.store, moved).await.unwrap();
    let third = export_session(&*other.store, &"s2".into()).await.unwrap();
    let mut back = third.with_session_id(&"s1".into()).unwrap();
    for record in &mut back.loops {
        let record = Arc::make_mut(record);
        // The loop refers to the original, not to the first copy.
        assert_eq!(record.copied_from.take(), Some(record.loop_id.clone()));
    }
    assert_eq!(with_existing_cwd(back), with_existing_cwd(first));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn imported_session_is_exported_unchanged(
        loops in loops(),
        title in prop::option::of("[a-z\u{e9}]{1,9}"),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(assert_round_trip(loops, title));
    }
}

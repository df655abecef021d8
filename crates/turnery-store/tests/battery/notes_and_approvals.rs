//! Tests what a session stores besides its loops: settings, remembered approvals, and notes.

use crate::{World, battery, samples::*};
use turnery_engine::{LlmMessage, Message};
use turnery_store::{
    ArchivedFilter, ListQuery, NewSession, RememberedApproval, SessionPatch, StoreError,
    TranscriptNote,
    export::{export_session, import_session},
};

battery!(
    approvals_are_stored_once_and_deleted_with_session,
    notes_keep_their_order_and_go_with_the_session,
    document_has_notes_and_settings_but_no_approvals,
    list_compares_resolved_folders,
    archived_session_is_listed_on_request,
);

pub(crate) fn note(seconds: u64, id: &str, text: &str) -> TranscriptNote {
    TranscriptNote {
        at: at(seconds),
        message: LlmMessage {
            message_id: id.into(),
            turn_id: None,
            message: Message::user(text),
        },
    }
}

fn approval_patch(always: RememberedApproval) -> SessionPatch {
    SessionPatch {
        always: Some(always),
        ..SessionPatch::default()
    }
}

/// PERM-6.
async fn approvals_are_stored_once_and_deleted_with_session(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    store.create(new_session("s1")).await.unwrap();
    let allow = || RememberedApproval::Allow("shell(cargo test:*)".to_owned());
    let reject = || RememberedApproval::Reject("edit".to_owned());
    for always in [allow(), reject(), allow()] {
        store.patch(&id, approval_patch(always)).await.unwrap();
    }
    let thinks = SessionPatch {
        thinking: Some("high".to_owned()),
        ..SessionPatch::default()
    };
    store.patch(&id, thinks).await.unwrap();
    let info = store.info(&id).await.unwrap();
    assert_eq!(info.always, [allow(), reject()]);
    assert_eq!(info.thinking.as_deref(), Some("high"));
    let claimed = store.claim(&id, &owner("a")).await.unwrap().info;
    assert_eq!(claimed, info);
    let page = store.list(ListQuery::default()).await.unwrap();
    assert_eq!(page.sessions, [info]);

    store.delete_in_use(&id).await.unwrap();
    let anew = store.create(new_session("s1")).await.unwrap();
    assert_eq!((anew.always, anew.thinking), (Vec::new(), None));
}

/// LOAD-1: notes keep their insertion order, whatever their times.
async fn notes_keep_their_order_and_go_with_the_session(world: &World) {
    let store = &world.store;
    let id = "s1".into();
    assert_eq!(
        store.add_notes(&id, vec![note(1, "m1", "x")]).await,
        Err(StoreError::NotFound(id.clone()))
    );
    assert_eq!(
        store.notes(&id).await,
        Err(StoreError::NotFound(id.clone()))
    );
    let before = store.create(new_session("s1")).await.unwrap();
    store.create(new_session("s2")).await.unwrap();
    assert_eq!(store.notes(&id).await, Ok(Vec::new()));
    let one = vec![note(5, "m1", "/help"), note(6, "m2", "All of it")];
    let two = vec![note(4, "m3", "/cost")];
    store.add_notes(&id, one.clone()).await.unwrap();
    let other = vec![note(5, "m9", "elsewhere")];
    store.add_notes(&"s2".into(), other.clone()).await.unwrap();
    store.add_notes(&id, two.clone()).await.unwrap();
    assert_eq!(store.notes(&id).await, Ok([one, two].concat()));
    assert_eq!(store.notes(&"s2".into()).await, Ok(other));
    // Without a commit or a prompt the session is unchanged.
    assert_eq!(store.info(&id).await, Ok(before));

    store.delete(&id).await.unwrap();
    store.create(new_session("s1")).await.unwrap();
    assert_eq!(store.notes(&id).await, Ok(Vec::new()));
}

/// LOAD-1, PERM-6: documents never carry approvals, neither on export nor on import.
async fn document_has_notes_and_settings_but_no_approvals(world: &World) {
    let source = World::memory();
    let id = "s1".into();
    source.store.create(new_session("s1")).await.unwrap();
    let patch = SessionPatch {
        thinking: Some("low".to_owned()),
        ..approval_patch(RememberedApproval::Allow("shell".to_owned()))
    };
    source.store.patch(&id, patch).await.unwrap();
    let said = vec![note(1, "s1.command.1", "/help me, s1.command.1")];
    source.store.add_notes(&id, said).await.unwrap();
    let document = export_session(&*source.store, &id).await.unwrap();
    let mut text = serde_json::to_value(&document).unwrap();
    assert_eq!(text["session"].get("always"), None);
    text["session"]["always"] = serde_json::json!([{"allow": "shell"}]);
    let forged: turnery_store::SessionDocument = serde_json::from_value(text).unwrap();

    let copy = forged.with_session_id(&"s2".into()).unwrap();
    for document in [forged, copy, document] {
        let id = document.session.id.clone();
        if id == "s1".into() {
            let _ = world.store.delete(&id).await;
        }
        let made = import_session(&*world.store, document).await.unwrap();
        assert_eq!(made.always, []);
        assert_eq!(made.thinking.as_deref(), Some("low"));
        let message = format!("{id}.command.1");
        let expected = vec![note(1, &message, "/help me, s1.command.1")];
        assert_eq!(world.store.notes(&id).await, Ok(expected));
    }
}

/// LIST-2.
async fn list_compares_resolved_folders(world: &World) {
    let new = |id: &str, cwd: &str, folder: Option<&str>| NewSession {
        cwd: cwd.into(),
        folder: folder.map(Into::into),
        ..new_session(id)
    };
    for new in [
        new("s1", "/link", Some("/real")),
        new("s2", "/real", None),
        new("s3", "/real/below", None),
    ] {
        world.store.create(new).await.unwrap();
    }
    let query = ListQuery {
        folder: Some("/real".into()),
        ..ListQuery::default()
    };
    let page = world.store.list(query).await.unwrap();
    let found = page.sessions.iter().map(|info| info.cwd.to_str().unwrap());
    assert_eq!(found.collect::<Vec<_>>(), ["/real", "/link"]);
}

async fn archived_session_is_listed_on_request(world: &World) {
    let store = &world.store;
    for id in ["s1", "s2"] {
        store.create(new_session(id)).await.unwrap();
    }
    let put_away = |archived| SessionPatch {
        archived: Some(archived),
        ..SessionPatch::default()
    };
    let away = store.patch(&"s1".into(), put_away(true)).await.unwrap();
    assert!(away.archived);
    assert_eq!(store.info(&"s1".into()).await, Ok(away));
    // Patches of other fields leave the session archived.
    let titled = SessionPatch {
        title: Some(Some("a".to_owned())),
        ..SessionPatch::default()
    };
    assert!(store.patch(&"s1".into(), titled).await.unwrap().archived);
    let listed = async |archived| {
        let query = ListQuery {
            archived,
            ..ListQuery::default()
        };
        let page = store.list(query).await.unwrap();
        let ids = page.sessions.into_iter().map(|info| info.id.to_string());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(listed(ArchivedFilter::Exclude).await, ["s2"]);
    assert_eq!(listed(ArchivedFilter::Include).await, ["s2", "s1"]);
    assert_eq!(listed(ArchivedFilter::Only).await, ["s1"]);
    let back = store.patch(&"s1".into(), put_away(false)).await.unwrap();
    assert!(!back.archived);
    assert_eq!(listed(ArchivedFilter::Exclude).await, ["s2", "s1"]);
    assert_eq!(listed(ArchivedFilter::Only).await, [] as [String; 0]);
}

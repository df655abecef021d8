//! Tests of the builders of agents and sessions.

use std::{path::Path, sync::Arc};
use turnery_sdk::{
    OpenError,
    models::{Scenario, ScriptedModel},
    prelude::*,
    store::{MemoryStore, Store, StoreError},
};

const ANSWERS: &str = r#"{"repeat": true, "answers": [{"steps": [{"text": "Yes."}]}]}"#;

fn builder(script: &str) -> AgentBuilder {
    let scenario = Scenario::parse(script, Path::new("SCRIPT")).unwrap();
    AgentBuilder::with_model(ScriptedModel::new(scenario)).system("be good")
}

#[tokio::test]
async fn session_with_chosen_id_is_created_then_continued() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for prompts in 1..3 {
        let agent = builder(ANSWERS).store(Arc::clone(&store)).build();
        let session = agent.session("party-42").open().await.unwrap();
        assert_eq!(session.id(), &SessionId::from("party-42"));
        let output = session.new_prompt("Is it?").run().await.unwrap();
        assert_eq!(output.text().as_deref(), Some("Yes."));
        assert_eq!(session.records().await.unwrap().len(), prompts);
        session.close().await;
    }
}

#[tokio::test]
async fn new_sessions_have_different_ids() {
    let agent = builder(ANSWERS).build();
    let one = agent.new_session().open().await.unwrap();
    let two = agent.new_session().open().await.unwrap();
    assert_ne!(one.id(), two.id());
}

#[tokio::test]
async fn invalid_session_id_is_rejected() {
    let agent = builder(ANSWERS).build();
    for id in ["", "a.b", "a b", "a\n"] {
        let refused = agent.session(id).open().await.err();
        assert_eq!(refused, Some(OpenError::InvalidId(id.into())));
        assert!(matches!(
            agent.info(&id.into()).await,
            Err(StoreError::NotFound(_))
        ));
    }
}

#[tokio::test]
async fn session_without_folder_reaches_no_file() {
    const READS: &str = r#"{"answers": [
        {"steps": [
            {"tool_call": {"id": "1", "name": "read_file", "args": {"path": "/etc/hostname"}}},
            {"tool_call": {"id": "2", "name": "list_dir", "args": {"path": "."}}},
            {"tool_call": {"id": "3", "name": "find_files", "args": {"pattern": "*"}}},
            {"tool_call": {"id": "4", "name": "search", "args": {"pattern": "root"}}},
            {"tool_call": {"id": "5", "name": "write_file", "args": {"path": "/tmp/x", "content": ""}}},
            {"tool_call": {"id": "6", "name": "shell", "args": {"command": "ls /"}}}
        ]},
        {"steps": [{"text": "Nothing."}]}
    ]}"#;
    let agent = builder(READS)
        .tools(Toolbox::coding())
        .settings(|settings| settings.mode = Mode::Edit)
        .build();
    let session = agent.session("no-folder").open().await.unwrap();
    let output = session.new_prompt("Look around.").run().await.unwrap();
    assert_eq!(output.text().as_deref(), Some("Nothing."));
    let ended = output.activities.iter().filter_map(|it| match &it.event {
        ActivityEvent::ToolCallCompleted { name, output, .. } => Some((name, output)),
        _ => None,
    });
    let ended: Vec<_> = ended.collect();
    assert_eq!(ended.len(), 6);
    for (name, output) in ended {
        assert!(output.is_error, "{name}: {}", output.text());
    }
}

#[tokio::test]
async fn stored_session_is_opened_only_in_its_folder() {
    let agent = builder(ANSWERS).build();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let session = agent.session("here").folder(&folder).open().await.unwrap();
    session.close().await;
    let refused = agent.session("here").open().await.err();
    assert!(matches!(refused, Some(OpenError::OtherFolder { .. })));
    assert!(agent.session("here").folder(&folder).open().await.is_ok());
}

#[tokio::test]
async fn unknown_model_is_rejected() {
    assert!(AgentBuilder::new("/model").is_err());
    for name in ["sonnet", "no-such-provider/model"] {
        let agent = AgentBuilder::new(name).unwrap().build();
        let refused = agent.new_session().open().await.err();
        assert!(matches!(refused, Some(OpenError::Model(_))), "{name}");
    }
}

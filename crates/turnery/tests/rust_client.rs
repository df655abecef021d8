//! The main job through the official Rust client, over two processes.

use agent_client_protocol::{
    AcpAgent, AcpAgentConfig, Agent, Client,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            CancelNotification, ContentBlock, InitializeRequest, ListSessionsRequest,
            LoadSessionRequest, NewSessionRequest, PermissionOptionKind, PromptRequest,
            RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
            SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason,
            TextContent,
        },
    },
};
use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

/// What the client has been sent, and a signal for each.
#[derive(Clone)]
struct Seen {
    updates: Arc<Mutex<Vec<SessionUpdate>>>,
    count: watch::Sender<usize>,
}

impl Seen {
    fn new() -> Self {
        Self {
            updates: Arc::default(),
            count: watch::Sender::new(0),
        }
    }

    fn push(&self, update: SessionUpdate) {
        self.updates.lock().expect("no panic").push(update);
        self.count.send_modify(|count| *count += 1);
    }

    /// The text of all chunks of one kind.
    fn text(&self, of: fn(&SessionUpdate) -> Option<&ContentBlock>) -> String {
        let updates = self.updates.lock().expect("no panic");
        let blocks = updates.iter().filter_map(of);
        blocks
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.clone()),
                _ => None,
            })
            .collect()
    }

    async fn until(&self, said: &str) {
        let mut count = self.count.subscribe();
        while !self.text(agent).contains(said) {
            count.changed().await.expect("the sender lives");
        }
    }
}

fn agent(update: &SessionUpdate) -> Option<&ContentBlock> {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) => Some(&chunk.content),
        _ => None,
    }
}

fn user(update: &SessionUpdate) -> Option<&ContentBlock> {
    match update {
        SessionUpdate::UserMessageChunk(chunk) => Some(&chunk.content),
        _ => None,
    }
}

fn turnery(home: &Path) -> AcpAgent {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance/scenarios/main-job.json")
        .canonicalize()
        .expect("the scenario");
    AcpAgent::new(
        AcpAgentConfig::new(env!("CARGO_BIN_EXE_turnery"))
            .args(["acp", "--model"])
            .arg(format!("scripted:{}", scenario.display()))
            .env("TURNERY_HOME", home.display().to_string()),
    )
}

/// Run `body` as a client that allows every call once.
async fn connected<F, Fut>(home: &Path, seen: Seen, body: F)
where
    F: FnOnce(ConnectionTo<Agent>) -> Fut + Send,
    Fut: Future<Output = agent_client_protocol::Result<()>> + Send,
{
    let run = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                seen.push(notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                let allow = request
                    .options
                    .iter()
                    .find(|option| option.kind == PermissionOptionKind::AllowOnce)
                    .map(|option| option.option_id.clone())
                    .expect("an option that allows once");
                responder.respond(RequestPermissionResponse::new(
                    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(allow)),
                ))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(turnery(home), async |cx: ConnectionTo<Agent>| {
            let hello = cx
                .send_request(InitializeRequest::new(ProtocolVersion::V1))
                .block_task()
                .await?;
            assert_eq!(hello.protocol_version, ProtocolVersion::V1);
            body(cx).await
        });
    tokio::time::timeout(std::time::Duration::from_secs(60), run)
        .await
        .expect("the job ends in time")
        .expect("the connection holds");
}

async fn prompt(
    cx: &ConnectionTo<Agent>,
    id: &SessionId,
    text: &str,
) -> agent_client_protocol::Result<StopReason> {
    let blocks = vec![ContentBlock::Text(TextContent::new(text))];
    let request = PromptRequest::new(id.clone(), blocks);
    let answer = cx.send_request(request).block_task().await?;
    Ok(answer.stop_reason)
}

// proves: ACP-42, ACP-46
#[tokio::test]
async fn the_official_rust_client_holds_a_conversation_over_two_processes() {
    let home = tempfile::tempdir().expect("a folder");
    let project = home
        .path()
        .canonicalize()
        .expect("its path")
        .join("project");
    fs::create_dir(&project).expect("a project");
    let greeting = project.join("greeting.txt");
    fs::write(&greeting, "Hello, world\n").expect("a file");

    let seen = Seen::new();
    let made: Mutex<Option<SessionId>> = Mutex::new(None);
    connected(home.path(), seen.clone(), async |cx| {
        let new = NewSessionRequest::new(project.clone());
        let id = cx.send_request(new).block_task().await?.session_id;
        assert_eq!(
            prompt(&cx, &id, "Greet the world").await?,
            StopReason::EndTurn
        );
        let text = fs::read_to_string(&greeting).expect("the file");
        assert_eq!(text, "Good morning, world\n");

        let (stopped, ()) = futures_util::future::join(prompt(&cx, &id, "Wait for me"), async {
            seen.until("I am thinking about it").await;
            cx.send_notification(CancelNotification::new(id.clone()))
                .expect("sent");
        })
        .await;
        assert_eq!(stopped?, StopReason::Cancelled);
        *made.lock().expect("no panic") = Some(id);
        Ok(())
    })
    .await;
    let id = made.lock().expect("no panic").clone().expect("a session");

    let seen = Seen::new();
    connected(home.path(), seen.clone(), async |cx| {
        let list = ListSessionsRequest::new().cwd(project.clone());
        let listed = cx.send_request(list).block_task().await?.sessions;
        let ids: Vec<_> = listed
            .into_iter()
            .map(|session| session.session_id)
            .collect();
        assert_eq!(ids, std::slice::from_ref(&id));
        let load = LoadSessionRequest::new(id.clone(), project.clone());
        cx.send_request(load).block_task().await?;
        assert_eq!(seen.text(user), "Greet the worldWait for me");
        assert_eq!(
            seen.text(agent),
            "I read the greeting first.The greeting says good morning now.I am thinking about it"
        );
        assert_eq!(
            prompt(&cx, &id, "What did you do?").await?,
            StopReason::EndTurn
        );
        assert!(seen.text(agent).ends_with("I changed greeting.txt."));
        Ok(())
    })
    .await;
}

//! Client: the official client, and what the story asks of an agent through it.

use crate::history::History;
use agent_client_protocol::v1::schema::{CancelNotification, ContentBlock};
use agent_client_protocol::{
    AcpAgent, AcpAgentConfig, Agent, Client as Official, JsonRpcRequest, JsonRpcResponse, Result,
    v1::{
        ConnectionTo,
        schema::{
            ListSessionsRequest, PromptRequest, RequestPermissionOutcome, RequestPermissionRequest,
            RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification,
            TextContent,
        },
    },
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::sync::watch;

/// How long a process may take for its part of the story.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where servers of models are looked for on this machine.
const LOCAL_SERVERS: [&str; 4] = [
    "LLAMACPP_BASE_URL",
    "LMSTUDIO_BASE_URL",
    "OLLAMA_HOST",
    "VLLM_BASE_URL",
];
/// An address at which nobody answers: a server that happens to run would be in the list of models.
const NOBODY: &str = "http://127.0.0.1:1/v1";

/// What the client's person was sent and asked, and will say.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) histories: BTreeMap<String, History>,
    /// What was asked, with the answer.
    pub(crate) asked: Vec<Value>,
    /// The kinds of options that will be chosen, in this order.
    pub(crate) answers: VecDeque<&'static str>,
}

/// A connection to an agent, with what came over it.
#[derive(Clone)]
pub(crate) struct Client {
    connection: ConnectionTo<Agent>,
    person: Person,
}

#[derive(Clone)]
struct Person {
    seen: Arc<Mutex<Seen>>,
    news: watch::Sender<()>,
}

impl Person {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nobody panicked")
    }

    fn says(&self, session: &str, text: &str) {
        let mut seen = self.seen();
        let history = seen.histories.entry(session.to_owned());
        history.or_default().prompted(text);
    }

    fn takes(&self, notification: SessionNotification) {
        let session = notification.session_id.to_string();
        let update = serde_json::to_value(notification.update).expect("JSON");
        let mut seen = self.seen();
        seen.histories.entry(session).or_default().take(&update);
        self.news.send_replace(());
    }

    fn decides(&self, request: &RequestPermissionRequest) -> RequestPermissionResponse {
        let options = serde_json::to_value(&request.options).expect("JSON");
        let options = options.as_array().expect("a list");
        let mut kinds: Vec<_> = options.iter().map(|it| it["kind"].as_str()).collect();
        kinds.sort_unstable();
        let mut seen = self.seen();
        let kind = seen.answers.pop_front().expect("an answer");
        let title = &request.tool_call.fields.title;
        seen.asked.push(json!([title, kinds, kind]));
        let chosen = options.iter().find(|option| option["kind"] == kind);
        let id = chosen.expect("the option")["optionId"].as_str();
        let outcome = SelectedPermissionOutcome::new(id.expect("an id").to_owned());
        RequestPermissionResponse::new(RequestPermissionOutcome::Selected(outcome))
    }
}

/// Run `body` with a client of an agent that `command` starts.
pub(crate) async fn connected<T: Send>(
    command: &[String],
    home: &Path,
    body: impl AsyncFnOnce(Client) -> Result<T>,
) -> T {
    let config = AcpAgentConfig::new(&command[0])
        .args(&command[1..])
        .env("TURNERY_HOME", home.join("turnery").display().to_string());
    let config = LOCAL_SERVERS
        .iter()
        .fold(config, |config, name| config.env(*name, NOBODY));
    let person = Person {
        seen: Arc::default(),
        news: watch::Sender::new(()),
    };
    let (told, asked) = (person.clone(), person.clone());
    let run = Official
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                told.takes(notification);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                responder.respond(asked.decides(&request))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(
            AcpAgent::new(config),
            async |connection: ConnectionTo<Agent>| body(Client { connection, person }).await,
        );
    let told = tokio::time::timeout(PATIENCE, run).await;
    told.expect("the story ends in time")
        .expect("the connection holds")
}

impl Client {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.person.seen()
    }

    /// What came of one session.
    pub(crate) fn of(&self, session: &str) -> History {
        self.seen()
            .histories
            .get(session)
            .cloned()
            .unwrap_or_default()
    }

    /// Forget what came of a session.
    pub(crate) fn forget(&self, session: &str) {
        self.seen().histories.remove(session);
    }

    /// The answer, as it stood on the wire.
    pub(crate) async fn ask<R: JsonRpcRequest>(&self, request: R) -> Result<Value> {
        let method = request.method().to_owned();
        let answer = self.connection.send_request(request).block_task().await?;
        answer.into_json(&method)
    }

    /// Why it stopped.
    pub(crate) async fn prompt(&self, session: &str, text: &str) -> Result<Value> {
        self.person.says(session, text);
        let blocks = vec![ContentBlock::Text(TextContent::new(text))];
        let request = PromptRequest::new(SessionId::new(session), blocks);
        Ok(self.ask(request).await?["stopReason"].take())
    }

    /// Prompt, and cancel once `what` is part of what came last.
    pub(crate) async fn cancel(&self, session: &str, text: &str, what: &str) -> Result<Value> {
        let mut news = self.person.news.subscribe();
        let cancel = async {
            let last = || self.of(session).items.last().map(Value::to_string);
            while last().is_none_or(|last| !last.contains(what)) {
                news.changed().await.expect("the sender lives");
            }
            let cancel = CancelNotification::new(SessionId::new(session));
            self.connection.send_notification(cancel)
        };
        let (stop, sent) = futures_util::future::join(self.prompt(session, text), cancel).await;
        sent?;
        stop
    }

    /// The sessions of a folder, page by page.
    pub(crate) async fn pages(&self, folder: &Path) -> Result<Vec<Vec<Value>>> {
        let mut pages = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let request = ListSessionsRequest::new().cwd(folder.to_owned());
            let mut page = self.ask(request.cursor(cursor)).await?;
            let sessions = page["sessions"].as_array_mut().expect("a list");
            pages.push(std::mem::take(sessions));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(pages),
            }
        }
    }
}

/// The error that the agent answers with.
pub(crate) fn code(answer: Result<Value>) -> Value {
    match answer {
        Ok(value) => json!(format!("no error: {value}")),
        Err(error) => json!(i32::from(error.code)),
    }
}

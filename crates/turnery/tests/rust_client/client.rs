//! Wraps the official Rust client with the requests that the test needs.

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

/// Timeout for each process's part of the test.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Environment variables that override the default addresses of local model servers.
const LOCAL_SERVERS: [&str; 4] = [
    "LLAMACPP_BASE_URL",
    "LMSTUDIO_BASE_URL",
    "OLLAMA_HOST",
    "VLLM_BASE_URL",
];
/// Address without a listener, so that servers on the test machine are not listed.
const UNUSED_ADDRESS: &str = "http://127.0.0.1:1/v1";

/// Messages and questions that the client received, and its planned answers.
#[derive(Default)]
pub(crate) struct ClientLog {
    pub(crate) histories: BTreeMap<String, History>,
    /// Permission requests with their answers.
    pub(crate) permissions: Vec<Value>,
    /// Kinds of options to choose, in this order.
    pub(crate) permission_answers: VecDeque<&'static str>,
}

/// A connection to an agent, and the messages received over it.
#[derive(Clone)]
pub(crate) struct Client {
    connection: ConnectionTo<Agent>,
    handler: ClientHandler,
}

#[derive(Clone)]
struct ClientHandler {
    log: Arc<Mutex<ClientLog>>,
    changed: watch::Sender<()>,
}

impl ClientHandler {
    fn log(&self) -> MutexGuard<'_, ClientLog> {
        self.log.lock().expect("nobody panicked")
    }

    fn record_prompt(&self, session: &str, text: &str) {
        let mut seen = self.log();
        let history = seen.histories.entry(session.to_owned());
        history.or_default().record_prompt(text);
    }

    fn record_update(&self, notification: SessionNotification) {
        let session = notification.session_id.to_string();
        let update = serde_json::to_value(notification.update).expect("JSON");
        let mut seen = self.log();
        seen.histories
            .entry(session)
            .or_default()
            .apply_update(&update);
        self.changed.send_replace(());
    }

    fn answer_permission(&self, request: &RequestPermissionRequest) -> RequestPermissionResponse {
        let options = serde_json::to_value(&request.options).expect("JSON");
        let options = options.as_array().expect("a list");
        let mut kinds: Vec<_> = options.iter().map(|it| it["kind"].as_str()).collect();
        kinds.sort_unstable();
        let mut seen = self.log();
        let kind = seen.permission_answers.pop_front().expect("an answer");
        let title = &request.tool_call.fields.title;
        seen.permissions.push(json!([title, kinds, kind]));
        let chosen = options.iter().find(|option| option["kind"] == kind);
        let id = chosen.expect("the option")["optionId"].as_str();
        let outcome = SelectedPermissionOutcome::new(id.expect("an id").to_owned());
        RequestPermissionResponse::new(RequestPermissionOutcome::Selected(outcome))
    }
}

/// Runs `body` with a client of an agent that `command` starts.
pub(crate) async fn with_client<T: Send>(
    command: &[String],
    home: &Path,
    body: impl AsyncFnOnce(Client) -> Result<T>,
) -> T {
    let config = AcpAgentConfig::new(&command[0])
        .args(&command[1..])
        .env("TURNERY_HOME", home.join("turnery").display().to_string());
    let config = LOCAL_SERVERS
        .iter()
        .fold(config, |config, name| config.env(*name, UNUSED_ADDRESS));
    let handler = ClientHandler {
        log: Arc::default(),
        changed: watch::Sender::new(()),
    };
    let (told, asked) = (handler.clone(), handler.clone());
    let run = Official
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                told.record_update(notification);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                responder.respond(asked.answer_permission(&request))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(
            AcpAgent::new(config),
            async |connection: ConnectionTo<Agent>| {
                body(Client {
                    connection,
                    handler,
                })
                .await
            },
        );
    let told = tokio::time::timeout(TIMEOUT, run).await;
    told.expect("the story ends in time")
        .expect("the connection holds")
}

impl Client {
    pub(crate) fn log(&self) -> MutexGuard<'_, ClientLog> {
        self.handler.log()
    }

    /// Returns the history of a session.
    pub(crate) fn history(&self, session: &str) -> History {
        self.log()
            .histories
            .get(session)
            .cloned()
            .unwrap_or_default()
    }

    /// Deletes the history of a session.
    pub(crate) fn forget(&self, session: &str) {
        self.log().histories.remove(session);
    }

    /// Sends a request; returns the raw result.
    pub(crate) async fn request<R: JsonRpcRequest>(&self, request: R) -> Result<Value> {
        let method = request.method().to_owned();
        let answer = self.connection.send_request(request).block_task().await?;
        answer.into_json(&method)
    }

    /// Sends a prompt; returns its stop reason.
    pub(crate) async fn prompt(&self, session: &str, text: &str) -> Result<Value> {
        self.handler.record_prompt(session, text);
        let blocks = vec![ContentBlock::Text(TextContent::new(text))];
        let request = PromptRequest::new(SessionId::new(session), blocks);
        Ok(self.request(request).await?["stopReason"].take())
    }

    /// Sends a prompt, and cancels it once the last item of the session history contains `what`; returns its
    /// stop reason.
    pub(crate) async fn prompt_and_cancel(
        &self,
        session: &str,
        text: &str,
        what: &str,
    ) -> Result<Value> {
        let mut news = self.handler.changed.subscribe();
        let cancel = async {
            let last = || self.history(session).items.last().map(Value::to_string);
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

    /// Returns the sessions of a folder, page by page.
    pub(crate) async fn list_pages(&self, folder: &Path) -> Result<Vec<Vec<Value>>> {
        let mut pages = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let request = ListSessionsRequest::new().cwd(folder.to_owned());
            let mut page = self.request(request.cursor(cursor)).await?;
            let sessions = page["sessions"].as_array_mut().expect("a list");
            pages.push(std::mem::take(sessions));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(pages),
            }
        }
    }
}

/// Returns the error code of a failed request.
pub(crate) fn error_code(answer: Result<Value>) -> Value {
    match answer {
        Ok(value) => json!(format!("no error: {value}")),
        Err(error) => json!(i32::from(error.code)),
    }
}

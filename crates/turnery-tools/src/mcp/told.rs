//! Told: what a server tells us and asks of us: progress, changes of its lists, and which folders we
//! work in. Everything else it asks for was not advertised and is refused.

use crate::Progress;
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
        ProtocolVersion,
    },
    service::NotificationContext,
};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::mpsc;

/// A longer sentence of progress is cut. Unit: bytes.
const LONGEST: usize = 500;

/// Who wants to know how far a call is. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Listeners(Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<Progress>>>>);

impl Listeners {
    pub(super) fn add(&self, token: ProgressToken, to: mpsc::Sender<Progress>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(token, to);
    }

    pub(super) fn remove(&self, token: &ProgressToken) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(token);
    }

    /// A report that finds no room is left out: the next one says more.
    fn tell(&self, report: &ProgressNotificationParam) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = all.get(&report.progress_token) {
            let _ = to.try_send(Progress::Says(sentence(report)));
        }
    }
}

/// How far a call is, in words.
fn sentence(report: &ProgressNotificationParam) -> String {
    let done = match report.total {
        Some(total) => format!("{} of {total}", report.progress),
        None => report.progress.to_string(),
    };
    match &report.message {
        Some(message) => {
            let cut = message.floor_char_boundary(LONGEST);
            format!("{} ({done})", &message[..cut])
        }
        None => done,
    }
}

/// Our side of the connection to one server.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) server: Arc<str>,
    pub(super) listeners: Listeners,
    /// Gets a word when a list has changed.
    pub(super) changed: mpsc::Sender<()>,
    pub(super) roots: Arc<[PathBuf]>,
}

impl Told {
    /// One word that waits is enough for any number of changes.
    fn list_changed(&self) {
        let _ = self.changed.try_send(());
    }
}

#[expect(
    deprecated,
    reason = "folders are going to leave the protocol; servers of today ask for them"
)]
impl ClientHandler for Told {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(rmcp::model::RootsCapabilities::default());
        let us = Implementation::new("turnery", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(
        &self,
        _cx: rmcp::service::RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, rmcp::ErrorData> {
        let roots = self.roots.iter().map(|root| {
            let name = root.file_name().unwrap_or(root.as_os_str());
            rmcp::model::Root::new(file_url(root)).with_name(name.to_string_lossy())
        });
        Ok(rmcp::model::ListRootsResult::new(roots.collect()))
    }

    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _cx: NotificationContext<RoleClient>,
    ) {
        self.listeners.tell(&report);
    }

    async fn on_logging_message(
        &self,
        message: rmcp::model::LoggingMessageNotificationParam,
        _cx: NotificationContext<RoleClient>,
    ) {
        // What it says may hold what it was given, so only that it spoke is kept.
        tracing::debug!(server = %self.server, level = ?message.level, "an MCP server logs");
    }

    async fn on_tool_list_changed(&self, _cx: NotificationContext<RoleClient>) {
        self.list_changed();
    }

    async fn on_prompt_list_changed(&self, _cx: NotificationContext<RoleClient>) {
        self.list_changed();
    }
}

/// A path as a `file://` URL.
fn file_url(path: &std::path::Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let path = path.as_os_str().as_encoded_bytes();
    path.iter()
        .fold("file://".to_owned(), |url, byte| match plain(*byte) {
            true => url + char::from(*byte).encode_utf8(&mut [0; 4]),
            false => format!("{url}%{byte:02X}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    #[test]
    fn progress_is_a_sentence() {
        let token = ProgressToken(NumberOrString::Number(1));
        let mut report = ProgressNotificationParam::new(token, 2.0);
        assert_eq!(sentence(&report), "2");
        report.total = Some(5.0);
        assert_eq!(sentence(&report), "2 of 5");
        report.message = Some("Reading".to_owned());
        assert_eq!(sentence(&report), "Reading (2 of 5)");
    }

    #[test]
    fn folders_are_named_by_url() {
        let url = file_url(std::path::Path::new("/home/me/a b/é"));
        assert_eq!(url, "file:///home/me/a%20b/%C3%A9");
    }
}

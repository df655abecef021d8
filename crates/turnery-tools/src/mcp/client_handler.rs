//! Handles messages of a server: progress, list changes and root requests. All other requests are refused,
//! since no capability for them is advertised.

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

/// A longer progress message is cut. Unit: bytes.
const MAX_MESSAGE_BYTES: usize = 500;

/// Receivers of progress, by progress token. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct ProgressListeners(Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<Progress>>>>);

impl ProgressListeners {
    pub(super) fn add(&self, token: ProgressToken, to: mpsc::Sender<Progress>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(token, to);
    }

    pub(super) fn remove(&self, token: &ProgressToken) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(token);
    }

    /// Forwards a report. Drops it if the channel is full, since the next report supersedes it.
    fn forward(&self, report: &ProgressNotificationParam) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = all.get(&report.progress_token) {
            let _ = to.try_send(Progress::Message(format_progress(report)));
        }
    }
}

/// Formats the progress of a call.
fn format_progress(report: &ProgressNotificationParam) -> String {
    let done = match report.total {
        Some(total) => format!("{} of {total}", report.progress),
        None => report.progress.to_string(),
    };
    match &report.message {
        Some(message) => {
            let cut = message.floor_char_boundary(MAX_MESSAGE_BYTES);
            format!("{} ({done})", &message[..cut])
        }
        None => done,
    }
}

/// Client side of the connection to one server.
#[derive(Clone)]
pub(super) struct McpClientHandler {
    pub(super) server: Arc<str>,
    pub(super) listeners: ProgressListeners,
    /// Signals that a list has changed.
    pub(super) list_changes: mpsc::Sender<()>,
    pub(super) roots: Arc<[PathBuf]>,
}

impl McpClientHandler {
    /// Signals that a list has changed; one pending signal covers any number of changes.
    fn signal_list_change(&self) {
        let _ = self.list_changes.try_send(());
    }
}

#[expect(
    deprecated,
    reason = "roots are deprecated in the protocol, but current servers request them"
)]
impl ClientHandler for McpClientHandler {
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
        self.listeners.forward(&report);
    }

    async fn on_logging_message(
        &self,
        message: rmcp::model::LoggingMessageNotificationParam,
        _cx: NotificationContext<RoleClient>,
    ) {
        // The message may contain secrets, so only the fact that it was sent is logged.
        tracing::debug!(server = %self.server, level = ?message.level, "an MCP server logs");
    }

    async fn on_tool_list_changed(&self, _cx: NotificationContext<RoleClient>) {
        self.signal_list_change();
    }

    async fn on_prompt_list_changed(&self, _cx: NotificationContext<RoleClient>) {
        self.signal_list_change();
    }
}

/// Converts an absolute path to a `file://` URL.
fn file_url(path: &std::path::Path) -> String {
    reqwest::Url::from_file_path(path)
        .map(String::from)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    #[test]
    fn progress_is_formatted_with_total_and_message() {
        let token = ProgressToken(NumberOrString::Number(1));
        let mut report = ProgressNotificationParam::new(token, 2.0);
        assert_eq!(format_progress(&report), "2");
        report.total = Some(5.0);
        assert_eq!(format_progress(&report), "2 of 5");
        report.message = Some("Reading".to_owned());
        assert_eq!(format_progress(&report), "Reading (2 of 5)");
    }

    #[test]
    fn folder_is_encoded_as_file_url() {
        let url = file_url(std::path::Path::new("/home/me/a b/é"));
        assert_eq!(url, "file:///home/me/a%20b/%C3%A9");
    }
}

//! Features that the client declared in `initialize`.

use crate::{client::quirks::ClientQuirks, server::login::LoginFeatures};
use agent_client_protocol_schema::v1::{ClientCapabilities, Meta};
use serde_json::Value;

/// Features the client declared. Undeclared features are off (INIT-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientFeatures {
    pub(crate) read_files: bool,
    pub(crate) write_files: bool,
    pub(crate) terminals: bool,
    /// Shows forms and returns their values.
    pub(crate) forms: bool,
    /// Login features.
    pub(crate) login: LoginFeatures,
    /// Supports usage in the response to a prompt.
    pub(crate) prompt_usage: bool,
    /// Optional updates the client accepts.
    pub(crate) optional_updates: OptionalUpdates,
    /// Known deviations from the protocol.
    pub(crate) quirks: ClientQuirks,
}

impl From<ClientCapabilities> for ClientFeatures {
    fn from(declared: ClientCapabilities) -> Self {
        Self {
            read_files: declared.fs.read_text_file,
            write_files: declared.fs.write_text_file,
            terminals: declared.terminal,
            login: LoginFeatures::from(&declared),
            prompt_usage: supports_prompt_usage(declared.meta.as_ref()),
            forms: declared.elicitation.is_some_and(|it| it.form.is_some()),
            optional_updates: declared
                .session
                .map_or_else(OptionalUpdates::default, |session| OptionalUpdates {
                    notices: session.notices.is_some(),
                    compaction: session.compaction.is_some(),
                }),
            quirks: ClientQuirks::default(),
        }
    }
}

/// Optional updates that a client supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionalUpdates {
    pub(crate) notices: bool,
    pub(crate) compaction: bool,
}

/// Returns true if the client declares support for usage in the response to a prompt (unstable; no capability exists for it).
fn supports_prompt_usage(meta: Option<&Meta>) -> bool {
    let ours = meta.and_then(|meta| meta.get("turnery"));
    ours.and_then(|ours| ours.get("promptUsage")) == Some(&Value::Bool(true))
}

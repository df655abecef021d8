//! Sends notices and compaction updates in the form that the client supports. Clients that do not declare support
//! (NOTE-1, COMP-1) get the same facts in the `_meta` of an update that changes nothing.

use crate::{
    client::features::OptionalUpdates,
    v1::shared::{encode_notice, encode_severity, meta_only_update},
};
use agent_client_protocol_schema::v1::{CompactionUpdate, NoticeSeverity, SessionUpdate};
use serde_json::json;
use turnery_agent::view;
use turnery_tools::escape_invisible;

impl OptionalUpdates {
    /// Encodes a notice of the running prompt.
    pub(super) fn encode_notice(self, notice: &view::Notice<'_>) -> SessionUpdate {
        self.encode_text(
            encode_severity(notice),
            notice.title(),
            &notice.description(),
        )
    }

    /// Encodes a warning for the user.
    pub(crate) fn encode_warning(self, title: &str, description: &str) -> SessionUpdate {
        self.encode_text(NoticeSeverity::Warning, title, description)
    }

    fn encode_text(self, severity: NoticeSeverity, title: &str, text: &str) -> SessionUpdate {
        if self.notices {
            return encode_notice(severity, title, text);
        }
        let notice =
            json!({"severity": severity, "title": title, "description": escape_invisible(text)});
        meta_only_update(json!({ "notice": notice }))
    }

    /// Encodes a compaction.
    pub(super) fn encode_compaction(self, update: CompactionUpdate) -> SessionUpdate {
        match self.compaction {
            true => SessionUpdate::CompactionUpdate(update),
            false => meta_only_update(json!({ "compaction": update })),
        }
    }
}

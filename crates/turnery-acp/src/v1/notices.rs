//! Encodes notices and compaction updates. Clients that do not declare support (NOTE-1, COMP-1) get the same
//! facts in the `_meta` of an update that changes nothing.

use crate::{
    client::features::OptionalUpdates, v1::tool_call_view::text_block, view::meta::turnery_meta,
};
use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, Notice, NoticeSeverity, SessionInfoUpdate, SessionUpdate,
};
use serde_json::{Value, json};
use turnery_agent::view;
use turnery_engine::CompactionBlock;
use turnery_tools::visible;

/// Returns an update whose only content is `_meta`.
pub(crate) fn meta_only_update(members: Value) -> SessionUpdate {
    SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().meta(turnery_meta(members)))
}

impl OptionalUpdates {
    /// Encodes a notice of the running prompt.
    pub(super) fn encode_notice(self, notice: &view::Notice<'_>) -> SessionUpdate {
        let severity = match notice.is_warning() {
            true => NoticeSeverity::Warning,
            false => NoticeSeverity::Info,
        };
        self.encode_text(severity, notice.title(), &notice.description())
    }

    /// Encodes a warning for the user.
    pub(crate) fn encode_warning(self, title: &str, description: &str) -> SessionUpdate {
        self.encode_text(NoticeSeverity::Warning, title, description)
    }

    /// Encodes a title and a description. Hidden characters are made visible.
    fn encode_text(
        self,
        severity: NoticeSeverity,
        title: &str,
        description: &str,
    ) -> SessionUpdate {
        let description = visible(description);
        if self.notices {
            let notice = Notice::new(severity, title);
            return SessionUpdate::Notice(notice.description(description.into_owned()));
        }
        let notice = json!({"severity": severity, "title": title, "description": description});
        meta_only_update(json!({ "notice": notice }))
    }

    /// Encodes the start of a compaction.
    pub(super) fn encode_compaction_start(self, id: &str) -> SessionUpdate {
        self.encode_compaction(CompactionUpdate::new(
            id.to_owned(),
            CompactionStatus::InProgress,
        ))
    }

    /// Encodes the end of a compaction: with a summary, with the reason of a failure, or with nothing done
    /// (COMP-2).
    pub(super) fn encode_compaction_end(
        self,
        id: &str,
        block: Option<&CompactionBlock>,
        failure: Option<&str>,
    ) -> SessionUpdate {
        let ended = |status| CompactionUpdate::new(id.to_owned(), status);
        self.encode_compaction(match (block, failure) {
            (Some(block), _) => {
                let texts = block.keep_compacted.iter().map(|kept| kept.message.text());
                let summary: Vec<_> = texts.map(|text| text_block(&text)).collect();
                ended(CompactionStatus::Completed).summary(summary)
            }
            (None, Some(failure)) => {
                ended(CompactionStatus::Failed).error(visible(failure).into_owned())
            }
            (None, None) => ended(CompactionStatus::Cancelled),
        })
    }

    fn encode_compaction(self, update: CompactionUpdate) -> SessionUpdate {
        match self.compaction {
            true => SessionUpdate::CompactionUpdate(update),
            false => meta_only_update(json!({ "compaction": update })),
        }
    }
}

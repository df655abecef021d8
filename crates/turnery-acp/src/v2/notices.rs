//! Encodes notices and compaction updates, which every v2 client accepts.

use super::tool_call_view::text_block;
use crate::view::meta;
use agent_client_protocol_schema::v2::{
    CompactionStatus, CompactionUpdate, Notice, NoticeSeverity, SessionInfoUpdate, SessionUpdate,
};
use serde_json::Value;
use turnery_agent::view;
use turnery_engine::{CompactionBlock, Timestamp};
use turnery_tools::{visible, visible_line};

/// Returns an update whose only content is `_meta`.
pub(super) fn meta_only_update(members: Value) -> SessionUpdate {
    SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().meta(meta::turnery_meta(members)))
}

/// Encodes a notice of the running prompt.
pub(super) fn encode_notice(notice: &view::Notice<'_>) -> SessionUpdate {
    let severity = match notice.is_warning() {
        true => NoticeSeverity::Warning,
        false => NoticeSeverity::Info,
    };
    encode_text(severity, notice.title(), &notice.description())
}

/// Encodes a warning for the user.
pub(crate) fn encode_warning(title: &str, description: &str) -> SessionUpdate {
    encode_text(NoticeSeverity::Warning, title, description)
}

/// Encodes a title and a description. Hidden characters are made visible.
fn encode_text(severity: NoticeSeverity, title: &str, description: &str) -> SessionUpdate {
    let notice = Notice::new(severity, title);
    SessionUpdate::Notice(notice.description(visible(description).into_owned()))
}

/// Encodes a new title, or the time of the last activity.
pub(crate) fn encode_session_info(title: Option<&str>, updated_at: Timestamp) -> SessionUpdate {
    let mut info =
        SessionInfoUpdate::new().updated_at(crate::view::rfc3339::format_rfc3339(updated_at));
    if let Some(title) = title {
        info = info.title(visible_line(title).into_owned());
    }
    SessionUpdate::SessionInfoUpdate(info)
}

/// Encodes the start of a compaction.
pub(super) fn encode_compaction_start(id: &str) -> SessionUpdate {
    SessionUpdate::CompactionUpdate(CompactionUpdate::new(id, CompactionStatus::InProgress))
}

/// Encodes the end of a compaction: with a summary, with the reason of a failure, or with nothing done.
pub(super) fn encode_compaction_end(
    id: &str,
    block: Option<&CompactionBlock>,
    failure: Option<&str>,
) -> SessionUpdate {
    let ended = |status| CompactionUpdate::new(id, status);
    SessionUpdate::CompactionUpdate(match (block, failure) {
        (Some(block), _) => {
            let texts = block.keep_compacted.iter().map(|kept| kept.message.text());
            let summary: Vec<_> = texts.map(text_block).collect();
            ended(CompactionStatus::Completed).summary(summary)
        }
        (None, Some(failure)) => {
            ended(CompactionStatus::Failed).error(visible(failure).into_owned())
        }
        (None, None) => ended(CompactionStatus::Cancelled),
    })
}

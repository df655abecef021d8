//! Encodes notices and compaction updates, which every v2 client accepts.

use super::tool_call_view::text_block;
use crate::{transport::update_writer, v1::notices, view::meta};
use agent_client_protocol_schema::v2::{
    CompactionStatus, CompactionUpdate, Notice, NoticeSeverity, SessionInfoUpdate, SessionUpdate,
};
use serde_json::Value;
use turnery_engine::{CompactionBlock, ModelError, Timestamp};
use turnery_tools::{visible, visible_line};

/// Returns an update whose only content is `_meta`.
pub(super) fn meta_only_update(members: Value) -> SessionUpdate {
    SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().meta(meta::turnery_meta(members)))
}

/// Encodes a notice for the user. Hidden characters are made visible.
pub(super) fn encode_notice(
    severity: NoticeSeverity,
    title: &str,
    description: &str,
) -> SessionUpdate {
    let notice = Notice::new(severity, title);
    SessionUpdate::Notice(notice.description(visible(description).into_owned()))
}

/// Encodes a warning as a line.
pub(crate) fn encode_warning_line(session_id: &str, title: &str, description: &str) -> Vec<u8> {
    update_writer::update_line(
        session_id,
        &encode_notice(NoticeSeverity::Warning, title, description),
    )
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

/// Encodes a retry of a model call.
pub(super) fn encode_retry(attempt: u32, fault: &ModelError, wait_ms: u64) -> SessionUpdate {
    let text = notices::describe_retry(attempt, fault, wait_ms);
    encode_notice(NoticeSeverity::Info, "Retrying the model call", &text)
}

/// Encodes the notice that the model sends nothing while the call goes on.
pub(super) fn encode_silence(silent_ms: u64, is_connected: bool) -> SessionUpdate {
    let text = notices::describe_silence(silent_ms, is_connected);
    encode_notice(NoticeSeverity::Info, notices::SILENCE_TITLE, &text)
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

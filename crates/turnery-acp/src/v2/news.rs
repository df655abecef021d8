//! News: what is to be known beside the conversation. In v2 every client takes notices and compactions.

use super::shown::text_block;
use crate::{news, update};
use agent_client_protocol_schema::v2::{
    CompactionStatus, CompactionUpdate, Notice, NoticeSeverity, SessionInfoUpdate, SessionUpdate,
};
use serde_json::Value;
use turnery_engine::{CompactionBlock, ModelFault, Timestamp};
use turnery_tools::{visible, visible_line};

/// An update that says nothing to a client that does not look into `_meta`.
pub(super) fn aside(members: Value) -> SessionUpdate {
    SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().meta(news::meta(members)))
}

/// A sentence for the person, with nothing hidden in it.
pub(super) fn notice(severity: NoticeSeverity, title: &str, description: &str) -> SessionUpdate {
    let notice = Notice::new(severity, title);
    SessionUpdate::Notice(notice.description(visible(description).into_owned()))
}

/// A warning, as a line.
pub(crate) fn warning(session_id: &str, title: &str, description: &str) -> Vec<u8> {
    update::line(
        session_id,
        &notice(NoticeSeverity::Warning, title, description),
    )
}

/// The session has a new title, or was active.
pub(crate) fn info(title: Option<&str>, updated_at: Timestamp) -> SessionUpdate {
    let mut info = SessionInfoUpdate::new().updated_at(crate::outbox::rfc3339(updated_at));
    if let Some(title) = title {
        info = info.title(visible_line(title).into_owned());
    }
    SessionUpdate::SessionInfoUpdate(info)
}

/// The model is called again.
pub(super) fn retried(attempt: u32, fault: &ModelFault, wait_ms: u64) -> SessionUpdate {
    let text = news::retry(attempt, fault, wait_ms);
    notice(NoticeSeverity::Info, "The model is called again", &text)
}

/// The model sends nothing; the call goes on.
pub(super) fn silent(silent_ms: u64, is_connected: bool) -> SessionUpdate {
    let text = news::silence(silent_ms, is_connected);
    notice(NoticeSeverity::Info, news::SILENT, &text)
}

/// History is being summarised.
pub(super) fn compacting(id: &str) -> SessionUpdate {
    SessionUpdate::CompactionUpdate(CompactionUpdate::new(id, CompactionStatus::InProgress))
}

/// That is over: with a summary, with a reason why not, or with nothing done.
pub(super) fn compacted(
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

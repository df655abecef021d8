//! Encodes the title and time of last activity of a session.

use crate::view::rfc3339::format_rfc3339;
use agent_client_protocol_schema::v1::{SessionInfoUpdate, SessionUpdate};
use turnery_engine::Timestamp;
use turnery_tools::visible_line;

/// Encodes a new title, or the time of the last activity.
pub(crate) fn encode_session_info(title: Option<&str>, updated_at: Timestamp) -> SessionUpdate {
    let mut info = SessionInfoUpdate::new().updated_at(format_rfc3339(updated_at));
    if let Some(title) = title {
        info = info.title(visible_line(title).into_owned());
    }
    SessionUpdate::SessionInfoUpdate(info)
}

//! Decodes the columns of a loop; [`super::loop_row`] encodes them.

use super::row_error::RowError;
use std::borrow::Cow;
use turnery_engine::{LoopRecord, SessionId};

/// Columns of a loop without its events.
pub(crate) struct LoopColumns<'a> {
    pub(crate) loop_id: &'a str,
    pub(crate) parent_loop_id: Option<&'a str>,
    pub(crate) continuation_kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) on_chain: bool,
    pub(crate) started_at: &'a str,
    pub(crate) ended_at: Option<&'a str>,
    pub(crate) record: &'a str,
    pub(crate) messages: &'a str,
}

impl<'a> LoopColumns<'a> {
    /// Returns the record without its events. `whole` is a reusable buffer in which the columns are joined; `expand`
    /// replaces the references to long texts.
    pub(crate) fn read_record<E: From<RowError>>(
        &self,
        session: &SessionId,
        whole: &mut String,
        expand: impl Fn(&'a str) -> Result<Cow<'a, str>, E>,
    ) -> Result<LoopRecord, E> {
        whole.clear();
        whole.push('{');
        push_string_field(whole, "session_id", session.as_str())?;
        push_string_field(whole, "loop_id", self.loop_id)?;
        if let Some(parent) = self.parent_loop_id {
            push_string_field(whole, "parent_loop_id", parent)?;
        }
        push_enum_field(whole, "continuation_kind", self.continuation_kind)?;
        push_enum_field(whole, "status", self.status)?;
        push_raw_field(
            whole,
            "on_chain",
            if self.on_chain { "true" } else { "false" },
        );
        push_string_field(whole, "started_at", self.started_at)?;
        if let Some(ended_at) = self.ended_at {
            push_string_field(whole, "ended_at", ended_at)?;
        }
        push_raw_field(whole, "messages", "[]");
        let rest = expand(self.record)?;
        let rest = rest.strip_prefix('{').unwrap_or_default();
        if rest == "}" {
            whole.pop();
        }
        whole.push_str(rest);
        let mut record: LoopRecord = serde_json::from_str(whole).map_err(RowError::from)?;
        // Parsed separately, because messages are the largest part.
        record.messages = serde_json::from_str(&expand(self.messages)?).map_err(RowError::from)?;
        Ok(record)
    }
}

/// Returns true if the id cannot belong to a loop of this session.
pub(crate) fn is_foreign(id: &SessionId, loop_id: &str) -> bool {
    let own = loop_id.strip_prefix(id.as_str());
    !own.is_some_and(|rest| rest.starts_with('.'))
}

/// Appends a field of a JSON object that has more fields to follow.
fn push_raw_field(whole: &mut String, name: &str, json: &str) {
    for part in ["\"", name, "\":", json, ","] {
        whole.push_str(part);
    }
}

fn push_string_field(whole: &mut String, name: &str, text: &str) -> Result<(), RowError> {
    push_raw_field(whole, name, &serde_json::to_string(text)?);
    Ok(())
}

/// Appends an enum stored by `loop_row`.
fn push_enum_field(whole: &mut String, name: &str, json: &str) -> Result<(), RowError> {
    if json.starts_with('{') {
        push_raw_field(whole, name, json);
        return Ok(());
    }
    push_string_field(whole, name, json)
}

//! Encodes notices and compaction updates. Clients that do not declare support (NOTE-1, COMP-1) get the same
//! facts in the `_meta` of an update that changes nothing.

use crate::{
    client::features::OptionalUpdates, v1::tool_call_view::text_block, view::meta::turnery_meta,
};
use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, Notice, NoticeSeverity, SessionInfoUpdate, SessionUpdate,
};
use serde_json::{Value, json};
use turnery_engine::{CompactionBlock, ModelError};
use turnery_tools::visible;

/// Returns an update whose only content is `_meta`.
pub(crate) fn meta_only_update(members: Value) -> SessionUpdate {
    SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().meta(turnery_meta(members)))
}

/// Describes why and when the model call is retried.
pub(crate) fn describe_retry(attempt: u32, fault: &ModelError, wait_ms: u64) -> String {
    format!(
        "Attempt {attempt}: {}. The next one is in {}.{} s.",
        fault.message.trim_end_matches('.'),
        wait_ms / 1000,
        wait_ms % 1000 / 100,
    )
}

/// Title of the notice about a silent model.
pub(crate) const SILENCE_TITLE: &str = "The model is silent";

/// Describes how long the model has sent nothing, and whether the connection is alive.
pub(crate) fn describe_silence(silent_ms: u64, is_connected: bool) -> String {
    let seconds = silent_ms / 1000;
    match is_connected {
        true => format!(
            "The model has sent nothing for {seconds} s, but its connection is alive. Cancel the prompt if you do not want to wait."
        ),
        false => format!(
            "The model has sent nothing for {seconds} s. Cancel the prompt if you do not want to wait."
        ),
    }
}

impl OptionalUpdates {
    /// Encodes a notice for the user. Hidden characters are made visible.
    pub(crate) fn encode_notice(
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

    /// Encodes a retry of a model call.
    pub(crate) fn encode_retry(
        self,
        attempt: u32,
        fault: &ModelError,
        wait_ms: u64,
    ) -> SessionUpdate {
        let text = describe_retry(attempt, fault, wait_ms);
        self.encode_notice(NoticeSeverity::Info, "Retrying the model call", &text)
    }

    /// Encodes the notice that the model sends nothing while the call goes on.
    pub(crate) fn encode_silence(self, silent_ms: u64, is_connected: bool) -> SessionUpdate {
        let text = describe_silence(silent_ms, is_connected);
        self.encode_notice(NoticeSeverity::Info, SILENCE_TITLE, &text)
    }

    /// Encodes the start of a compaction.
    pub(crate) fn encode_compaction_start(self, id: &str) -> SessionUpdate {
        self.encode_compaction(CompactionUpdate::new(
            id.to_owned(),
            CompactionStatus::InProgress,
        ))
    }

    /// Encodes the end of a compaction: with a summary, with the reason of a failure, or with nothing done
    /// (COMP-2).
    pub(crate) fn encode_compaction_end(
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

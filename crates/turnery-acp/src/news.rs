//! News: what is to be known beside the conversation. Who takes notices or compaction updates gets
//! those (NOTE-1, COMP-1); for all others it is in `_meta` of an update that changes nothing.

use crate::shown::text_block;
use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, Meta, Notice, NoticeSeverity, SessionInfoUpdate,
    SessionUpdate,
};
use serde_json::{Map, Value, json};
use turnery_engine::{CompactionBlock, ModelFault};
use turnery_tools::visible;

/// Which of the optional updates a client takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Takes {
    pub(crate) notices: bool,
    pub(crate) compaction: bool,
}

/// All of ours in `_meta` lies under one name (EXT-1).
pub(crate) fn meta(members: Value) -> Meta {
    Map::from_iter([("turnery".to_owned(), members)])
}

/// An update that says nothing to a client that does not look into `_meta`.
pub(crate) fn aside(members: Value) -> SessionUpdate {
    SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().meta(meta(members)))
}

/// Why the model is called again, and when.
pub(crate) fn retry(attempt: u32, fault: &ModelFault, wait_ms: u64) -> String {
    format!(
        "Attempt {attempt}: {}. The next one is in {}.{} s.",
        fault.message.trim_end_matches('.'),
        wait_ms / 1000,
        wait_ms % 1000 / 100,
    )
}

/// Title of the notice about a silent model.
pub(crate) const SILENT: &str = "The model is silent";

/// How long the model has sent nothing, and whether its connection is alive.
pub(crate) fn silence(silent_ms: u64, is_connected: bool) -> String {
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

impl Takes {
    /// A sentence for the person, with nothing hidden in it.
    pub(crate) fn notice(
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
        aside(json!({ "notice": notice }))
    }

    /// The model is called again.
    pub(crate) fn retried(self, attempt: u32, fault: &ModelFault, wait_ms: u64) -> SessionUpdate {
        let text = retry(attempt, fault, wait_ms);
        self.notice(NoticeSeverity::Info, "The model is called again", &text)
    }

    /// The model sends nothing; the call goes on.
    pub(crate) fn silent(self, silent_ms: u64, is_connected: bool) -> SessionUpdate {
        let text = silence(silent_ms, is_connected);
        self.notice(NoticeSeverity::Info, SILENT, &text)
    }

    /// History is being summarised.
    pub(crate) fn compacting(self, id: &str) -> SessionUpdate {
        self.compaction(CompactionUpdate::new(
            id.to_owned(),
            CompactionStatus::InProgress,
        ))
    }

    /// That is over: with a summary, with a reason why not, or with nothing done (COMP-2).
    pub(crate) fn compacted(
        self,
        id: &str,
        block: Option<&CompactionBlock>,
        failure: Option<&str>,
    ) -> SessionUpdate {
        let ended = |status| CompactionUpdate::new(id.to_owned(), status);
        self.compaction(match (block, failure) {
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

    fn compaction(self, update: CompactionUpdate) -> SessionUpdate {
        match self.compaction {
            true => SessionUpdate::CompactionUpdate(update),
            false => aside(json!({ "compaction": update })),
        }
    }
}

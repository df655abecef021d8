//! Intent: what a sentence asks for. The rules are tried from the most particular to the most general.

mod acting;
mod asking;
mod reading;

use super::{rules::pattern, target::Place};

/// What a sentence asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Help(Topic),
    Patch(String),
    ErrorCode(String),
    Replace {
        old: String,
        new: String,
        path: Option<String>,
    },
    Run(Job),
    Todo(Option<String>),
    Changes(Ask),
    Repository,
    Outline(String),
    Files(Files),
    Show(Place),
    Lookup {
        word: String,
        aim: Aim,
    },
    Unknown(Vec<String>),
}

/// What sort of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Greeting,
    Skills,
    Connect,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    Tests(Option<String>),
    Build,
    Lint,
    Command(String),
}

/// What of the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Summary,
    CommitMessage,
    Log,
}

/// Which files to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Files {
    In(String),
    Matching(String),
}

/// What to tell of a name first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    Definition,
    Usages,
    Text,
}

impl Intent {
    pub(super) fn of(prompt: &str) -> Self {
        if super::diff::is_diff(prompt) {
            return Self::Patch(prompt.to_owned());
        }
        let text = prompt.trim();
        let text = pattern!(r"(?i)^(hey|hi|hello|ok|okay|please|now|then|and|could you|can you|would you|will you|i want you to|i want to|i would like to|let's|let us|just|,)[,\s]+")
            .replace(text, "");
        let text = pattern!(
            r"(?i)^(please|could you|can you|would you|i want you to|i would like you to)[,\s]+"
        )
        .replace(&text, "");
        let text = pattern!(r"(?i)[,\s]+(please|thanks|thank you)\s*[.!]*\s*$").replace(&text, "");
        let text = text.trim();
        asking::help(prompt.trim())
            .or_else(|| acting::replace(text))
            .or_else(|| acting::error_code(text))
            .or_else(|| acting::changes(text))
            .or_else(|| acting::todo(text))
            .or_else(|| acting::run(text))
            .or_else(|| reading::repository(text))
            .or_else(|| reading::outline(text))
            .or_else(|| reading::files(text))
            .or_else(|| reading::show(text))
            .or_else(|| asking::lookup(text))
            .unwrap_or_else(|| Self::Unknown(asking::code_words(text)))
    }
}

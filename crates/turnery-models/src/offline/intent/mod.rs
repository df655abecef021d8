//! Intent: what a sentence asks for. The rules are tried from the most particular to the most general.

mod acting;
mod asking;
mod reading;

use super::{diff, failures::Report, rules::pattern, run, target::Place};

/// What a sentence asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Help(Topic),
    Patch(String),
    Diff {
        text: String,
        ask: Ask,
    },
    Output(String),
    ErrorCode(String),
    Replace {
        old: String,
        new: String,
        path: Option<String>,
    },
    Run(Job),
    Todo(Option<String>),
    Changes(Ask),
    /// An AGENTS.md.
    Agents,
    Repository,
    Outline(String),
    Files(Files),
    Show(Place),
    Lookup {
        word: String,
        aim: Aim,
    },
    /// The stems of a question's words.
    About(Vec<String>),
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

/// A longer sentence is none, and looking it through word by word would take long. Unit: bytes.
const LONGEST: usize = 16 << 10;

impl Intent {
    pub(super) fn of(prompt: &str) -> Self {
        if diff::is_diff(prompt) {
            return Self::of_diff(prompt);
        }
        let prompt = prompt.trim();
        if prompt.contains('\n')
            && (Report::of(prompt).has_failures() || run::missing(prompt).is_some())
        {
            return Self::Output(prompt.to_owned());
        }
        // What follows a blank line is material and not the sentence.
        let (text, material) = prompt.split_once("\n\n").unwrap_or((prompt, ""));
        if text.len() > LONGEST {
            return Self::Unknown(Vec::new());
        }
        match Self::of_sentence(text) {
            Self::Repository if !material.is_empty() => Self::Unknown(Vec::new()),
            intent => intent,
        }
    }

    /// A diff is applied when it comes alone or with the word for it, and else only told about.
    fn of_diff(prompt: &str) -> Self {
        let text = prompt.to_owned();
        let begins = pattern!(r"(?m)^\s*(diff --git |Index: |--- |```|From [0-9a-f]{40} |index )");
        let before = begins
            .find(prompt)
            .map_or("", |found| prompt[..found.start()].trim());
        let apply =
            pattern!(r"(?i)\b(appl(y|ies)|patch|merge|take|use) ?(this|it|the|that|in|my)?\b");
        let wish = pattern!(r"(?i)\b(review|explain|summar\w+|describe|check|what|why|how|look)\b");
        if before.is_empty() || (apply.is_match(before) && !wish.is_match(before)) {
            return Self::Patch(text);
        }
        let ask = match acting::changes(before) {
            Some(Self::Changes(ask)) => ask,
            Some(_) | None => Ask::Summary,
        };
        Self::Diff { text, ask }
    }

    fn of_sentence(prompt: &str) -> Self {
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
            .or_else(|| acting::agents(text))
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
            .or_else(|| asking::about(text))
            .unwrap_or_else(|| Self::Unknown(asking::code_words(text)))
    }
}

//! Acting: sentences that ask to run or change something, or about changes and notes.

use super::{Ask, Intent, Job};
use crate::offline::{rules::pattern, target};

pub(super) fn agents(text: &str) -> Option<Intent> {
    let form = pattern!(r"(?i)^(write|create|make|generate|draft)\b.{0,30}\bAGENTS\.md\b");
    form.is_match(text).then_some(Intent::Agents)
}

pub(super) fn replace(text: &str) -> Option<Intent> {
    let form = pattern!(
        r#"(?is)^(?:search\s+(?:for\s+)?(?:and\s+)?|find\s+and\s+)?(replace|rename|substitute|change)\s+(?:all\s+|every\s+|each\s+)?(?:occurrences?\s+of\s+|uses?\s+of\s+|the\s+(?:word|text|name|string|function|type|struct|class|variable|method)\s+|(?:function|type|struct|class|variable|method)\s+)?(`[^`]+`|"[^"]+"|'[^']+'|\S+)\s+(?:with|by|to|into|=>|->|→)\s+(`[^`]*`|"[^"]*"|'[^']*'|\S+)(?:\s+((?:in|inside|under|within|across|throughout|everywhere)\b.*))?\s*$"#
    );
    let parts = form.captures(text)?;
    let old = literal(&parts[2]);
    let new = literal(&parts[3]);
    let verb = parts[1].to_lowercase();
    if old.is_empty()
        || old == new
        || (verb == "change" && !parts[2].starts_with(['`', '"', '\'']) && !target::is_code(&old))
    {
        return None;
    }
    let path = parts
        .get(4)
        .and_then(|rest| target::place(rest.as_str()))
        .map(str::to_owned);
    Some(Intent::Replace { old, new, path })
}

/// A word without its quotes; a bare word also loses the full stop of its sentence.
pub(super) fn literal(word: &str) -> String {
    for quote in ['`', '"', '\''] {
        if let Some(inner) = word
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
        {
            return inner.to_owned();
        }
    }
    word.strip_suffix(['.', ',', '?'])
        .unwrap_or(word)
        .to_owned()
}

pub(super) fn error_code(text: &str) -> Option<Intent> {
    let found = pattern!(r"(?i)\b(E\d{4})\b").captures(text)?;
    Some(Intent::ErrorCode(found[1].to_uppercase()))
}

pub(super) fn changes(text: &str) -> Option<Intent> {
    let message = pattern!(r"(?i)\bcommit message\b|\b(message|text) for (the|my|this|a) commit\b");
    let log = pattern!(
        r"(?i)^(show (me )?)?(the )?(git )?(log|history)[\s.?]*$|\b(recent|last|latest)( \d+)? commits?\b|^git log\b"
    );
    let summary = pattern!(
        r"(?i)\bwhat('s| has| have| is| did)?\b.{0,12}\bchange[ds]?\b|\b(summar\w+|show|list|describe|explain|review|see)\b.{0,24}\b(changes|diff|uncommitted|modifications|edits)\b|^(git )?(status|diff)\b|\buncommitted\b|^((my|the|git|current|local|recent) )*changes[\s?.]*$|\bwhat did i (change|do|edit)\b"
    );
    if message.is_match(text) {
        Some(Intent::Changes(Ask::CommitMessage))
    } else if log.is_match(text) {
        Some(Intent::Changes(Ask::Log))
    } else if summary.is_match(text) {
        Some(Intent::Changes(Ask::Summary))
    } else {
        None
    }
}

pub(super) fn todo(text: &str) -> Option<Intent> {
    let form = pattern!(
        r"\b(?i:todos?|to-dos?|fixmes?)\b|\b(XXX|HACKs?|hacks)\b|(?i)\bopen (tasks|points) in the code\b"
    );
    let verb = pattern!(
        r"(?i)\b(list|show|find|search|any|all|what|which|where|open|count|how many|remaining)\b|^\W*(the\s+)?(todos?|fixmes?)\b"
    );
    (form.is_match(text) && verb.is_match(text))
        .then(|| Intent::Todo(target::place(text).map(str::to_owned)))
}

pub(super) fn run(text: &str) -> Option<Intent> {
    let verb = pattern!(r"(?i)^(run|execute|start|do|launch|rerun|re-run|try)\b");
    if let (true, Some(command)) = (verb.is_match(text), target::quoted(text))
        && command.contains(' ')
    {
        return Some(Intent::Run(Job::Command(command.to_owned())));
    }
    let tests = pattern!(
        r"(?i)\b(run|rerun|re-run|execute|start|do|try|check)\b.{0,30}\b(tests?|test suite|specs)\b|\btests?\b.{0,24}\b(fail|failing|failed|fails|pass|passing|green|red|broken|ok|work|run)\b|\bfail(ing|ed)?\b.{0,8}\btests?\b|^(cargo |npm |go |make )?tests?[\s.!?]*$|^(py|c)test\b|^test (it|this|everything|the (project|code|repo\w*))\b"
    );
    let lint = pattern!(r"(?i)\b(lint|linter|linters|clippy|eslint|ruff|vet)\b");
    let build = pattern!(
        r"(?i)^(run |do |start |try |make )?(the |a )?(cargo |npm run )?(build|compile|check|rebuild)\b.{0,40}$|\b(does|will|do|can)\b.{0,24}\b(build|compile)s?\b|\b(compiler?|build) (errors?|warnings?|failures?|broken)\b|\b(fix|show|list).{0,10}compil\w+ errors?\b"
    );
    let command = pattern!(
        r"(?i)^(?:run|execute)\s+((?:git|ls|cargo|npm|npx|make|cmake|python3?|node|go|pytest|\./\S+)(?:\s.*)?)$"
    );
    let how = pattern!(r"(?i)^(where|how|what is|who|explain|find|search)\b");
    if how.is_match(text) {
        None
    } else if lint.is_match(text) {
        Some(Intent::Run(Job::Lint))
    } else if tests.is_match(text) {
        let filter = target::quoted(text).or_else(|| {
            text.split_whitespace()
                .map(target::bare)
                .find(|word| target::is_code(word))
        });
        let safe = filter.filter(|word| pattern!(r"^[\w:.\-]+$").is_match(word));
        Some(Intent::Run(Job::Tests(safe.map(str::to_owned))))
    } else if build.is_match(text) && target::path(text).is_none() {
        Some(Intent::Run(Job::Build))
    } else {
        let parts = command.captures(text)?;
        Some(Intent::Run(Job::Command(parts[1].to_owned())))
    }
}

//! Reading: sentences that ask for files, folders and the whole of a repository.

use super::{Files, Intent};
use crate::offline::{
    rules::pattern,
    target::{self, Place},
};

pub(super) fn repository(text: &str) -> Option<Intent> {
    let explain = pattern!(
        r"(?i)\b(explain|describe|summar\w+|overview|tour|understand|introduce|introduction|walk me through|tell me about|learn about|get to know|architecture)\b.{0,30}\b(repo|repository|project|code ?base|workspace|program|crate|package|code|app|application)\b|^(explain|describe|summari[sz]e) (this|the|my) (folder|directory)[\s.!?]*$"
    );
    let what = pattern!(
        r"(?i)^what('s| is| does| are)?\b.{0,12}\b(this|the)( whole)? (repo|repository|project|code ?base|workspace|program|crate|code|app|application)\b|^(explain|describe) (this|it|everything)[\s.!?]*$|^(give me )?(an |a |the )?(overview|tour|summary)[\s.!?]*$|^where do i (start|begin)\b|^what is (this|here)[\s.?]*$|^how (is|are) .{0,20}(repo|repository|project|code ?base|code) (organi[sz]ed|structured|laid out)|^how do i (build|run|test) (this|it|the (project|tests?))"
    );
    (target::quoted(text).is_none()
        && target::path(text).is_none_or(|path| matches!(path, "." | "./"))
        && (explain.is_match(text) || what.is_match(text)))
    .then_some(Intent::Repository)
}

pub(super) fn outline(text: &str) -> Option<Intent> {
    let verb = pattern!(
        r"(?i)\b(outline|structure|skeleton|table of contents|toc)\b|\b(list|show|what|which|all)\b.{0,20}\b(functions?|types?|symbols?|classes|structs?|methods?|headings?|definitions?|items)\b.{0,12}\b(in|of|from|inside|are in)\b|\bwhat('s| is) in(side)?\b|^(explain|describe|summari[sz]e|walk me through|understand)\b|^what does\b.*\bdo\b|^how does\b.*\bwork\b"
    );
    if !verb.is_match(text) {
        return None;
    }
    let path =
        target::path(text).or_else(|| target::quoted(text).filter(|inner| target::is_path(inner)));
    let path = path.or_else(|| {
        pattern!(
            r"(?i)^outline$|^outline (this|the) (repo\w*|project|code|folder)|^outline everything"
        )
        .is_match(text)
        .then_some(".")
    });
    let path = path.or_else(|| {
        pattern!(r"(?i)^outline\b|\b(functions?|types?|symbols?|classes|structs?|methods?|headings?)\b.{0,12}\b(in|of)\b")
            .is_match(text)
            .then(|| target::place(text))?
            .filter(|word| !word.starts_with(char::is_uppercase) && !target::is_code(word))
    });
    path.map(|path| Intent::Outline(Place::read(path).path))
}

pub(super) fn files(text: &str) -> Option<Intent> {
    let glob = pattern!(r"(?i)\b(find|list|show|which|all|any|where)\b.*?(\S*[*?]\S*\.?\w*)")
        .captures(text);
    if let Some(parts) = glob {
        let word = target::bare(&parts[2]);
        if word.contains('*') {
            return Some(Intent::Files(Files::Matching(word.to_owned())));
        }
    }
    let language = pattern!(r"(?i)\b(?:list|show|find|all|which)\b.{0,16}\b(rust|python|javascript|typescript|go|markdown|toml|json|yaml|c|c\+\+|java)\s+files\b").captures(text);
    if let Some(parts) = language {
        let ending = match parts[1].to_lowercase().as_str() {
            "rust" => "rs",
            "python" => "py",
            "javascript" => "js",
            "typescript" => "ts",
            "markdown" => "md",
            "yaml" => "{yml,yaml}",
            "c++" => "{cc,cpp,cxx,hpp}",
            "go" => "go",
            "toml" => "toml",
            "json" => "json",
            "java" => "java",
            _ => "{c,h}",
        };
        return Some(Intent::Files(Files::Matching(format!("**/*.{ending}"))));
    }
    let named = pattern!(r"(?i)^(find|locate|where is|where's|search for)\b.{0,12}\b(file|the file)?\s*[`']?([\w.\-]+\.\w{1,5})[`'?]*\s*$").captures(text);
    if let Some(parts) = named
        && target::is_path(&parts[3])
    {
        return Some(Intent::Files(Files::Matching(format!("**/{}", &parts[3]))));
    }
    let list = pattern!(
        r"(?i)^(list|show|what|which|print|see)\b.{0,16}\b(files|folders|directory|directories|folder|tree|dir)\b|^(ls|tree|dir)\b|^files[\s.?]*$|^list\s+\S+/?\s*$"
    );
    list.is_match(text)
        .then(|| Intent::Files(Files::In(target::place(text).unwrap_or(".").to_owned())))
}

pub(super) fn show(text: &str) -> Option<Intent> {
    let verb = pattern!(
        r"(?i)^(show|cat|open|print|view|read|display|see|look at|head|less|type|let me see)\b(?: me)?(?: the)?(?: file)?"
    );
    let lines = pattern!(r"(?i)\blines?\s+(\d+)(?:\s*(?:-|to|–|\.\.|and)\s*(\d+))?").captures(text);
    let path = target::path(text)?;
    let alone = target::bare(text) == path;
    if !verb.is_match(text) && !alone && lines.is_none() {
        return None;
    }
    let mut place = Place::read(path);
    if let Some(parts) = lines {
        place.from = parts[1].parse().ok();
        place.to = parts.get(2).and_then(|to| to.as_str().parse().ok());
    }
    if place.path.ends_with('/') || matches!(place.path.as_str(), "." | "..") {
        return Some(Intent::Files(Files::In(place.path)));
    }
    Some(Intent::Show(place))
}

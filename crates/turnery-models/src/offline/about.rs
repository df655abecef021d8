//! About: a question in plain words, answered with the lines that speak of several of them.

use super::{
    code,
    output::{Hit, by_path, list, short},
    replay::{Halt, Replay},
    rules::pattern,
};
use serde_json::json;

const MOST_HITS: usize = 200;
const MOST_SHOWN: usize = 14;

/// The stems of the words that a question is about: no words of the question itself, and without the
/// endings that English gives them. At least two, or nothing is told apart.
pub(super) fn stems(text: &str, is_noise: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let mut stems: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_alphabetic()) {
        let word = word.to_lowercase();
        if word.len() < 3 || is_noise(&word) {
            continue;
        }
        let stem = stem(&word).to_owned();
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems.sort_by_key(|stem| std::cmp::Reverse(stem.len()));
    stems.truncate(4);
    (stems.len() > 1).then_some(stems)
}

fn stem(word: &str) -> &str {
    let endings = ["ations", "ation", "ing", "ies", "ed", "es", "s", "e", "y"];
    endings
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|rest| rest.len() > 3))
        .unwrap_or(word)
}

pub(super) fn about(stems: &[String], replay: &mut Replay<'_>) -> Result<(), Halt> {
    let found = replay.must(
        "search",
        json!({"pattern": in_pairs(stems), "ignore_case": true, "max_results": MOST_HITS}),
    )?;
    let mut found: Vec<(usize, Hit)> = super::output::hits(&found)
        .into_iter()
        .map(|hit| (weight(&hit, stems), hit))
        .collect();
    let words: Vec<String> = stems.iter().map(|stem| format!("`{stem}…`")).collect();
    let words = words.join(", ");
    if found.is_empty() {
        replay.say(format!(
            "I found no line that speaks of two of {words}. Files that git ignores are not searched.\n"
        ));
        return Ok(());
    }
    // The best line brings its file with it.
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let left = found.len().saturating_sub(MOST_SHOWN);
    let best: Vec<Hit> = found
        .into_iter()
        .take(MOST_SHOWN)
        .map(|(_, hit)| hit)
        .collect();
    replay.say(format!("Lines that speak of {words}, the closest first:\n"));
    for (path, members) in by_path(&best) {
        let lines: Vec<String> = members
            .iter()
            .map(|hit| format!("{}: {}", hit.line, short(&hit.text, 110)))
            .collect();
        replay.say(format!("\n{path}\n{}", list(&lines, MOST_SHOWN)));
    }
    if left > 0 {
        replay.say(format!("\n… and {left} more that are less close.\n"));
    }
    replay.say(
        "\nI searched for the words of your question; to understand what the lines say needs a model, \
         and none is connected.\n",
    );
    Ok(())
}

/// Lines with at least two of the words, in any order.
fn in_pairs(stems: &[String]) -> String {
    let mut pairs = Vec::new();
    for one in stems {
        for other in stems.iter().filter(|other| *other != one) {
            pairs.push(format!(r"\b{one}.*\b{other}"));
        }
    }
    pairs.join("|")
}

fn weight(hit: &Hit, stems: &[String]) -> usize {
    let text = hit.text.to_lowercase();
    let path = hit.path.to_lowercase();
    let count = |place: &str| stems.iter().filter(|stem| place.contains(*stem)).count();
    let defines =
        pattern!(r"^\s*(pub(\([^)]*\))?\s+)?(fn|struct|enum|trait|def|class|func|function)\s");
    10 * count(&text)
        + 2 * count(&path)
        + 3 * usize::from(defines.is_match(&hit.text))
        + 2 * usize::from(code::is_comment(&hit.text) || path.ends_with(".md"))
        + 6 * usize::from(!code::is_test(&hit.path))
}

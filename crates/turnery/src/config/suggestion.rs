//! Suggests the valid word that was most likely meant.

/// Returns a text that lists all valid words; if one is near, it comes first, in quotes.
pub(crate) fn alternatives(wrong: &str, all: &[&str]) -> String {
    match nearest(wrong, all) {
        Some(near) => {
            let others: Vec<&str> = all.iter().copied().filter(|name| *name != near).collect();
            match others.is_empty() {
                true => format!("{near:?}"),
                false => format!("{near:?} (or {})", others.join(", ")),
            }
        }
        None => match all {
            [] => "nothing".to_owned(),
            [only] => (*only).to_owned(),
            [most @ .., last] => format!("{} or {last}", most.join(", ")),
        },
    }
}

/// Returns the word that was most likely meant.
fn nearest<'a>(wrong: &str, all: &[&'a str]) -> Option<&'a str> {
    all.iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), *name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

//! Suggests known names for a misspelt one.

/// Minimum similarity of suggested names, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.8;
/// Maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 3;

/// Returns an error message for an unknown name, with similar names as suggestions.
pub fn unknown_name_message<'a>(
    name: &str,
    kind: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let small = name.to_lowercase();
    let mut near: Vec<(f64, &str)> = known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&small, &known.to_lowercase()), known))
        .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    near.truncate(MAX_SUGGESTIONS);
    let near: Vec<&str> = near.into_iter().map(|(_, known)| known).collect();
    if near.is_empty() {
        format!("{name:?} is no {kind}")
    } else {
        format!("{name:?} is no {kind}; there is {}", near.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let known = ["late_update", "late_answer", "banner", "no_end"];
        assert_eq!(
            unknown_name_message("late_updat", "fault", known),
            "\"late_updat\" is no fault; there is late_update, late_answer"
        );
        assert_eq!(
            unknown_name_message("BANER", "fault", known),
            "\"BANER\" is no fault; there is banner"
        );
        assert_eq!(
            unknown_name_message("xyz", "fault", known),
            "\"xyz\" is no fault"
        );
    }
}

//! Near: which names a misspelt one may mean.

/// So alike are names that may be meant. From 0 to 1.
const ALIKE: f64 = 0.8;
/// More are no help.
const MOST: usize = 3;

/// Says that nothing of this kind has this name, and what was meant perhaps.
pub fn unknown<'a>(name: &str, kind: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let small = name.to_lowercase();
    let mut near: Vec<(f64, &str)> = known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&small, &known.to_lowercase()), known))
        .filter(|(alike, _)| *alike >= ALIKE)
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    near.truncate(MOST);
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
    fn what_is_meant_is_named() {
        let known = ["late_update", "late_answer", "banner", "no_end"];
        assert_eq!(
            unknown("late_updat", "fault", known),
            "\"late_updat\" is no fault; there is late_update, late_answer"
        );
        assert_eq!(
            unknown("BANER", "fault", known),
            "\"BANER\" is no fault; there is banner"
        );
        assert_eq!(unknown("xyz", "fault", known), "\"xyz\" is no fault");
    }
}

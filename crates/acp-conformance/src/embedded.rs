//! Embeds the built-in cases.

use crate::case::{Case, CaseError};

/// Name and text of each case.
const CASES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Returns the names of the built-in cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

/// Returns the text of the built-in case of this name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    let mut cases = CASES.iter();
    cases.find_map(|(known, text)| (*known == name).then_some(*text))
}

/// Parses the built-in cases.
///
/// # Errors
/// If a case is malformed, which a test rules out.
pub fn cases() -> Result<Vec<Case>, CaseError> {
    CASES
        .iter()
        .map(|(name, text)| Case::parse(name, text))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirements::Requirements;

    #[test]
    fn every_case_is_parsed_and_cites_known_rules() {
        let requirements = Requirements::built_in().unwrap();
        let cases = cases().unwrap();
        assert!(!cases.is_empty());
        for case in &cases {
            for rule in case.cited_rules() {
                assert!(requirements.rule(rule).is_some(), "{}: {rule}", case.name);
            }
        }
    }
}

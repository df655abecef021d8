//! Embedded: the cases that come along.

use crate::{Case, CaseError};

/// Name and text of each.
const CASES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

/// The text of one of them.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    let mut cases = CASES.iter();
    cases.find_map(|(known, text)| (*known == name).then_some(*text))
}

/// Read the cases that come along.
///
/// # Errors
/// One of them is broken, which a test rules out.
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
    fn every_case_is_read_and_cites_rules_that_there_are() {
        let requirements = Requirements::known().unwrap();
        let cases = cases().unwrap();
        assert!(!cases.is_empty());
        for case in &cases {
            for rule in case.rules() {
                assert!(requirements.rule(rule).is_some(), "{}: {rule}", case.name);
            }
        }
    }
}

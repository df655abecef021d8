//! Judges requests by the rules of their format.

use crate::{
    anthropic, chat, gemini,
    request::{ApiFormat, ApiRequest},
    responses,
    rule::{Rule, Violation},
};

/// Returns the rules of a format.
#[must_use]
pub fn rules(format: ApiFormat) -> &'static [Rule] {
    match format {
        ApiFormat::Anthropic => anthropic::RULES,
        ApiFormat::Chat => chat::RULES,
        ApiFormat::Responses => responses::RULES,
        ApiFormat::Gemini => gemini::RULES,
    }
}

/// Returns all violations of a request, in the order of the rules.
#[must_use]
pub fn violations(request: &ApiRequest<'_>) -> Vec<Violation> {
    let rules = rules(request.format).iter();
    rules.filter_map(|rule| rule.violation(request)).collect()
}

/// Judges a request.
///
/// # Errors
/// Returns the first violation.
pub fn judge(request: &ApiRequest<'_>) -> Result<(), Violation> {
    let mut rules = rules(request.format).iter();
    match rules.find_map(|rule| rule.violation(request)) {
        Some(violation) => Err(violation),
        None => Ok(()),
    }
}

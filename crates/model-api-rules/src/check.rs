//! Defines the result of a rule.

/// Result of a rule: what is wrong and where.
pub(crate) type Check = Result<(), String>;

/// Fails with a message unless a condition holds.
pub(crate) fn require(holds: bool, message: impl FnOnce() -> String) -> Check {
    match holds {
        true => Ok(()),
        false => Err(message()),
    }
}

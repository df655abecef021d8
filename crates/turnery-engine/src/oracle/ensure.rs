//! Turns a failed check into a complaint.

/// Returns the complaint as an error unless the condition holds.
pub(crate) fn ensure(holds: bool, complaint: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(complaint()) }
}

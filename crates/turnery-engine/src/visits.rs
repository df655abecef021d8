//! Counts accesses to tool calls, for the tests that bound the work of many calls.

#[cfg(test)]
thread_local! {
    static VISITS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts one access to a call.
pub(crate) fn count_visit() {
    #[cfg(test)]
    VISITS.with(|visits| visits.set(visits.get() + 1));
}

/// Returns the number of accesses on this thread so far.
#[cfg(test)]
pub(crate) fn visit_count() -> u64 {
    VISITS.with(std::cell::Cell::get)
}

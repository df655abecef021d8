//! Looks up environment variables.

/// Looks up an environment variable. Passed as a parameter, so that tests need not change the process environment.
pub(crate) type EnvLookup<'a> = &'a (dyn Fn(&str) -> Option<String> + Send + Sync);

/// Returns a variable of this process; an empty one counts as not set.
pub(crate) fn process_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

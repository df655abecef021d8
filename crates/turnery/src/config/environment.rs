//! Reads settings from environment variables.

use super::{
    Choice,
    layer::{count, mode, model, thinking},
};

/// Looks up an environment variable. Passed as a parameter, so that tests need not change the process environment.
pub(crate) type EnvLookup<'a> = &'a (dyn Fn(&str) -> Option<String> + Send + Sync);

/// Returns a variable of this process; an empty one counts as not set.
pub(crate) fn process_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the settings that the environment variables contain.
pub(crate) fn read_layer(lookup: EnvLookup<'_>) -> Result<Choice, String> {
    fn read<T>(
        lookup: EnvLookup<'_>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        lookup(name)
            .map(|value| parse(&value).map_err(|error| format!("{name}: {error}")))
            .transpose()
    }
    Ok(Choice {
        model: read(lookup, "TURNERY_MODEL", model)?,
        mode: read(lookup, "TURNERY_MODE", mode)?,
        thinking: read(lookup, "TURNERY_THINKING", thinking)?,
        turns: read(lookup, "TURNERY_MAX_TURNS", count)?,
        ..Choice::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_value_error_names_variable() {
        let lookup = |name: &str| (name == "TURNERY_MODE").then(|| "free".to_owned());
        assert_eq!(
            read_layer(&lookup),
            Err("TURNERY_MODE: \"free\" is no mode; write ask, edit, plan or auto".to_owned())
        );
        let lookup = |name: &str| (name == "TURNERY_MAX_TURNS").then(|| "0".to_owned());
        assert_eq!(
            read_layer(&lookup),
            Err("TURNERY_MAX_TURNS: \"0\" is no whole number from 1 on".to_owned())
        );
    }
}

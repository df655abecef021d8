//! Environment: the variables that turnery looks at.

use super::{
    Choice,
    choice::{count, mode, model, thinking},
};

/// Looks up a variable. A parameter, so that tests need not touch the process's own.
pub(crate) type Lookup<'a> = &'a (dyn Fn(&str) -> Option<String> + Send + Sync);

/// The process's own variables; an empty one counts as not set.
pub(crate) fn process(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What the environment asks for.
pub(crate) fn choice(lookup: Lookup<'_>) -> Result<Choice, String> {
    fn read<T>(
        lookup: Lookup<'_>,
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
    fn a_bad_value_names_its_variable() {
        let lookup = |name: &str| (name == "TURNERY_MODE").then(|| "free".to_owned());
        assert_eq!(
            choice(&lookup),
            Err("TURNERY_MODE: \"free\" is no mode; write ask, edit, plan or auto".to_owned())
        );
        let lookup = |name: &str| (name == "TURNERY_MAX_TURNS").then(|| "0".to_owned());
        assert_eq!(
            choice(&lookup),
            Err("TURNERY_MAX_TURNS: \"0\" is no whole number from 1 on".to_owned())
        );
    }
}

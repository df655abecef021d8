//! Checks names of tools.

use crate::{
    check::{Check, require},
    json::{is_word, require_form},
};
use std::collections::HashSet;

/// Requires different words of up to `longest` characters. `names` come with their places.
pub(crate) fn require_tool_names<'a>(
    names: impl Iterator<Item = (String, &'a str)>,
    longest: usize,
) -> Check {
    let mut seen = HashSet::new();
    for (at, name) in names {
        require_form(&at, name, 1..=longest, is_word)?;
        require(seen.insert(name), || format!("{at}: used twice: {name}"))?;
    }
    Ok(())
}

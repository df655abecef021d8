//! Compiles globs from models, projects and command lines.

use globset::{ErrorKind, GlobBuilder, GlobMatcher};
use std::fmt;

/// Maximum length of a glob. `globset` panics on one whose regular expression is too large. Unit: bytes.
const MAX_BYTES: usize = 4096;
/// Maximum number of opening braces. `globset` recurses for each level, and panics on too many.
const MAX_BRACES: usize = 100;

/// Reason why a glob is rejected.
#[derive(Debug)]
pub(crate) enum GlobError {
    /// The glob is too long, or has too many braces.
    TooLarge,
    /// The glob is malformed.
    Malformed(ErrorKind),
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(
                f,
                "it is longer than {MAX_BYTES} bytes, or has more than {MAX_BRACES} braces"
            ),
            Self::Malformed(kind) => kind.fmt(f),
        }
    }
}

/// Compiles a glob with the options that `configure` sets.
pub(crate) fn compile_glob(
    glob: &str,
    configure: impl FnOnce(&mut GlobBuilder<'_>),
) -> Result<GlobMatcher, GlobError> {
    if glob.len() > MAX_BYTES || glob.matches('{').count() > MAX_BRACES {
        return Err(GlobError::TooLarge);
    }
    let mut builder = GlobBuilder::new(glob);
    configure(&mut builder);
    let glob = builder.build();
    let glob = glob.map_err(|error| GlobError::Malformed(error.kind().clone()))?;
    Ok(glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest globs compile.
    #[test]
    fn size_of_glob_is_limited() {
        let compiles = |glob: &str| {
            let result = compile_glob(glob, |builder| {
                builder.literal_separator(true).case_insensitive(true);
            });
            !matches!(result, Err(GlobError::TooLarge))
        };
        for part in ["é", "?", "*", "**/", "[!a]", "{a,b}", "(", "[a-z]"] {
            let count = (MAX_BYTES / part.len()).min(match part.contains('{') {
                true => MAX_BRACES,
                false => MAX_BYTES,
            });
            assert!(compiles(&part.repeat(count)), "{part}");
            assert!(!compiles(&part.repeat(MAX_BYTES + 1)), "{part}");
        }
        let nested = |depth| ["{a,".repeat(depth), "}".repeat(depth)].concat();
        assert!(compiles(&nested(MAX_BRACES)));
        assert!(!compiles(&nested(MAX_BRACES + 1)));
    }
}

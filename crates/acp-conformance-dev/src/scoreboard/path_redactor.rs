//! Removes paths of this machine from texts.

use acp_conformance::scratch;
use regex::{NoExpand, Regex};
use std::{borrow::Cow, path::Path};

/// Replaces folders of this machine by placeholders.
#[derive(Debug)]
pub struct PathRedactor {
    /// Patterns and placeholders: the folder of installed agents, and the folders of cases.
    replacements: [(Regex, &'static str); 2],
}

impl PathRedactor {
    /// Creates a redactor. `scratch` is the folder of installed agents.
    ///
    /// # Errors
    /// If a folder's name is too long for a pattern.
    pub fn new(install_root: &Path) -> Result<Self, regex::Error> {
        let written = |path: &Path| regex::escape(&path.display().to_string());
        let cases = std::env::temp_dir().join(scratch::FOLDER_PREFIX);
        let cases = format!(r"{}\w+(/\w+)?", written(&cases));
        Ok(Self {
            replacements: [
                (Regex::new(&written(install_root))?, "$SCRATCH"),
                (Regex::new(&cases)?, "$TOP"),
            ],
        })
    }

    /// Returns the text with placeholders for the folders.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for (place, name) in &self.replacements {
            text = place.replace_all(&text, NoExpand(name)).into_owned().into();
        }
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_paths_become_scratch_and_top() {
        let places = PathRedactor::new(Path::new("/home/me/a+b")).unwrap();
        let cases = std::env::temp_dir().join("acp-cases-x1Y");
        let text = format!(
            "/home/me/a+b/opencode/x in {0}/Ab9/project and {0}",
            cases.display()
        );
        assert_eq!(
            places.redact(&text),
            "$SCRATCH/opencode/x in $TOP/project and $TOP"
        );
        assert_eq!(places.redact("/home/me/aab"), "/home/me/aab");
    }
}

//! Places: where things lie on this machine, which is nobody's affair.

use crate::scratch;
use regex::{NoExpand, Regex};
use std::{borrow::Cow, path::Path};

/// The folders that are not shown as they are called here.
#[derive(Debug)]
pub struct Places {
    /// Each with the name that is shown: what agents are installed in, and the folders of cases.
    names: [(Regex, &'static str); 2],
}

impl Places {
    /// `scratch`: the folder that agents are installed into.
    ///
    /// # Errors
    /// A folder's name is too long for a pattern.
    pub fn new(scratch: &Path) -> Result<Self, regex::Error> {
        let written = |path: &Path| regex::escape(&path.display().to_string());
        let cases = std::env::temp_dir().join(scratch::NAMES);
        let cases = format!(r"{}\w+(/\w+)?", written(&cases));
        Ok(Self {
            names: [
                (Regex::new(&written(scratch))?, "$SCRATCH"),
                (Regex::new(&cases)?, "$TOP"),
            ],
        })
    }

    /// The text without them.
    #[must_use]
    pub fn hidden(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for (place, name) in &self.names {
            text = place.replace_all(&text, NoExpand(name)).into_owned().into();
        }
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_have_the_names_that_cases_and_profiles_give_them() {
        let places = Places::new(Path::new("/home/me/a+b")).unwrap();
        let cases = std::env::temp_dir().join("acp-cases-x1Y");
        let text = format!(
            "/home/me/a+b/opencode/x in {0}/Ab9/project and {0}",
            cases.display()
        );
        assert_eq!(
            places.hidden(&text),
            "$SCRATCH/opencode/x in $TOP/project and $TOP"
        );
        assert_eq!(places.hidden("/home/me/aab"), "/home/me/aab");
    }
}

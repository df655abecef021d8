//! Title: a command as it is shown to the person who is asked about it.

use crate::visible::{visible, visible_line};
use std::path::Path;
use turnery_engine::{Artifact, Content};

/// What the title does not say: lines, and the folder, if it is another than the session's.
pub(super) fn whole(command: &str, folder: Option<&Path>) -> Vec<Artifact> {
    if visible_line(command.trim()) == command && folder.is_none() {
        return Vec::new();
    }
    let text = visible(command);
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    let place = folder.map(|folder| {
        let folder = folder.display().to_string();
        format!("In {}:\n", visible_line(&folder))
    });
    let place = place.unwrap_or_default();
    vec![Artifact::Content(Content::text(format!(
        "{place}{fence}sh\n{text}\n{fence}"
    )))]
}

/// The model's reason for running outside the sandbox, marked as such.
pub(super) fn reason(reason: &str) -> Artifact {
    Artifact::Content(Content::text(format!(
        "Asked to run outside the sandbox, because: {}",
        visible(reason.trim())
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_says_it_all() {
        assert_eq!(whole("cargo test", None), []);
    }

    #[test]
    fn nothing_is_hidden_from_whoever_is_asked() {
        let long = "a".repeat(5000);
        let command = format!("echo {long}\nrm \u{202e}x ```");
        let text = format!("````sh\necho {long}\nrm ⟨U+202E⟩x ```\n````");
        assert_eq!(
            whole(&command, None),
            [Artifact::Content(Content::text(text))]
        );
    }

    #[test]
    fn another_folder_is_shown() {
        let text = "In /w/inner:\n```sh\nls\n```";
        assert_eq!(
            whole("ls", Some(Path::new("/w/inner"))),
            [Artifact::Content(Content::text(text))]
        );
    }
}

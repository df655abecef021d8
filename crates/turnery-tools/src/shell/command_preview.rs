//! Shows a command to the user who is asked for permission.

use crate::invisible_chars::{escape_invisible, escape_invisible_line};
use std::path::Path;
use turnery_engine::{Artifact, Content};

/// Returns the complete command as a code block, after `folder` if there is one; empty if the call's title
/// already shows the same.
pub(crate) fn render_command(command: &str, folder: Option<&Path>) -> Vec<Artifact> {
    if escape_invisible_line(command.trim()) == command && folder.is_none() {
        return Vec::new();
    }
    let text = escape_invisible(command);
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    let place = folder.map(|folder| {
        let folder = folder.display().to_string();
        format!("In {}:\n", escape_invisible_line(&folder))
    });
    let place = place.unwrap_or_default();
    vec![Artifact::Content(Content::text(format!(
        "{place}{fence}sh\n{text}\n{fence}"
    )))]
}

/// Returns the model's reason for running outside the sandbox, marked as the model's.
pub(crate) fn reason(reason: &str) -> Artifact {
    Artifact::Content(Content::text(format!(
        "Asked to run outside the sandbox, because: {}",
        escape_invisible(reason.trim())
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_command_needs_no_artifact() {
        assert_eq!(render_command("cargo test", None), []);
    }

    #[test]
    fn full_command_is_shown_with_escapes() {
        let long = "a".repeat(5000);
        let command = format!("echo {long}\nrm \u{202e}x ```");
        let text = format!("````sh\necho {long}\nrm ⟨U+202E⟩x ```\n````");
        assert_eq!(
            render_command(&command, None),
            [Artifact::Content(Content::text(text))]
        );
    }

    #[test]
    fn different_cwd_is_shown() {
        let text = "In /w/inner:\n```sh\nls\n```";
        assert_eq!(
            render_command("ls", Some(Path::new("/w/inner"))),
            [Artifact::Content(Content::text(text))]
        );
    }
}

//! Title: a command line as it is shown to whoever is asked about it: on one line, and if that
//! does not say all, also whole. Characters that would hide something are spelled out.

use crate::policy::is_hidden;
use turnery_engine::{Artifact, Content};

/// In characters.
const LONGEST: usize = 100;

/// The command on one line, shortened.
pub(super) fn title(command: &str) -> String {
    let line = spelled_out(command.trim(), |c| c == '\n');
    let line = line.replace('\n', " ");
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some((end, _)) => format!("{}\u{2026}", &line[..end]),
    }
}

/// The whole command, when the title does not say it all.
pub(super) fn whole(command: &str) -> Vec<Artifact> {
    if title(command) == command {
        return Vec::new();
    }
    let text = spelled_out(command, |c| c == '\n');
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    vec![Artifact::Content(Content::text(format!(
        "{fence}sh\n{text}\n{fence}"
    )))]
}

/// The model's reason for running outside the sandbox, marked as such.
pub(super) fn reason(reason: &str) -> Artifact {
    let text = spelled_out(reason.trim(), |_| false);
    Artifact::Content(Content::text(format!(
        "Asked to run outside the sandbox, because: {text}"
    )))
}

fn spelled_out(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) && !keep(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_says_it_all() {
        assert_eq!(title("cargo test"), "cargo test");
        assert_eq!(whole("cargo test"), []);
    }

    #[test]
    fn nothing_is_hidden_from_whoever_is_asked() {
        let command = format!("echo {}\nrm \u{202e}x ```", "a".repeat(200));
        assert_eq!(title(&command), format!("echo {}\u{2026}", "a".repeat(95)));
        let text = format!(
            "````sh\necho {}\nrm \\u{{202e}}x ```\n````",
            "a".repeat(200)
        );
        assert_eq!(whole(&command), [Artifact::Content(Content::text(text))]);
        assert_eq!(title("ls\nrm x"), "ls rm x");
    }
}

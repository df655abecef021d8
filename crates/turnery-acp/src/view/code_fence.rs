//! Wraps text in Markdown fences.

/// Returns a Markdown fence that the text does not contain.
pub(crate) fn code_fence(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(3.max(longest + 1))
}

/// Wraps the output of a command in a Markdown fence.
pub(crate) fn fence_output(text: &str) -> String {
    let fence = code_fence(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}console\n{text}{end}{fence}")
}

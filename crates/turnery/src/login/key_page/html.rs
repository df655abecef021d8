//! Renders the key page. The page loads no resources and runs no scripts.

use std::fmt::Write as _;

/// Contents of the form.
pub(super) struct KeyForm<'a> {
    pub(super) provider: &'a str,
    /// Address that the key is sent to.
    pub(super) address: &'a str,
    /// True if the address is reached without encryption.
    pub(super) is_unencrypted: bool,
    /// File that the key is stored in.
    pub(super) file: &'a str,
    /// Reason why the last key was rejected.
    pub(super) error: Option<&'a str>,
}

pub(super) fn render_form(form: &KeyForm<'_>) -> String {
    let provider = escape(form.provider);
    let mut body = format!(
        "<p>The key goes to {} and nowhere else, and is kept in {}, for you alone to read. It is shown \
         to no model.</p>\n",
        escape(form.address),
        escape(form.file)
    );
    if form.is_unencrypted {
        body.push_str("<p>The way there is not encrypted: others on it can read the key.</p>\n");
    }
    if let Some(why) = form.error {
        let _ = writeln!(
            body,
            "<p role=\"alert\"><strong>{}</strong></p>",
            escape(why)
        );
    }
    let _ = writeln!(
        body,
        "<form method=\"post\" autocomplete=\"off\">\n\
         <label>Key for {provider} <input type=\"password\" name=\"key\" size=\"60\" required autofocus \
         autocomplete=\"off\"></label>\n<button>Check and keep</button>\n</form>"
    );
    render_page(&format!("turnery: the key for {provider}"), &body)
}

/// Renders a page with only a message.
pub(super) fn render_message(text: &str) -> String {
    render_page(
        "turnery",
        &format!("<p role=\"status\">{}</p>\n", escape(text)),
    )
}

fn render_page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<h1>{title}</h1>\n{body}</html>\n"
    )
}

/// Escapes text for HTML, including text from servers.
fn escape(text: &str) -> String {
    // First the character that the others are replaced with.
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        let text = render_form(&KeyForm {
            provider: "a<b>",
            address: "http://h/\"onload=\"x",
            is_unencrypted: true,
            file: "/home/o'hara/&/keys.json",
            error: Some("<script>alert(1)</script>"),
        });
        for there in [
            "a&lt;b&gt;",
            "http://h/&quot;onload=&quot;x",
            "/home/o&#39;hara/&amp;/keys.json",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "not encrypted",
        ] {
            assert!(text.contains(there), "{there}: {text}");
        }
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
    }
}

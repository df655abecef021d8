//! Html: what is on the page. Nothing is fetched for it, and nothing runs in it.

use std::{borrow::Cow, fmt::Write as _};

/// What the form says.
pub(super) struct Form<'a> {
    pub(super) provider: &'a str,
    /// Where the key goes.
    pub(super) address: &'a str,
    /// Others can read on the way there.
    pub(super) is_open: bool,
    /// Where it is kept.
    pub(super) file: &'a str,
    /// Why the last one was not taken.
    pub(super) why: Option<&'a str>,
}

pub(super) fn form(form: &Form<'_>) -> String {
    let provider = escaped(form.provider);
    let mut body = format!(
        "<p>The key goes to {} and nowhere else, and is kept in {}, for you alone to read. It is shown \
         to no model.</p>\n",
        escaped(form.address),
        escaped(form.file)
    );
    if form.is_open {
        body.push_str("<p>The way there is not encrypted: others on it can read the key.</p>\n");
    }
    if let Some(why) = form.why {
        let _ = writeln!(
            body,
            "<p role=\"alert\"><strong>{}</strong></p>",
            escaped(why)
        );
    }
    let _ = writeln!(
        body,
        "<form method=\"post\" autocomplete=\"off\">\n\
         <label>Key for {provider} <input type=\"password\" name=\"key\" size=\"60\" required autofocus \
         autocomplete=\"off\"></label>\n<button>Check and keep</button>\n</form>"
    );
    whole(&format!("turnery: the key for {provider}"), &body)
}

/// A page that only says something.
pub(super) fn told(text: &str) -> String {
    whole(
        "turnery",
        &format!("<p role=\"status\">{}</p>\n", escaped(text)),
    )
}

fn whole(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<h1>{title}</h1>\n{body}</html>\n"
    )
}

/// A text as text: of what a server has said, too.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_said_stays_text() {
        let text = form(&Form {
            provider: "a<b>",
            address: "http://h/\"onload=\"x",
            is_open: true,
            file: "/home/o'hara/&/keys.json",
            why: Some("<script>alert(1)</script>"),
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

//! Arguments of `turnery login` and `turnery logout`.

use crate::config::provider_entry::parse_api;
use clap::Args as Group;
use turnery_models::Api;

/// `turnery login`.
#[derive(Debug, Group)]
#[command(after_help = "\
The key is kept in turnery's folder, in a file that only you can read, and is sent to the provider's \
address and nowhere else. A key in the environment wins over it.

Examples:
  turnery login
  turnery login anthropic
  turnery login openai --with-key < key.txt
  turnery login desk --base-url http://127.0.0.1:8080/v1")]
pub(crate) struct LoginArgs {
    /// The provider, for example anthropic, openai or mistral, or a name of your own for another server.
    #[arg(value_name = "PROVIDER")]
    pub(super) provider: Option<String>,
    /// Read the key from stdin, for scripts.
    #[arg(long)]
    pub(super) with_key: bool,
    /// Base URL of the provider, if not the default one.
    #[arg(long, value_name = "URL", value_parser = address)]
    pub(super) base_url: Option<String>,
    /// API of a server of your own: openai, openai_responses, anthropic or gemini.
    #[arg(long, value_name = "API", value_parser = parse_api)]
    pub(super) api: Option<Api>,
    /// Store the key without checking it.
    #[arg(long)]
    pub(super) no_check: bool,
}

/// `turnery logout`.
#[derive(Debug, Group)]
pub(crate) struct LogoutArgs {
    /// The provider; all providers unless given.
    #[arg(value_name = "PROVIDER")]
    pub(super) provider: Option<String>,
}

/// Checks an address and removes its trailing slash. Rejects credentials, since addresses are displayed.
pub(super) fn address(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('/');
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let Some(rest) = rest else {
        return Err("an address begins with https:// or http://".to_owned());
    };
    let host = rest.split('/').next().unwrap_or_default();
    match () {
        () if host.is_empty() => Err("the address names no host".to_owned()),
        () if rest.contains(['@', '?', '#']) || rest.contains(char::is_whitespace) => {
            Err("the address may hold no user, no query and no space".to_owned())
        }
        () => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: ELIC-7
    #[test]
    fn address_with_credentials_is_rejected() {
        assert_eq!(address(" http://h:1/v1/ "), Ok("http://h:1/v1".to_owned()));
        assert_eq!(address("https://h"), Ok("https://h".to_owned()));
        for bad in [
            "",
            "h/v1",
            "ftp://h",
            "http://",
            "http:///v1",
            "https://me:secret@h/v1",
            "https://h/v1?key=secret",
            "https://h/v1#secret",
            "https://h /v1",
        ] {
            let why = address(bad).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}

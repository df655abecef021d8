//! Known deviations of clients from the protocol, by the name and version given in `initialize`.

use serde_json::Value;

/// Deviations of one client; none for an unknown client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientQuirks {
    /// `terminal/create` joins `command` and `args` with blanks, unquoted, and passes the result to a shell.
    pub(crate) joins_terminal_args: bool,
}

impl ClientQuirks {
    /// Returns the deviations of the client with this `clientInfo`.
    pub(crate) fn from_client_info(client: &Value) -> Self {
        let text = |key: &str| client.get(key).and_then(Value::as_str).unwrap_or_default();
        let joins_terminal_args = match text("name") {
            // Every release up to 0.2, the newest that was checked.
            "vscode-acp-client" => {
                parse_release(text("version")).is_none_or(|release| release <= (0, 2))
            }
            // Quotes arguments since December 2025. A whole command line works in later versions too.
            "zed" => parse_release(text("version")).is_some_and(|release| release < (0, 220)),
            _ => false,
        };
        Self {
            joins_terminal_args,
        }
    }
}

/// Parses the first two numbers of a version.
fn parse_release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_known_clients_have_quirks() {
        let joins = |client: Value| ClientQuirks::from_client_info(&client).joins_terminal_args;
        let client = |name: &str, version: &str| json!({"name": name, "version": version});
        assert!(joins(client("vscode-acp-client", "0.2.0")));
        assert!(joins(json!({"name": "vscode-acp-client"})));
        assert!(!joins(client("vscode-acp-client", "0.3.0")));
        assert!(joins(client("zed", "0.219.4")));
        assert!(joins(client("zed", "v0.99.1")));
        assert!(!joins(client("zed", "0.220.0")));
        assert!(!joins(client("zed", "0.228.0+stable.203.8421009")));
        assert!(!joins(client("zed", "1.6.0+preview.298")));
        assert!(!joins(client("zed", "nightly")));
        assert!(!joins(client("acpx", "0.1.0")));
        assert!(!joins(json!({"name": 7})));
        assert!(!joins(Value::Null));
    }
}

//! Hides the secrets that a server was given wherever the server repeats them.

use super::McpTransport;
use std::sync::Arc;

/// Shorter values, and paths, are not secrets; hiding them would make texts unreadable. Unit: bytes.
const MIN_SECRET_BYTES: usize = 4;

/// Values to hide. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct ServerSecrets(Arc<[String]>);

impl ServerSecrets {
    /// Collects every value that a server was given except its program and host.
    pub(super) fn from_transport(way: &McpTransport) -> Self {
        let mut values: Vec<String> = match way {
            McpTransport::Stdio { args, env, .. } => {
                let env = env.iter().map(|(_, value)| value);
                args.iter().chain(env).cloned().collect()
            }
            McpTransport::Http { url, headers } => {
                let values = headers.iter().flat_map(|(_, value)| {
                    // Also hides the token of "Bearer TOKEN" alone.
                    [value.as_str(), value.rsplit(' ').next().unwrap_or(value)]
                });
                let after_host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let query = after_host.split_once('?').map(|(_, query)| query);
                let user = after_host.split_once('@').map(|(user, _)| user);
                values.chain(query).chain(user).map(str::to_owned).collect()
            }
            McpTransport::Unusable(_) => Vec::new(),
        };
        values.retain(|value| value.len() >= MIN_SECRET_BYTES && !value.starts_with('/'));
        // Longest first, so that a value containing another is hidden whole.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values.into())
    }

    /// Replaces the secrets in `text`.
    pub(super) fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, value| {
            match text.contains(value.as_str()) {
                true => text.replace(value.as_str(), "[hidden]"),
                false => text,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_repeated_by_server_are_redacted() {
        let pairs = |list: &[(&str, &str)]| {
            let owned = list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            owned.collect::<Vec<_>>()
        };
        let stdio = McpTransport::Stdio {
            command: "/bin/server".into(),
            args: vec!["-y".to_owned(), "--key=abcdef".to_owned()],
            env: pairs(&[("TOKEN", "s3cret"), ("LONG", "s3cret-and-more")]),
        };
        let hide = ServerSecrets::from_transport(&stdio);
        assert_eq!(
            hide.redact("-y --key=abcdef s3cret-and-more s3cret"),
            "-y [hidden] [hidden] [hidden]"
        );
        let http = McpTransport::Http {
            url: "https://me:pass@desk.example/mcp?token=query".to_owned(),
            headers: pairs(&[("authorization", "Bearer t0ken")]),
        };
        let hide = ServerSecrets::from_transport(&http);
        assert_eq!(
            hide.redact("me:pass at desk.example/mcp: token=query, t0ken, Bearer t0ken"),
            "[hidden] at desk.example/mcp: [hidden], [hidden], [hidden]"
        );
    }
}

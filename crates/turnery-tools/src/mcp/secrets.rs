//! Hides the secrets that a server was given wherever the server repeats them.

use super::McpTransport;
use std::sync::Arc;

/// Shorter values, and paths, are not secrets; hiding them would make texts unreadable. Unit: bytes.
const MIN_SECRET_BYTES: usize = 4;
/// Parts of a URL's path that are at least this long may be tokens: `https://mcp.example/s/TOKEN/mcp`. Unit: bytes.
const MIN_PATH_SECRET_BYTES: usize = 16;

/// Values to hide. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct ServerSecrets(Arc<[String]>);

impl ServerSecrets {
    /// Collects the arguments, the values of variables and headers, and of the URL the user, the query, its values
    /// and long parts of the path. Values that are short or begin with `/` are left out.
    pub(super) fn from_transport(transport: &McpTransport) -> Self {
        let mut values: Vec<String> = match transport {
            McpTransport::Stdio { args, env, .. } => {
                let env = env.iter().map(|(_, value)| value);
                args.iter().chain(env).cloned().collect()
            }
            McpTransport::Http { url, headers } => {
                let values = headers.iter().flat_map(|(_, value)| {
                    // Also hides the token of "Bearer TOKEN" alone.
                    [value.as_str(), value.rsplit(' ').next().unwrap_or(value)]
                });
                values.chain(url_secrets(url)).map(str::to_owned).collect()
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

/// Returns the parts of a URL that may be secret.
fn url_secrets(url: &str) -> impl Iterator<Item = &str> {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (address, query) = match after_scheme.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (after_scheme, None),
    };
    let mut path = address.split('/');
    let authority = path.next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let parameters = query.into_iter().flat_map(|query| query.split('&'));
    path.filter(|part| part.len() >= MIN_PATH_SECRET_BYTES)
        .chain(user)
        .chain(query)
        .chain(parameters.filter_map(|parameter| Some(parameter.split_once('=')?.1)))
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
        let http = McpTransport::Http {
            url: "https://desk.example/@a/mcp/s/MDNkZDViNTgtODJm/mcp?a=b&key=k3y5".to_owned(),
            headers: Vec::new(),
        };
        let hide = ServerSecrets::from_transport(&http);
        assert_eq!(
            hide.redact("https://desk.example/@a/mcp/s/MDNkZDViNTgtODJm/mcp, k3y5, a=b"),
            "https://desk.example/@a/mcp/s/[hidden]/mcp, [hidden], a=b"
        );
    }
}

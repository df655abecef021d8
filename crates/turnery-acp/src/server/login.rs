//! Offers the ways to log in. Keys never pass through the protocol: they are entered in a terminal or on a
//! page served by the host (AUTH-9, ELIC-3).

use crate::client::key_page::KeyPageOpener;
use agent_client_protocol_schema::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodTerminal, ClientCapabilities, Meta,
};
use serde_json::json;
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

/// Login method that needs nothing; editors and the registry expect at least one method (AUTH-3, AUTH-11).
pub(crate) const NO_LOGIN_METHOD: &str = "none";

/// Login method in a terminal.
pub(crate) const TERMINAL_METHOD: &str = "login";

/// Login method on a page of the host.
pub(crate) const KEY_PAGE_METHOD: &str = "page";

/// Key in `_meta` under which some clients declare, and expect, a login in a terminal (G-27).
const TERMINAL_AUTH_KEY: &str = "terminal-auth";

/// Login options of the host process.
#[derive(Clone)]
pub struct Login {
    /// Program for clients that need the whole command.
    pub program: PathBuf,
    /// Arguments of the login command, which logs in and exits. They work both appended to the arguments the
    /// client started the agent with and in their place.
    pub args: Vec<String>,
    /// Environment variables of the login command.
    pub env: BTreeMap<String, String>,
    /// Deletes all keys stored by a login; returns an error message on failure.
    pub forget_keys: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Opens a page for entering a key, if the host can serve one.
    pub key_page_opener: Option<KeyPageOpener>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("program", &self.program)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

/// Login features the client declared. Undeclared features are off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoginFeatures {
    /// Runs methods of type `terminal` (AUTH-2).
    pub(crate) terminal: bool,
    /// Runs the command in the `_meta` of a method.
    pub(crate) terminal_meta: bool,
    /// Shows the user a URL to open (ELIC-1).
    pub(crate) url: bool,
}

impl From<&ClientCapabilities> for LoginFeatures {
    fn from(said: &ClientCapabilities) -> Self {
        let dialect = said
            .meta
            .as_ref()
            .and_then(|meta| meta.get(TERMINAL_AUTH_KEY));
        Self {
            terminal: said.auth.terminal,
            terminal_meta: dialect.is_some_and(|value| value == true),
            url: said.elicitation.as_ref().is_some_and(|it| it.url.is_some()),
        }
    }
}

/// Returns the login methods for a client with these features.
pub(crate) fn auth_methods(login: Option<&Login>, client: LoginFeatures) -> Vec<AuthMethod> {
    let none = AuthMethodAgent::new(NO_LOGIN_METHOD, "Existing keys").description(
        "From the environment, the configuration or turnery login; without any the offline model answers"
            .to_owned(),
    );
    let mut methods = vec![AuthMethod::Agent(none)];
    let Some(login) = login else { return methods };
    let name = "Log in with a key";
    let description = "Choose a provider and enter its key in a terminal".to_owned();
    let meta = client.terminal_meta.then(|| command_meta(login, name));
    if client.terminal {
        let method = AuthMethodTerminal::new(TERMINAL_METHOD, name)
            .description(description)
            .args(login.args.clone())
            .env(login.env.clone().into_iter().collect())
            .meta(meta);
        methods.push(AuthMethod::Terminal(method));
    } else if meta.is_some() {
        let method = AuthMethodAgent::new(TERMINAL_METHOD, name)
            .description(description)
            .meta(meta);
        methods.push(AuthMethod::Agent(method));
    }
    if client.url && login.key_page_opener.is_some() {
        let method = AuthMethodAgent::new(KEY_PAGE_METHOD, "Enter the missing key in the browser")
            .description(
                "On a page served on the machine that turnery runs on; nobody else can open it"
                    .to_owned(),
            );
        methods.push(AuthMethod::Agent(method));
    }
    methods
}

fn command_meta(login: &Login, label: &str) -> Meta {
    let command = json!({
        "label": label,
        "command": login.program,
        "args": login.args,
        "env": login.env,
    });
    Meta::from_iter([(TERMINAL_AUTH_KEY.to_owned(), command)])
}

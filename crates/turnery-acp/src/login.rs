//! Login: how a person gives the agent a key. The key itself never passes the protocol: it is typed in a
//! terminal, or on a page that the host serves (AUTH-9, ELIC-3).

use crate::key_page::KeyPages;
use agent_client_protocol_schema::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodTerminal, ClientCapabilities, Meta,
};
use serde_json::json;
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

/// The login that needs nothing: editors and the registry want to see at least one (AUTH-3, AUTH-11).
pub(crate) const NONE: &str = "none";

/// The login in a terminal.
pub(crate) const TERMINAL: &str = "login";

/// The login on a page of the host's.
pub(crate) const PAGE: &str = "page";

/// What clients with a dialect of their own say, and want to hear, of a login in a terminal (G-27).
const DIALECT: &str = "terminal-auth";

/// What the serving process knows of logging in.
#[derive(Clone)]
pub struct Login {
    /// The program, for clients that want the whole command.
    pub program: PathBuf,
    /// The arguments of a flow that logs in and ends. They work behind those that the client started us
    /// with, and instead of them.
    pub args: Vec<String>,
    /// What has to stand in its environment.
    pub env: BTreeMap<String, String>,
    /// Forgets all keys that such a flow has kept, or says why not.
    pub forget: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Opens a page on which a person can give a key, where the host has a way to.
    pub pages: Option<KeyPages>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("program", &self.program)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

/// What a client can do for a login. All that it did not say is no.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogsIn {
    /// It runs methods of the type `terminal` (AUTH-2).
    pub(crate) terminal: bool,
    /// It runs what stands in `_meta` of a method.
    pub(crate) dialect: bool,
    /// It shows a person an address to open (ELIC-1).
    pub(crate) url: bool,
}

impl From<&ClientCapabilities> for LogsIn {
    fn from(said: &ClientCapabilities) -> Self {
        let dialect = said.meta.as_ref().and_then(|meta| meta.get(DIALECT));
        Self {
            terminal: said.auth.terminal,
            dialect: dialect.is_some_and(|value| value == true),
            url: said.elicitation.as_ref().is_some_and(|it| it.url.is_some()),
        }
    }
}

/// What is offered to such a client.
pub(crate) fn methods(login: Option<&Login>, client: LogsIn) -> Vec<AuthMethod> {
    let none = AuthMethodAgent::new(NONE, "Keys that are there already").description(
        "From the environment, the configuration or turnery login; without any the offline model answers"
            .to_owned(),
    );
    let mut methods = vec![AuthMethod::Agent(none)];
    let Some(login) = login else { return methods };
    let name = "Log in with a key";
    let description = "Choose a provider and type its key, in a terminal".to_owned();
    let meta = client.dialect.then(|| whole_command(login, name));
    if client.terminal {
        let method = AuthMethodTerminal::new(TERMINAL, name)
            .description(description)
            .args(login.args.clone())
            .env(login.env.clone().into_iter().collect())
            .meta(meta);
        methods.push(AuthMethod::Terminal(method));
    } else if meta.is_some() {
        let method = AuthMethodAgent::new(TERMINAL, name)
            .description(description)
            .meta(meta);
        methods.push(AuthMethod::Agent(method));
    }
    if client.url && login.pages.is_some() {
        let method = AuthMethodAgent::new(PAGE, "Type the missing key in the browser").description(
            "On a page of the machine that turnery runs on, which nobody else can open".to_owned(),
        );
        methods.push(AuthMethod::Agent(method));
    }
    methods
}

fn whole_command(login: &Login, label: &str) -> Meta {
    let command = json!({
        "label": label,
        "command": login.program,
        "args": login.args,
        "env": login.env,
    });
    Meta::from_iter([(DIALECT.to_owned(), command)])
}

//! Chooses the provider to log in to, and its address.

use super::{
    login_args::{LoginArgs, address},
    terminal_user::TerminalUser,
};
use crate::{config::LiveProviders, logs::print_message};
use anyhow::{Context as _, bail};
use turnery_models::{Api, ProviderConfig, ProviderSource as _};

/// Last line of the menu.
const OTHER_SERVER: &str = "another server that speaks like OpenAI's";

/// Returns the provider chosen by flags or by the user. It still holds its current key, if any; the caller
/// replaces that.
pub(super) fn choose_provider(
    args: &LoginArgs,
    live_providers: &LiveProviders,
    mut user: Option<&mut TerminalUser>,
) -> anyhow::Result<ProviderConfig> {
    let all = live_providers.current();
    let hosted: Vec<&str> = all
        .iter()
        .filter(|it| !it.key_hint.is_empty() || it.key.is_some())
        .map(|it| it.name.as_str())
        .collect();
    let name = match (&args.provider, user.as_deref_mut()) {
        (Some(name), _) => name.clone(),
        (None, Some(user)) => choose_from_menu(&hosted, user)?,
        (None, None) => bail!(
            "name the provider ({}), as in: turnery login anthropic --with-key < FILE",
            hosted.join(", ")
        ),
    };
    check_name(&name)?;
    let known = all.iter().find(|it| it.name == name).cloned();
    let mut provider = match known {
        Some(mut known) => {
            if let Some(address) = &args.base_url {
                known.move_to(address);
            } else if known.has_placeholder_address() {
                let why = "each customer has their own";
                known.move_to(&ask_address(&name, why, &known.base_url, user)?);
            }
            known
        }
        None => {
            let address = match &args.base_url {
                Some(address) => address.clone(),
                None => ask_address(&name, "it is not a known provider", "http://HOST/v1", user)?,
            };
            ProviderConfig::new(name, Api::OpenAi, address)
        }
    };
    if let Some(api) = args.api {
        provider.api = api;
    }
    if is_unencrypted(&provider.base_url) {
        print_message(&format!(
            "the way to {} is not encrypted: others on it can read the key",
            provider.base_url
        ));
    }
    Ok(provider)
}

fn choose_from_menu(hosted: &[&str], user: &mut TerminalUser) -> anyhow::Result<String> {
    let mut menu = String::from("Log in to which provider?\n");
    for (n, name) in hosted.iter().chain([&OTHER_SERVER]).enumerate() {
        menu.push_str(&format!("  {}) {name}\n", n + 1));
    }
    user.show(&menu)?;
    loop {
        let answer = user.ask_line(&format!("1 to {}: ", hosted.len() + 1))?;
        let number = answer.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        match number {
            Some(n) if n < hosted.len() => return Ok(hosted[n].to_owned()),
            Some(n) if n == hosted.len() => return Ok(user.ask_line("A name for it: ")?),
            Some(_) | None if hosted.contains(&answer.as_str()) => return Ok(answer),
            Some(_) | None => {}
        }
    }
}

/// Asks for the address of a provider. Without a user, fails and says `why` none is known.
fn ask_address(
    name: &str,
    why: &str,
    example: &str,
    user: Option<&mut TerminalUser>,
) -> anyhow::Result<String> {
    let user = user.with_context(|| {
        format!("the address of {name} is unknown: {why}; pass it with --base-url {example}")
    })?;
    loop {
        match address(&user.ask_line(&format!("Its address (such as {example}): "))?) {
            Ok(address) => return Ok(address),
            Err(why) => print_message(&why),
        }
    }
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if ["offline", "scripted"].contains(&name) {
        bail!("{name} needs no key");
    }
    if name.is_empty() || !name.chars().all(fits) {
        bail!("{name:?} is no name for a provider; write letters, digits and dashes");
    }
    Ok(())
}

/// Returns true if data sent to the address is neither encrypted nor local.
pub(super) fn is_unencrypted(address: &str) -> bool {
    let Some(rest) = address.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host != "localhost"
        && !host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|at| at.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_over_network_is_unencrypted() {
        for (address, expected) in [
            ("https://h/v1", false),
            ("http://localhost:1/v1", false),
            ("http://127.0.0.1:1", false),
            ("http://[::1]:1/v1", false),
            ("http://10.0.0.7/v1", true),
            ("http://desk/v1", true),
        ] {
            assert_eq!(is_unencrypted(address), expected, "{address}");
        }
    }
}

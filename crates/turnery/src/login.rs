//! `turnery login` and `turnery logout`: read, check, store and delete provider keys.

pub(crate) mod key_page;
pub(crate) mod login_args;
mod provider_choice;
pub(crate) mod terminal_user;

use crate::{
    app::App,
    args::GlobalOptions,
    config::{
        Config, LiveProviders,
        key_file::{KeyFile, KeyFileError, StoredKey},
    },
    logs::print_message,
    run::exit,
    runtime::current_thread_runtime,
};
use anyhow::{Context as _, bail};
use login_args::{LoginArgs, LogoutArgs};
use secrecy::{ExposeSecret as _, SecretString};
use std::{
    io::{self, Read as _},
    process::ExitCode,
};
use terminal_user::TerminalUser;
use turnery_engine::ModelErrorKind;
use turnery_models::{ProviderConfig, check_key};

/// Number of attempts to type a valid key.
const MAX_ATTEMPTS: u32 = 3;

/// Longest key that is read from stdin; the rest of longer input is ignored. Unit: bytes.
const MAX_KEY_BYTES: u64 = 16 << 10;

/// Runs `turnery login`. Succeeds only if a key was stored (AUTH-9).
pub(crate) fn login(global: &GlobalOptions, args: LoginArgs) -> anyhow::Result<ExitCode> {
    let app = App::load(global, Config::default());
    let keys = app.paths.key_file()?;
    let mut user = match args.with_key {
        true => None,
        false => TerminalUser::at_terminal(),
    };
    match choose_provider_and_key(&app, &args, user.as_mut()) {
        Ok((provider, models)) => {
            save_and_report(&app, &keys, provider, models).map(|()| ExitCode::SUCCESS)
        }
        Err(error) if terminal_user::is_cancel(&error) => {
            print_message("nothing was kept");
            Ok(ExitCode::from(exit::CANCELLED))
        }
        Err(error) => Err(error),
    }
}

/// Returns the provider with its key, checked unless disabled, and the models that it reports.
fn choose_provider_and_key(
    app: &App,
    args: &LoginArgs,
    mut user: Option<&mut TerminalUser>,
) -> anyhow::Result<(ProviderConfig, Vec<String>)> {
    let mut provider =
        provider_choice::choose_provider(args, &app.live_providers, user.as_deref_mut())?;
    let mut tries = 1;
    loop {
        provider.key = read_key(&provider, args, user.as_deref_mut())?;
        if args.no_check {
            return Ok((provider, Vec::new()));
        }
        let fault = match current_thread_runtime()?.block_on(check_key(&provider)) {
            Ok(models) => return Ok((provider, models)),
            Err(fault) => fault,
        };
        let is_refused = fault.kind == ModelErrorKind::Auth;
        match user.as_deref_mut() {
            Some(_) if is_refused && tries < MAX_ATTEMPTS => print_message(&fault.message),
            Some(user) if !is_refused => {
                print_message(&fault.message);
                match user.confirm("Keep it unchecked all the same?")? {
                    true => return Ok((provider, Vec::new())),
                    false => bail!("nothing was kept"),
                }
            }
            Some(_) => bail!("{} Nothing was kept.", fault.message),
            None => bail!(
                "{} Nothing was kept; --no-check keeps a key unchecked.",
                fault.message
            ),
        }
        tries += 1;
    }
}

/// Reads the key with echo off, or all of stdin. Returns `None` for a server that needs no key.
fn read_key(
    provider: &ProviderConfig,
    args: &LoginArgs,
    user: Option<&mut TerminalUser>,
) -> anyhow::Result<Option<SecretString>> {
    let name = &provider.name;
    let needs_none = provider.key_hint.is_empty();
    let typed = match user {
        Some(user) => {
            let or = if needs_none {
                ", empty if it needs none"
            } else {
                ""
            };
            user.ask_hidden_line(&format!("Key for {name} (not shown{or}): "))?
        }
        None if args.with_key => {
            let mut text = String::new();
            io::stdin()
                .take(MAX_KEY_BYTES)
                .read_to_string(&mut text)
                .context("could not read a key from stdin")?;
            SecretString::from(text)
        }
        None => bail!(
            "there is no terminal to type a key at; give it on stdin: \
             turnery login {name} --with-key < FILE"
        ),
    };
    parse_key(name, needs_none, &typed)
}

/// Checks that the input can be a key. The error does not quote it.
fn parse_key(
    name: &str,
    needs_none: bool,
    typed: &SecretString,
) -> anyhow::Result<Option<SecretString>> {
    match typed.expose_secret().trim() {
        "" if needs_none => Ok(None),
        "" => bail!("no key was given for {name}"),
        key if !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            bail!("this is not a key for {name}: it has characters that no key has")
        }
        key => Ok(Some(SecretString::from(key))),
    }
}

/// Stores the key and reports it.
fn save_and_report(
    app: &App,
    keys: &KeyFile,
    provider: ProviderConfig,
    models: Vec<String>,
) -> anyhow::Result<()> {
    let name = provider.name.clone();
    let configured = app
        .live_providers
        .configured()
        .iter()
        .find(|it| it.name == name);
    if let Err(error) = keys.read() {
        print_message(&format!("{error}; this is mended now"));
    }
    let model = configured.map_or(&models, |it| &it.models).first().cloned();
    let what = match &provider.key {
        Some(_) => format!("the key for {name}"),
        None => format!("the address of {name}, which needs no key,"),
    };
    save_key(&app.live_providers, keys, provider, models)?;
    print_message(&format!(
        "{what} is kept in {}, for you alone to read",
        keys.path().display()
    ));
    if configured.is_some_and(|it| it.key.is_some()) {
        print_message(&format!(
            "the environment or the configuration has a key for {name} too, and that one wins"
        ));
    }
    let model = model.unwrap_or_else(|| "MODEL".to_owned());
    print_message(&format!(
        "use it with --model {name}/{model}; `turnery models` lists more"
    ));
    Ok(())
}

/// Stores the key of a provider together with its address.
fn save_key(
    live_providers: &LiveProviders,
    keys: &KeyFile,
    provider: ProviderConfig,
    models: Vec<String>,
) -> Result<(), KeyFileError> {
    let mut known = live_providers.configured().iter();
    let is_configured = known.any(|it| it.name == provider.name);
    let mut all = keys.read_ignoring_mode()?;
    all.insert(
        provider.name,
        StoredKey {
            key: provider.key,
            api: provider.api,
            base_url: provider.base_url,
            models: if is_configured { Vec::new() } else { models },
        },
    );
    keys.write(&all)
}

/// Runs `turnery logout`.
pub(crate) fn logout(global: &GlobalOptions, args: &LogoutArgs) -> anyhow::Result<ExitCode> {
    let app = App::load(global, Config::default());
    let keys = app.paths.key_file()?;
    let mut all = keys.read_ignoring_mode()?;
    let names: Vec<String> = match &args.provider {
        Some(name) => all.remove(name).map(|_| name.clone()).into_iter().collect(),
        None => std::mem::take(&mut all).into_keys().collect(),
    };
    match names.is_empty() {
        true => match &args.provider {
            Some(name) => print_message(&format!("no key for {name:?} was kept")),
            None => print_message("no key was kept"),
        },
        false => {
            keys.write(&all)?;
            print_message(&format!("the key for {} is forgotten", names.join(", ")));
        }
    }
    for provider in app.live_providers.configured() {
        let is_meant = args.provider.as_ref().is_none_or(|it| *it == provider.name);
        if is_meant && provider.key.is_some() {
            print_message(&format!(
                "{} still has the key that stands in the environment or the configuration",
                provider.name
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

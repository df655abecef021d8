//! Servers of the user's own: which of them answer, and with which models.
//!
//! Asked are the providers that need no key, such as Ollama at its usual port, and `openai` at an address of the
//! user's. All at once, for a short time, and not again while the answers are fresh.

use super::providers::first_model;
use futures_util::future::join_all;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use turnery_models::{ModelName, ProviderConfig, served_models};

/// Variable that keeps servers from being looked for at their usual addresses, if it says `off`.
const LOCAL_SERVERS: &str = "TURNERY_LOCAL_SERVERS";
/// How long a server may take to answer.
const WAIT: Duration = Duration::from_millis(500);
/// How long an answer holds.
const FRESH: Duration = Duration::from_secs(3);

/// What the servers have answered.
#[derive(Default)]
pub(crate) struct Served {
    answers: Mutex<Answers>,
    /// Held while they are asked.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Answers {
    asked: Option<Instant>,
    /// By name of the provider: its address, and its models if it answered.
    models: HashMap<String, (String, Option<Vec<String>>)>,
}

impl Served {
    /// Asks the servers among these, unless that was done just now.
    pub(crate) async fn ask(&self, all: &[ProviderConfig]) {
        let _asking = self.asking.lock().await;
        let asked = self.answers().asked;
        if asked.is_some_and(|asked| asked.elapsed() < FRESH) {
            return;
        }
        let looks_around = std::env::var_os(LOCAL_SERVERS).is_none_or(|value| value != "off");
        let answers = all.iter().filter(|it| is_keyless(it)).map(|it| async {
            let models = match looks_around || !is_standard(it) {
                true => served_models(it, WAIT).await,
                false => None,
            };
            (it.name.clone(), (it.base_url.clone(), models))
        });
        let models = join_all(answers).await.into_iter().collect();
        let asked = Some(Instant::now());
        *self.answers() = Answers { asked, models };
    }

    /// These providers, with the models that their servers have, unless the user has listed some.
    pub(crate) fn apply(&self, all: Arc<[ProviderConfig]>) -> Arc<[ProviderConfig]> {
        let answers = self.answers();
        let lists = |it: &ProviderConfig| match answers.of(it) {
            Some(Some(models)) if !models.is_empty() && !has_own_models(it) => Some(models.clone()),
            Some(_) | None => None,
        };
        if all.iter().all(|it| lists(it).is_none()) {
            return all;
        }
        let with_models = |it: &ProviderConfig| ProviderConfig {
            models: lists(it).unwrap_or_else(|| it.models.clone()),
            ..it.clone()
        };
        all.iter().map(with_models).collect()
    }

    /// Whether this is a server without a key that has no models for us: it did not answer, or has none.
    pub(crate) fn is_silent(&self, provider: &ProviderConfig) -> bool {
        let is_empty = |models: &Option<Vec<String>>| models.as_ref().is_none_or(Vec::is_empty);
        is_keyless(provider) && self.answers().of(provider).is_some_and(is_empty)
    }

    /// These providers without the silent ones.
    pub(crate) fn without_silent(&self, all: Arc<[ProviderConfig]>) -> Arc<[ProviderConfig]> {
        let answers = |it: &&ProviderConfig| !self.is_silent(it);
        match all.iter().all(|it| answers(&it)) {
            true => all,
            false => all.iter().filter(answers).cloned().collect(),
        }
    }

    /// A model of a server at an address that the user gave, if it has answered.
    pub(crate) fn usual_model(&self, all: &[ProviderConfig]) -> Option<ModelName> {
        let answers = self.answers();
        let has_models = |it: &&ProviderConfig| {
            let models = answers.of(it).and_then(Option::as_ref);
            models.is_some_and(|models| !models.is_empty())
        };
        own(all).filter(has_models).find_map(first_model)
    }

    /// A server at an address that the user gave which was asked for its models, and has none for us.
    pub(crate) fn silent<'a>(&self, all: &'a [ProviderConfig]) -> Option<&'a ProviderConfig> {
        own(all).find(|it| self.is_silent(it))
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    /// The answer of a provider, if it was asked at the address that it has now.
    fn of(&self, provider: &ProviderConfig) -> Option<&Option<Vec<String>>> {
        let (address, models) = self.models.get(&provider.name)?;
        (*address == provider.base_url).then_some(models)
    }
}

/// Servers without a key at an address that the user gave.
fn own(all: &[ProviderConfig]) -> impl Iterator<Item = &ProviderConfig> {
    all.iter().filter(|it| is_keyless(it) && !is_standard(it))
}

/// Whether a provider needs no key, and has none.
fn is_keyless(provider: &ProviderConfig) -> bool {
    provider.key.is_none() && provider.key_hint.is_empty()
}

/// Whether the provider is where everybody finds it.
pub(crate) fn is_standard(provider: &ProviderConfig) -> bool {
    usual(provider).is_some_and(|it| it.base_url == provider.base_url)
}

/// Whether the user has listed models for it.
fn has_own_models(provider: &ProviderConfig) -> bool {
    match usual(provider) {
        Some(usual) => usual.models != provider.models,
        None => !provider.models.is_empty(),
    }
}

/// The well-known provider of that name.
fn usual(provider: &ProviderConfig) -> Option<ProviderConfig> {
    let mut all = ProviderConfig::well_known(&|_| None).into_iter();
    all.find(|it| it.name == provider.name)
}

//! Queries which models the user's servers and providers list.
//!
//! Queried are the providers that need no key, such as Ollama at its default port, and those that have one. All are
//! queried at once with short timeouts, and answers are cached. The list of a provider with a key is queried once a session
//! has opened: it adds models, but does not decide which model is used.

use futures_util::future::join_all;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{task::JoinHandle, time::timeout};
use turnery_engine::{ModelError, ModelErrorKind};
use turnery_models::{ProviderConfig, ServedModel, is_listed_model, is_loopback, served_models};

/// Environment variable that restricts queries to addresses that the user configured if set to `off`.
const LOCAL_SERVERS_VARIABLE: &str = "TURNERY_LOCAL_SERVERS";
/// Timeout of a query to this machine, and time that a session waits for other servers.
pub(crate) const LOCAL_TIMEOUT: Duration = Duration::from_millis(500);
/// Timeout of a query on which the choice of the model depends.
const DECISIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a query to another machine.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which the answer of a server without a key is fresh: it may be started at any time.
const FRESH: Duration = Duration::from_secs(3);
/// Time for which the list of a provider with a key is fresh.
const FRESH_WITH_KEY: Duration = Duration::from_secs(3600);
/// Time after which a provider with a key that did not answer is queried again.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Number of models of a provider with a key that are offered in addition to its usual ones.
const MAX_FURTHER_MODELS: usize = 60;

/// Lists of models, by provider.
#[derive(Default)]
pub(crate) struct ModelLists {
    answers: Arc<Mutex<Answers>>,
    /// Held while queries are started and awaited.
    discovery_lock: tokio::sync::Mutex<()>,
}

/// Providers that [`ModelLists::discover`] queries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueriedProviders {
    /// Those without a key, which decide which model is used by default. Waits for a short time.
    Keyless,
    /// Those that the user has set up without saying which models they have. Waits for each of them.
    Configured,
    /// All whose key and address are known.
    All,
}

#[derive(Default)]
struct Answers {
    /// Last answer of each provider.
    by_provider: HashMap<String, Answer>,
    /// Last result of [`ModelLists::apply_models`]: providers are looked up many times in a prompt.
    applied: Option<AppliedModels>,
}

/// Providers, and the same with the models that they list.
struct AppliedModels {
    configured: Arc<[ProviderConfig]>,
    with_models: Arc<[ProviderConfig]>,
}

/// Answer of a provider.
struct Answer {
    /// Address that was queried.
    address: String,
    asked_at: Instant,
    /// The models, or why there are none; `None` while the answer is awaited.
    list: Option<Result<Vec<ServedModel>, ModelError>>,
}

impl Answer {
    fn is_fresh(&self, provider: &ProviderConfig) -> bool {
        let fresh = match (&self.list, provider.is_keyless()) {
            (Some(_), true) => FRESH,
            (Some(Ok(_)), false) => FRESH_WITH_KEY,
            (Some(Err(_)), false) => RETRY_AFTER,
            // A task that died would leave this forever.
            (None, _) => REMOTE_TIMEOUT,
        };
        self.asked_at.elapsed() < fresh
    }
}

impl ModelLists {
    /// Queries providers in `all` whose answers are not fresh, and waits for them.
    pub(crate) async fn discover(&self, all: &[ProviderConfig], queried: QueriedProviders) {
        let _asking = self.discovery_lock.lock().await;
        let asks_all = std::env::var_os(LOCAL_SERVERS_VARIABLE).is_none_or(|value| value != "off");
        let (mut whole, mut brief) = (Vec::new(), Vec::new());
        let is_asked = |it: &&ProviderConfig| match queried {
            QueriedProviders::Keyless => it.is_keyless(),
            QueriedProviders::Configured => is_configured(it),
            QueriedProviders::All => it.require_key().is_ok(),
        };
        for provider in all.iter().filter(is_asked) {
            if self.has_fresh_answer(provider) {
                continue;
            }
            if !asks_all && provider.has_default_address() {
                let off = format!("{LOCAL_SERVERS_VARIABLE} is off");
                let off = ModelError::new(ModelErrorKind::Network, off);
                store_answer(&self.answers, provider, Some(Err(off)));
                continue;
            }
            store_answer(&self.answers, provider, None);
            let is_here = is_loopback(&provider.base_url);
            let limit = match (queried, is_here) {
                (QueriedProviders::Configured, _) => DECISIVE_TIMEOUT,
                (QueriedProviders::Keyless | QueriedProviders::All, true) => LOCAL_TIMEOUT,
                (QueriedProviders::Keyless | QueriedProviders::All, false) => REMOTE_TIMEOUT,
            };
            let query = self.query(provider.clone(), limit);
            match queried {
                QueriedProviders::Keyless if !is_here => brief.push(query),
                QueriedProviders::Keyless
                | QueriedProviders::Configured
                | QueriedProviders::All => whole.push(query),
            }
        }
        // Each query ends by itself; those that take longer go on in the background.
        let _ = tokio::join!(join_all(whole), timeout(LOCAL_TIMEOUT, join_all(brief)));
    }

    /// Returns true if the list of a provider that has a key is not known, or no longer fresh.
    pub(crate) fn is_incomplete(&self, all: &[ProviderConfig]) -> bool {
        let answers = self.answers();
        let is_known = |it: &ProviderConfig| {
            let answer = answers.answer_of(it);
            answer.is_some_and(|answer| answer.list.is_some() && answer.is_fresh(it))
        };
        let mut keyed = all.iter().filter(|it| it.key.is_some());
        keyed.any(|it| it.require_key().is_ok() && !is_known(it))
    }

    fn query(&self, provider: ProviderConfig, wait: Duration) -> JoinHandle<()> {
        let answers = Arc::clone(&self.answers);
        tokio::spawn(async move {
            let list = served_models(&provider, wait).await;
            store_answer(&answers, &provider, Some(list));
        })
    }

    fn has_fresh_answer(&self, provider: &ProviderConfig) -> bool {
        let answers = self.answers();
        let answer = answers.answer_of(provider);
        answer.is_some_and(|answer| answer.is_fresh(provider))
    }

    /// Returns the providers with the models that they list, unless the user has listed some.
    pub(crate) fn apply_models(&self, all: Arc<[ProviderConfig]>) -> Arc<[ProviderConfig]> {
        let mut answers = self.answers();
        if let Some(applied) = &answers.applied
            && Arc::ptr_eq(&applied.configured, &all)
        {
            return Arc::clone(&applied.with_models);
        }
        let with_models = answers.apply_models(&all);
        answers.applied = Some(AppliedModels {
            configured: all,
            with_models: Arc::clone(&with_models),
        });
        with_models
    }

    /// Returns what a provider's list states about a model.
    pub(crate) fn served_model(
        &self,
        provider: &ProviderConfig,
        name: &str,
    ) -> Option<ServedModel> {
        let answers = self.answers();
        let mut models = answers.models_of(provider)?.iter();
        models.find(|model| model.name == name).cloned()
    }

    /// Returns all models that a provider lists.
    pub(crate) fn listed_models(&self, provider: &ProviderConfig) -> Vec<String> {
        let answers = self.answers();
        let models = answers.models_of(provider).into_iter().flatten();
        models.map(|model| model.name.clone()).collect()
    }

    /// Returns a sentence that says why a provider has no list.
    pub(crate) fn failure(&self, provider: &ProviderConfig) -> Option<String> {
        Some(self.error(provider)?.message)
    }

    /// Returns a sentence that says why a provider has refused to list its models, if that is why it has no list.
    pub(crate) fn refusal(&self, provider: &ProviderConfig) -> Option<String> {
        let error = self.error(provider)?;
        (error.kind == ModelErrorKind::Auth).then_some(error.message)
    }

    fn error(&self, provider: &ProviderConfig) -> Option<ModelError> {
        let answers = self.answers();
        let list = answers.answer_of(provider)?.list.as_ref()?;
        list.as_ref().err().cloned()
    }

    /// Returns true if the provider is a keyless server that did not answer or reported no models.
    pub(crate) fn is_silent(&self, provider: &ProviderConfig) -> bool {
        if !provider.is_keyless() {
            return false;
        }
        let answers = self.answers();
        let answer = answers
            .answer_of(provider)
            .and_then(|answer| answer.list.as_ref());
        let is_empty = |list: &Result<Vec<_>, _>| list.as_ref().map_or(true, Vec::is_empty);
        answer.is_some_and(is_empty)
    }

    /// Returns true if the provider is a keyless server that has listed models.
    pub(crate) fn has_answered(&self, provider: &ProviderConfig) -> bool {
        let answers = self.answers();
        let models = answers.models_of(provider);
        provider.is_keyless() && models.is_some_and(|models| !models.is_empty())
    }

    /// Returns the first server at a configured address that did not answer or reported no models.
    pub(crate) fn silent_server<'a>(
        &self,
        all: &'a [ProviderConfig],
    ) -> Option<&'a ProviderConfig> {
        all.iter()
            .find(|it| !it.has_default_address() && self.is_silent(it))
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        lock(&self.answers)
    }
}

/// Returns true for a provider that the user has set up, and that can be asked for its models.
pub(crate) fn is_configured(provider: &ProviderConfig) -> bool {
    !provider.has_default_address() && provider.require_key().is_ok()
}

fn lock(answers: &Mutex<Answers>) -> MutexGuard<'_, Answers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores an answer; without one an earlier answer from the same address stays until the new one arrives.
fn store_answer(
    answers: &Mutex<Answers>,
    provider: &ProviderConfig,
    list: Option<Result<Vec<ServedModel>, ModelError>>,
) {
    let mut answers = lock(answers);
    answers.applied = None;
    let earlier = answers.by_provider.remove(&provider.name);
    let earlier = earlier.filter(|it| it.address == provider.base_url);
    let answer = Answer {
        address: provider.base_url.clone(),
        asked_at: Instant::now(),
        list: list.or_else(|| earlier?.list),
    };
    answers.by_provider.insert(provider.name.clone(), answer);
}

impl Answers {
    /// Returns the answer of a provider, if its current address was queried.
    fn answer_of(&self, provider: &ProviderConfig) -> Option<&Answer> {
        let answer = self.by_provider.get(&provider.name)?;
        (answer.address == provider.base_url).then_some(answer)
    }

    fn models_of(&self, provider: &ProviderConfig) -> Option<&Vec<ServedModel>> {
        self.answer_of(provider)?.list.as_ref()?.as_ref().ok()
    }

    fn apply_models(&self, all: &Arc<[ProviderConfig]>) -> Arc<[ProviderConfig]> {
        let lists = |it: &ProviderConfig| -> Option<Vec<String>> {
            let listed = self.models_of(it).filter(|models| !models.is_empty())?;
            it.has_default_models().then(|| offered_models(it, listed))
        };
        let lists: Vec<Option<Vec<String>>> = all.iter().map(lists).collect();
        if lists.iter().all(Option::is_none) {
            return Arc::clone(all);
        }
        let with_models = |(it, models): (&ProviderConfig, Option<Vec<String>>)| ProviderConfig {
            models: models.unwrap_or_else(|| it.models.clone()),
            ..it.clone()
        };
        all.iter().zip(lists).map(with_models).collect()
    }
}

/// Returns the models to offer: all of a keyless server, those of a provider without usual models; else the usual ones, and well-known ones that the provider lists,
/// since its list also holds models that do not chat.
fn offered_models(provider: &ProviderConfig, listed: &[ServedModel]) -> Vec<String> {
    let names = listed.iter().map(|model| &model.name);
    if provider.is_keyless() {
        return names.cloned().collect();
    }
    if provider.models.is_empty() {
        return names.take(MAX_FURTHER_MODELS).cloned().collect();
    }
    let further = names
        .filter(|name| is_listed_model(name) && !provider.models.contains(name))
        .take(MAX_FURTHER_MODELS);
    provider.models.iter().chain(further).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_applied_once_per_answer() {
        let lists = ModelLists::default();
        let configured: Arc<[ProviderConfig]> = ProviderConfig::standard_from_env(&|_| None).into();
        for name in ["first", "second"] {
            let model = ServedModel {
                name: name.to_owned(),
                ..ServedModel::default()
            };
            let ollama = configured.iter().find(|it| it.name == "ollama").unwrap();
            store_answer(&lists.answers, ollama, Some(Ok(vec![model])));
            let with_models = lists.apply_models(Arc::clone(&configured));
            let again = lists.apply_models(Arc::clone(&configured));
            assert!(Arc::ptr_eq(&with_models, &again), "{name}");
            let ollama = with_models.iter().find(|it| it.name == "ollama").unwrap();
            assert_eq!(ollama.models, [name]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn list_of_a_provider_with_a_key_is_queried_on_request() {
        let lists = ModelLists::default();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", silent.local_addr().unwrap());
        let acme = ProviderConfig {
            key: Some("k".to_owned().into()),
            ..ProviderConfig::new("acme", turnery_models::Api::OpenAi, address)
        };
        let all = [acme];
        lists.discover(&all, QueriedProviders::Keyless).await;
        assert!(lists.is_incomplete(&all));
        assert!(lists.failure(&all[0]).is_none(), "nothing was queried");
        lists.discover(&all, QueriedProviders::All).await;
        assert!(lists.failure(&all[0]).is_some(), "the time is over");
        assert!(
            !lists.is_incomplete(&all),
            "a failure is not repeated at once"
        );
    }
}

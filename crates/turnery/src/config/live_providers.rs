//! The providers with their current keys, including those that `turnery login` has stored since the start.
//!
//! Another thread reads the key file, since its disk may hang: callers wait for a short time and then use the state read
//! before. While inotify reports no change, the file is checked once a minute.

use super::{
    default_model::choose_default_model,
    file_watch::FileWatch,
    key_file::{FileStamp, KeyFile, StoredKey, StoredKeys},
    model_lists::{ModelLists, QueriedProviders},
};
use futures_util::future::BoxFuture;
use std::{
    io,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::Handle;
use turnery_models::{ModelName, ProviderConfig, ProviderSource, ServedModel};

/// Time that a caller waits for the first read of the key file. Continuing without keys would look like a lost
/// login.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Time that a caller waits for later reads, when there is an earlier state to use.
const READ_TIMEOUT: Duration = Duration::from_millis(250);

/// Time for which a read stays fresh: a prompt asks several times in a row, faster than any program stores a key.
/// On a disk whose reads take longer, each question gets its own read.
const FRESH: Duration = Duration::from_millis(5);

/// Time for which a read stays fresh while inotify reports no change; it does not report moves of parent folders.
const FRESH_IF_QUIET: Duration = Duration::from_secs(60);

/// All providers; rereads the key file when it has changed.
pub(crate) struct LiveProviders {
    keys: Option<KeyFile>,
    /// Runtime whose threads for blocking work read the file; without one, each read has a thread of its own.
    runtime: OnceLock<Handle>,
    key_reader: Arc<KeyReader>,
    model_lists: Arc<ModelLists>,
    /// Time for which an unwatched read stays fresh.
    freshness: Duration,
    /// Time that a caller waits for the first read.
    first_timeout: Duration,
    /// Time that a caller waits for later reads.
    read_timeout: Duration,
}

struct KeyReader {
    /// Providers from the environment and the configuration; their keys take precedence over stored ones.
    configured: Vec<ProviderConfig>,
    state: Mutex<KeyReaderState>,
    /// True if the key file may be watched with inotify.
    may_watch: bool,
    /// Wakes callers that wait for a read.
    completed: Condvar,
}

struct KeyReaderState {
    /// Start of the last read.
    last_read: Option<Instant>,
    /// File stamp at the last read.
    stamp: Option<FileStamp>,
    providers: Arc<[ProviderConfig]>,
    /// Names of the providers with a stored key.
    stored_names: Vec<String>,
    /// Error of the last read.
    read_error: Option<String>,
    /// Kept even while it cannot follow the file, since dropping a watch may take milliseconds.
    file_watch: Option<FileWatch>,
    /// True if the watch has followed the file since before the last read and reported no change.
    is_watched: bool,
    reads: ReadCounter,
}

/// Numbers of reads of the key file, from 1.
#[derive(Default)]
struct ReadCounter {
    /// Last requested read.
    requested: u64,
    /// Last completed read. No other read is requested before.
    completed: u64,
    /// Last read that a caller timed out on.
    timed_out: u64,
}

impl ReadCounter {
    fn is_pending(&self) -> bool {
        self.requested > self.completed
    }
}

impl KeyReaderState {
    /// Returns true if the last read is still fresh.
    fn is_fresh(&mut self, freshness: Duration) -> bool {
        let Some(last_read) = self.last_read.filter(|_| !self.reads.is_pending()) else {
            return false;
        };
        if last_read.elapsed() < freshness {
            return true;
        }
        self.is_watched &= self.file_watch.as_ref().is_some_and(FileWatch::is_quiet);
        self.is_watched && last_read.elapsed() < FRESH_IF_QUIET
    }
}

impl KeyReader {
    fn state(&self) -> MutexGuard<'_, KeyReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes the requested read.
    fn read(&self, keys: &KeyFile) {
        let watch = self.state().file_watch.take();
        let began = Instant::now();
        let begin = || FileWatch::new(keys.path());
        let mut watch = watch.or_else(|| self.may_watch.then(begin).flatten());
        // Before the read, so that no change falls between the two.
        let is_watched = watch.as_mut().is_some_and(|it| it.follow(keys.path()));
        self.read_if_changed(keys);
        let mut state = self.state();
        state.file_watch = watch;
        state.is_watched = is_watched;
        state.last_read = Some(began);
        state.reads.completed = state.reads.requested;
        drop(state);
        self.completed.notify_all();
    }

    /// Checks the file's stamp, and reads the file if it has changed.
    fn read_if_changed(&self, keys: &KeyFile) {
        let stamp = keys.stamp();
        if stamp == self.state().stamp {
            return;
        }
        let (kept, problem) = match keys.read() {
            Ok(kept) => (kept, None),
            Err(error) => {
                tracing::warn!("{error}");
                (StoredKeys::new(), Some(error.to_string()))
            }
        };
        let now = with_keys(&self.configured, &kept, keys.path()).into();
        let mut state = self.state();
        state.stamp = stamp;
        state.providers = now;
        state.stored_names = kept.into_keys().collect();
        state.read_error = problem;
    }
}

impl LiveProviders {
    /// Returns `configured`, complemented by the keys stored in `keys`.
    pub(crate) fn new(configured: Vec<ProviderConfig>, keys: Option<KeyFile>) -> Self {
        Self::with_watch(configured, keys, true)
    }

    /// Reads the file on a thread of this runtime, which other work can use too. The runtime must end without waiting for
    /// a read that hangs.
    pub(crate) fn read_on(&self, runtime: &Handle) {
        let _ = self.runtime.set(runtime.clone());
    }

    fn with_watch(configured: Vec<ProviderConfig>, keys: Option<KeyFile>, may_watch: bool) -> Self {
        let state = KeyReaderState {
            last_read: None,
            stamp: None,
            providers: configured.clone().into(),
            stored_names: Vec::new(),
            read_error: None,
            file_watch: None,
            is_watched: false,
            reads: ReadCounter::default(),
        };
        Self {
            keys,
            runtime: OnceLock::new(),
            model_lists: Arc::default(),
            freshness: FRESH,
            first_timeout: FIRST_READ_TIMEOUT,
            read_timeout: READ_TIMEOUT,
            key_reader: Arc::new(KeyReader {
                configured,
                state: Mutex::new(state),
                may_watch,
                completed: Condvar::new(),
            }),
        }
    }

    /// Drops the watch of the key file on a thread of its own, since that may take milliseconds.
    pub(crate) fn stop_watching(&self) {
        let watch = self.key_reader.state().file_watch.take();
        if let Some(watch) = watch {
            let dropping = thread::Builder::new().spawn(move || drop(watch));
            if let Err(error) = dropping {
                tracing::debug!(%error, "failed to start a thread");
            }
        }
    }

    /// Returns the providers of the environment and the configuration; keys that `turnery login` has stored
    /// are not filled in.
    pub(crate) fn configured(&self) -> &[ProviderConfig] {
        &self.key_reader.configured
    }

    /// Returns the state after a fresh read, or the earlier state if no read completes in time.
    fn state(&self) -> MutexGuard<'_, KeyReaderState> {
        let (state, joins) = self.request_read();
        let mut state = self.wait_for_read(state);
        // A read that was already under way may have missed a key stored since it began.
        if joins && !state.is_fresh(self.freshness) {
            drop(state);
            state = self.wait_for_read(self.request_read().0);
        }
        state
    }

    /// Waits for the read under way, unless an earlier caller has timed out on it.
    fn wait_for_read<'a>(
        &'a self,
        mut state: MutexGuard<'a, KeyReaderState>,
    ) -> MutexGuard<'a, KeyReaderState> {
        let read = state.reads.requested;
        if !state.reads.is_pending() || state.reads.timed_out == read {
            return state;
        }
        let read_timeout = match state.reads.completed {
            0 => self.first_timeout,
            _ => self.read_timeout,
        };
        let waits = |state: &mut KeyReaderState| state.reads.completed < read;
        let waited = self
            .key_reader
            .completed
            .wait_timeout_while(state, read_timeout, waits);
        let is_late;
        (state, is_late) = match waited {
            Ok((state, waited)) => (state, waited.timed_out()),
            Err(poisoned) => (poisoned.into_inner().0, false),
        };
        if is_late {
            state.reads.timed_out = read;
            tracing::warn!("the file of keys cannot be read in time");
        }
        state
    }

    /// Requests a read, unless the last one is fresh or one is under way. Returns true if one was under way.
    fn request_read(&self) -> (MutexGuard<'_, KeyReaderState>, bool) {
        let mut state = self.key_reader.state();
        let joins = state.reads.is_pending();
        if let Some(keys) = &self.keys
            && !joins
            && !state.is_fresh(self.freshness)
        {
            state.reads.requested += 1;
            // Otherwise the read would have to wait for the lock.
            drop(state);
            let spawned = self.spawn_read(keys);
            state = self.key_reader.state();
            if let Err(error) = spawned {
                tracing::warn!("the file of keys is not read: {error}");
                state.reads.completed = state.reads.requested;
                self.key_reader.completed.notify_all();
            }
        }
        (state, joins)
    }

    fn spawn_read(&self, keys: &KeyFile) -> io::Result<()> {
        let (key_reader, keys) = (Arc::clone(&self.key_reader), keys.clone());
        let read = move || key_reader.read(&keys);
        match self.runtime.get() {
            Some(runtime) => drop(runtime.spawn_blocking(read)),
            None => drop(thread::Builder::new().name("keys".to_owned()).spawn(read)?),
        }
        Ok(())
    }

    /// Returns the reason why the key file cannot be read.
    pub(crate) fn read_error(&self) -> Option<String> {
        self.state().read_error.clone()
    }

    /// Returns the default model: see [`choose_default_model`].
    pub(crate) fn default_model(&self) -> ModelName {
        let state = self.state();
        let (now, stored) = (Arc::clone(&state.providers), state.stored_names.clone());
        drop(state);
        let now = self.model_lists.apply_models(now);
        choose_default_model(&now, &stored, |it| self.model_lists.has_answered(it))
    }
}

impl LiveProviders {
    /// Returns the lists of models.
    pub(crate) fn model_lists(&self) -> &ModelLists {
        &self.model_lists
    }

    /// Queries providers that can be used for their models, and waits for their lists.
    pub(crate) async fn query_models(&self, queried: QueriedProviders) {
        let now = Arc::clone(&self.state().providers);
        self.model_lists.discover(&now, queried).await;
    }

    /// Deletes all stored keys.
    pub(crate) fn forget_keys(&self) -> Result<(), String> {
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        let forgotten = keys.write(&StoredKeys::new());
        forgotten.map_err(|error| error.to_string())
    }
}

impl ProviderSource for LiveProviders {
    fn current(&self) -> Arc<[ProviderConfig]> {
        let now = Arc::clone(&self.state().providers);
        self.model_lists.apply_models(now)
    }

    fn discover(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.query_models(QueriedProviders::Keyless))
    }

    fn missing_lists(&self) -> Option<BoxFuture<'static, ()>> {
        let all = Arc::clone(&self.state().providers);
        if !self.model_lists.is_incomplete(&all) {
            return None;
        }
        let lists = Arc::clone(&self.model_lists);
        Some(Box::pin(async move {
            lists.discover(&all, QueriedProviders::All).await;
        }))
    }

    fn is_offered(&self, provider: &ProviderConfig) -> bool {
        !self.model_lists.is_silent(provider)
    }

    fn served_model(&self, provider: &ProviderConfig, model: &str) -> Option<ServedModel> {
        self.model_lists.served_model(provider, model)
    }

    fn prefetch(&self) {
        drop(self.request_read());
    }
}

/// Returns `configured` with stored keys filled in, and providers with unknown names added.
fn with_keys(configured: &[ProviderConfig], kept: &StoredKeys, file: &Path) -> Vec<ProviderConfig> {
    let mut all = configured.to_vec();
    for (name, kept) in kept {
        match all.iter_mut().find(|provider| provider.name == *name) {
            Some(provider) => apply_stored(provider, kept),
            None => all.push(ProviderConfig {
                key: kept.key.clone(),
                key_hint: match kept.key {
                    Some(_) => file.display().to_string(),
                    None => String::new(),
                },
                models: kept.models.clone(),
                ..ProviderConfig::new(name, kept.api, &kept.base_url)
            }),
        }
    }
    all
}

/// Fills in the stored key, unless the provider already has a key or was configured with another address: the key
/// must not be sent to an address that it was not stored for.
fn apply_stored(provider: &mut ProviderConfig, kept: &StoredKey) {
    if provider.key.is_some() {
        return;
    }
    // At its own address, the API of a provider is known better than when the key was stored.
    if provider.has_default_address() && provider.base_url != kept.base_url {
        provider.api = kept.api;
        provider.base_url.clone_from(&kept.base_url);
    }
    if provider.base_url == kept.base_url {
        provider.key.clone_from(&kept.key);
        if kept.key.is_none() {
            provider.key_hint.clear();
        }
    }
}

#[cfg(test)]
mod tests;

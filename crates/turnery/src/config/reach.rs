//! The providers as they are now, with the keys that `turnery login` has kept meanwhile.
//!
//! The file of keys is read on a thread of its own, since its disk may hang: callers wait a moment for it, and
//! take what was read before if that is over.

use super::{
    keys::{AllKept, Kept, Keys, Stamp},
    providers,
};
use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};
use turnery_models::{ModelName, ProviderConfig, Providers};

/// How long a caller waits for the file of keys to be read for the first time. Going on without keys would look like
/// a lost login.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);
/// How long a caller waits once there is an earlier state to go on with.
const PATIENCE: Duration = Duration::from_millis(250);

/// A prompt asks several times in a row: so long the answer of a look holds. No program that keeps a key is as quick.
const FRESH: Duration = Duration::from_millis(5);

/// All providers. The file of keys is looked at for each prompt, and read when it has changed.
pub(crate) struct Reach {
    /// Where to ask for a look at the file of keys, from the first one on.
    reader: OnceLock<io::Result<SyncSender<SyncSender<()>>>>,
    keys: Option<Keys>,
    shared: Arc<Shared>,
    /// How long the answer of a look holds.
    fresh: Duration,
    /// How long a caller waits for the first look.
    first_patience: Duration,
    /// How long a caller waits for any other.
    patience: Duration,
}

struct Shared {
    /// As the environment and the configuration have them: a key from there wins.
    configured: Vec<ProviderConfig>,
    state: Mutex<State>,
    /// Whether the file is being looked at.
    is_looking: AtomicBool,
    /// Whether the file was looked at, or waited for in vain.
    is_known: AtomicBool,
}

/// Starts the thread that looks at the file of keys whenever it is asked to.
fn read_on_a_thread(shared: &Arc<Shared>, keys: &Keys) -> io::Result<SyncSender<SyncSender<()>>> {
    // Nobody asks while somebody waits.
    let (sender, asked) = mpsc::sync_channel::<SyncSender<()>>(1);
    let (shared, keys) = (Arc::clone(shared), keys.clone());
    let reader = thread::Builder::new().name("keys".to_owned());
    reader.spawn(move || {
        for done in asked {
            shared.look(&keys);
            shared.is_looking.store(false, Ordering::Release);
            // Nobody may wait any more.
            let _ = done.send(());
        }
    })?;
    Ok(sender)
}

struct State {
    /// When the file was looked at.
    looked: Option<Instant>,
    /// What the file looked like when it was read.
    stamp: Option<Stamp>,
    now: Arc<[ProviderConfig]>,
    /// Providers whose keys were kept.
    kept: Vec<String>,
    /// Why the file was not read.
    problem: Option<String>,
}

impl State {
    /// Whether the last look still holds.
    fn is_fresh(&self, fresh: Duration) -> bool {
        self.looked.is_some_and(|looked| looked.elapsed() < fresh)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the file, and reads it if it has changed.
    fn look(&self, keys: &Keys) {
        let stamp = keys.stamp();
        {
            let mut state = self.state();
            if stamp == state.stamp {
                state.looked = Some(Instant::now());
                return;
            }
        }
        let (kept, problem) = match keys.read() {
            Ok(kept) => (kept, None),
            Err(error) => {
                tracing::warn!("{error}");
                (AllKept::new(), Some(error.to_string()))
            }
        };
        let now = with_keys(&self.configured, &kept, keys.path()).into();
        *self.state() = State {
            looked: Some(Instant::now()),
            stamp,
            now,
            kept: kept.into_keys().collect(),
            problem,
        };
    }
}

impl Reach {
    /// These providers, and the keys in that file.
    pub(crate) fn new(configured: Vec<ProviderConfig>, keys: Option<Keys>) -> Self {
        let state = State {
            looked: None,
            stamp: None,
            now: configured.clone().into(),
            kept: Vec::new(),
            problem: None,
        };
        Self {
            reader: OnceLock::new(),
            keys,
            fresh: FRESH,
            first_patience: FIRST_PATIENCE,
            patience: PATIENCE,
            shared: Arc::new(Shared {
                configured,
                state: Mutex::new(state),
                is_looking: AtomicBool::new(false),
                is_known: AtomicBool::new(false),
            }),
        }
    }

    /// As the environment and the configuration alone have them.
    pub(crate) fn configured(&self) -> &[ProviderConfig] {
        &self.shared.configured
    }

    fn state(&self) -> MutexGuard<'_, State> {
        if let Some(keys) = &self.keys
            && !self.shared.state().is_fresh(self.fresh)
            && !self.shared.is_looking.swap(true, Ordering::AcqRel)
        {
            self.look(keys);
        }
        self.shared.state()
    }

    /// Has the file looked at, and waits for that a moment.
    fn look(&self, keys: &Keys) {
        let reader = self
            .reader
            .get_or_init(|| read_on_a_thread(&self.shared, keys));
        let (done, is_done) = mpsc::sync_channel(1);
        let asked = match reader {
            Ok(reader) => reader.try_send(done).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = asked {
            self.shared.is_looking.store(false, Ordering::Release);
            tracing::warn!("the file of keys is not read: {error}");
            return;
        }
        let patience = match self.shared.is_known.swap(true, Ordering::AcqRel) {
            true => self.patience,
            false => self.first_patience,
        };
        if is_done.recv_timeout(patience).is_err() {
            tracing::warn!("the file of keys cannot be read in time");
        }
    }

    /// Why no key can be read from the file, if none can.
    pub(crate) fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// The model to use when nobody chose one. A provider that somebody logged in to counts like a
    /// well-known one.
    pub(crate) fn usual_model(&self) -> ModelName {
        let state = self.state();
        let named = |name: &String| {
            let mut all = state.now.iter();
            let provider = all.find(|it| it.name == *name && it.ready().is_ok())?;
            let model = provider.models.first()?.clone();
            let provider = name.clone();
            Some(ModelName { provider, model })
        };
        providers::usual_model(&state.now)
            .or_else(|| state.kept.iter().find_map(named))
            .unwrap_or(ModelName {
                provider: "offline".to_owned(),
                model: String::new(),
            })
    }
}

impl Reach {
    /// Forget all keys that were kept.
    pub(crate) fn forget(&self) -> Result<(), String> {
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        let forgotten = keys.write(&AllKept::new());
        forgotten.map_err(|error| error.to_string())
    }
}

impl Providers for Reach {
    fn now(&self) -> Arc<[ProviderConfig]> {
        Arc::clone(&self.state().now)
    }
}

/// What is kept goes to the providers that have no key yet, and makes providers of the unknown names.
fn with_keys(configured: &[ProviderConfig], kept: &AllKept, file: &Path) -> Vec<ProviderConfig> {
    let mut all = configured.to_vec();
    for (name, kept) in kept {
        match all.iter_mut().find(|provider| provider.name == *name) {
            Some(provider) => give(provider, kept),
            None => all.push(ProviderConfig {
                name: name.clone(),
                api: kept.api,
                base_url: kept.base_url.clone(),
                key: kept.key.clone(),
                key_hint: match kept.key {
                    Some(_) => file.display().to_string(),
                    None => String::new(),
                },
                models: kept.models.clone(),
            }),
        }
    }
    all
}

/// A key that is there already wins, and so does an address that somebody chose elsewhere: then the
/// key that is kept is for another one.
fn give(provider: &mut ProviderConfig, kept: &Kept) {
    if provider.key.is_some() {
        return;
    }
    if is_standard(provider) {
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

/// Whether the provider is where everybody finds it.
fn is_standard(provider: &ProviderConfig) -> bool {
    let mut standard = ProviderConfig::well_known(&|_| None).into_iter();
    standard.any(|it| it.name == provider.name && it.base_url == provider.base_url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::{ExposeSecret as _, SecretString};
    use turnery_models::Api;

    fn kept(key: &str, base_url: &str) -> Kept {
        Kept {
            key: Some(SecretString::from(key)),
            api: Api::OpenAi,
            base_url: base_url.to_owned(),
            models: vec!["m".to_owned()],
        }
    }

    /// The key and the address of `name`.
    fn find(reach: &Reach, name: &str) -> (Option<String>, String) {
        let now = reach.now();
        let provider = now.iter().find(|it| it.name == name).unwrap();
        let key = provider.key.as_ref();
        (
            key.map(|key| key.expose_secret().to_owned()),
            provider.base_url.clone(),
        )
    }

    fn well_known(set: &'static [(&'static str, &'static str)]) -> Vec<ProviderConfig> {
        ProviderConfig::well_known(&|name| {
            let found = set.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    // proves: AUTH-4
    #[test]
    fn a_key_counts_from_the_moment_that_it_is_kept_to_the_moment_that_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::at(folder.path().join("keys.json"));
        let mut reach = Reach::new(well_known(&[]), Some(keys.clone()));
        reach.fresh = Duration::ZERO;
        assert_eq!(reach.usual_model().to_string(), "offline");
        let openai = "https://api.openai.com/v1";
        let write = |key: &str| {
            let one = [("openai".to_owned(), kept(key, openai))];
            keys.write(&AllKept::from(one)).unwrap();
        };
        write("sk-1");
        assert_eq!(find(&reach, "openai").0.as_deref(), Some("sk-1"));
        assert_eq!(reach.usual_model().to_string(), "openai/gpt-5.1");
        write("sk-2");
        assert_eq!(find(&reach, "openai").0.as_deref(), Some("sk-2"));
        keys.write(&AllKept::new()).unwrap();
        assert_eq!(find(&reach, "openai").0, None);
        assert_eq!(reach.usual_model().to_string(), "offline");
    }

    /// A file that hangs is waited for once, and for a moment.
    #[test]
    fn hanging_file_of_keys_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        let rights = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rights,
            0,
        )
        .unwrap();
        let mut reach = Reach::new(well_known(&[]), Some(Keys::at(path.clone())));
        reach.first_patience = Duration::from_millis(20);
        reach.patience = Duration::ZERO;
        for _ in 0..3 {
            assert_eq!(reach.usual_model().to_string(), "offline");
        }
        // Whoever still reads it comes to its end.
        drop(std::fs::OpenOptions::new().write(true).open(path).unwrap());
    }

    #[test]
    fn the_environment_wins_and_a_key_goes_only_where_it_was_given_for() {
        let file = Path::new("keys.json");
        let with = |configured: &[ProviderConfig], name: &str, kept: Kept| {
            let all = with_keys(configured, &AllKept::from([(name.to_owned(), kept)]), file);
            Reach::new(all, None)
        };
        let openai = "https://api.openai.com/v1";
        let both = with(
            &well_known(&[("OPENAI_API_KEY", "sk-environment")]),
            "openai",
            kept("sk-file", openai),
        );
        let key = |it: &Reach| find(it, "openai").0;
        assert_eq!(key(&both).as_deref(), Some("sk-environment"));
        let moved = well_known(&[("OPENAI_BASE_URL", "https://elsewhere/v1")]);
        let elsewhere = with(&moved, "openai", kept("sk-file", openai));
        assert_eq!(
            find(&elsewhere, "openai"),
            (None, "https://elsewhere/v1".to_owned())
        );
        let there = with(&moved, "openai", kept("sk-file", "https://elsewhere/v1"));
        assert_eq!(key(&there).as_deref(), Some("sk-file"));
        let proxy = with(
            &well_known(&[]),
            "openai",
            kept("sk-file", "https://proxy/v1"),
        );
        assert_eq!(
            find(&proxy, "openai"),
            (Some("sk-file".to_owned()), "https://proxy/v1".to_owned())
        );
        let desk = with(&well_known(&[]), "desk", kept("sk-file", "http://desk/v1"));
        assert_eq!(
            find(&desk, "desk"),
            (Some("sk-file".to_owned()), "http://desk/v1".to_owned())
        );
    }

    #[test]
    fn without_a_well_known_key_the_provider_that_was_logged_in_to_answers() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::at(folder.path().join("keys.json"));
        let one = [("desk".to_owned(), kept("sk-1", "http://desk/v1"))];
        keys.write(&AllKept::from(one)).unwrap();
        let reach = Reach::new(well_known(&[]), Some(keys));
        assert_eq!(reach.usual_model().to_string(), "desk/m");
    }
}

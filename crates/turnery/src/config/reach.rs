//! The providers as they are now, with the keys that `turnery login` has kept meanwhile.
//!
//! The file of keys is read on a thread of its own, since its disk may hang: callers wait a moment for it, and
//! take what was read before if that is over. While the kernel tells of no change, it is looked at once a
//! minute.

use super::{
    file_watch::FileWatch,
    keys::{AllKept, Kept, Keys, Stamp},
    providers,
    served::{Served, is_standard},
};
use futures_util::future::BoxFuture;
use std::{
    io,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};
use turnery_models::{ModelName, ProviderConfig, Providers};

/// How long a caller waits for the file of keys to be read for the first time. Going on without keys would look like
/// a lost login.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);
/// How long a caller waits once there is an earlier state to go on with.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long the answer of a look holds: a prompt asks several times in a row, and no program that keeps a key is as
/// quick. On a disk whose looks take longer, each question has its own.
const FRESH: Duration = Duration::from_millis(5);

/// Longest time that it holds while the kernel tells of no change, which is silent when a folder further up is moved.
const FRESH_IF_QUIET: Duration = Duration::from_secs(60);

/// All providers. The file of keys is read when it has changed.
pub(crate) struct Reach {
    keys: Option<Keys>,
    /// Result of starting the thread that looks at the file.
    reader: OnceLock<io::Result<()>>,
    shared: Arc<Shared>,
    served: Served,
    /// How long the answer of a look holds that is not watched.
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
    /// True if the kernel may be asked to tell of changes.
    may_watch: bool,
    /// Wakes the thread that looks.
    asked: Condvar,
    /// Wakes whoever waits for a look.
    answered: Condvar,
}

struct State {
    /// When the last look at the file began.
    looked: Option<Instant>,
    /// What the file looked like when it was read.
    stamp: Option<Stamp>,
    now: Arc<[ProviderConfig]>,
    /// Providers whose keys were kept.
    kept: Vec<String>,
    /// Why the file was not read.
    problem: Option<String>,
    /// Kept even while it cannot follow the file, since dropping it may take milliseconds.
    watch: Option<FileWatch>,
    /// The watch has followed the file since before the last look, and told of no change.
    is_watched: bool,
    looks: Looks,
}

/// Looks at the file, numbered from 1.
#[derive(Default)]
struct Looks {
    /// The last that was asked for.
    asked: u64,
    /// The last that is done. Nobody asks for another before.
    answered: u64,
    /// The last that was waited for in vain.
    given_up: u64,
    /// Nobody asks any more.
    has_ended: bool,
}

impl Looks {
    fn is_under_way(&self) -> bool {
        self.asked > self.answered
    }
}

impl State {
    /// Whether the last look still holds.
    fn is_fresh(&mut self, fresh: Duration) -> bool {
        let Some(looked) = self.looked.filter(|_| !self.looks.is_under_way()) else {
            return false;
        };
        if looked.elapsed() < fresh {
            return true;
        }
        self.is_watched &= self.watch.as_ref().is_some_and(FileWatch::is_quiet);
        self.is_watched && looked.elapsed() < FRESH_IF_QUIET
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whenever it is asked to.
    fn run(&self, keys: &Keys) {
        loop {
            let idle = |state: &mut State| !state.looks.is_under_way() && !state.looks.has_ended;
            let state = self.asked.wait_while(self.state(), idle);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            if state.looks.has_ended {
                return;
            }
            let watch = state.watch.take();
            drop(state);
            let began = Instant::now();
            let begin = || FileWatch::new(keys.path());
            let mut watch = watch.or_else(|| self.may_watch.then(begin).flatten());
            // Before the look, so that no change falls between the two.
            let is_watched = watch.as_mut().is_some_and(|it| it.follow(keys.path()));
            self.look(keys);
            let mut state = self.state();
            state.watch = watch;
            state.is_watched = is_watched;
            state.looked = Some(began);
            state.looks.answered = state.looks.asked;
            drop(state);
            self.answered.notify_all();
        }
    }

    /// Looks at the file, and reads it if it has changed.
    fn look(&self, keys: &Keys) {
        let stamp = keys.stamp();
        if stamp == self.state().stamp {
            return;
        }
        let (kept, problem) = match keys.read() {
            Ok(kept) => (kept, None),
            Err(error) => {
                tracing::warn!("{error}");
                (AllKept::new(), Some(error.to_string()))
            }
        };
        let now = with_keys(&self.configured, &kept, keys.path()).into();
        let mut state = self.state();
        state.stamp = stamp;
        state.now = now;
        state.kept = kept.into_keys().collect();
        state.problem = problem;
    }
}

impl Drop for Reach {
    fn drop(&mut self) {
        self.shared.state().looks.has_ended = true;
        self.shared.asked.notify_one();
    }
}

impl Reach {
    /// These providers, and the keys in that file.
    pub(crate) fn new(configured: Vec<ProviderConfig>, keys: Option<Keys>) -> Self {
        Self::watching(configured, keys, true)
    }

    fn watching(configured: Vec<ProviderConfig>, keys: Option<Keys>, may_watch: bool) -> Self {
        let state = State {
            looked: None,
            stamp: None,
            now: configured.clone().into(),
            kept: Vec::new(),
            problem: None,
            watch: None,
            is_watched: false,
            looks: Looks::default(),
        };
        Self {
            keys,
            reader: OnceLock::new(),
            served: Served::default(),
            fresh: FRESH,
            first_patience: FIRST_PATIENCE,
            patience: PATIENCE,
            shared: Arc::new(Shared {
                configured,
                state: Mutex::new(state),
                may_watch,
                asked: Condvar::new(),
                answered: Condvar::new(),
            }),
        }
    }

    /// As the environment and the configuration alone have them.
    pub(crate) fn configured(&self) -> &[ProviderConfig] {
        &self.shared.configured
    }

    /// The state after a look at the file that holds still, or as it was if none is done in time.
    fn state(&self) -> MutexGuard<'_, State> {
        let (state, joins) = self.ask();
        let mut state = self.wait(state);
        // That look may have missed what was kept since it began.
        if joins && !state.is_fresh(self.fresh) {
            drop(state);
            state = self.wait(self.ask().0);
        }
        state
    }

    /// Waits for the look that is under way, unless it was waited for in vain already.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let look = state.looks.asked;
        if !state.looks.is_under_way() || state.looks.given_up == look {
            return state;
        }
        let patience = match state.looks.answered {
            0 => self.first_patience,
            _ => self.patience,
        };
        let waits = |state: &mut State| state.looks.answered < look;
        let waited = self
            .shared
            .answered
            .wait_timeout_while(state, patience, waits);
        let is_late;
        (state, is_late) = match waited {
            Ok((state, waited)) => (state, waited.timed_out()),
            Err(poisoned) => (poisoned.into_inner().0, false),
        };
        if is_late {
            state.looks.given_up = look;
            tracing::warn!("the file of keys cannot be read in time");
        }
        state
    }

    /// Asks for a look, unless the last one still holds or is under way. Returns true if it is under way.
    fn ask(&self) -> (MutexGuard<'_, State>, bool) {
        let mut state = self.shared.state();
        let joins = state.looks.is_under_way();
        if let Some(keys) = &self.keys
            && !joins
            && !state.is_fresh(self.fresh)
        {
            match self.reader.get_or_init(|| self.start(keys)) {
                Ok(()) => {
                    state.looks.asked += 1;
                    // Not while whoever wakes would have to wait for it.
                    drop(state);
                    self.shared.asked.notify_one();
                    state = self.shared.state();
                }
                Err(error) => tracing::warn!("the file of keys is not read: {error}"),
            }
        }
        (state, joins)
    }

    fn start(&self, keys: &Keys) -> io::Result<()> {
        let (shared, keys) = (Arc::clone(&self.shared), keys.clone());
        let reader = thread::Builder::new().name("keys".to_owned());
        reader.spawn(move || shared.run(&keys)).map(drop)
    }

    /// Why no key can be read from the file, if none can.
    pub(crate) fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// The model to use when nobody chose one. A provider that somebody logged in to counts like a
    /// well-known one; then comes a server at an address of the user's, if it has answered.
    pub(crate) fn usual_model(&self) -> ModelName {
        let state = self.state();
        let (now, kept) = (Arc::clone(&state.now), state.kept.clone());
        drop(state);
        let now = self.served.apply(now);
        let named = |name: &String| {
            let mut all = now.iter();
            let provider = all.find(|it| it.name == *name && it.ready().is_ok())?;
            providers::first_model(provider)
        };
        providers::usual_model(&now)
            .or_else(|| kept.iter().find_map(named))
            .or_else(|| self.served.usual_model(&now))
            .unwrap_or(ModelName {
                provider: "offline".to_owned(),
                model: String::new(),
            })
    }
}

impl Reach {
    /// What is known of the servers of the user's own.
    pub(crate) fn served(&self) -> &Served {
        &self.served
    }

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
        let now = Arc::clone(&self.state().now);
        self.served.apply(now)
    }

    fn discover(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let now = Arc::clone(&self.state().now);
            self.served.ask(&now).await;
        })
    }

    fn offered(&self) -> Arc<[ProviderConfig]> {
        self.served.without_silent(self.now())
    }

    fn look_ahead(&self) {
        drop(self.ask());
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
        for may_watch in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let keys = Keys::at(folder.path().join("keys.json"));
            let configured = well_known(&[]);
            let reach = eager(configured, keys.clone(), may_watch);
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
    }

    /// Nothing that it has seen holds, and a look may take as long as a busy machine needs.
    fn eager(configured: Vec<ProviderConfig>, keys: Keys, may_watch: bool) -> Reach {
        let mut reach = Reach::watching(configured, Some(keys), may_watch);
        reach.fresh = Duration::ZERO;
        reach.first_patience = Duration::from_secs(60);
        reach.patience = reach.first_patience;
        reach
    }

    /// Number of looks until now.
    fn looks(reach: &Reach) -> u64 {
        reach.state().looks.answered
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn unchanged_file_is_not_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        std::fs::create_dir(&place).unwrap();
        let keys = Keys::at(place.join("keys.json"));
        let reach = eager(well_known(&[]), keys, true);
        assert_eq!((looks(&reach), looks(&reach)), (1, 1));
        std::fs::write(place.join("keys.json"), "{}").unwrap();
        assert_eq!((looks(&reach), looks(&reach)), (2, 2));
        std::fs::write(place.join("sessions.db"), "").unwrap();
        assert_eq!(looks(&reach), 2, "another file");
        std::fs::rename(&place, folder.path().join("elsewhere")).unwrap();
        assert_eq!((looks(&reach), looks(&reach)), (3, 4), "no folder to watch");
        std::fs::create_dir(&place).unwrap();
        assert_eq!((looks(&reach), looks(&reach)), (5, 5));
    }

    /// The kernel tells a folder only of what is done under the names in it.
    #[cfg(target_os = "linux")]
    #[test]
    fn change_by_another_name_is_seen() {
        use std::{fs, io::Write as _, os::unix::fs::symlink};
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (
            folder.path().join("keys.json"),
            tempfile::tempdir().unwrap(),
        );
        let linked = other.path().join("linked.json");
        fs::write(&path, "{}").unwrap();
        let reach = eager(well_known(&[]), Keys::at(path.clone()), true);
        assert_eq!((looks(&reach), looks(&reach)), (1, 1));
        fs::hard_link(&path, &linked).unwrap();
        assert_eq!((looks(&reach), looks(&reach)), (2, 2));
        let mut open = fs::OpenOptions::new().append(true).open(&linked).unwrap();
        open.write_all(b" ").unwrap();
        assert_eq!((looks(&reach), looks(&reach)), (3, 3), "not closed yet");
        fs::remove_file(&path).unwrap();
        symlink(&linked, &path).unwrap();
        assert_eq!(
            (looks(&reach), looks(&reach)),
            (4, 5),
            "a link is not watched"
        );
        fs::rename(&linked, &path).unwrap();
        assert_eq!((looks(&reach), looks(&reach)), (6, 6));
        open.write_all(b" ").unwrap();
        assert_eq!((looks(&reach), looks(&reach)), (7, 7));
    }

    /// A pipe in the place of the file of keys: whoever reads it waits.
    fn make_pipe(path: &Path) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    // proves: AUTH-4
    #[test]
    fn key_kept_during_a_look_counts_for_its_waiters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        make_pipe(&path);
        let keys = Keys::at(path.clone());
        let reach = eager(well_known(&[]), keys.clone(), false);
        reach.look_ahead();
        // Opens as soon as the look has.
        let look = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| find(&reach, "desk").0);
            let one = [("desk".to_owned(), kept("sk-1", "http://desk/v1"))];
            keys.write(&AllKept::from(one)).unwrap();
            drop(look);
            assert_eq!(waiting.join().unwrap().as_deref(), Some("sk-1"));
        });
    }

    /// A file that hangs is waited for once, and for a moment.
    #[test]
    fn hanging_file_of_keys_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        make_pipe(&path);
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

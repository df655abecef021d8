//! Tests of rereading the key file, of the precedence between configured and stored keys, and of the default
//! model.

use super::*;
use secrecy::{ExposeSecret as _, SecretString};
use turnery_models::Api;

fn stored_key(key: &str, base_url: &str) -> StoredKey {
    StoredKey {
        key: Some(SecretString::from(key)),
        api: Api::OpenAi,
        base_url: base_url.to_owned(),
        models: vec!["m".to_owned()],
    }
}

/// Returns the key and the address of the provider `name`.
fn find(live_providers: &LiveProviders, name: &str) -> (Option<String>, String) {
    let now = live_providers.current();
    let provider = now.iter().find(|it| it.name == name).unwrap();
    let key = provider.key.as_ref();
    (
        key.map(|key| key.expose_secret().to_owned()),
        provider.base_url.clone(),
    )
}

fn standard_providers(set: &'static [(&'static str, &'static str)]) -> Vec<ProviderConfig> {
    ProviderConfig::standard_from_env(&|name| {
        let found = set.iter().find(|(it, _)| *it == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

// proves: AUTH-4
#[test]
fn stored_key_applies_until_it_is_removed() {
    for may_watch in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFile::new(folder.path().join("keys.json"));
        let configured = standard_providers(&[]);
        let live_providers = new_without_freshness(configured, keys.clone(), may_watch);
        assert_eq!(live_providers.default_model().to_string(), "offline");
        let openai = "https://api.openai.com/v1";
        let write = |key: &str| {
            let one = [("openai".to_owned(), stored_key(key, openai))];
            keys.write(&StoredKeys::from(one)).unwrap();
        };
        write("sk-1");
        assert_eq!(find(&live_providers, "openai").0.as_deref(), Some("sk-1"));
        assert_eq!(live_providers.default_model().to_string(), "openai/gpt-5.1");
        // The next read begins a new watch.
        live_providers.stop_watching();
        assert!(live_providers.key_reader.state().file_watch.is_none());
        write("sk-2");
        assert_eq!(find(&live_providers, "openai").0.as_deref(), Some("sk-2"));
        keys.write(&StoredKeys::new()).unwrap();
        assert_eq!(find(&live_providers, "openai").0, None);
        assert_eq!(live_providers.default_model().to_string(), "offline");
    }
}

/// Creates providers that check the key file on every call, or with `may_watch` once inotify reports a
/// change, and whose callers wait up to a minute for the read.
fn new_without_freshness(
    configured: Vec<ProviderConfig>,
    keys: KeyFile,
    may_watch: bool,
) -> LiveProviders {
    let mut live_providers = LiveProviders::with_watch(configured, Some(keys), may_watch);
    live_providers.freshness = Duration::ZERO;
    live_providers.first_timeout = Duration::from_secs(60);
    live_providers.read_timeout = live_providers.first_timeout;
    live_providers
}

/// Requests a read unless the last one is still fresh; returns the number of reads completed since the start.
/// A check that finds the file unchanged counts as a read.
fn refresh_and_count_reads(live_providers: &LiveProviders) -> u64 {
    live_providers.state().reads.completed
}

#[cfg(target_os = "linux")]
#[test]
fn unchanged_file_is_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let keys = KeyFile::new(place.join("keys.json"));
    let live_providers = new_without_freshness(standard_providers(&[]), keys, true);
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (1, 1)
    );
    std::fs::write(place.join("keys.json"), "{}").unwrap();
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (2, 2)
    );
    std::fs::write(place.join("sessions.db"), "").unwrap();
    assert_eq!(refresh_and_count_reads(&live_providers), 2, "another file");
    std::fs::rename(&place, folder.path().join("elsewhere")).unwrap();
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (3, 4),
        "no folder to watch"
    );
    std::fs::create_dir(&place).unwrap();
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (5, 5)
    );
}

/// A change through another hard link is noticed, although a watch on the folder does not report it. A
/// symbolic link cannot be watched, so the file behind it is checked on every call.
#[cfg(target_os = "linux")]
#[test]
fn change_through_other_link_is_noticed() {
    use std::{fs, io::Write as _, os::unix::fs::symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (
        folder.path().join("keys.json"),
        tempfile::tempdir().unwrap(),
    );
    let linked = other.path().join("linked.json");
    fs::write(&path, "{}").unwrap();
    let live_providers =
        new_without_freshness(standard_providers(&[]), KeyFile::new(path.clone()), true);
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (1, 1)
    );
    fs::hard_link(&path, &linked).unwrap();
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (2, 2)
    );
    let mut open = fs::OpenOptions::new().append(true).open(&linked).unwrap();
    open.write_all(b" ").unwrap();
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (3, 3),
        "not closed yet"
    );
    fs::remove_file(&path).unwrap();
    symlink(&linked, &path).unwrap();
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (4, 5),
        "a link is not watched"
    );
    fs::rename(&linked, &path).unwrap();
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (6, 6)
    );
    open.write_all(b" ").unwrap();
    assert_eq!(
        (
            refresh_and_count_reads(&live_providers),
            refresh_and_count_reads(&live_providers)
        ),
        (7, 7)
    );
}

/// Creates a pipe in place of the key file: reading it blocks.
fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

// proves: AUTH-4
#[test]
fn key_stored_during_read_reaches_waiters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    make_pipe(&path);
    let keys = KeyFile::new(path.clone());
    let live_providers = new_without_freshness(standard_providers(&[]), keys.clone(), false);
    live_providers.prefetch();
    // Opens as soon as the reader has.
    let look = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| find(&live_providers, "desk").0);
        let one = [("desk".to_owned(), stored_key("sk-1", "http://desk/v1"))];
        keys.write(&StoredKeys::from(one)).unwrap();
        drop(look);
        assert_eq!(waiting.join().unwrap().as_deref(), Some("sk-1"));
    });
}

/// Callers get the earlier providers, here none, while a read of the key file hangs.
#[test]
fn hanging_key_file_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    make_pipe(&path);
    let mut live_providers =
        LiveProviders::new(standard_providers(&[]), Some(KeyFile::new(path.clone())));
    live_providers.first_timeout = Duration::from_millis(20);
    live_providers.read_timeout = Duration::ZERO;
    for _ in 0..3 {
        assert_eq!(live_providers.default_model().to_string(), "offline");
    }
    // Lets a blocked reader reach the end of the pipe.
    drop(std::fs::OpenOptions::new().write(true).open(path).unwrap());
}

#[test]
fn environment_key_wins_and_key_stays_with_its_address() {
    let file = Path::new("keys.json");
    let with = |configured: &[ProviderConfig], name: &str, kept: StoredKey| {
        let all = with_keys(
            configured,
            &StoredKeys::from([(name.to_owned(), kept)]),
            file,
        );
        LiveProviders::new(all, None)
    };
    let openai = "https://api.openai.com/v1";
    let both = with(
        &standard_providers(&[("OPENAI_API_KEY", "sk-environment")]),
        "openai",
        stored_key("sk-file", openai),
    );
    let key = |it: &LiveProviders| find(it, "openai").0;
    assert_eq!(key(&both).as_deref(), Some("sk-environment"));
    let moved = standard_providers(&[("OPENAI_BASE_URL", "https://elsewhere/v1")]);
    let elsewhere = with(&moved, "openai", stored_key("sk-file", openai));
    assert_eq!(
        find(&elsewhere, "openai"),
        (None, "https://elsewhere/v1".to_owned())
    );
    let there = with(
        &moved,
        "openai",
        stored_key("sk-file", "https://elsewhere/v1"),
    );
    assert_eq!(key(&there).as_deref(), Some("sk-file"));
    // The key was stored before the default API of OpenAI changed.
    let own = with(
        &standard_providers(&[]),
        "openai",
        stored_key("sk-file", openai),
    );
    let now = own.current();
    let own = now.iter().find(|it| it.name == "openai").unwrap();
    assert_eq!(own.api, Api::OpenAiResponses);
    let proxy = with(
        &standard_providers(&[]),
        "openai",
        stored_key("sk-file", "https://proxy/v1"),
    );
    assert_eq!(
        find(&proxy, "openai"),
        (Some("sk-file".to_owned()), "https://proxy/v1".to_owned())
    );
    let desk = with(
        &standard_providers(&[]),
        "desk",
        stored_key("sk-file", "http://desk/v1"),
    );
    assert_eq!(
        find(&desk, "desk"),
        (Some("sk-file".to_owned()), "http://desk/v1".to_owned())
    );
}

#[test]
fn logged_in_provider_is_default_without_other_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let one = [("desk".to_owned(), stored_key("sk-1", "http://desk/v1"))];
    keys.write(&StoredKeys::from(one)).unwrap();
    let live_providers = LiveProviders::new(standard_providers(&[]), Some(keys));
    assert_eq!(live_providers.default_model().to_string(), "desk/m");
}

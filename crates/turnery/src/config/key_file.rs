//! The key file of `turnery login`, readable by its owner only.
//!
//! Each key is stored with the address that it belongs to and is never sent to another one.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};
use turnery_models::Api;

/// Longest key file; longer ones are refused. Unit: bytes.
const MAX_KEY_FILE_BYTES: u64 = 1 << 20;

/// Stored data of one provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredKey {
    /// The key; `None` for a server that needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "expose_key", deserialize_with = "hide_key")]
    pub(crate) key: Option<SecretString>,
    /// API that the provider speaks.
    pub(crate) api: Api,
    /// The only address that the key is sent to.
    pub(crate) base_url: String,
    /// Models to offer; only for providers that are not well-known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) models: Vec<String>,
}

/// Stored data of all providers, by name.
pub(crate) type StoredKeys = BTreeMap<String, StoredKey>;

fn expose_key<S: Serializer>(key: &Option<SecretString>, to: S) -> Result<S::Ok, S::Error> {
    key.as_ref().map(ExposeSecret::expose_secret).serialize(to)
}

fn hide_key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(SecretString::from))
}

/// Error of reading or writing the key file. Messages never quote the contents.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFileError {
    #[error("{path} may be read by others (mode {mode:04o}); run: chmod 600 {path}")]
    InsecurePermissions { path: String, mode: u32 },
    #[error("{path}:{line}: this is no file of turnery's keys; delete it, then run turnery login")]
    Broken { path: String, line: usize },
    #[error("{path}: {error}")]
    Io { path: String, error: io::Error },
}

/// Identifies a state of the file: differs after every change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp([i64; 6]);

/// The key file.
#[derive(Clone, Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the stamp of the file from its metadata; `None` if it does not exist.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        let seen = fs::metadata(&self.path).ok()?;
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        Some(FileStamp([
            number(seen.ino()),
            number(seen.len()),
            i64::from(seen.mode()),
            seen.ctime(),
            seen.ctime_nsec(),
            seen.mtime_nsec(),
        ]))
    }

    /// Reads the file. Refuses a file that other users may read, since its keys may have leaked.
    pub(crate) fn read(&self) -> Result<StoredKeys, KeyFileError> {
        self.read_if(|seen| match seen.mode() & 0o777 {
            mode if mode & 0o077 != 0 => Err(KeyFileError::InsecurePermissions {
                path: self.display_path(),
                mode,
            }),
            _ => Ok(()),
        })
    }

    /// Like [`Self::read`], but skips the permission check; for callers that rewrite the file.
    pub(crate) fn read_ignoring_mode(&self) -> Result<StoredKeys, KeyFileError> {
        self.read_if(|_| Ok(()))
    }

    fn read_if(
        &self,
        fits: impl FnOnce(&Metadata) -> Result<(), KeyFileError>,
    ) -> Result<StoredKeys, KeyFileError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredKeys::new()),
            Err(error) => return Err(self.io(error)),
        };
        fits(&file.metadata().map_err(|error| self.io(error))?)?;
        let mut text = Vec::new();
        let mut file = file.take(MAX_KEY_FILE_BYTES);
        file.read_to_end(&mut text)
            .map_err(|error| self.io(error))?;
        serde_json::from_slice(&text).map_err(|error| KeyFileError::Broken {
            path: self.display_path(),
            line: error.line(),
        })
    }

    /// Replaces the contents atomically, with access for the owner only. Deletes the file if `kept` is empty.
    pub(crate) fn write(&self, kept: &StoredKeys) -> Result<(), KeyFileError> {
        let written = match kept.is_empty() {
            true => match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
            false => self.replace(kept),
        };
        written.map_err(|error| self.io(error))
    }

    fn replace(&self, kept: &StoredKeys) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let beside = folder.join(format!(".keys.{}", turnery_store::new_uuid()));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        let replaced = serde_json::to_writer_pretty(&mut file, kept)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&beside, &self.path));
        if replaced.is_err() {
            let _ = fs::remove_file(&beside);
        }
        replaced
    }

    fn display_path(&self) -> String {
        self.path.display().to_string()
    }

    fn io(&self, error: io::Error) -> KeyFileError {
        KeyFileError::Io {
            path: self.display_path(),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn stored_provider(key: &str) -> StoredKey {
        StoredKey {
            key: Some(SecretString::from(key)),
            api: Api::OpenAi,
            base_url: "http://desk/v1".to_owned(),
            models: Vec::new(),
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn key_file_is_private_and_written_atomically() {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFile::new(folder.path().join("new").join("keys.json"));
        assert!(keys.read().unwrap().is_empty());
        assert_eq!(keys.stamp(), None);
        keys.write(&StoredKeys::from([(
            "desk".to_owned(),
            stored_provider("sk-1"),
        )]))
        .unwrap();
        assert_eq!(mode(keys.path()), 0o600);
        assert_eq!(mode(keys.path().parent().unwrap()), 0o700);
        let first = keys.stamp().unwrap();
        let text = fs::read_to_string(keys.path()).unwrap();
        assert_eq!(
            text,
            "{\n  \"desk\": {\n    \"key\": \"sk-1\",\n    \"api\": \"openai\",\n    \"base_url\": \"http://desk/v1\"\n  }\n}\n"
        );
        keys.write(&StoredKeys::from([(
            "desk".to_owned(),
            stored_provider("sk-2"),
        )]))
        .unwrap();
        assert_ne!(
            keys.stamp().unwrap(),
            first,
            "the same length, another file"
        );
        let key = keys.read().unwrap()["desk"].key.clone().unwrap();
        assert_eq!(key.expose_secret(), "sk-2");
        let left = fs::read_dir(folder.path().join("new")).unwrap().count();
        assert_eq!(left, 1, "nothing lies beside it");
        keys.write(&StoredKeys::new()).unwrap();
        assert!(!keys.path().exists());
        keys.write(&StoredKeys::new()).unwrap();
    }

    #[test]
    fn key_file_readable_by_others_is_rejected_until_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFile::new(folder.path().join("keys.json"));
        keys.write(&StoredKeys::from([(
            "desk".to_owned(),
            stored_provider("sk-1"),
        )]))
        .unwrap();
        for bits in [0o640, 0o604, 0o666] {
            fs::set_permissions(keys.path(), fs::Permissions::from_mode(bits)).unwrap();
            assert_eq!(
                keys.read().unwrap_err().to_string(),
                format!(
                    "{0} may be read by others (mode {bits:04o}); run: chmod 600 {0}",
                    keys.path().display()
                )
            );
        }
        let all = keys.read_ignoring_mode().unwrap();
        keys.write(&all).unwrap();
        assert_eq!(mode(keys.path()), 0o600);
        assert_eq!(keys.read().unwrap().len(), 1);
    }

    #[test]
    fn errors_and_debug_output_hide_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        let keys = KeyFile::new(path.clone());
        for broken in [
            "{\"desk\": \"sk-secret\"}",
            "{\"desk\": {\"key\": \"sk-secret\"}}",
            "{\"desk\": {\"sk-secret\": 1}}",
            "sk-secret",
        ] {
            write(broken);
            let error = keys.read().unwrap_err();
            for shown in [error.to_string(), format!("{error:?}")] {
                assert!(!shown.contains("sk-secret"), "{shown}");
            }
            assert!(error.to_string().contains("keys.json:1: "), "{error}");
        }
        let kept = stored_provider("sk-secret");
        assert!(!format!("{kept:?}").contains("sk-secret"));
    }
}

//! Builds the profile for `sandbox-exec`, the sandbox of macOS. The last matching rule wins.

use super::{confinement::Confinement, known_paths};
use std::{fmt::Write as _, path::Path};

/// Returns the profile of a confinement.
pub(crate) fn profile(confinement: &Confinement) -> String {
    let mut text = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    let mut rule = |verb: &str, what: &str, path: &Path| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "({verb} {what} (subpath {}))", quote_path(path));
    };
    let in_home = |names: &'static [&str]| {
        let home = confinement.home.as_deref();
        names
            .iter()
            .filter_map(move |name| home.map(|it| it.join(name)))
    };
    if !confinement.writes {
        if let Some(home) = &confinement.home {
            rule("deny", "file-read-data", home);
        }
        let toolchains = confinement.toolchains.iter().cloned();
        for path in in_home(known_paths::TOOLCHAINS).chain(toolchains) {
            rule("allow", "file-read-data", &path);
        }
    }
    for root in &confinement.roots {
        rule("allow", "file-read-data", root);
    }
    if let Some(scratch) = &confinement.scratch {
        rule("allow", "file-read-data", scratch);
        rule("allow", "file-write*", scratch);
    }
    if confinement.writes {
        for path in confinement.writable() {
            rule("allow", "file-write*", &path);
        }
        for path in in_home(known_paths::AUTOSTART_PATHS) {
            rule("deny", "file-write*", &path);
        }
    }
    let keys = in_home(known_paths::KEY_PATHS).chain(in_home(known_paths::APPLICATION_PROFILES));
    for path in keys.chain(confinement.private.iter().cloned()) {
        rule("deny", "file-read-data", &path);
        rule("deny", "file-write*", &path);
    }
    for path in &confinement.hidden {
        rule("deny", "file-read-data", Path::new(path));
    }
    // After the keys, since variables such as `HISTFILE=/dev/null` may name devices.
    for path in known_paths::DEVICES {
        rule("allow", "file-read-data", Path::new(path));
        rule("allow", "file-write*", Path::new(path));
    }
    text.push_str("(deny signal)\n(allow signal (target same-sandbox))\n");
    match confinement.network {
        true => text.push_str("(deny network* (remote unix-socket))\n"),
        false => text.push_str("(deny network*)\n"),
    }
    text
}

fn quote_path(path: &Path) -> String {
    let path = path.to_string_lossy();
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_confinement(writes: bool) -> Confinement {
        Confinement {
            writes,
            roots: vec!["/srv/a\"b".into()],
            work_trees: Vec::new(),
            home: Some("/Users/me".into()),
            private: vec!["/Users/me/.turnery".into(), "/dev/null".into()],
            scratch: Some("/scratch".into()),
            hidden: vec!["/srv/a\"b/.env".into()],
            ..Confinement::default()
        }
    }

    #[test]
    fn private_folders_are_denied_after_allow_rules() {
        let text = profile(&test_confinement(true));
        let place = |line: &str| text.find(line).unwrap();
        let root = place(r#"(allow file-write* (subpath "/srv/a\"b"))"#);
        let keys = place(r#"(deny file-read-data (subpath "/Users/me/.ssh"))"#);
        let own = place(r#"(deny file-write* (subpath "/Users/me/.turnery"))"#);
        assert!(root < keys && keys < own);
        let device = place(r#"(deny file-write* (subpath "/dev/null"))"#);
        assert!(device < place(r#"(allow file-write* (subpath "/dev/null"))"#));
        assert!(text.contains("(deny network*)"));
    }

    #[test]
    fn read_only_profile_allows_no_write_to_roots() {
        let text = profile(&test_confinement(false));
        assert!(!text.contains(r#"(allow file-write* (subpath "/srv"#));
        assert!(text.contains(r#"(allow file-write* (subpath "/scratch"))"#));
        let home = text.find(r#"(deny file-read-data (subpath "/Users/me"))"#);
        let root = text.find(r#"(allow file-read-data (subpath "/srv/a\"b"))"#);
        let hidden = text.find(r#"(deny file-read-data (subpath "/srv/a\"b/.env"))"#);
        assert!(home.unwrap() < root.unwrap() && root < hidden);
    }
}

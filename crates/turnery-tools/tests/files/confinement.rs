//! Tests that nothing outside the roots is read or changed (DIR-4, DIR-5).

use crate::fixture::ToolFixture;
use proptest::prelude::*;
use serde_json::json;
use std::{fs, os::unix::fs::symlink, path::PathBuf, sync::Arc};
use turnery_tools::{LocalFiles, Workspace};

// proves: DIR-5
#[tokio::test]
async fn paths_outside_roots_are_rejected() {
    let bench = ToolFixture::new();
    let secret = bench.outside_folder.join("secret.txt");
    fs::write(&secret, "secret").unwrap();
    bench.write_file("in/x.txt", "inside");
    symlink(&secret, bench.root.join("file_link")).unwrap();
    symlink(&bench.outside_folder, bench.root.join("in/folder_link")).unwrap();
    symlink(
        bench.outside_folder.join("new.txt"),
        bench.root.join("dangling"),
    )
    .unwrap();
    symlink("../outside", bench.root.join("relative_link")).unwrap();
    symlink("relative_link", bench.root.join("link_to_link")).unwrap();
    symlink("loop", bench.root.join("loop")).unwrap();
    let roots = bench.root.display();
    for path in [
        "../outside/secret.txt",
        "in/../../outside/secret.txt",
        "file_link",
        "in/folder_link/secret.txt",
        "in/folder_link/missing/../secret.txt",
        "dangling",
        "relative_link/secret.txt",
        "link_to_link/secret.txt",
        "missing/../../outside/secret.txt",
        secret.to_str().unwrap(),
        "..",
        "/",
    ] {
        let expected = format!("{path} is outside the folders of this session ({roots})");
        for (tool, args) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            (
                "edit_file",
                json!({"path": path, "old_text": "secret", "new_text": "x"}),
            ),
            ("list_dir", json!({"path": path})),
            ("find_files", json!({"path": path, "pattern": "*"})),
            ("search", json!({"path": path, "pattern": "secret"})),
        ] {
            let (_, message) = bench.call_failure(tool, args.clone()).await;
            assert_eq!(message, expected, "{tool}");
            let failure = bench.prepare(tool, args).await.unwrap_err();
            assert_eq!(failure.message, expected, "{tool}");
        }
    }
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "loop"}))
        .await;
    assert_eq!(message, "loop leads through a loop of links");
    assert_eq!(fs::read(&secret).unwrap(), b"secret");
    assert!(!bench.outside_folder.join("new.txt").exists());
}

#[tokio::test]
async fn walks_do_not_follow_links() {
    let bench = ToolFixture::new();
    fs::write(bench.outside_folder.join("secret.txt"), "secret").unwrap();
    symlink(&bench.outside_folder, bench.root.join("out")).unwrap();
    symlink(
        bench.outside_folder.join("secret.txt"),
        bench.root.join("s.txt"),
    )
    .unwrap();
    let told = bench
        .call_text("search", json!({"pattern": "secret"}))
        .await;
    assert_eq!(told, "[no match]\n");
    let told = bench
        .call_text("find_files", json!({"pattern": "secret.*"}))
        .await;
    assert_eq!(told, "[no file matches]");
    let told = bench.call_text("list_dir", json!({"depth": 5})).await;
    let outside = bench.outside_folder.display();
    assert_eq!(
        told,
        format!("out -> {outside}\ns.txt -> {outside}/secret.txt\n")
    );
}

#[tokio::test]
async fn links_within_roots_are_followed() {
    let bench = ToolFixture::new();
    let real = bench.write_file("real/a.txt", "a");
    symlink("real", bench.root.join("link")).unwrap();
    symlink("../real/new.txt", bench.root.join("real/dangling")).unwrap();
    let workspace = &bench.cx.workspace;
    assert_eq!(workspace.resolve("link/a.txt"), Ok(real));
    // `..` after a link leaves the folder that the link leads to, as it does for the system.
    assert_eq!(workspace.resolve("link/.."), Ok(bench.root.clone()));
    let args = json!({"path": "real/dangling", "content": "made"});
    bench.call_text("write_file", args).await;
    assert_eq!(bench.read_bytes("real/new.txt"), b"made");
}

#[tokio::test]
async fn link_planted_after_permission_is_not_followed() {
    let bench = ToolFixture::new();
    fs::create_dir(bench.outside_folder.join("dir")).unwrap();
    fs::write(bench.outside_folder.join("dir/a.txt"), "old").unwrap();
    bench.write_file("dir/a.txt", "old");
    let args = json!({"path": "dir/a.txt", "content": "new"});
    bench.prepare("write_file", args.clone()).await.unwrap();
    fs::rename(bench.root.join("dir"), bench.root.join("was")).unwrap();
    symlink(bench.outside_folder.join("dir"), bench.root.join("dir")).unwrap();
    let (_, message) = bench.call_failure("write_file", args).await;
    assert!(message.contains("outside the folders"), "{message}");
    assert_eq!(
        fs::read(bench.outside_folder.join("dir/a.txt")).unwrap(),
        b"old"
    );
}

#[tokio::test]
async fn link_planted_after_permission_is_not_followed_inside() {
    for (tool, args) in [
        ("write_file", json!({"path": "a.txt", "content": "new"})),
        (
            "edit_file",
            json!({"path": "a.txt", "old_text": "old", "new_text": "new"}),
        ),
    ] {
        let bench = ToolFixture::new();
        bench.write_file("a.txt", "old");
        bench.write_file("secrets/k", "old");
        bench.prepare(tool, args.clone()).await.unwrap();
        fs::remove_file(bench.root.join("a.txt")).unwrap();
        symlink("secrets/k", bench.root.join("a.txt")).unwrap();
        let (_, message) = bench.call_failure(tool, args).await;
        assert!(message.contains("shown for permission"), "{message}");
        assert_eq!(bench.read_bytes("secrets/k"), b"old", "{tool}");
    }
}

// proves: DIR-5
#[tokio::test]
async fn link_planted_after_resolution_is_not_followed() {
    let bench = ToolFixture::new();
    fs::write(bench.outside_folder.join("a.txt"), "old").unwrap();
    bench.write_file("dir/a.txt", "old");
    let files = bench.cx.workspace.files();
    let resolved = bench.cx.workspace.resolve("dir/a.txt").unwrap();

    // The parent folder.
    fs::rename(bench.root.join("dir"), bench.root.join("was")).unwrap();
    symlink(&bench.outside_folder, bench.root.join("dir")).unwrap();
    files.read(&resolved).await.unwrap_err();
    files.write(&resolved, "new").await.unwrap_err();
    let new = bench.root.join("dir/new.txt");
    files.write(&new, "new").await.unwrap_err();
    assert!(!bench.outside_folder.join("new.txt").exists());

    // The file itself.
    fs::remove_file(bench.root.join("dir")).unwrap();
    fs::create_dir(bench.root.join("dir")).unwrap();
    symlink(bench.outside_folder.join("a.txt"), &resolved).unwrap();
    let error = files.read(&resolved).await.unwrap_err();
    assert!(
        error.to_string().ends_with("a link has taken its place"),
        "{error}"
    );
    files.write(&resolved, "new").await.unwrap_err();
    assert_eq!(
        fs::read(bench.outside_folder.join("a.txt")).unwrap(),
        b"old"
    );
}

// proves: DIR-4
#[tokio::test]
async fn relative_paths_start_at_working_directory() {
    let bench = ToolFixture::new();
    bench.write_file("same.txt", "first");
    fs::write(bench.outside_folder.join("same.txt"), "second").unwrap();
    fs::write(bench.outside_folder.join("only.txt"), "second").unwrap();
    let workspace = Workspace::new(
        bench.root.clone(),
        vec![bench.outside_folder.clone(), bench.root.clone()],
        Arc::new(LocalFiles),
        None,
    )
    .unwrap();
    assert_eq!(
        workspace.roots(),
        [bench.root.clone(), bench.outside_folder.clone()]
    );
    assert_eq!(
        workspace.resolve("same.txt"),
        Ok(bench.root.join("same.txt"))
    );
    assert_eq!(
        workspace.resolve("only.txt"),
        Ok(bench.root.join("only.txt"))
    );
    let second = bench.outside_folder.join("only.txt");
    assert_eq!(
        workspace.resolve(second.to_str().unwrap()),
        Ok(second.clone())
    );
    assert_eq!(workspace.display(&second), second.display().to_string());
    assert_eq!(workspace.display(&bench.root), ".");
    assert_eq!(workspace.display(&bench.root.join("a/b")), "a/b");
}

// proves: DIR-3
#[test]
fn invalid_root_is_rejected() {
    let bench = ToolFixture::new();
    let file = bench.write_file("file", "");
    let missing = bench.root.join("missing");
    for (root, reason) in [
        (PathBuf::from("relative"), "is not an absolute path"),
        (missing, "does not exist"),
        (file, "is not a folder"),
    ] {
        let refused = Workspace::local(root.clone()).unwrap_err();
        assert_eq!(refused.path, root.display().to_string());
        assert_eq!(refused.reason, reason);
    }
}

#[test]
fn filesystem_root_can_be_working_directory() {
    let workspace = Workspace::local(PathBuf::from("/")).unwrap();
    assert_eq!(workspace.resolve("/etc/../usr"), Ok(PathBuf::from("/usr")));
    assert_eq!(workspace.resolve("../.."), Ok(PathBuf::from("/")));
    assert_eq!(workspace.display(&PathBuf::from("/usr")), "usr");
}

#[test]
fn malformed_paths_are_rejected() {
    let bench = ToolFixture::new();
    for (path, message) in [
        ("", "the path is empty"),
        ("a\0b", "a\0b has a NUL character in it"),
    ] {
        let refused = bench.cx.workspace.resolve(path).unwrap_err();
        assert_eq!(refused.to_string(), message);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// In a tree full of links, a resolved path is inside, contains no link, and equals the system's
    /// resolution.
    #[test]
    fn resolved_path_stays_within_roots(
        links in prop::collection::vec(("[ab]/?[ab]?", "(\\.\\./|/|[abl]/){0,4}[abl]?"), 0..6),
        path in "(\\.\\./|[abl]/){0,5}[abl]",
    ) {
        let bench = ToolFixture::new();
        for name in ["a/a", "a/b", "b/a", "l"] {
            fs::create_dir_all(bench.root.join(name)).unwrap();
        }
        for (index, (place, target)) in links.iter().enumerate() {
            let target = target.replace('/', if index % 2 == 0 { "/" } else { "/../" });
            if !target.is_empty() {
                let _ = symlink(target, bench.root.join(place.trim_end_matches('/')).join("l"));
            }
        }
        if let Ok(resolved) = bench.cx.workspace.resolve(&path) {
            prop_assert!(resolved.starts_with(&bench.root));
            if let Ok(system) = fs::canonicalize(bench.root.join(&path)) {
                prop_assert_eq!(&resolved, &system);
            }
            for part in resolved.ancestors() {
                prop_assert!(!part.is_symlink(), "{} is a link", part.display());
            }
        } else if let Ok(system) = fs::canonicalize(bench.root.join(&path)) {
            prop_assert!(!system.starts_with(&bench.root), "{} was refused", path);
        }
    }
}

//! Checks programs that read files of the project before they do what they were called for.

use super::{
    Policy,
    everyday_line_tests::{everyday_fixture, is_allowed},
};

#[test]
fn program_picked_by_version_file_is_asked_about() {
    let policy = Policy::default().with_confined(true);
    for (name, text, is_asked) in [
        (".nvmrc", "v20.1.0\n", false),
        (".nvmrc", "path:./node\n", true),
        (".nvmrc", "../node\n", true),
        (".go-version", "1.22\n", false),
        (".prototools", "", true),
        ("mise.ci.toml", "", true),
        (".mise.ci.toml", "", true),
        (".rtx.ci.toml", "", true),
        (".config/mise.ci.toml", "", true),
        ("mise/config.local.toml", "", true),
        (".miserc.toml", "", true),
        ("miserable.toml", "", false),
        ("x.toml", "", false),
    ] {
        let bench = everyday_fixture();
        let path = bench.workspace.cwd().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        let line = "python3 --version";
        assert_eq!(
            !is_allowed(&bench, &policy, line),
            is_asked,
            "{name} {text}"
        );
    }
}

/// A program may run another one because of its settings in the project.
#[test]
fn program_with_its_settings_in_the_project_is_asked_about() {
    let policy = Policy::default().with_confined(true);
    let tools = ".tool-versions";
    for (line, name) in [
        ("awk '{print $1}' README.md", tools),
        ("cargo --version", tools),
        ("cargo --version", "rust-toolchain.toml"),
        ("cargo metadata", ".cargo/config.toml"),
        ("cargo tree", ".cargo/config"),
        ("file README.md", tools),
        ("gcc --version", tools),
        ("go version", tools),
        ("jq .name package.json", tools),
        ("make --version", tools),
        ("node --version", tools),
        ("npm ls", ".corepack.env"),
        ("npm ls", ".npmrc"),
        ("npm ls", tools),
        ("pip list", tools),
        ("python --version", tools),
        ("python3 --version", tools),
        ("rg lib", tools),
        ("rustc --version", "rust-toolchain"),
        ("tree src", tools),
    ] {
        let bench = everyday_fixture();
        assert!(is_allowed(&bench, &policy, line), "{line}");
        let path = bench.workspace.cwd().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
        assert!(!is_allowed(&bench, &policy, line), "{line} with {name}");
    }
}

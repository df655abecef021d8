//! Tables of the files and folders that confinements allow or deny.

/// The system's folder for temporary files.
pub(super) const TEMPORARY_FOLDER: &str = "/tmp";

/// The system's settings, which may contain keys.
pub(super) const SYSTEM_CONFIG: &str = "/etc";

/// Folders of the programs and libraries that every command needs.
pub(super) const PROGRAMS: &[&str] = &[
    "/bin",
    "/lib",
    "/lib64",
    "/nix/store",
    "/usr/bin",
    "/usr/lib",
];

/// Paths outside the roots that read-only commands may read.
pub(super) const SYSTEM_FOLDERS: &[&str] = &[
    "/bin",
    SYSTEM_CONFIG,
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/proc",
    "/sbin",
    "/snap",
    "/sys",
    "/usr",
    "/var/lib/dpkg",
];

/// Paths below the home folder that read-only commands may read: toolchains, and settings without keys.
pub(super) const TOOLCHAINS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cargo",
    ".config/git",
    ".deno",
    ".gitconfig",
    ".gitignore",
    ".jdks",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/uv",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
];

/// Paths below the home folder that no command reads or writes: keys, and files with passwords.
pub(super) const KEY_PATHS: &[&str] = &[
    ".aws",
    ".azure",
    ".bash_history",
    ".bitcoin",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/helm/registry",
    ".config/hub",
    ".config/keepassxc",
    ".config/op",
    ".config/rclone",
    ".config/sops/age",
    ".databrickscfg",
    ".docker/config.json",
    ".electrum",
    ".fly/config.yml",
    ".gem/credentials",
    ".gemini/oauth_creds.json",
    ".git-credentials",
    ".gnupg",
    ".ivy2/.credentials",
    ".kaggle",
    ".kube",
    ".local/share/atuin",
    ".local/share/fish/fish_history",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/opencode/auth.json",
    ".my.cnf",
    ".mylogin.cnf",
    ".mysql_history",
    ".netrc",
    ".node_repl_history",
    ".oci",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".pypirc",
    ".python_history",
    ".s3cfg",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".zsh_history",
];

/// Paths below the home folder that no command reads or writes: folders of browsers and other applications,
/// which keep passwords among thousands of other files.
pub(super) const APPLICATION_PROFILES: &[&str] = &[
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/microsoft-edge",
    ".config/mozilla",
    ".config/opera",
    ".config/vivaldi",
    ".librewolf",
    ".mozilla",
    ".thunderbird",
    ".var/app",
    ".zen",
    "snap/brave",
    "snap/chromium",
    "snap/firefox",
];

/// Paths below the home folder that no command writes even if the home folder is a root, since their content
/// runs later with all the user's rights.
pub(super) const AUTOSTART_PATHS: &[&str] = &[
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/systemd",
    ".config/zsh",
    ".gitconfig",
    ".local/bin",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Paths below the home folder: caches that builds write to without the network. None contains programs that
/// users start by hand or that shells read at startup, so not all of `.cache`, no `.yarn/bin`, no
/// `.npm/_npx`, and no `.cache/pnpm`, where `pnpm dlx` keeps programs.
pub(super) const CACHES: &[&str] = &[
    ".bun/install/cache",
    ".cache/bazel",
    ".cache/ccache",
    ".cache/clang",
    ".cache/composer",
    ".cache/coursier/v1",
    ".cache/deno",
    ".cache/dune",
    ".cache/fontconfig",
    ".cache/go-build",
    ".cache/golangci-lint",
    ".cache/huggingface",
    ".cache/matplotlib",
    ".cache/mesa_shader_cache",
    ".cache/mesa_shader_cache_db",
    ".cache/pip",
    ".cache/pip-tools",
    ".cache/pypoetry/artifacts",
    ".cache/pypoetry/cache",
    ".cache/sccache",
    ".cache/staticcheck",
    ".cache/torch",
    ".cache/uv",
    ".cache/yarn",
    ".cache/zig",
    ".cargo/.global-cache",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/git",
    ".cargo/registry",
    ".gradle/caches",
    ".ivy2/cache",
    ".ivy2/local",
    ".local/share/pnpm/store",
    ".m2/repository",
    ".npm/_cacache",
    ".npm/_logs",
    ".nuget/packages",
    ".yarn/berry",
    "go/pkg",
];

/// Variables that name folders with caches, and the caches in them.
pub(super) const CACHE_VARIABLES: &[(&str, &[&str])] = &[
    (
        "CARGO_HOME",
        &[
            ".global-cache",
            ".package-cache",
            ".package-cache-mutate",
            "git",
            "registry",
        ],
    ),
    ("GOPATH", &["pkg"]),
];

/// Variables that name files or folders of keys, and the keys in them; without names, the path itself.
pub(super) const KEY_VARIABLES: &[(&str, &[&str])] = &[
    ("AWS_CONFIG_FILE", &[]),
    ("AWS_SHARED_CREDENTIALS_FILE", &[]),
    ("AZURE_CONFIG_DIR", &[]),
    ("BOTO_CONFIG", &[]),
    ("CARGO_HOME", &["credentials", "credentials.toml"]),
    ("CLAUDE_CONFIG_DIR", &[".credentials.json"]),
    ("CLOUDSDK_CONFIG", &[]),
    ("CODEX_HOME", &["auth.json"]),
    ("COMPOSER_HOME", &["auth.json"]),
    ("DATABRICKS_CONFIG_FILE", &[]),
    ("DOCKER_CONFIG", &["config.json"]),
    ("FLY_CONFIG_DIR", &["config.yml"]),
    ("GH_CONFIG_DIR", &[]),
    ("GLAB_CONFIG_DIR", &[]),
    ("GNUPGHOME", &[]),
    ("GOOGLE_APPLICATION_CREDENTIALS", &[]),
    ("HELM_REGISTRY_CONFIG", &[]),
    ("HF_HOME", &["stored_tokens", "token"]),
    ("HISTFILE", &[]),
    ("KAGGLE_CONFIG_DIR", &[]),
    ("KUBECONFIG", &[]),
    ("MYSQL_HOME", &[".my.cnf"]),
    ("NETRC", &[]),
    ("OCI_CLI_CONFIG_FILE", &[]),
    ("PASSWORD_STORE_DIR", &[]),
    ("PGPASSFILE", &[]),
    ("RCLONE_CONFIG", &[]),
    ("REGISTRY_AUTH_FILE", &[]),
    ("SOPS_AGE_KEY_FILE", &[]),
    ("TF_CLI_CONFIG_FILE", &[]),
    ("XDG_RUNTIME_DIR", &["containers/auth.json"]),
    ("ZDOTDIR", &[".zsh_history"]),
];

/// Folders of devices and of kernel interfaces.
pub(super) const PSEUDO_FILE_SYSTEMS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Devices that every command may read and write.
pub(super) const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

/// Variables that name a folder of programs.
pub(super) const TOOLCHAIN_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

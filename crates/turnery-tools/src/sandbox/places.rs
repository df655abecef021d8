//! Tables of the files and folders that a confinement is about.

/// The system's folder for temporary files.
pub(super) const TEMPORARY: &str = "/tmp";

/// The system's settings, which may hold keys.
pub(super) const SETTINGS: &str = "/etc";

/// What commands that only read may read outside the roots.
pub(super) const SYSTEM: &[&str] = &[
    "/bin",
    SETTINGS,
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

/// The same, below the home folder: toolchains, and settings of programs that hold no keys.
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

/// Below the home folder: what no command reads or writes. Keys, and files that hold passwords.
pub(super) const KEYS: &[&str] = &[
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

/// The same: folders of browsers and other applications, which keep passwords among thousands of other files.
pub(super) const PROFILES: &[&str] = &[
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

/// Below the home folder: what no command writes even if the home folder is a root, since it runs later
/// with all the person's rights.
pub(super) const STARTED_LATER: &[&str] = &[
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

/// Below the home folder: caches that builds write to without the network. None holds what a person starts by hand or a
/// shell reads when it starts, so no `.cache` as a whole, no `.yarn/bin`, no `.npm/_npx`, and no `.cache/pnpm`, where
/// `pnpm dlx` keeps programs.
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

/// Variables that name folders which hold caches, and the caches in them.
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

/// Variables that name files or folders of keys, and the keys in them; no names: the place itself.
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

/// Folders of devices and of what the kernel tells and takes.
pub(super) const NO_FILES: [&str; 3] = ["/dev", "/proc", "/sys"];

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

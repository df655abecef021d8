//! Programs that only read, each with the options that are known to neither write nor run anything.
//! What is not listed here is not harmless: adding an option means having read its manual.

/// A program, or one of its subcommands.
pub(crate) struct Program {
    /// Its name, and the subcommand if it has some.
    pub(crate) words: &'static [&'static str],
    /// Short options without a value.
    pub(crate) flags: &'static str,
    /// Short options with a value, in the same word or the next.
    pub(crate) valued: &'static str,
    /// Long options; with a `=` at the end when they take a value, which must follow in the same word.
    pub(crate) long: &'static [&'static str],
    /// What its other arguments are.
    pub(crate) operands: Operands,
    /// Further options of commands that run confined.
    pub(crate) also: Options,
    /// Whether only commands that run confined are known to be harmless.
    pub(crate) only_confined: bool,
}

/// Options, as in [`Program`].
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) flags: &'static str,
    pub(crate) valued: &'static str,
    pub(crate) long: &'static [&'static str],
}

impl Options {
    pub(crate) const NONE: Self = Self {
        flags: "",
        valued: "",
        long: &[],
    };
}

impl Program {
    /// With these options too when the command runs confined.
    const fn also(self, flags: &'static str, valued: &'static str, long: &'static [&'static str]) -> Self {
        let also = Options {
            flags,
            valued,
            long,
        };
        Self { also, ..self }
    }
}

/// A program that is known only when it runs confined.
const fn confined(
    words: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> Program {
    let program = program(words, flags, valued, long, operands);
    Program {
        only_confined: true,
        ..program
    }
}

/// What the arguments that are no options stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// There must be none.
    None,
    /// Text that names no file that is read.
    Text,
    /// Text, whatever it looks like: there is no option that matters.
    Words,
    /// A format of `printf`, then text.
    Format,
    /// Files or folders whose names or contents are shown.
    Paths,
    /// At most one such.
    OnePath,
    /// A pattern, then such, searched with all that is below them.
    PatternThenPaths,
    /// Revisions and paths of a git repository.
    Revisions,
    /// `N,Mp`, then paths: the one script of sed that is known to only print.
    PrintLines,
    /// Folders, then tests of `find`.
    FindTests,
    /// A program of awk, then paths.
    Awk,
    /// What `test` and `[` look at.
    Condition,
    /// `+FORMAT`, if anything.
    Date,
    /// A filter of jq, then paths.
    Filter,
    /// An archive, then names of what is in it.
    Archive,
    /// A command that is given names.
    Xargs,
    /// A number.
    Number,
    /// Paths, of which none is a file with further arguments (`@args`).
    Strings,
}

const fn program(
    words: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> Program {
    Program {
        words,
        flags,
        valued,
        long,
        operands,
        also: Options::NONE,
        only_confined: false,
    }
}

const GREP_LONG: &[&str] = &[
    "--color=",
    "--colour=",
    "--count",
    "--exclude=",
    "--exclude-dir=",
    "--files-with-matches",
    "--fixed-strings",
    "--ignore-case",
    "--include=",
    "--invert-match",
    "--line-number",
    "--max-count=",
    "--no-filename",
    "--only-matching",
    "--quiet",
    "--recursive",
    "--regexp=",
    "--with-filename",
    "--word-regexp",
];

const RG_LONG: &[&str] = &[
    "--color=",
    "--count",
    "--count-matches",
    "--files",
    "--files-with-matches",
    "--files-without-match",
    "--fixed-strings",
    "--glob=",
    "--heading",
    "--hidden",
    "--ignore-case",
    "--invert-match",
    "--json",
    "--line-number",
    "--max-count=",
    "--max-depth=",
    "--multiline",
    "--no-heading",
    "--no-ignore",
    "--no-line-number",
    "--only-matching",
    "--quiet",
    "--regexp=",
    "--smart-case",
    "--sort=",
    "--stats",
    "--type=",
    "--type-not=",
    "--version",
    "--with-filename",
    "--word-regexp",
];

const DIFF_LONG: &[&str] = &[
    "--cached",
    "--color=",
    "--compact-summary",
    "--diff-filter=",
    "--exit-code",
    "--find-renames",
    "--histogram",
    "--ignore-all-space",
    "--ignore-blank-lines",
    "--ignore-space-change",
    "--merge-base",
    "--minimal",
    "--name-only",
    "--name-status",
    "--no-color",
    "--no-ext-diff",
    "--no-patch",
    "--no-renames",
    "--no-textconv",
    "--numstat",
    "--patch",
    "--patience",
    "--quiet",
    "--raw",
    "--shortstat",
    "--staged",
    "--stat",
    "--stat=",
    "--summary",
    "--unified=",
    "--word-diff",
    "--word-diff=",
];

const LOG_LONG: &[&str] = &[
    "--abbrev-commit",
    "--after=",
    "--all",
    "--author=",
    "--before=",
    "--branches",
    "--color=",
    "--date=",
    "--decorate",
    "--decorate=",
    "--first-parent",
    "--follow",
    "--format=",
    "--graph",
    "--grep=",
    "--max-count=",
    "--merges",
    "--name-only",
    "--name-status",
    "--no-color",
    "--no-decorate",
    "--no-ext-diff",
    "--no-merges",
    "--no-patch",
    "--no-textconv",
    "--numstat",
    "--oneline",
    "--patch",
    "--pretty",
    "--pretty=",
    "--reverse",
    "--shortstat",
    "--since=",
    "--stat",
    "--stat=",
    "--summary",
    "--tags",
    "--until=",
];

/// All of them.
pub(crate) const PROGRAMS: &[Program] = &[
    program(
        &["ls"],
        "1AFGSaCdghiklmnopqrstUuxX",
        "I",
        &[
            "--all",
            "--almost-all",
            "--color=",
            "--directory",
            "--group-directories-first",
            "--human-readable",
            "--recursive",
            "--reverse",
            "--size",
        ],
        Operands::Paths,
    ).also("Z", "", &["--time-style=", "--sort="]),
    program(
        &["cat"],
        "AbEensTtuv",
        "",
        &["--number", "--show-all"],
        Operands::Paths,
    ),
    program(
        &["head"],
        "qv",
        "nc",
        &["--lines=", "--bytes=", "--quiet"],
        Operands::Paths,
    ),
    program(
        &["tail"],
        "qv",
        "nc",
        &["--lines=", "--bytes=", "--quiet"],
        Operands::Paths,
    ).also("z", "", &[]),
    program(
        &["wc"],
        "clLmw",
        "",
        &["--bytes", "--chars", "--lines", "--words"],
        Operands::Paths,
    ),
    program(&["stat"], "t", "", &[], Operands::Paths).also("", "c", &["--format="]),
    program(
        &["file"],
        "bi",
        "",
        &["--brief", "--mime", "--mime-type"],
        Operands::Paths,
    ),
    program(
        &["du"],
        "abchkms",
        "d",
        &["--max-depth=", "--human-readable", "--summarize"],
        Operands::Paths,
    ),
    program(
        &["tree"],
        "aCDdFghinpstu",
        "LIP",
        &["--dirsfirst", "--gitignore", "--noreport"],
        Operands::Paths,
    ).also("", "", &["--du", "--prune"]),
    program(&["realpath"], "emsz", "", &[], Operands::Paths),
    program(&["readlink"], "efmn", "", &[], Operands::Paths),
    program(&["nl"], "", "bnw", &[], Operands::Paths),
    program(&["cmp"], "bls", "", &[], Operands::Paths),
    program(
        &["diff"],
        "bBcEiNqrstuwy",
        "U",
        &[
            "--brief",
            "--color=",
            "--ignore-all-space",
            "--recursive",
            "--unified=",
        ],
        Operands::Paths,
    ),
    program(&["md5sum"], "b", "", &[], Operands::Paths),
    program(&["sha1sum"], "b", "", &[], Operands::Paths),
    program(&["sha256sum"], "b", "", &[], Operands::Paths),
    program(
        &["cut"],
        "s",
        "bcdf",
        &["--complement", "--delimiter=", "--fields="],
        Operands::Paths,
    ),
    program(
        &["sort"],
        "bdfghinrsuVz",
        "kt",
        &["--key=", "--numeric-sort", "--reverse", "--unique"],
        Operands::Paths,
    ),
    program(&["uniq"], "cdiu", "fsw", &["--count"], Operands::OnePath),
    program(&["column"], "t", "s", &["--table"], Operands::Paths),
    program(&["tr"], "cdsC", "", &["--delete"], Operands::Text),
    program(&["sed"], "nE", "", &["--quiet"], Operands::PrintLines),
    program(&["find"], "", "", &[], Operands::FindTests),
    program(
        &["grep"],
        "acEFHhiILlnoqPrsvwxz",
        "ABCem",
        GREP_LONG,
        Operands::PatternThenPaths,
    ).also("RTZ", "", &["--dereference-recursive", "--extended-regexp", "--no-messages", "--null", "--perl-regexp"]),
    program(
        &["egrep"],
        "acHhiIlnoqrsvwx",
        "ABCem",
        GREP_LONG,
        Operands::PatternThenPaths,
    ),
    program(
        &["fgrep"],
        "acHhiIlnoqrsvwx",
        "ABCem",
        GREP_LONG,
        Operands::PatternThenPaths,
    ),
    program(
        &["rg"],
        "cFHhilNnoPqSsUuvwx",
        "ABCegmtT",
        RG_LONG,
        Operands::PatternThenPaths,
    ).also("0I", "", &["--null", "--no-filename", "--trim", "--column"]),
    program(&["echo"], "", "", &[], Operands::Words),
    program(&["printf"], "", "", &[], Operands::Format),
    program(&["basename"], "", "", &[], Operands::Text),
    program(&["dirname"], "", "", &[], Operands::Text),
    program(&["which"], "a", "", &[], Operands::Text),
    program(&["type"], "apPt", "", &[], Operands::Text),
    program(&["command"], "vV", "", &[], Operands::Text),
    program(&["seq"], "w", "s", &[], Operands::Text),
    program(&["pwd"], "LP", "", &[], Operands::None),
    program(&["true"], "", "", &[], Operands::None),
    program(&["false"], "", "", &[], Operands::None),
    program(&["whoami"], "", "", &[], Operands::None),
    program(&["id"], "Ggnu", "", &[], Operands::None),
    program(&["uname"], "amnoprsv", "", &[], Operands::None),
    program(&["nproc"], "", "", &["--all"], Operands::None),
    program(
        &["date"],
        "uR",
        "",
        &["--utc", "--iso-8601=", "--rfc-3339="],
        Operands::Date,
    ),
    program(&["cargo"], "V", "", &["--version"], Operands::None),
    program(&["rustc"], "V", "", &["--version"], Operands::None),
    program(&["rustup"], "V", "", &["--version"], Operands::None),
    program(&["node"], "v", "", &["--version"], Operands::None),
    program(&["python"], "V", "", &["--version"], Operands::None),
    program(&["python3"], "V", "", &["--version"], Operands::None),
    program(&["gcc"], "", "", &["--version"], Operands::None),
    program(&["git"], "", "", &["--version"], Operands::None),
    program(
        &["git", "status"],
        "bsuz",
        "",
        &[
            "--branch",
            "--ignored",
            "--porcelain",
            "--porcelain=",
            "--short",
            "--untracked-files=",
        ],
        Operands::Revisions,
    ),
    program(
        &["git", "diff"],
        "bpRwz",
        "UMC",
        DIFF_LONG,
        Operands::Revisions,
    ),
    program(
        &["git", "show"],
        "bpqswz",
        "UMC",
        &[
            "--format=",
            "--name-only",
            "--name-status",
            "--no-patch",
            "--oneline",
            "--patch",
            "--pretty=",
            "--shortstat",
            "--stat",
            "--stat=",
            "--summary",
        ],
        Operands::Revisions,
    ),
    program(
        &["git", "log"],
        "0123456789pqswz",
        "nLSGUMC",
        LOG_LONG,
        Operands::Revisions,
    ),
    program(
        &["git", "blame"],
        "ceflnpstw",
        "L",
        &["--porcelain"],
        Operands::Revisions,
    ),
    program(
        &["git", "branch"],
        "arv",
        "",
        &[
            "--all",
            "--contains=",
            "--list",
            "--merged",
            "--no-merged",
            "--remotes",
            "--show-current",
            "--verbose",
        ],
        Operands::None,
    ).also("", "", &["--sort=", "--format="]),
    program(&["git", "tag"], "l", "", &["--list"], Operands::None).also("n", "", &["--sort=", "--contains=", "--merged"]),
    program(&["git", "remote"], "v", "", &["--verbose"], Operands::None),
    program(
        &["git", "stash", "list"],
        "",
        "",
        &["--oneline"],
        Operands::None,
    ).also("p", "", &["--stat"]),
    program(
        &["git", "rev-parse"],
        "",
        "",
        &[
            "--abbrev-ref",
            "--short",
            "--show-toplevel",
            "--is-inside-work-tree",
            "--verify",
            "--git-dir",
        ],
        Operands::Revisions,
    ).also("", "", &["--show-prefix", "--git-common-dir", "--all"]),
    program(
        &["git", "rev-list"],
        "",
        "n",
        &["--all", "--count", "--max-count=", "--no-merges"],
        Operands::Revisions,
    ),
    program(
        &["git", "merge-base"],
        "a",
        "",
        &["--is-ancestor"],
        Operands::Revisions,
    ),
    program(
        &["git", "ls-files"],
        "cdmostz",
        "x",
        &[
            "--cached",
            "--deleted",
            "--exclude-standard",
            "--modified",
            "--others",
            "--stage",
        ],
        Operands::Revisions,
    ).also("", "", &["--ignored", "--full-name"]),
    program(
        &["git", "ls-tree"],
        "dlrtz",
        "",
        &["--name-only", "--long"],
        Operands::Revisions,
    ),
    program(
        &["git", "describe"],
        "",
        "",
        &["--always", "--dirty", "--long", "--tags"],
        Operands::Revisions,
    ),
    program(
        &["git", "shortlog"],
        "ens",
        "",
        &["--all"],
        Operands::Revisions,
    ).also("", "", &["--no-merges", "--since="]),
    confined(&["["], "", "", &[], Operands::Condition),
    confined(&["[["], "", "", &[], Operands::Condition),
    confined(&["test"], "", "", &[], Operands::Condition),
    confined(&["xargs"], "", "", &[], Operands::Xargs),
    confined(&["awk"], "", "", &[], Operands::Awk),
    confined(
        &["jq"],
        "cCeMnrsSj",
        "",
        &["--compact-output", "--raw-output", "--slurp", "--sort-keys", "--tab"],
        Operands::Filter,
    ),
    confined(&["tac"], "", "", &[], Operands::Paths),
    confined(&["rev"], "", "", &[], Operands::Paths),
    // xxd writes to its second file, and takes each word as one option.
    confined(&["xxd"], "p", "ls", &[], Operands::OnePath),
    confined(&["hexdump"], "Cv", "ns", &[], Operands::Paths),
    confined(&["od"], "cvx", "AjNt", &[], Operands::Paths),
    confined(&["strings"], "", "n", &[], Operands::Strings),
    confined(&["comm"], "123", "", &[], Operands::Paths),
    confined(&["paste"], "s", "d", &[], Operands::Paths),
    confined(&["fold"], "s", "w", &[], Operands::Paths),
    confined(&["tar", "tf"], "", "", &[], Operands::Archive),
    confined(&["tar", "-tf"], "", "", &[], Operands::Archive),
    confined(&["tar", "tvf"], "", "", &[], Operands::Archive),
    confined(&["tar", "-tvf"], "", "", &[], Operands::Archive),
    confined(&["tar", "tzf"], "", "", &[], Operands::Archive),
    confined(&["tar", "-tzf"], "", "", &[], Operands::Archive),
    confined(&["tar", "tzvf"], "", "", &[], Operands::Archive),
    confined(&["tar", "-tzvf"], "", "", &[], Operands::Archive),
    confined(&["unzip", "-l"], "", "", &[], Operands::Archive),
    confined(&["df"], "ahikmT", "", &[], Operands::Paths),
    confined(&["free"], "bghkm", "", &[], Operands::None),
    confined(&["uptime"], "p", "", &[], Operands::None),
    confined(&["hostname"], "", "", &[], Operands::None),
    confined(&["ps", "aux"], "", "", &[], Operands::None),
    confined(&["ps", "-ef"], "", "", &[], Operands::None),
    confined(&["ulimit", "-a"], "", "", &[], Operands::None),
    confined(&["sleep"], "", "", &[], Operands::Text),
    confined(&["npm", "--version"], "", "", &[], Operands::None),
    confined(&["make", "--version"], "", "", &[], Operands::None),
    confined(&["npm", "ls"], "a", "", &["--all", "--depth=", "--json"], Operands::Text),
    confined(
        &["cargo", "tree"],
        "de",
        "i",
        &["--depth=", "--duplicates", "--invert=", "--locked", "--offline", "--edges=", "--prefix="],
        Operands::None,
    ),
    confined(&["cargo", "tree", "--depth"], "de", "", &["--locked", "--offline"], Operands::Number),
    confined(
        &["cargo", "metadata"],
        "",
        "",
        &["--format-version=", "--locked", "--no-deps", "--offline"],
        Operands::None,
    ),
    confined(
        &["cargo", "metadata", "--no-deps", "--format-version"],
        "",
        "",
        &["--locked", "--offline"],
        Operands::Number,
    ),
    confined(
        &["cargo", "metadata", "--format-version"],
        "",
        "",
        &["--locked", "--no-deps", "--offline"],
        Operands::Number,
    ),
    confined(&["pip", "list"], "", "", &["--format=", "--not-required", "--user"], Operands::None),
    confined(&["pip", "show"], "", "", &[], Operands::Text),
    confined(&["go", "version"], "", "", &[], Operands::None),
    confined(&["git", "branch", "--list"], "arv", "", &["--sort="], Operands::Text),
    confined(&["git", "tag", "-l"], "n", "", &["--sort="], Operands::Text),
    confined(&["git", "tag", "--list"], "n", "", &["--sort="], Operands::Text),
    confined(&["git", "config", "--get"], "", "", &[], Operands::Text),
    confined(&["git", "remote", "get-url"], "", "", &["--all"], Operands::Text),
    confined(&["git", "reflog"], "0123456789", "n", &["--all"], Operands::None),
    confined(&["git", "reflog", "show"], "0123456789", "n", &["--all"], Operands::Revisions),
    confined(&["git", "cat-file"], "ept", "", &[], Operands::Revisions),
    confined(&["git", "cat-file", "-s"], "", "", &[], Operands::Revisions),
    confined(
        &["git", "grep"],
        "EFGHIPceilLnoqvw",
        "ABCe",
        &["--cached", "--count", "--files-with-matches", "--ignore-case", "--line-number", "--name-only"],
        Operands::Revisions,
    ),
    confined(&["git", "check-ignore"], "v", "", &[], Operands::Paths),
    confined(&["git", "worktree", "list"], "", "", &["--porcelain"], Operands::None),
];

/// Tests of `find` without a value.
pub(crate) const FIND_ALONE: &[&str] = &[
    "!",
    "(",
    ")",
    "-a",
    "-and",
    "-daystart",
    "-depth",
    "-empty",
    "-executable",
    "-mount",
    "-not",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-prune",
    "-readable",
    "-xdev",
];

/// Tests of `find` with a value that names no file.
pub(crate) const FIND_VALUED: &[&str] = &[
    "-iname",
    "-ipath",
    "-iregex",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-path",
    "-perm",
    "-regex",
    "-size",
    "-type",
];

/// Tests of `find` without a value that only commands use which run confined.
pub(crate) const FIND_CONFINED: &[&str] = &["-ls", "-writable"];

//! Intent: what a sentence asks for. The rules are tried from the most particular to the most general.

use super::{
    rules::pattern,
    target::{self, Place},
};

/// What a sentence asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Help(Topic),
    Patch(String),
    ErrorCode(String),
    Replace {
        old: String,
        new: String,
        path: Option<String>,
    },
    Run(Job),
    Todo(Option<String>),
    Changes(Ask),
    Repository,
    Outline(String),
    Files(Files),
    Show(Place),
    Lookup {
        word: String,
        aim: Aim,
    },
    Unknown(Vec<String>),
}

/// What sort of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Greeting,
    Skills,
    Connect,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    Tests(Option<String>),
    Build,
    Lint,
    Command(String),
}

/// What of the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Summary,
    CommitMessage,
    Log,
}

/// Which files to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Files {
    In(String),
    Matching(String),
}

/// What to tell of a name first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    Definition,
    Usages,
    Text,
}

impl Intent {
    pub(super) fn of(prompt: &str) -> Self {
        if super::diff::is_diff(prompt) {
            return Self::Patch(prompt.to_owned());
        }
        let text = prompt.trim();
        let text = pattern!(r"(?i)^(hey|hi|hello|ok|okay|please|now|then|and|could you|can you|would you|will you|i want you to|i want to|i would like to|let's|let us|just|,)[,\s]+")
            .replace(text, "");
        let text = pattern!(
            r"(?i)^(please|could you|can you|would you|i want you to|i would like you to)[,\s]+"
        )
        .replace(&text, "");
        let text = pattern!(r"(?i)[,\s]+(please|thanks|thank you)\s*[.!]*\s*$").replace(&text, "");
        let text = text.trim();
        help(prompt.trim())
            .or_else(|| replace(text))
            .or_else(|| error_code(text))
            .or_else(|| changes(text))
            .or_else(|| todo(text))
            .or_else(|| run(text))
            .or_else(|| repository(text))
            .or_else(|| outline(text))
            .or_else(|| files(text))
            .or_else(|| show(text))
            .or_else(|| lookup(text))
            .unwrap_or_else(|| Self::Unknown(code_words(text)))
    }
}

fn help(text: &str) -> Option<Intent> {
    let greeting = pattern!(
        r"(?i)^(hi|hello|hey|good (morning|day|evening)|moin|yo)( there| turnery)?[\s!.,]*$"
    );
    let connect = pattern!(
        r"(?i)\b(connect|configure|set ?up|use|add|choose|select|switch)\b.*\b(models?|llm|api key|provider|ollama|claude|gpt|openai|anthropic)\b|\bapi[ _]key\b"
    );
    let skills = pattern!(
        r"(?i)^/?(help|usage|\?)[\s!.?]*$|\bwhat can (you|i|turnery|it)\b.*\b(do|ask)\b|\bwho are you\b|\bwhat are you\b|\bare you an? (ai|model|llm|bot)\b|\bwhich model\b|\bhow do i use (you|turnery|this)\b|^help me\s*[.!]*$|\byour (skills|commands|abilities)\b"
    );
    if greeting.is_match(text) {
        Some(Intent::Help(Topic::Greeting))
    } else if skills.is_match(text) {
        Some(Intent::Help(Topic::Skills))
    } else if connect.is_match(text)
        && text.len() < 120
        && !text.contains('`')
        && target::path(text).is_none()
    {
        Some(Intent::Help(Topic::Connect))
    } else {
        None
    }
}

fn replace(text: &str) -> Option<Intent> {
    let form = pattern!(
        r#"(?is)^(?:search\s+(?:for\s+)?(?:and\s+)?|find\s+and\s+)?(replace|rename|substitute|change)\s+(?:all\s+|every\s+|each\s+)?(?:occurrences?\s+of\s+|uses?\s+of\s+|the\s+(?:word|text|name|string|function|type|struct|class|variable|method)\s+|(?:function|type|struct|class|variable|method)\s+)?(`[^`]+`|"[^"]+"|'[^']+'|\S+)\s+(?:with|by|to|into|=>|->|→)\s+(`[^`]*`|"[^"]*"|'[^']*'|\S+)(?:\s+((?:in|inside|under|within|across|throughout|everywhere)\b.*))?\s*$"#
    );
    let parts = form.captures(text)?;
    let old = literal(&parts[2]);
    let new = literal(&parts[3]);
    let verb = parts[1].to_lowercase();
    if old.is_empty()
        || old == new
        || (verb == "change" && !parts[2].starts_with(['`', '"', '\'']) && !target::is_code(&old))
    {
        return None;
    }
    let path = parts
        .get(4)
        .and_then(|rest| target::place(rest.as_str()))
        .map(str::to_owned);
    Some(Intent::Replace { old, new, path })
}

/// A word without its quotes; a bare word also loses the full stop of its sentence.
fn literal(word: &str) -> String {
    for quote in ['`', '"', '\''] {
        if let Some(inner) = word
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
        {
            return inner.to_owned();
        }
    }
    word.strip_suffix(['.', ',', '?'])
        .unwrap_or(word)
        .to_owned()
}

fn error_code(text: &str) -> Option<Intent> {
    let found = pattern!(r"(?i)\b(E\d{4})\b").captures(text)?;
    Some(Intent::ErrorCode(found[1].to_uppercase()))
}

fn changes(text: &str) -> Option<Intent> {
    let message = pattern!(r"(?i)\bcommit message\b|\b(message|text) for (the|my|this|a) commit\b");
    let log = pattern!(
        r"(?i)^(show (me )?)?(the )?(git )?(log|history)[\s.?]*$|\b(recent|last|latest)( \d+)? commits?\b|^git log\b"
    );
    let summary = pattern!(
        r"(?i)\bwhat('s| has| have| is| did)?\b.{0,12}\bchange[ds]?\b|\b(summar\w+|show|list|describe|explain|review|see)\b.{0,24}\b(changes|diff|uncommitted|modifications|edits)\b|^(git )?(status|diff)\b|\buncommitted\b|^(my |the |current )?changes[\s?.]*$|\bwhat did i (change|do|edit)\b"
    );
    if message.is_match(text) {
        Some(Intent::Changes(Ask::CommitMessage))
    } else if log.is_match(text) {
        Some(Intent::Changes(Ask::Log))
    } else if summary.is_match(text) {
        Some(Intent::Changes(Ask::Summary))
    } else {
        None
    }
}

fn todo(text: &str) -> Option<Intent> {
    let form = pattern!(
        r"\b(?i:todos?|to-dos?|fixmes?)\b|\b(XXX|HACKs?|hacks)\b|(?i)\bopen (tasks|points) in the code\b"
    );
    let verb = pattern!(
        r"(?i)\b(list|show|find|search|any|all|what|which|where|open|count|how many|remaining)\b|^\W*(the\s+)?(todos?|fixmes?)\b"
    );
    (form.is_match(text) && verb.is_match(text))
        .then(|| Intent::Todo(target::place(text).map(str::to_owned)))
}

fn run(text: &str) -> Option<Intent> {
    let verb = pattern!(r"(?i)^(run|execute|start|do|launch|rerun|re-run|try)\b");
    if let (true, Some(command)) = (verb.is_match(text), target::quoted(text))
        && command.contains(' ')
    {
        return Some(Intent::Run(Job::Command(command.to_owned())));
    }
    let tests = pattern!(
        r"(?i)\b(run|rerun|re-run|execute|start|do|try|check)\b.{0,30}\b(tests?|test suite|specs)\b|\btests?\b.{0,24}\b(fail|failing|failed|fails|pass|passing|green|red|broken|ok|work|run)\b|\bfail(ing|ed)?\b.{0,8}\btests?\b|^(cargo |npm |go |make )?tests?[\s.!?]*$|^(py|c)test\b|^test (it|this|everything|the (project|code|repo\w*))\b"
    );
    let lint = pattern!(r"(?i)\b(lint|linter|linters|clippy|eslint|ruff|vet)\b");
    let build = pattern!(
        r"(?i)^(run |do |start |try |make )?(the |a )?(cargo |npm run )?(build|compile|check|rebuild)\b.{0,40}$|\b(does|will|do|can)\b.{0,24}\b(build|compile)s?\b|\b(compiler?|build) (errors?|warnings?|failures?|broken)\b|\b(fix|show|list).{0,10}compil\w+ errors?\b"
    );
    let how = pattern!(r"(?i)^(where|how|what is|who|explain|find|search)\b");
    if how.is_match(text) {
        None
    } else if lint.is_match(text) {
        Some(Intent::Run(Job::Lint))
    } else if tests.is_match(text) {
        let filter = target::quoted(text).or_else(|| {
            text.split_whitespace()
                .map(target::bare)
                .find(|word| target::is_code(word))
        });
        let safe = filter.filter(|word| pattern!(r"^[\w:.\-]+$").is_match(word));
        Some(Intent::Run(Job::Tests(safe.map(str::to_owned))))
    } else if build.is_match(text) && target::path(text).is_none() {
        Some(Intent::Run(Job::Build))
    } else {
        None
    }
}

fn repository(text: &str) -> Option<Intent> {
    let explain = pattern!(
        r"(?i)\b(explain|describe|summar\w+|overview|tour|understand|introduce|introduction|walk me through|tell me about|learn about|get to know|architecture)\b.{0,30}\b(repo|repository|project|code ?base|workspace|program|crate|package|code|app|application)\b"
    );
    let what = pattern!(
        r"(?i)^what('s| is| does| are)?\b.{0,12}\b(this|the)( whole)? (repo|repository|project|code ?base|workspace|program|crate|code|app|application)\b|^(explain|describe) (this|it|everything)[\s.!?]*$|^(give me )?(an |a |the )?(overview|tour|summary)[\s.!?]*$|^where do i (start|begin)\b|^what is (this|here)[\s.?]*$|^how (is|are) .{0,20}(repo|repository|project|code ?base|code) (organi[sz]ed|structured|laid out)|^how do i (build|run|test) (this|it|the project)"
    );
    (target::quoted(text).is_none()
        && target::path(text).is_none_or(|path| matches!(path, "." | "./"))
        && (explain.is_match(text) || what.is_match(text)))
    .then_some(Intent::Repository)
}

fn outline(text: &str) -> Option<Intent> {
    let verb = pattern!(
        r"(?i)\b(outline|structure|skeleton|table of contents|toc)\b|\b(list|show|what|which|all)\b.{0,20}\b(functions?|types?|symbols?|classes|structs?|methods?|headings?|definitions?|items)\b.{0,12}\b(in|of|from|inside|are in)\b|\bwhat('s| is) in(side)?\b|^(explain|describe|summari[sz]e|walk me through|understand)\b|^what does\b.*\bdo\b|^how does\b.*\bwork\b"
    );
    if !verb.is_match(text) {
        return None;
    }
    let path =
        target::path(text).or_else(|| target::quoted(text).filter(|inner| target::is_path(inner)));
    let path = path.or_else(|| {
        pattern!(
            r"(?i)^outline$|^outline (this|the) (repo\w*|project|code|folder)|^outline everything"
        )
        .is_match(text)
        .then_some(".")
    });
    let path = path.or_else(|| {
        pattern!(r"(?i)^outline\b|\b(functions?|types?|symbols?|classes|structs?|methods?|headings?)\b.{0,12}\b(in|of)\b")
            .is_match(text)
            .then(|| target::place(text))?
            .filter(|word| !word.starts_with(char::is_uppercase) && !target::is_code(word))
    });
    path.map(|path| Intent::Outline(Place::read(path).path))
}

fn files(text: &str) -> Option<Intent> {
    let glob = pattern!(r"(?i)\b(find|list|show|which|all|any|where)\b.*?(\S*[*?]\S*\.?\w*)")
        .captures(text);
    if let Some(parts) = glob {
        let word = target::bare(&parts[2]);
        if word.contains('*') {
            return Some(Intent::Files(Files::Matching(word.to_owned())));
        }
    }
    let language = pattern!(r"(?i)\b(?:list|show|find|all|which)\b.{0,16}\b(rust|python|javascript|typescript|go|markdown|toml|json|yaml|c|c\+\+|java)\s+files\b").captures(text);
    if let Some(parts) = language {
        let ending = match parts[1].to_lowercase().as_str() {
            "rust" => "rs",
            "python" => "py",
            "javascript" => "js",
            "typescript" => "ts",
            "markdown" => "md",
            "yaml" => "{yml,yaml}",
            "c++" => "{cc,cpp,cxx,hpp}",
            "go" => "go",
            "toml" => "toml",
            "json" => "json",
            "java" => "java",
            _ => "{c,h}",
        };
        return Some(Intent::Files(Files::Matching(format!("**/*.{ending}"))));
    }
    let named = pattern!(r"(?i)^(find|locate|where is|where's|search for)\b.{0,12}\b(file|the file)?\s*[`']?([\w.\-]+\.\w{1,5})[`'?]*\s*$").captures(text);
    if let Some(parts) = named
        && target::is_path(&parts[3])
    {
        return Some(Intent::Files(Files::Matching(format!("**/{}", &parts[3]))));
    }
    let list = pattern!(
        r"(?i)^(list|show|what|which|print|see)\b.{0,16}\b(files|folders|directory|directories|folder|tree|dir)\b|^(ls|tree|dir)\b|^files[\s.?]*$|^list\s+\S+/?\s*$"
    );
    list.is_match(text)
        .then(|| Intent::Files(Files::In(target::place(text).unwrap_or(".").to_owned())))
}

fn show(text: &str) -> Option<Intent> {
    let verb = pattern!(
        r"(?i)^(show|cat|open|print|view|read|display|see|look at|head|less|type|let me see)\b(?: me)?(?: the)?(?: file)?"
    );
    let lines = pattern!(r"(?i)\blines?\s+(\d+)(?:\s*(?:-|to|–|\.\.|and)\s*(\d+))?").captures(text);
    let path = target::path(text)?;
    let alone = target::bare(text) == path;
    if !verb.is_match(text) && !alone && lines.is_none() {
        return None;
    }
    let mut place = Place::read(path);
    if let Some(parts) = lines {
        place.from = parts[1].parse().ok();
        place.to = parts.get(2).and_then(|to| to.as_str().parse().ok());
    }
    if place.path.ends_with('/') || matches!(place.path.as_str(), "." | "..") {
        return Some(Intent::Files(Files::In(place.path)));
    }
    Some(Intent::Show(place))
}

fn lookup(text: &str) -> Option<Intent> {
    let usages = pattern!(
        r"(?i)\b(used|usages?|uses|using|callers?|calls?|called|references?|referenced|refer|depends on)\b"
    );
    let plain = pattern!(
        r#"(?i)^(?:search|grep|rg|look)\s+(?:for\s+)?(?:the\s+(?:text|string|word)\s+)?(`[^`]+`|"[^"]+"|'[^']+'|.+?)(?:\s+in\s+(?:the\s+|this\s+)?(?:code|repo\w*|project|files?|code ?base))?\s*[?.!]*$"#
    );
    let ask = pattern!(
        r"(?i)^(where|find|what|which|who|explain|describe|how|show|definition|define|defined|locate|go to|goto|jump to|usages?|references|callers?|uses|look up|lookup|tell me about|why|doc|docs|documentation|signature)\b"
    );
    let asked = ask.is_match(text);
    let word = target::quoted(text)
        .map(str::to_owned)
        .or_else(|| named(text, asked));
    if let Some(word) = &word
        && (asked || words(text) == 1)
        && pattern!(r"^[\w$:.#!()]+$").is_match(word)
    {
        let aim = if usages.is_match(text) {
            Aim::Usages
        } else {
            Aim::Definition
        };
        return Some(Intent::Lookup {
            word: target::name(word).to_owned(),
            aim,
        });
    }
    let found = plain.captures(text)?;
    let word = literal(&found[1]);
    let aim = if target::is_code(&word) {
        Aim::Definition
    } else {
        Aim::Text
    };
    Some(Intent::Lookup { word, aim })
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The word of a question that is a name: one that looks like code, or else the last one that is no
/// word of the question itself.
fn named(text: &str, asked: bool) -> Option<String> {
    let noise = pattern!(
        r"(?i)^(where|is|are|the|a|an|of|in|find|what|which|who|whom|does|do|did|me|this|that|it|explain|describe|how|show|definition|define|defined|declared|implemented|declaration|implementation|used|use|uses|using|usages?|usage|calls?|called|callers?|references?|referenced|work|works|working|mean|means|function|fn|struct|class|type|enum|trait|method|module|variable|constant|const|interface|macro|for|to|and|all|every|code|project|repo|repository|here|locate|go|goto|jump|look|lookup|up|tell|about|why|doc|docs|documentation|signature|from|by|on|places?|has|have|been|get|gets|i|can|you|file|files|created|set|come|comes|with)$"
    );
    let mut names = text
        .split_whitespace()
        .map(target::bare)
        .filter(|word| !word.is_empty());
    if let Some(word) = names.clone().find(|word| target::is_code(word)) {
        return Some(word.to_owned());
    }
    let rest: Vec<&str> = names
        .by_ref()
        .filter(|word| !noise.is_match(word) && pattern!(r"^[A-Za-z_$][\w$:.!()]*$").is_match(word))
        .collect();
    match rest.as_slice() {
        [word] if asked => Some((*word).to_owned()),
        _ => rest
            .iter()
            .skip(usize::from(!asked))
            .find(|word| asked && word.starts_with(char::is_uppercase))
            .map(|word| (*word).to_owned()),
    }
}

/// The words of a sentence that look like code, for a search when nothing else is understood.
fn code_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let quoted = target::quoted(text).filter(|inner| inner.len() <= 80);
    let found = text
        .split_whitespace()
        .map(target::bare)
        .filter(|word| target::is_code(word));
    for word in quoted.into_iter().chain(found) {
        let name = target::name(word).to_owned();
        if !name.is_empty() && !words.contains(&name) && words.len() < 3 {
            words.push(name);
        }
    }
    words
}

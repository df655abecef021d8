//! Asking: sentences about names in the code, and about turnery itself.

use super::{Aim, Intent, Topic, acting::literal};
use crate::offline::{about, rules::pattern, target};

pub(super) fn help(text: &str) -> Option<Intent> {
    let greeting = pattern!(
        r"(?i)^(hi|hello|hey|good (morning|day|evening)|moin|yo)( there| turnery)?[\s!.,]*$"
    );
    let connect = pattern!(
        r"(?i)\b(connect|configure|set ?up|use|add|choose|select|switch)\b.*\b(models?|llm|api key|provider|ollama|claude|gpt|openai|anthropic)\b|\bapi[ _]key\b|^(which|what) models?\b"
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

pub(super) fn lookup(text: &str) -> Option<Intent> {
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

fn is_noise(word: &str) -> bool {
    let noise = pattern!(
        r"(?i)^(where|is|are|the|a|an|of|in|find|what|which|who|whom|does|do|did|me|this|that|it|explain|describe|how|show|definition|define|defined|declared|implemented|declaration|implementation|used|use|uses|using|usages?|usage|calls?|called|callers?|references?|referenced|work|works|working|mean|means|function|fn|struct|class|type|enum|trait|method|module|variable|constant|const|interface|macro|for|to|and|all|every|code|project|repo|repository|here|locate|go|goto|jump|look|lookup|up|tell|about|why|doc|docs|documentation|signature|from|by|on|places?|has|have|been|get|gets|i|can|you|file|files|created|set|come|comes|with)$"
    );
    noise.is_match(word)
}

/// A question in plain words.
pub(super) fn about(text: &str) -> Option<Intent> {
    let ask =
        pattern!(r"(?i)^(where|find|what|which|who|explain|describe|how|locate|why|when|look)\b");
    let plain = text.lines().count() == 1 && code_words(text).is_empty();
    if !plain || !ask.is_match(text) {
        return None;
    }
    let more = pattern!(
        r"(?i)^(when|should|would|could|must|will|was|were|there|its|their|after|before|into|many|much|happens?|happen|possible|if|not|our|your|my)$"
    );
    about::stems(text, |word| is_noise(word) || more.is_match(word)).map(Intent::About)
}

/// The word of a question that is a name: one that looks like code, or else the only one, or the one
/// with a capital, that is no word of the question itself.
fn named(text: &str, asked: bool) -> Option<String> {
    let names = text
        .split_whitespace()
        .map(target::bare)
        .filter(|word| !word.is_empty());
    if let Some(word) = names.clone().find(|word| target::is_code(word)) {
        return Some(word.to_owned());
    }
    if !asked {
        return None;
    }
    let rest: Vec<&str> = names
        .filter(|word| !is_noise(word) && pattern!(r"^[A-Za-z_$][\w$:.!()]*$").is_match(word))
        .collect();
    match rest.as_slice() {
        [word] => Some((*word).to_owned()),
        several => several
            .iter()
            .find(|word| word.starts_with(char::is_uppercase))
            .map(|word| (*word).to_owned()),
    }
}

/// The words of a sentence that look like code, for a search when nothing else is understood.
pub(super) fn code_words(text: &str) -> Vec<String> {
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

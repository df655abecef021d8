//! Gives call ids the form that a host accepts.

use super::quirks::CallIdForm;
use crate::history::HistoryItem;
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};
use turnery_engine::{CallId, Content};

/// Longest id that OpenAI accepts. Unit: characters.
const MAX_ID_CHARS: usize = 40;

/// Longest id that Claude accepts. Unit: characters.
const MAX_CLAUDE_ID_CHARS: usize = 64;

/// Length of ids of Mistral. Unit: characters.
const MISTRAL_ID_CHARS: usize = 9;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// New ids for those ids of a conversation that its host would reject.
///
/// A new id is derived from the old one, so it is the same in every request. Ids are assigned in the order of the
/// conversation: should two of them coincide, the later one changes, and earlier messages keep their bytes.
#[derive(Debug, Default)]
pub(super) struct CallIdMap<'a> {
    minted: HashMap<&'a str, String>,
}

impl<'a> CallIdMap<'a> {
    pub(super) fn new(history: &[HistoryItem<'a>], form: CallIdForm) -> Self {
        let mut map = Self::default();
        if form == CallIdForm::Any {
            return map;
        }
        let mut used: HashSet<Cow<'a, str>> = HashSet::new();
        let contents = history.iter().filter_map(|item| match item {
            HistoryItem::Assistant(content) => Some(content),
            HistoryItem::User(_) | HistoryItem::Results(_) => None,
        });
        for item in contents.flatten() {
            let Content::ToolCall(call) = item else {
                continue;
            };
            let id = call.call_id.as_str();
            if map.minted.contains_key(id) {
                continue;
            }
            if fits(id, form) && used.insert(Cow::Borrowed(id)) {
                continue;
            }
            let candidates = (0_u32..).map(|attempt| mint(id, form, attempt));
            let free = candidates
                .into_iter()
                .find(|minted| !used.contains(minted.as_str()));
            if let Some(minted) = free {
                used.insert(Cow::Owned(minted.clone()));
                map.minted.insert(id, minted);
            }
        }
        map
    }

    /// Returns the id to send.
    pub(super) fn get(&self, id: &'a CallId) -> Cow<'a, str> {
        let id = id.as_str();
        match self.minted.get(id) {
            Some(minted) => Cow::Owned(minted.clone()),
            None => Cow::Borrowed(id),
        }
    }
}

fn fits(id: &str, form: CallIdForm) -> bool {
    match form {
        CallIdForm::Any => true,
        CallIdForm::UpTo40 => id.chars().count() <= MAX_ID_CHARS,
        CallIdForm::Claude => {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            (1..=MAX_CLAUDE_ID_CHARS).contains(&id.len()) && id.bytes().all(fits)
        }
        CallIdForm::NineAlphanumerics => {
            id.len() == MISTRAL_ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
    }
}

/// Derives an id from `id`.
fn mint(id: &str, form: CallIdForm, attempt: u32) -> String {
    let mut hash = Sha256::new();
    hash.update(attempt.to_le_bytes());
    hash.update(id);
    let letters = hash.finalize().into_iter().filter_map(|byte| {
        let letter = ALPHABET.get(usize::from(byte) % ALPHABET.len())?;
        Some(char::from(*letter))
    });
    match form {
        CallIdForm::NineAlphanumerics => letters.take(MISTRAL_ID_CHARS).collect(),
        CallIdForm::Any | CallIdForm::UpTo40 | CallIdForm::Claude => {
            "call_".chars().chain(letters).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use turnery_engine::ToolCall;

    fn calls(ids: &[&str]) -> Vec<Content> {
        let call = |id: &&str| Content::ToolCall(ToolCall::new(*id, "read", serde_json::json!({})));
        ids.iter().map(call).collect()
    }

    fn sent(ids: &[&str], form: CallIdForm) -> Vec<String> {
        let content = calls(ids);
        let history = [HistoryItem::Assistant(content.iter().collect())];
        let map = CallIdMap::new(&history, form);
        let ids: Vec<CallId> = ids.iter().map(|id| CallId::from(*id)).collect();
        ids.iter().map(|id| map.get(id).into_owned()).collect()
    }

    /// Quirks 1 to 3.
    // proves: CHAT-1, CHAT-2, CHAT-3
    #[test]
    fn ids_that_do_not_fit_are_minted_stably() {
        let long: Arc<str> = "x".repeat(41).into();
        let ids = ["call_1", &*long, "D681PevKs"];
        let forty = sent(&ids, CallIdForm::UpTo40);
        assert_eq!([&forty[0], &forty[2]], ["call_1", "D681PevKs"]);
        assert!(forty[1].len() <= 40 && forty[1].is_ascii());
        let claude = ["toolu_01-A", "functions.read:0", "a|b", "D681PevKs"];
        let minted = sent(&claude, CallIdForm::Claude);
        assert_eq!([&minted[0], &minted[3]], ["toolu_01-A", "D681PevKs"]);
        for id in &minted[1..3] {
            assert!(id.len() <= 64 && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_'));
        }
        let nine = sent(&ids, CallIdForm::NineAlphanumerics);
        assert_eq!(nine[2], "D681PevKs");
        for id in &nine {
            assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()));
        }
        assert_eq!(sent(&ids, CallIdForm::Any), ids);
        // The same in a longer conversation, and in one with other calls before.
        assert_eq!(
            sent(
                &["zzzzzzzzz", &*long, "call_1", "new"],
                CallIdForm::NineAlphanumerics
            )[1..3],
            [nine[1].clone(), nine[0].clone()]
        );
    }

    /// Quirk 3: an id that coincides with a minted one is minted too.
    #[test]
    fn minted_ids_do_not_collide() {
        for form in [
            CallIdForm::UpTo40,
            CallIdForm::Claude,
            CallIdForm::NineAlphanumerics,
        ] {
            let long = "y".repeat(65);
            let minted = sent(&[&long], form).remove(0);
            let both = sent(&[&long, &minted], form);
            assert_eq!(both[0], minted, "the earlier one keeps its id");
            assert_ne!(both[1], minted);
            let reversed = sent(&[&minted, &long], form);
            assert_eq!(reversed[0], minted);
            assert_ne!(reversed[1], minted);
        }
    }
}

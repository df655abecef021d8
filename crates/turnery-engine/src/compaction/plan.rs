//! Plan: what of a conversation stays as it is, what is summarised, and what is shortened.

use super::{
    CompactionBlock, ContextSize, Kept,
    shorten::{Extent, shortened},
};
use crate::{Content, LlmMessage, Message, MessageId, Timestamp};
use std::{collections::HashSet, ops::Range, sync::Arc};

/// How little of a tool's output may be left at last. Unit: lines.
const FEWEST_LINES: usize = 5;

/// What compaction keeps (UP-11). A block stands for the whole chain of loops, so there is no number
/// of earlier loops to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Turns from the beginning that stay as they are.
    pub first_turns: usize,
    /// Latest turns that stay, with long tool output shortened. The very last one always does.
    pub recent_turns: usize,
    /// How long the summary may be. Unit: tokens.
    pub summary_tokens: u64,
    /// How much of a tool's output stays in the latest turns. Unit: lines.
    pub output_lines: usize,
    /// What all messages together should take afterwards: less is kept as long as they take more.
    /// Unit: tokens.
    pub room: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            first_turns: 2,
            recent_turns: 10,
            summary_tokens: 2_000,
            output_lines: 50,
            room: u64::MAX,
        }
    }
}

/// What of a conversation stays, and what gives way to a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    first: Vec<MessageId>,
    earlier: Vec<Arc<LlmMessage>>,
    replaced: Vec<Arc<LlmMessage>>,
    recent: Vec<Kept>,
    through: MessageId,
    kept: ContextSize,
    /// How long the summary may be: as the settings say, and so that there is less than before.
    summary_tokens: u64,
}

impl Plan {
    /// The summary of an earlier compaction, which is to go into the new one.
    #[must_use]
    pub fn earlier(&self) -> &[Arc<LlmMessage>] {
        &self.earlier
    }

    /// The messages to be summarised, in order, each call with its results.
    #[must_use]
    pub fn replaced(&self) -> &[Arc<LlmMessage>] {
        &self.replaced
    }

    /// How long the summary may be: as the settings say, and never as long as what it stands for.
    /// Unit: tokens.
    #[must_use]
    pub fn summary_tokens(&self) -> u64 {
        self.summary_tokens
    }

    /// The overlay with this summary, and how much the next request holds then.
    #[must_use]
    pub fn block(self, summary: &str, at: Timestamp) -> (CompactionBlock, ContextSize) {
        let summary = Arc::new(LlmMessage {
            message_id: MessageId::from(format!("{}.summary", self.through)),
            turn_id: None,
            message: told(summary),
        });
        let mut after = self.kept;
        after += ContextSize::of(&summary.message);
        let block = CompactionBlock {
            keep_first: self.first,
            keep_compacted: vec![summary],
            keep_recent: self.recent,
            through: self.through,
            created_at: at,
        };
        (block, after)
    }
}

/// The summary as the model is told of it: in the user's place, so it must say what it is.
fn told(summary: &str) -> Message {
    let text = format!(
        "[Not a message of the user: the conversation grew too long, and this summary of it stands \
         for its middle part. Long outputs of tools that follow may be shortened. Go on as before.]\n\
         <summary>\n{}\n</summary>",
        summary.trim()
    );
    Message::User {
        content: vec![Content::text(text)],
    }
}

/// Plan the compaction of these messages. `before` is the block that they are seen through. `None` if
/// there is nothing between the first and the latest turns that a summary could stand for.
#[must_use]
pub fn plan(
    messages: &[Arc<LlmMessage>],
    before: Option<&CompactionBlock>,
    settings: &CompactionSettings,
) -> Option<Plan> {
    let draft = Draft::new(messages, before);
    let now = draft.size(&(0..messages.len()));
    let frame = ContextSize::of(&told("")).tokens;
    let mut least = None;
    for step in steps(settings) {
        let mut after = now.tokens;
        if let Some(cut) = draft.cut(&step) {
            let whole = draft.size(&cut).tokens;
            let summary = settings.summary_tokens.min(whole.saturating_sub(frame + 1));
            let recent = draft.recent(cut.end, &step);
            let kept = draft.kept(&cut, &recent);
            if summary > 0 {
                after = kept.tokens.saturating_add(frame + summary);
                least = Some((cut, recent, kept, summary));
            }
        }
        if after <= settings.room {
            break;
        }
    }
    let (cut, recent, kept, summary_tokens) = least?;
    let (earlier, replaced) = messages[cut.clone()]
        .iter()
        .cloned()
        .partition(|message| draft.is_summary(message));
    Some(Plan {
        first: messages[..cut.start]
            .iter()
            .map(|message| message.message_id.clone())
            .collect(),
        earlier,
        replaced,
        recent,
        through: messages.last()?.message_id.clone(),
        kept,
        summary_tokens,
    })
}

/// How much to keep.
struct Step {
    first: usize,
    recent: usize,
    outputs: Extent,
    /// Also shorten what the model has not seen yet.
    newest_too: bool,
}

/// From what the settings say to as little as can be.
fn steps(settings: &CompactionSettings) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |first, recent, lines, newest_too| {
        let media = lines >= settings.output_lines;
        let outputs = Extent { lines, media };
        steps.push(Step {
            first,
            recent,
            outputs,
            newest_too,
        });
    };
    let fewer = |lines: usize| (lines / 2).max(FEWEST_LINES.min(lines));
    let mut recent = settings.recent_turns.max(1);
    let mut lines = settings.output_lines;
    add(settings.first_turns, recent, lines, false);
    while recent > 1 {
        (recent, lines) = (recent / 2, fewer(lines));
        add(settings.first_turns, recent, lines, false);
    }
    for first in (0..settings.first_turns).rev() {
        add(first, 1, lines, false);
    }
    lines = settings.output_lines;
    add(0, 1, lines, true);
    while lines > FEWEST_LINES {
        lines = fewer(lines);
        add(0, 1, lines, true);
    }
    steps
}

/// The messages, taken apart.
struct Draft<'a> {
    messages: &'a [Arc<LlmMessage>],
    sizes: Vec<ContextSize>,
    /// Where each turn begins, and the end.
    starts: Vec<usize>,
    summaries: HashSet<&'a MessageId>,
    shortened: HashSet<&'a MessageId>,
}

impl<'a> Draft<'a> {
    fn new(messages: &'a [Arc<LlmMessage>], before: Option<&'a CompactionBlock>) -> Self {
        let summaries = before.iter().flat_map(|block| &block.keep_compacted);
        let kept = before.iter().flat_map(|block| &block.keep_recent);
        let mut draft = Self {
            messages,
            sizes: messages
                .iter()
                .map(|message| ContextSize::of(&message.message))
                .collect(),
            starts: Vec::new(),
            summaries: summaries.map(|message| &message.message_id).collect(),
            shortened: kept
                .filter(|kept| kept.shortened.is_some())
                .map(|kept| &kept.message_id)
                .collect(),
        };
        draft.starts = draft.starts();
        draft
    }

    fn is_summary(&self, message: &LlmMessage) -> bool {
        self.summaries.contains(&message.message_id)
    }

    /// A turn is what was put to the model, its answer, and the results of its calls; so none begins
    /// with a result. Records from before turns had ids have turns too.
    fn starts(&self) -> Vec<usize> {
        let mut starts = vec![0];
        let mut answered = false;
        for (at, pair) in self.messages.windows(2).enumerate() {
            answered |= matches!(pair[0].message, Message::Assistant { .. });
            if answered && !matches!(pair[1].message, Message::ToolResult { .. }) {
                starts.push(at + 1);
                answered = false;
            }
        }
        starts.push(self.messages.len());
        starts
    }

    /// What gives way if this much is kept; `None` if nothing new would.
    fn cut(&self, step: &Step) -> Option<Range<usize>> {
        let turns = self.starts.len() - 1;
        // What stays from the beginning stays as it is, so it ends where that is no longer there.
        let altered = |message: &Arc<LlmMessage>| {
            self.is_summary(message) || self.shortened.contains(&message.message_id)
        };
        let verbatim = self.messages.iter().position(altered);
        let verbatim = verbatim.unwrap_or(self.messages.len());
        let first = (0..=step.first.min(turns))
            .rev()
            .find(|turn| self.starts[*turn] <= verbatim)?;
        let from = self.starts[first];
        let summary = self.messages.iter().rposition(|m| self.is_summary(m));
        let to = self.starts[turns.saturating_sub(step.recent)].max(summary.map_or(0, |at| at + 1));
        let cut = from..to.max(from);
        let is_new = |message: &Arc<LlmMessage>| !self.is_summary(message);
        self.messages[cut.clone()].iter().any(is_new).then_some(cut)
    }

    /// The messages from here on, as they are kept.
    fn recent(&self, from: usize, step: &Step) -> Vec<Kept> {
        let is_answer = |m: &Arc<LlmMessage>| matches!(m.message, Message::Assistant { .. });
        let seen = self.messages.iter().rposition(is_answer);
        let keep = |(at, message): (usize, &Arc<LlmMessage>)| {
            let is_unseen = Some(at) > seen && !step.newest_too;
            let was_shortened = self.shortened.contains(&message.message_id);
            let shortened = (!is_unseen)
                .then(|| shortened(message, step.outputs))
                .flatten()
                .or_else(|| was_shortened.then(|| Arc::clone(message)));
            Kept {
                message_id: message.message_id.clone(),
                shortened,
            }
        };
        let recent = self.messages.iter().enumerate().skip(from);
        recent.map(keep).collect()
    }

    fn size(&self, range: &Range<usize>) -> ContextSize {
        let mut size = ContextSize::default();
        self.sizes[range.clone()].iter().for_each(|it| size += *it);
        size
    }

    fn kept(&self, cut: &Range<usize>, recent: &[Kept]) -> ContextSize {
        let mut size = self.size(&(0..cut.start));
        for (whole, kept) in self.sizes[cut.end..].iter().zip(recent) {
            size += match &kept.shortened {
                Some(shortened) => ContextSize::of(&shortened.message),
                None => *whole,
            };
        }
        size
    }
}

//! Plans a compaction: which messages are kept, summarised or shortened.

use super::{
    CompactionBlock, ContextSize, RetainedMessage,
    shorten::{OutputLimit, shorten_tool_result},
};
use crate::{LlmMessage, Message, MessageId, Timestamp};
use std::{collections::HashSet, ops::Range, sync::Arc};

/// Minimum of tool output kept at the tightest level. Unit: lines.
const MIN_OUTPUT_LINES: usize = 5;

/// Settings of a compaction (UP-11). A block covers the whole chain of loops, so there is no setting for a
/// number of earlier loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Number of first turns kept unchanged.
    pub first_turns: usize,
    /// Number of latest turns kept, with long tool output shortened. The last turn is always kept.
    pub recent_turns: usize,
    /// Maximum length of the summary. Unit: tokens.
    pub max_summary_tokens: u64,
    /// Maximum of tool output kept in the latest turns. Unit: lines.
    pub max_output_lines: usize,
    /// Target size of all messages; less is kept while they exceed it. Unit: tokens.
    pub target_tokens: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            first_turns: 2,
            recent_turns: 10,
            max_summary_tokens: 2_000,
            max_output_lines: 50,
            target_tokens: u64::MAX,
        }
    }
}

/// Plan of which messages are kept and which are summarised.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionPlan {
    first: Vec<MessageId>,
    previous_summary: Vec<Arc<LlmMessage>>,
    replaced_messages: Vec<Arc<LlmMessage>>,
    recent: Vec<RetainedMessage>,
    through: MessageId,
    retained_size: ContextSize,
    /// Maximum length of the summary: limited by the settings, and to less than the replaced messages.
    max_summary_tokens: u64,
}

impl CompactionPlan {
    /// Returns the summary of the previous compaction, to be included in the new one.
    #[must_use]
    pub fn previous_summary(&self) -> &[Arc<LlmMessage>] {
        &self.previous_summary
    }

    /// Returns the messages to be summarised, in order, each call with its results.
    #[must_use]
    pub fn replaced_messages(&self) -> &[Arc<LlmMessage>] {
        &self.replaced_messages
    }

    /// Returns the maximum length of the summary: limited by the settings, and to less than the replaced
    /// messages. Unit: tokens.
    #[must_use]
    pub fn max_summary_tokens(&self) -> u64 {
        self.max_summary_tokens
    }

    /// Builds the block with this summary, and the estimated size of the messages that the next request
    /// contains.
    #[must_use]
    pub fn into_block(self, summary: &str, at: Timestamp) -> (CompactionBlock, ContextSize) {
        let summary = Arc::new(LlmMessage {
            message_id: MessageId::from(format!("{}.summary", self.through)),
            turn_id: None,
            message: summary_message(summary),
        });
        let mut after = self.retained_size;
        after += ContextSize::of_message(&summary.message);
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

/// Builds the summary message; a user message, so it must state that it is a summary.
fn summary_message(summary: &str) -> Message {
    let text = format!(
        "[Not a message of the user: the conversation grew too long, and this summary of it stands \
         for its middle part. Long outputs of tools that follow may be shortened. Go on as before.]\n\
         <summary>\n{}\n</summary>",
        summary.trim()
    );
    Message::user(text)
}

/// Plans the compaction of these messages. `before` is the block already applied to them. `None` if there is
/// nothing to summarise between the first and the latest turns.
#[must_use]
pub fn plan_compaction(
    messages: &[Arc<LlmMessage>],
    before: Option<&CompactionBlock>,
    settings: &CompactionSettings,
) -> Option<CompactionPlan> {
    let layout = MessageLayout::new(messages, before);
    let now = layout.size(&(0..messages.len()));
    let summary_overhead = ContextSize::of_message(&summary_message("")).tokens;
    let mut best = None;
    for level in retention_levels(settings) {
        let mut after = now.tokens;
        if let Some(range) = layout.replaced_range(&level) {
            let whole = layout.size(&range).tokens;
            let summary = settings
                .max_summary_tokens
                .min(whole.saturating_sub(summary_overhead + 1));
            let recent = layout.retain_recent(range.end, &level);
            let kept = layout.retained_size(&range, &recent);
            if summary > 0 {
                after = kept.tokens.saturating_add(summary_overhead + summary);
                best = Some((range, recent, kept, summary));
            }
        }
        if after <= settings.target_tokens {
            break;
        }
    }
    let (range, recent, kept, summary_tokens) = best?;
    let (earlier, replaced) = messages[range.clone()]
        .iter()
        .cloned()
        .partition(|message| layout.is_summary(message));
    Some(CompactionPlan {
        first: messages[..range.start]
            .iter()
            .map(|message| message.message_id.clone())
            .collect(),
        previous_summary: earlier,
        replaced_messages: replaced,
        recent,
        through: messages.last()?.message_id.clone(),
        retained_size: kept,
        max_summary_tokens: summary_tokens,
    })
}

/// Amount of content to keep.
struct RetentionLevel {
    first: usize,
    recent: usize,
    output_limit: OutputLimit,
    /// Also shorten results that the model has not seen yet.
    include_unseen: bool,
}

/// Returns the levels to try, from the settings down to the minimum.
fn retention_levels(settings: &CompactionSettings) -> Vec<RetentionLevel> {
    let mut levels = Vec::new();
    let mut add = |first, recent, lines, include_unseen| {
        let media = lines >= settings.max_output_lines;
        let output_limit = OutputLimit { lines, media };
        levels.push(RetentionLevel {
            first,
            recent,
            output_limit,
            include_unseen,
        });
    };
    let fewer = |lines: usize| (lines / 2).max(MIN_OUTPUT_LINES.min(lines));
    let mut recent = settings.recent_turns.max(1);
    let mut lines = settings.max_output_lines;
    add(settings.first_turns, recent, lines, false);
    while recent > 1 {
        (recent, lines) = (recent / 2, fewer(lines));
        add(settings.first_turns, recent, lines, false);
    }
    for first in (0..settings.first_turns).rev() {
        add(first, 1, lines, false);
    }
    lines = settings.max_output_lines;
    add(0, 1, lines, true);
    while lines > MIN_OUTPUT_LINES {
        lines = fewer(lines);
        add(0, 1, lines, true);
    }
    levels
}

/// Messages split into turns.
struct MessageLayout<'a> {
    messages: &'a [Arc<LlmMessage>],
    sizes: Vec<ContextSize>,
    /// Start index of each turn, followed by the end.
    turn_starts: Vec<usize>,
    summaries: HashSet<&'a MessageId>,
    shortened_ids: HashSet<&'a MessageId>,
}

impl<'a> MessageLayout<'a> {
    fn new(messages: &'a [Arc<LlmMessage>], previous_block: Option<&'a CompactionBlock>) -> Self {
        let summaries = previous_block
            .iter()
            .flat_map(|block| &block.keep_compacted);
        let kept = previous_block.iter().flat_map(|block| &block.keep_recent);
        let mut layout = Self {
            messages,
            sizes: messages
                .iter()
                .map(|message| ContextSize::of_message(&message.message))
                .collect(),
            turn_starts: Vec::new(),
            summaries: summaries.map(|message| &message.message_id).collect(),
            shortened_ids: kept
                .filter(|kept| kept.shortened.is_some())
                .map(|kept| &kept.message_id)
                .collect(),
        };
        layout.turn_starts = layout.find_turn_starts();
        layout
    }

    fn is_summary(&self, message: &LlmMessage) -> bool {
        self.summaries.contains(&message.message_id)
    }

    /// Finds the start of each turn: its inputs, the response and the results of its calls. No turn starts
    /// with a result. Works without turn ids, for records from before turns existed.
    fn find_turn_starts(&self) -> Vec<usize> {
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

    /// Returns the range to summarise at this level; `None` if it contains nothing new.
    fn replaced_range(&self, level: &RetentionLevel) -> Option<Range<usize>> {
        let turns = self.turn_starts.len() - 1;
        // The first messages are kept unchanged, so they end where a message was already shortened or
        // summarised.
        let altered = |message: &Arc<LlmMessage>| {
            self.is_summary(message) || self.shortened_ids.contains(&message.message_id)
        };
        let verbatim = self.messages.iter().position(altered);
        let verbatim = verbatim.unwrap_or(self.messages.len());
        let first = (0..=level.first.min(turns))
            .rev()
            .find(|turn| self.turn_starts[*turn] <= verbatim)?;
        let from = self.turn_starts[first];
        let summary = self.messages.iter().rposition(|m| self.is_summary(m));
        let to = self.turn_starts[turns.saturating_sub(level.recent)]
            .max(summary.map_or(0, |at| at + 1));
        let range = from..to.max(from);
        let is_new = |message: &Arc<LlmMessage>| !self.is_summary(message);
        self.messages[range.clone()]
            .iter()
            .any(is_new)
            .then_some(range)
    }

    /// Returns the messages from `from` on, in the form in which they are kept.
    fn retain_recent(&self, from: usize, level: &RetentionLevel) -> Vec<RetainedMessage> {
        let is_answer = |m: &Arc<LlmMessage>| matches!(m.message, Message::Assistant { .. });
        let seen = self.messages.iter().rposition(is_answer);
        let keep = |(at, message): (usize, &Arc<LlmMessage>)| {
            let is_unseen = Some(at) > seen && !level.include_unseen;
            let was_shortened = self.shortened_ids.contains(&message.message_id);
            let shortened = (!is_unseen)
                .then(|| shorten_tool_result(message, level.output_limit))
                .flatten()
                .or_else(|| was_shortened.then(|| Arc::clone(message)));
            RetainedMessage {
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

    fn retained_size(&self, range: &Range<usize>, recent: &[RetainedMessage]) -> ContextSize {
        let mut size = self.size(&(0..range.start));
        for (whole, kept) in self.sizes[range.end..].iter().zip(recent) {
            size += match &kept.shortened {
                Some(shortened) => ContextSize::of_message(&shortened.message),
                None => *whole,
            };
        }
        size
    }
}

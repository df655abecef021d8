//! Encoders that both protocol versions share. The schema has a separate set of types for each version; the
//! macro defines the same functions for either.

/// Defines the shared encoders for the types of a version, `v1` or `v2`.
macro_rules! define_shared_encoders {
    ($version:ident) => {
        use crate::view::{
            code_fence::fence_output,
            meta::turnery_meta,
            rfc3339::format_rfc3339,
            session_options::{
                MODE, MODEL, PROTOCOL, THINKING, THINKING_LEVELS, mode_description, mode_name,
                protocol_name,
            },
        };
        use agent_client_protocol_schema::$version::{
            AudioContent, BlobResourceContents, CompactionStatus, CompactionUpdate, ContentBlock,
            EmbeddedResource, EmbeddedResourceResource, ImageContent, Notice, NoticeSeverity,
            PermissionOption, PermissionOptionKind, PlanEntry, PlanEntryPriority, PlanEntryStatus,
            SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
            SessionInfo, SessionInfoUpdate, SessionUpdate, TextContent, ToolCallContent,
            ToolCallLocation, ToolKind,
        };
        use serde_json::Value;
        use turnery_agent::{PermissionChoice, PermissionChoiceKind, Protocol, Session, view};
        use turnery_engine::{
            CallKind, CompactionBlock, Content, Location, PlanPriority, PlanStatus, Timestamp,
        };
        use turnery_tools::{Mode, escape_invisible, escape_invisible_line};

        /// Encodes the kind of a call.
        pub(crate) fn encode_kind(kind: CallKind) -> ToolKind {
            match kind {
                CallKind::Read => ToolKind::Read,
                CallKind::Edit => ToolKind::Edit,
                CallKind::Delete => ToolKind::Delete,
                CallKind::Move => ToolKind::Move,
                CallKind::Search => ToolKind::Search,
                CallKind::Execute => ToolKind::Execute,
                CallKind::Think => ToolKind::Think,
                CallKind::Fetch => ToolKind::Fetch,
                CallKind::Other => ToolKind::Other,
            }
        }

        /// Encodes the whole list of locations (TOOL-5, TOOL-7).
        pub(crate) fn encode_locations(locations: &[Location]) -> Vec<ToolCallLocation> {
            let encode = |it: &Location| ToolCallLocation::new(it.path.clone()).line(it.line);
            locations.iter().map(encode).collect()
        }

        /// Encodes a result for the user. Output of commands is fenced, so that it is not rendered as
        /// Markdown.
        pub(crate) fn encode_result(content: &[Content], kind: CallKind) -> Vec<ToolCallContent> {
            let encode = |item: &Content| match (item, kind) {
                (Content::Text { text }, CallKind::Execute) => Some(text_block(fence_output(text))),
                (item, _) => encode_block(item),
            };
            let blocks = content.iter().filter_map(encode);
            blocks.map(Into::into).collect()
        }

        /// Returns a block of plain text.
        pub(crate) fn text_block(text: impl Into<String>) -> ContentBlock {
            ContentBlock::Text(TextContent::new(text))
        }

        /// Encodes content as a block; `None` if it is not for the user.
        pub(crate) fn encode_block(content: &Content) -> Option<ContentBlock> {
            match content {
                Content::Text { text } => Some(text_block(text)),
                Content::Image(image) => Some(ContentBlock::Image(ImageContent::new(
                    image.base64.to_string(),
                    image.mime_type.as_str(),
                ))),
                Content::Audio(audio) => Some(ContentBlock::Audio(AudioContent::new(
                    audio.base64.to_string(),
                    audio.mime_type.as_str(),
                ))),
                Content::Document(document) => Some(ContentBlock::Resource(EmbeddedResource::new(
                    EmbeddedResourceResource::BlobResourceContents(
                        BlobResourceContents::new(
                            document.base64.to_string(),
                            crate::server::prompt_content::document_uri(&document.name),
                        )
                        .mime_type(document.mime_type.clone()),
                    ),
                ))),
                Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => None,
            }
        }

        /// Encodes the entries of a plan.
        pub(crate) fn encode_plan_entries(entries: &[turnery_engine::PlanEntry]) -> Vec<PlanEntry> {
            let encode = |entry: &turnery_engine::PlanEntry| {
                let priority = match entry.priority {
                    PlanPriority::High => PlanEntryPriority::High,
                    PlanPriority::Medium => PlanEntryPriority::Medium,
                    PlanPriority::Low => PlanEntryPriority::Low,
                };
                let status = match entry.status {
                    PlanStatus::Pending => PlanEntryStatus::Pending,
                    PlanStatus::InProgress => PlanEntryStatus::InProgress,
                    PlanStatus::Completed => PlanEntryStatus::Completed,
                };
                PlanEntry::new(escape_invisible_line(&entry.content), priority, status)
            };
            entries.iter().map(encode).collect()
        }

        /// Returns the severity of a notice.
        pub(crate) fn encode_severity(notice: &view::Notice<'_>) -> NoticeSeverity {
            match notice.is_warning() {
                true => NoticeSeverity::Warning,
                false => NoticeSeverity::Info,
            }
        }

        /// Encodes a notice. Hidden characters in the description are made visible.
        pub(crate) fn encode_notice(
            severity: NoticeSeverity,
            title: &str,
            description: &str,
        ) -> SessionUpdate {
            let notice = Notice::new(severity, title);
            SessionUpdate::Notice(notice.description(escape_invisible(description).into_owned()))
        }

        /// Encodes the start of a compaction.
        pub(crate) fn encode_compaction_start(id: &str) -> CompactionUpdate {
            CompactionUpdate::new(id.to_owned(), CompactionStatus::InProgress)
        }

        /// Encodes the end of a compaction: with a summary, with the reason of a failure, or with nothing done
        /// (COMP-2).
        pub(crate) fn encode_compaction_end(
            id: &str,
            block: Option<&CompactionBlock>,
            failure: Option<&str>,
        ) -> CompactionUpdate {
            let ended = |status| CompactionUpdate::new(id.to_owned(), status);
            match (block, failure) {
                (Some(block), _) => {
                    let texts = block.keep_compacted.iter().map(|kept| kept.message.text());
                    let summary: Vec<_> = texts.map(text_block).collect();
                    ended(CompactionStatus::Completed).summary(summary)
                }
                (None, Some(failure)) => {
                    ended(CompactionStatus::Failed).error(escape_invisible(failure).into_owned())
                }
                (None, None) => ended(CompactionStatus::Cancelled),
            }
        }

        /// Returns an update whose only content is `_meta`.
        pub(crate) fn meta_only_update(members: Value) -> SessionUpdate {
            let info = SessionInfoUpdate::new().meta(turnery_meta(members));
            SessionUpdate::SessionInfoUpdate(info)
        }

        /// Encodes a new title, or the time of the last activity.
        pub(crate) fn encode_session_info(
            title: Option<&str>,
            updated_at: Timestamp,
        ) -> SessionUpdate {
            let mut info = SessionInfoUpdate::new().updated_at(format_rfc3339(updated_at));
            if let Some(title) = title {
                info = info.title(escape_invisible_line(title).into_owned());
            }
            SessionUpdate::SessionInfoUpdate(info)
        }

        /// Encodes a session of a list.
        pub(crate) fn encode_session(session: turnery_store::SessionInfo) -> SessionInfo {
            SessionInfo::new(session.id.to_string(), session.cwd)
                .additional_directories(session.roots)
                .title(
                    session
                        .title
                        .map(|title| escape_invisible_line(&title).into_owned()),
                )
                .updated_at(format_rfc3339(session.updated_at))
        }

        /// Encodes the options of a permission request.
        pub(crate) fn encode_choices(choices: &[PermissionChoice]) -> Vec<PermissionOption> {
            let encode = |choice: &PermissionChoice| {
                let kind = match choice.kind {
                    PermissionChoiceKind::AllowOnce => PermissionOptionKind::AllowOnce,
                    PermissionChoiceKind::AllowAlways => PermissionOptionKind::AllowAlways,
                    PermissionChoiceKind::RejectOnce => PermissionOptionKind::RejectOnce,
                    PermissionChoiceKind::RejectAlways => PermissionOptionKind::RejectAlways,
                };
                PermissionOption::new(choice.id.clone(), escape_invisible_line(&choice.name), kind)
            };
            choices.iter().map(encode).collect()
        }

        /// Encodes all options of a session, most important first (CFG-2, CFG-5). Each has values, which
        /// include the current one (V2-21). No option is boolean (CFG-3).
        pub(crate) fn encode_config_options(session: &Session) -> Vec<SessionConfigOption> {
            let options = session.options();
            let modes: Vec<_> = Mode::ALL
                .into_iter()
                .map(|mode| {
                    SessionConfigSelectOption::new(mode.as_str(), mode_name(mode))
                        .description(mode.description().to_owned())
                })
                .collect();
            let models: Vec<_> = session
                .models()
                .into_iter()
                .map(|model| {
                    let name = model.name.to_string();
                    SessionConfigSelectOption::new(name, model.display_name)
                })
                .collect();
            let thinking: Vec<_> = THINKING_LEVELS
                .into_iter()
                .map(|(level, name)| SessionConfigSelectOption::new(level.as_str(), name))
                .collect();
            let protocols: Vec<_> = Protocol::ALL
                .into_iter()
                .map(|it| SessionConfigSelectOption::new(it.as_str(), protocol_name(it)))
                .collect();
            vec![
                SessionConfigOption::select(MODE, "Mode", options.mode.as_str(), modes)
                    .description(mode_description(&options))
                    .category(SessionConfigOptionCategory::Mode),
                SessionConfigOption::select(MODEL, "Model", options.model.name.to_string(), models)
                    .description("The model that answers".to_owned())
                    .category(SessionConfigOptionCategory::Model),
                SessionConfigOption::select(
                    THINKING,
                    "Thinking",
                    options.thinking.as_str(),
                    thinking,
                )
                .description("How much the model thinks before it answers".to_owned())
                .category(SessionConfigOptionCategory::ThoughtLevel),
                SessionConfigOption::select(
                    PROTOCOL,
                    "Acting",
                    options.protocol.as_str(),
                    protocols,
                )
                .description(
                    "How the model acts: by tool calls, or by Python code that calls the tools"
                        .to_owned(),
                ),
            ]
        }
    };
}

pub(crate) use define_shared_encoders;

//! Waits for the MCP servers that a prompt needs.

use super::{
    PromptError, command::PromptKind, prompt_guard::PromptGuard, prompt_scope::PromptScope,
    task::SessionTask,
};
use std::time::Duration;
use turnery_engine::Content;

impl SessionTask {
    /// Waits for connecting servers if the prompt names one of their tools. For a prompt that an MCP server
    /// generates, waits until that server is connected or has failed, and requests the content. Returns at
    /// once after a cancel, which the loop then handles.
    pub(super) async fn wait_for_servers(
        &mut self,
        kind: PromptKind,
        scope: &PromptScope,
        guard: &mut PromptGuard,
    ) -> Result<PromptKind, PromptError> {
        let Some(servers) = self.tools.mcp_servers() else {
            return Ok(kind);
        };
        let prepared = async {
            match &kind {
                PromptKind::McpPrompt {
                    command,
                    args,
                    extra_content,
                } => {
                    servers.wait_for_server_of_prompt(command).await;
                    let written = servers.get_prompt(command, args, &scope.trace).await;
                    written.map(|mut content| {
                        content.extend(extra_content.iter().cloned());
                        Some(PromptKind::Input(content))
                    })
                }
                PromptKind::Input(content) | PromptKind::Branch(_, content) => {
                    for text in content.iter().filter_map(Content::as_text) {
                        servers.wait_for_servers_named_in(text).await;
                    }
                    Ok(None)
                }
                PromptKind::Continue | PromptKind::Rerun(_) | PromptKind::Compact => Ok(None),
            }
        };
        let written = guard.run_guarded(self, prepared, Duration::ZERO).await?;
        let written = written.transpose().map_err(PromptError::Server)?;
        self.refresh_tools();
        Ok(written.flatten().unwrap_or(kind))
    }
}

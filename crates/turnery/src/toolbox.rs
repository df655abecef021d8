//! Builds the toolbox of the `turnery` program.

use turnery_agent::SubAgentTool;
use turnery_tools::{Shell, Toolbox};

/// Returns the toolbox with all built-in tools.
pub(crate) fn toolbox(shell: Shell) -> Toolbox {
    Toolbox::coding_with(shell).with_tool(SubAgentTool)
}

//! The tools of a coding agent, one file each.

use crate::{tool::Tool, typed_tool::TypedTool};
use std::sync::Arc;

/// Declares the module of each tool, and the table of tools in the order in which the model receives them.
macro_rules! tools {
    ($($module:ident::$tool:ident,)*) => {
        $(mod $module;)*

        /// Names of the tools of a coding agent.
        pub const TOOL_NAMES: &[&str] = &[$($module::$tool::NAME,)*];

        /// Creates the tools.
        pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
            vec![$(Arc::new($module::$tool::default()),)*]
        }
    };
}

tools! {
    read_file::ReadFile,
    list_dir::ListDir,
    find_files::FindFiles,
    search::Search,
    edit_file::EditFile,
    write_file::WriteFile,
    shell::Shell,
    update_plan::UpdatePlan,
}

mod apply_changes;
mod planned_change;

pub use apply_changes::{ApplyChanges, PendingChanges};
pub use shell::Shell;

/// Returns false for a tool whose calls are not shown, because other events tell the client everything about
/// them.
#[must_use]
pub fn is_shown(tool_name: &str) -> bool {
    // The plan has its own event (PLAN-2).
    tool_name != update_plan::UpdatePlan::NAME
}

//! Decides which calls run, need permission, or are denied. Anything unknown needs permission.
//!
//! Starts no program and changes nothing; reads the disk to resolve paths and to check folders, programs and
//! repositories. A deny rule overrides everything. The effects of a shell command line are determined by
//! parsing it; a line that cannot be fully parsed is never allowed by a rule for single commands.

mod bounded_walk;
mod command_line;
mod command_line_access;
mod command_line_limits;
mod command_starters;
mod command_wrappers;
mod conditional_expressions;
mod file_rules;
pub(crate) mod git;
mod glob;
mod guarded_names;
mod guarded_paths;
mod hidden_files;
mod ignore_files;
mod inner_commands;
mod judgement;
mod known_commands;
mod linked_dotfiles;
mod locale;
mod mcp_tools;
mod mode;
mod named_paths;
mod path_checks;
mod program_files;
mod program_name;
mod project_settings;
mod read_only;
mod read_only_arguments;
mod read_only_programs;
mod read_only_scripts;
mod rule;
mod rule_suggestion;
mod shell_word;
mod version_files;
mod word_expansion;

pub(crate) use command_line::is_invisible_char;
pub(crate) use judgement::needs_hardened_git;

#[cfg(test)]
mod arguments_oracle_tests;
#[cfg(test)]
mod bash_oracle_tests;
#[cfg(test)]
mod command_line_tests;
#[cfg(test)]
mod confined_bash_oracle_tests;
#[cfg(test)]
mod dangerous_line_tests;
#[cfg(test)]
mod deny_file_rule_tests;
#[cfg(test)]
mod deny_rule_tests;
#[cfg(test)]
mod everyday_line_tests;
#[cfg(test)]
mod guarded_paths_tests;
#[cfg(test)]
mod hostile_input_tests;
#[cfg(test)]
mod judgement_tests;
#[cfg(test)]
mod known_commands_tests;
#[cfg(test)]
mod misleading_line_tests;
#[cfg(test)]
mod program_settings_tests;

pub use command_line_limits::CommandLineLimits;
pub use git::GitSettings;
pub use guarded_paths::GuardedPaths;
pub use hidden_files::HiddenFiles;
pub use judgement::{Judgement, Policy, only_reads};
pub use mode::Mode;
pub use program_files::program_files;
pub use project_settings::{IgnoredProjectSetting, ProjectPolicySettings};
pub use rule::{Rule, RuleError};

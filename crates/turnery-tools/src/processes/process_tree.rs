//! A running program and everything that it started.

use super::{
    process_group::ProcessGroup,
    program::{ChildPipes, ChildStdio, ProgramSpec, drop_relative_libraries},
    stop_report::FinishedTree,
    supervised_tree::SupervisedTree,
    supervision::{SUPERVISOR_EXECUTABLE, TAG_VARIABLE, new_tag},
};
use std::io;

/// A running program and all its descendants. Dropping this kills all of them.
#[derive(Debug)]
pub struct ProcessTree(TreeKind);

#[derive(Debug)]
enum TreeKind {
    Supervised(SupervisedTree),
    Group(ProcessGroup),
}

impl ProcessTree {
    /// Starts a program with these standard streams and no other descriptors of this process (TR-12).
    ///
    /// # Errors
    ///
    /// Fails if the program cannot be executed or a process cannot be started.
    pub async fn spawn(mut program: ProgramSpec, stdio: ChildStdio) -> io::Result<Self> {
        let tag = new_tag();
        let variable = (TAG_VARIABLE.into(), tag.clone().into());
        program.environment.extend([variable]);
        drop_relative_libraries(&mut program.environment);
        Ok(Self(match SUPERVISOR_EXECUTABLE.get() {
            Some(supervisor) => {
                TreeKind::Supervised(SupervisedTree::spawn(supervisor, &program, stdio, tag).await?)
            }
            None => TreeKind::Group(ProcessGroup::spawn(program, stdio, tag)?),
        }))
    }

    /// Starts a program with pipes for its standard streams.
    ///
    /// # Errors
    ///
    /// Fails as [`ProcessTree::spawn`] does, or if a pipe cannot be created.
    pub async fn spawn_piped(program: ProgramSpec) -> io::Result<(Self, ChildPipes)> {
        let (pipes, stdio) = ChildPipes::new()?;
        Ok((Self::spawn(program, stdio).await?, pipes))
    }

    /// Waits until the program has exited. If its supervisor was killed, kills all processes with the
    /// program's tag. Cancel safe.
    ///
    /// # Errors
    ///
    /// Fails only if the operating system does.
    pub async fn wait_exit(&mut self) -> io::Result<()> {
        match &mut self.0 {
            TreeKind::Supervised(tree) => tree.wait_exit().await,
            TreeKind::Group(group) => group.wait_exit().await,
        }
    }

    /// Sends SIGTERM to the program's process group.
    pub fn request_stop(&self) {
        match &self.0 {
            TreeKind::Supervised(tree) => tree.request_stop(),
            TreeKind::Group(group) => group.request_stop(),
        }
    }

    /// Kills the program and all its descendants.
    pub fn kill(&self) {
        match &self.0 {
            TreeKind::Supervised(tree) => tree.kill(),
            TreeKind::Group(group) => group.kill(),
        }
    }

    /// Kills the remaining processes and reports how the program ended. Takes a bounded time: processes that
    /// have not ended by then, including the program, are listed in the report.
    ///
    /// # Errors
    ///
    /// Fails only if the operating system does.
    pub async fn finish(self) -> io::Result<FinishedTree> {
        match self.0 {
            TreeKind::Supervised(tree) => Ok(tree.finish().await),
            TreeKind::Group(group) => group.finish().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn program_has_exactly_its_environment() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let variables = [("PATH".into(), path.clone()), ("A".into(), "b=c".into())];
        let program = ProgramSpec {
            program: "env".into(),
            args: Vec::new(),
            working_directory: "/".into(),
            environment: variables.into(),
            confinement: None,
        };
        let (tree, mut pipes) = ProcessTree::spawn_piped(program).await.unwrap();
        let mut text = String::new();
        pipes.stdout.read_to_string(&mut text).await.unwrap();
        tree.finish().await.unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.retain(|line| !line.starts_with(TAG_VARIABLE));
        lines.sort_unstable();
        assert_eq!(lines, ["A=b=c", &format!("PATH={}", path.display())]);
    }
}

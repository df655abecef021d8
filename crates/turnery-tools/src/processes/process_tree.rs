//! A running program and everything that it started.

use super::{
    SUPERVISOR, TAG_VARIABLE,
    direct::DirectGroup,
    new_tag,
    program::{ChildPipes, ChildStdio, ProgramSpec, drop_relative_libraries},
    supervised::Supervised,
};
use std::{fmt, io, process::ExitStatus};

/// A running program and everything that it started. Dropping this kills all of it.
#[derive(Debug)]
pub struct ProcessTree(Kind);

#[derive(Debug)]
enum Kind {
    Supervised(Supervised),
    Direct(DirectGroup),
}

/// End of a program whose descendants were stopped.
#[derive(Debug)]
pub struct FinishedTree {
    /// How the program itself ended; `None` if nothing is known of that.
    pub status: Option<ExitStatus>,
    /// What became of everything that it started.
    pub stopped: StopReport,
}

/// What is known to have been stopped when a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReport {
    /// The program and every descendant: the kernel knows of none that is left.
    Everything,
    /// The program, its process group and every process with the inherited tag. A process that left the
    /// group and cleared its environment may be left.
    GroupAndTagged,
    /// Everything but these processes: they have not ended yet, because they may not be killed or because
    /// the kernel is not done with them.
    Remaining(Vec<RunningProcess>),
}

/// A process that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProcess {
    /// Its process id.
    pub pid: i32,
    /// Its command line, shortened.
    pub command: String,
}

impl fmt::Display for RunningProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pid, self.command)
    }
}

impl ProcessTree {
    /// Starts a program with these standard streams and none of our other descriptors (TR-12).
    ///
    /// # Errors
    ///
    /// The error of the failed `exec`, whoever made it, and any failure to start a process.
    pub async fn spawn(mut program: ProgramSpec, stdio: ChildStdio) -> io::Result<Self> {
        let tag = new_tag();
        let variable = (TAG_VARIABLE.into(), tag.clone().into());
        program.environment.extend([variable]);
        drop_relative_libraries(&mut program.environment);
        Ok(Self(match SUPERVISOR.get() {
            Some(supervisor) => {
                Kind::Supervised(Supervised::spawn(supervisor, &program, stdio, tag).await?)
            }
            None => Kind::Direct(DirectGroup::spawn(program, stdio, tag)?),
        }))
    }

    /// Starts a program with pipes for its standard streams.
    ///
    /// # Errors
    ///
    /// Those of [`ProcessTree::spawn`], and any failure to make a pipe.
    pub async fn spawn_piped(program: ProgramSpec) -> io::Result<(Self, ChildPipes)> {
        let (pipes, stdio) = ChildPipes::new()?;
        Ok((Self::spawn(program, stdio).await?, pipes))
    }

    /// Waits until the program has ended. If its supervisor was killed, kills all that has the program's tag.
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// None but those of a broken system.
    pub async fn wait_exit(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Supervised(tree) => tree.wait_exit().await,
            Kind::Direct(group) => group.wait_exit().await,
        }
    }

    /// Asks the program's process group to end (SIGTERM).
    pub fn request_stop(&self) {
        match &self.0 {
            Kind::Supervised(tree) => tree.request_stop(),
            Kind::Direct(group) => group.request_stop(),
        }
    }

    /// Kills the program and everything that it started.
    pub fn kill(&self) {
        match &self.0 {
            Kind::Supervised(tree) => tree.kill(),
            Kind::Direct(group) => group.kill(),
        }
    }

    /// Kills what is left, and reports how the program ended. Takes a bounded time: what has not ended by then,
    /// the program included, is named in the report.
    ///
    /// # Errors
    ///
    /// None but those of a broken system.
    pub async fn finish(self) -> io::Result<FinishedTree> {
        match self.0 {
            Kind::Supervised(tree) => Ok(tree.finish().await),
            Kind::Direct(group) => group.finish().await,
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
            folder: "/".into(),
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

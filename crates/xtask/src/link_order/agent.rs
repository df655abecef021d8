//! Runs turnery as an editor does.

use anyhow::{Context, Result, ensure};
use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader, Lines, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A running agent.
pub(super) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    project: PathBuf,
    last_id: u32,
}

impl Agent {
    /// Starts `program` in a project in `folder`, under another program with these arguments if there are any. Its model
    /// is at `address`.
    pub(super) fn start(
        wrapper: &[&str],
        program: &Path,
        folder: &Path,
        address: &str,
    ) -> Result<Self> {
        let words: Vec<&OsStr> = wrapper
            .iter()
            .map(OsStr::new)
            .chain([program.as_os_str()])
            .collect();
        let (first, rest) = words.split_first().context("there is no program")?;
        let project = folder.join("project").canonicalize()?;
        let mut child = Command::new(first)
            .args(rest)
            .args(["acp", "--mode=auto", "--model=openai/fake"])
            .env("HOME", folder)
            .env("OPENAI_BASE_URL", format!("http://{address}/v1"))
            .env("OPENAI_API_KEY", "none")
            .current_dir(&project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("could not start {}", first.display()))?;
        let output = child.stdout.take().context("there is no output")?;
        Ok(Self {
            input: child.stdin.take(),
            output: BufReader::new(output).lines(),
            child,
            project,
            last_id: 0,
        })
    }

    /// Returns the parameters of a method that takes a folder.
    pub(super) fn folder_params(&self) -> String {
        let project = self.project.display();
        format!("{{\"cwd\":\"{project}\",\"mcpServers\":[]}}")
    }

    pub(super) fn initialize(&mut self) -> Result<()> {
        let params = "{\"protocolVersion\":1,\"clientCapabilities\":{}}";
        self.request("initialize", params).map(drop)
    }

    /// Sends a request and returns the line of its response.
    pub(super) fn request(&mut self, method: &str, params: &str) -> Result<String> {
        self.last_id += 1;
        let id = self.last_id;
        let input = self.input.as_mut().context("the agent was ended")?;
        writeln!(
            input,
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}"
        )?;
        let response = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        for line in &mut self.output {
            let line = line?;
            if line.starts_with(&response) {
                ensure!(!line.contains("\"error\":"), "{method} failed: {line}");
                return Ok(line);
            }
        }
        anyhow::bail!("the agent ended before its response to {method}")
    }

    /// Ends the agent as an editor does.
    pub(super) fn end(mut self) -> Result<()> {
        drop(self.input.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "the agent ended with {status}");
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

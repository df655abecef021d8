//! Serves an agent over pipes like the binary does: on one thread, with non-blocking pipes.

use std::{
    io::{self, PipeReader, PipeWriter, pipe},
    os::fd::OwnedFd,
    sync::Arc,
    thread::{self, JoinHandle},
};
use tokio::net::unix::pipe::{Receiver, Sender};
use turnery_acp::{Input, Output, ServeOptions, serve};
use turnery_agent::Agent;

/// Client's ends of the pipes, and the thread that serves.
pub(crate) type ServedPipes = (PipeWriter, PipeReader, JoinHandle<io::Result<()>>);

/// Serves the agent on a new thread; returns the client's ends of the pipes and the thread.
pub(crate) fn serve_over_pipes(agent: Agent) -> io::Result<ServedPipes> {
    let (agent_input, input) = pipe()?;
    let (output, agent_output) = pipe()?;
    let served = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let input = Input::Pipe(Receiver::from_owned_fd(OwnedFd::from(agent_input))?);
            let output = Output::Pipe(Sender::from_owned_fd(OwnedFd::from(agent_output))?);
            serve(Arc::new(agent), input, output, ServeOptions::default()).await?;
            Ok(())
        })
    });
    Ok((input, output, served))
}

//! Runs the session task, the sole owner of a session's state. Prompts run one at a time.

use super::{
    BackgroundWork, PromptOptions, SessionOptions, SessionTools, command::SessionCommand,
    conversation::Conversation, effect_delivery::EffectDelivery, env::SessionEnv,
    group_commit::GroupCommitSender, inbox::Inbox, option_change::PendingOptionChange,
    output::SessionOutput, queued_prompts::QueueWatch, result::PromptEnd,
};
use crate::{client::OutboxItem, code_mode::SessionInterpreter};
use futures_util::future::OptionFuture;
use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::{Mutex, watch};
use turnery_store::Owner;

/// State of one open session.
pub(crate) struct SessionTask {
    pub(crate) env: SessionEnv,
    /// Rebuilds the toolbox when servers change.
    pub(crate) tools: SessionTools,
    pub(crate) conversation: Conversation,
    pub(crate) owner: Owner,
    pub(crate) options: watch::Sender<SessionOptions>,
    pub(crate) inbox: Inbox,
    pub(crate) output: SessionOutput,
    /// Runs the code of code mode.
    pub(crate) interpreter: Arc<Mutex<SessionInterpreter>>,
    /// Commits and releases of earlier prompts that the store has not finished.
    pub(crate) background: BackgroundWork,
    /// Looks for queued prompts, if the session runs them.
    pub(crate) queue_watch: Option<QueueWatch>,
    /// Group that commits the loop of a candidate; `None` for a session, which retries failed commits itself.
    pub(crate) group: Option<GroupCommitSender>,
}

impl SessionTask {
    /// Serves the mailbox until the session is closed, or every handle is dropped and all prompts are done.
    pub(crate) async fn serve(mut self) {
        // Callers that only probed whether the session opens have dropped their handle by now.
        if !self.inbox.mailbox.is_closed() {
            self.tools.connect_servers();
        }
        let delivery = match self.inbox.mailbox.is_closed() {
            true => None,
            false => EffectDelivery::start(&self.env),
        };
        loop {
            // Interjections that arrived while the last prompt was ending.
            for interjection in std::mem::take(&mut self.inbox.interjections) {
                let prompt = interjection.into_prompt(PromptOptions::default());
                self.inbox.prompts.extend(prompt);
            }
            let next = if faulty!(RunLastPromptFirst) {
                self.inbox.prompts.pop_back()
            } else {
                self.inbox.prompts.pop_front()
            };
            if let Some(prompt) = next {
                self.serve_prompt(prompt).await;
                continue;
            }
            if !self.inbox.closing.is_empty() {
                break;
            }
            if !faulty!(KeepSlotWhenIdle) {
                self.output.outbox.release_slot();
            }
            match self.next_command().await {
                Some(command) => self.handle_command(command),
                None => break,
            }
        }
        // Later commands are rejected by the closed mailbox; queued prompts are dropped here, which resolves
        // their handles.
        self.inbox.mailbox.close();
        while let Ok(command) = self.inbox.mailbox.try_recv() {
            if let SessionCommand::Close(reply) = command {
                self.inbox.closing.push(reply);
            }
        }
        let closing = std::mem::take(&mut self.inbox.closing);
        let servers = self.tools.mcp_servers();
        drop(self);
        let close_servers = OptionFuture::from(servers.as_ref().map(|it| it.close()));
        let end_delivery = OptionFuture::from(delivery.map(EffectDelivery::close));
        tokio::join!(close_servers, end_delivery);
        for reply in closing {
            let _ = reply.send(());
        }
    }

    /// Handles one command, between prompts or during one.
    pub(crate) fn handle_command(&mut self, command: SessionCommand) {
        match command {
            SessionCommand::Prompt(prompt) => self.inbox.prompts.push_back(*prompt),
            SessionCommand::Interject(interjection) => {
                self.inbox.interjections.push_back(interjection);
            }
            SessionCommand::FindQueued { is_held } => {
                if let Some(watch) = &mut self.queue_watch {
                    watch.begin_on_request(is_held);
                }
            }
            SessionCommand::SetOption { change, reply } => {
                self.inbox.option_change =
                    PendingOptionChange::begin(change, &self.env, &self.conversation, reply);
            }
            SessionCommand::OpenLoop(reply) => {
                let _ = reply.send(None);
            }
            SessionCommand::Close(reply) => self.inbox.closing.push(reply),
        }
    }

    /// Resolves when no option is being stored.
    fn poll_option_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(change) = &mut self.inbox.option_change {
            let stored = ready!(change.poll_stored(cx));
            if let Some(change) = self.inbox.option_change.take() {
                change.finish(stored, &mut self.env, &mut self.conversation, &self.options);
            }
        }
        Poll::Ready(())
    }

    /// Polls the next command during a prompt; pending while an option is being stored, since commands are
    /// handled in order. Never resolves to `None`: a closed mailbox stays pending.
    pub(crate) fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Option<SessionCommand>> {
        ready!(self.poll_option_change(cx));
        match self.inbox.mailbox.is_closed() {
            true => Poll::Pending,
            false => self.inbox.mailbox.poll_recv(cx),
        }
    }

    /// Waits for the next command between prompts; `None` once every handle is dropped.
    async fn next_command(&mut self) -> Option<SessionCommand> {
        poll_fn(|cx| {
            ready!(self.poll_option_change(cx));
            match (self.inbox.mailbox.poll_recv(cx), &mut self.queue_watch) {
                (Poll::Pending, Some(watch)) => watch
                    .poll(cx)
                    .map(|prompt| Some(SessionCommand::Prompt(Box::new(prompt)))),
                (received, _) => received,
            }
        })
        .await
    }

    /// Updates the tools that the model sees.
    pub(crate) fn refresh_tools(&mut self) {
        if let Some(toolbox) = self.tools.take_changed() {
            self.env.toolbox = toolbox;
        }
    }

    /// Begins the requests with the configured system prompt, after a summary. A candidate keeps its own.
    pub(crate) fn renew_system_prompt(&mut self) {
        if self.group.is_some() {
            return;
        }
        self.conversation.system.renew();
        self.apply_system_prompt();
    }

    /// Begins the requests with the system prompt of the conversation.
    pub(crate) fn apply_system_prompt(&mut self) {
        let system = self.conversation.system.current();
        self.env.settings.system = Arc::clone(system);
        self.tools.forget_prefix();
    }

    /// Pushes the end of a prompt to an outbox that wants it. Option changes are still served, so that a slow
    /// client does not block them.
    pub(crate) async fn show_prompt_end(&mut self, end: &PromptEnd) {
        if !self.output.outbox.wants_prompt_end() {
            return;
        }
        while let Some(command) = poll_fn(|cx| match self.poll_command(cx) {
            Poll::Ready(Some(command)) => Poll::Ready(Some(command)),
            Poll::Ready(None) | Poll::Pending => self.output.outbox.poll_ready(cx).map(|()| None),
        })
        .await
        {
            self.handle_command(command);
        }
        self.output.outbox.push(OutboxItem::PromptEnd(end));
    }

    /// Notifies the client if the prompt waits for an earlier one that is still being stored.
    pub(crate) fn poll_background_notice(&mut self, cx: &mut Context<'_>) {
        self.background.poll_notice(cx, &mut self.output);
    }
}

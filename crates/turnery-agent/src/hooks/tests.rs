//! Hooks: how several compose, and what becomes of those that break or hang.

use super::*;
use std::{future::pending, sync::Mutex};
use turnery_engine::ContextSize;

/// Says one thing, and keeps what it was asked.
struct Puppet {
    says: fn() -> HookVerdict,
    asked: Mutex<Vec<Hook>>,
}

impl Puppet {
    fn new(says: fn() -> HookVerdict) -> Arc<Self> {
        Arc::new(Self {
            says,
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Hooks for Puppet {
    fn name(&self) -> &str {
        "puppet"
    }

    fn set(&self) -> HookSet {
        HookSet {
            input: true,
            before_turn: true,
            after_turn: true,
            compaction: true,
            checkpoint: true,
            ..HookSet::default()
        }
    }

    fn ask<'a>(&'a self, _: &'a HookCx, hook: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        self.asked.lock().unwrap().push(hook.clone());
        Box::pin(ready((self.says)()))
    }
}

/// Hangs, whatever it is asked.
struct Hanging;

impl Hooks for Hanging {
    fn name(&self) -> &str {
        "hanging"
    }

    fn set(&self) -> HookSet {
        HookSet {
            before_turn: true,
            after_turn: true,
            ..HookSet::default()
        }
    }

    fn ask<'a>(&'a self, _: &'a HookCx, _: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        Box::pin(pending())
    }

    fn before_loop<'a>(
        &'a self,
        _: &'a HookCx,
        _: &'a [Content],
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(pending())
    }

    fn after_loop<'a>(&'a self, _: &'a HookCx, _: &'a LoopRecord) -> BoxFuture<'a, ()> {
        Box::pin(pending())
    }
}

fn list(hooks: &[Arc<dyn Hooks>]) -> HookList {
    HookList::new(hooks, HOOK_TIME)
}

fn cx() -> HookCx {
    HookCx {
        session_id: SessionId::from("s"),
        loop_id: LoopId::from("s.m.1"),
        messages: Arc::default(),
    }
}

async fn ask(hooks: &[Arc<dyn Hooks>], hook: Hook) -> Said {
    list(hooks).ask(cx(), hook).await
}

fn input() -> Hook {
    Hook::Input {
        text: "hi".to_owned(),
    }
}

fn said(verdict: HookVerdict) -> Said {
    Said {
        verdict,
        issues: Vec::new(),
    }
}

#[tokio::test]
async fn the_first_no_wins_and_the_others_are_not_asked() {
    let yes = Puppet::new(|| HookVerdict::Warn("careful".to_owned()));
    let no = Puppet::new(|| HookVerdict::Stop("first".to_owned()));
    let late = Puppet::new(|| HookVerdict::Stop("second".to_owned()));
    let all: [Arc<dyn Hooks>; 3] = [yes.clone(), no, late.clone()];
    assert_eq!(
        ask(&all, input()).await,
        said(HookVerdict::Stop("first".to_owned()))
    );
    assert_eq!((yes.asked(), late.asked()), (1, 0));
}

// proves: UP-7
#[tokio::test]
async fn warnings_add_up_and_so_does_what_is_injected() {
    let one = Puppet::new(|| HookVerdict::Warn("one".to_owned()));
    let two = Puppet::new(|| HookVerdict::Warn("two".to_owned()));
    assert_eq!(
        ask(&[one, two], input()).await,
        said(HookVerdict::Warn("one; two".to_owned()))
    );
    let one = Puppet::new(|| HookVerdict::Inject(vec![Content::text("a")]));
    let two = Puppet::new(|| HookVerdict::Inject(vec![Content::text("b")]));
    assert_eq!(
        ask(&[one, two], Hook::Checkpoint).await,
        said(HookVerdict::Inject(vec![
            Content::text("a"),
            Content::text("b")
        ]))
    );
}

#[tokio::test]
async fn work_injected_at_a_checkpoint_is_not_lost_to_another_hooks_warning() {
    let careful = Puppet::new(|| HookVerdict::Warn("careful".to_owned()));
    let more = Puppet::new(|| HookVerdict::Inject(vec![Content::text("more")]));
    let all: [Arc<dyn Hooks>; 2] = [careful, more];
    assert_eq!(
        ask(&all, Hook::Checkpoint).await,
        Said {
            verdict: HookVerdict::Inject(vec![Content::text("more")]),
            issues: vec!["careful".to_owned()],
        }
    );
    // Nothing can be injected into a prompt: there the warning is what counts.
    assert_eq!(
        ask(&all, input()).await,
        said(HookVerdict::Warn("careful".to_owned()))
    );
}

// proves: LOOP-59
#[tokio::test]
async fn nobody_is_asked_what_he_does_not_want_to_be_asked() {
    let puppet = Puppet::new(|| HookVerdict::Stop("no".to_owned()));
    let error = Hook::OnError {
        message: "x".to_owned(),
    };
    let all: [Arc<dyn Hooks>; 1] = [puppet.clone()];
    assert_eq!(ask(&all, error).await, said(HookVerdict::Go));
    assert_eq!(puppet.asked(), 0);
    assert!(!list(&all).set().on_error);
    assert!(list(&all).set().checkpoint);
    assert_eq!(list(&[]).set(), HookSet::default());
}

#[tokio::test]
async fn a_no_that_comes_after_the_fact_changes_nothing_but_is_told() {
    let puppet = Puppet::new(|| HookVerdict::Stop("no".to_owned()));
    let after = Hook::AfterCompaction {
        before: ContextSize::default(),
        after: ContextSize::default(),
    };
    let told = ask(&[puppet], after).await;
    assert_eq!(
        (told.verdict, told.issues),
        (HookVerdict::Go, vec!["no".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_is_a_no_before_and_a_notice_after() {
    let hanging: [Arc<dyn Hooks>; 1] = [Arc::new(Hanging)];
    let text = "the hook hanging did not answer within 60s".to_owned();
    assert_eq!(
        ask(&hanging, Hook::BeforeTurn { turn_index: 0 }).await,
        said(HookVerdict::Stop(text.clone()))
    );
    let after = Hook::AfterTurn {
        turn_index: 0,
        usage: None,
    };
    let told = ask(&hanging, after).await;
    assert_eq!(
        (told.verdict, told.issues),
        (HookVerdict::Go, vec![text.clone()])
    );
    let began = list(&hanging).before_loop(cx(), Vec::new()).await;
    assert_eq!(began, Err(text.clone()));
    let record = LoopRecord::begun(
        SessionId::from("s"),
        LoopId::from("s.m.1"),
        "turnery".to_owned(),
        turnery_store::now(),
    );
    let ended = list(&hanging).after_loop(cx(), Arc::new(record)).await;
    assert_eq!(ended, [text]);
}

#[tokio::test]
async fn a_hook_that_breaks_is_a_no_before_and_a_notice_after() {
    let broken: [Arc<dyn Hooks>; 1] = [Puppet::new(|| panic!("puppet"))];
    let text = "the hook puppet broke".to_owned();
    assert_eq!(
        ask(&broken, Hook::Checkpoint).await,
        said(HookVerdict::Stop(text.clone()))
    );
    let after = Hook::AfterTurn {
        turn_index: 0,
        usage: None,
    };
    let told = ask(&broken, after).await;
    assert_eq!((told.verdict, told.issues), (HookVerdict::Go, vec![text]));
}

//! Tests of the composition of hooks, and of hooks that panic or hang.

use super::*;
use std::{future::pending, sync::Mutex};
use turnery_engine::{ContextSize, Timestamp};
use turnery_models::ModelName;

/// Hook with a fixed verdict that records its requests.
struct FixedHooks {
    verdict: fn() -> HookVerdict,
    requests: Mutex<Vec<HookRequest>>,
}

impl FixedHooks {
    fn new(verdict: fn() -> HookVerdict) -> Arc<Self> {
        Arc::new(Self {
            verdict,
            requests: Mutex::default(),
        })
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl Hooks for FixedHooks {
    fn name(&self) -> &str {
        "fixed"
    }

    fn hook_set(&self) -> HookSet {
        HookSet {
            input: true,
            before_turn: true,
            after_turn: true,
            compaction: true,
            checkpoint: true,
            ..HookSet::default()
        }
    }

    fn ask_hook<'a>(&'a self, _: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        self.requests.lock().unwrap().push(hook.clone());
        Box::pin(ready((self.verdict)()))
    }
}

/// Hook that hangs on every request.
struct HangingHooks;

impl Hooks for HangingHooks {
    fn name(&self) -> &str {
        "hanging"
    }

    fn hook_set(&self) -> HookSet {
        HookSet {
            before_turn: true,
            after_turn: true,
            ..HookSet::default()
        }
    }

    fn ask_hook<'a>(&'a self, _: &'a HookCx, _: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
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

fn hook_list(hooks: &[Arc<dyn Hooks>]) -> HookList {
    HookList::new(hooks, DEFAULT_HOOK_TIMEOUT)
}

fn hook_cx() -> HookCx {
    HookCx {
        session_id: SessionId::from("s"),
        loop_id: LoopId::from("s.m.1"),
        messages: Arc::default(),
    }
}

async fn ask_hooks(hooks: &[Arc<dyn Hooks>], hook: HookRequest) -> CombinedVerdict {
    hook_list(hooks).ask_hook(hook_cx(), hook).await
}

fn input_hook() -> HookRequest {
    HookRequest::Input {
        text: "hi".to_owned(),
    }
}

fn combined(verdict: HookVerdict) -> CombinedVerdict {
    CombinedVerdict {
        verdict,
        issues: Vec::new(),
    }
}

#[tokio::test]
async fn first_stop_wins_and_ends_the_list() {
    let yes = FixedHooks::new(|| HookVerdict::Warn("careful".to_owned()));
    let no = FixedHooks::new(|| HookVerdict::Stop("first".to_owned()));
    let late = FixedHooks::new(|| HookVerdict::Stop("second".to_owned()));
    let all: [Arc<dyn Hooks>; 3] = [yes.clone(), no, late.clone()];
    assert_eq!(
        ask_hooks(&all, input_hook()).await,
        combined(HookVerdict::Stop("first".to_owned()))
    );
    assert_eq!((yes.requests(), late.requests()), (1, 0));
}

// proves: UP-7
#[tokio::test]
async fn warnings_and_injections_accumulate() {
    let one = FixedHooks::new(|| HookVerdict::Warn("one".to_owned()));
    let two = FixedHooks::new(|| HookVerdict::Warn("two".to_owned()));
    assert_eq!(
        ask_hooks(&[one, two], input_hook()).await,
        combined(HookVerdict::Warn("one; two".to_owned()))
    );
    let one = FixedHooks::new(|| HookVerdict::Inject(vec![Content::text("a")]));
    let two = FixedHooks::new(|| HookVerdict::Inject(vec![Content::text("b")]));
    assert_eq!(
        ask_hooks(&[one, two], HookRequest::Checkpoint).await,
        combined(HookVerdict::Inject(vec![
            Content::text("a"),
            Content::text("b")
        ]))
    );
}

#[tokio::test]
async fn injection_survives_warning_of_other_hook() {
    let careful = FixedHooks::new(|| HookVerdict::Warn("careful".to_owned()));
    let more = FixedHooks::new(|| HookVerdict::Inject(vec![Content::text("more")]));
    let all: [Arc<dyn Hooks>; 2] = [careful, more];
    assert_eq!(
        ask_hooks(&all, HookRequest::Checkpoint).await,
        CombinedVerdict {
            verdict: HookVerdict::Inject(vec![Content::text("more")]),
            issues: vec!["careful".to_owned()],
        }
    );
    // An input hook cannot inject content, so the warning is the verdict.
    assert_eq!(
        ask_hooks(&all, input_hook()).await,
        combined(HookVerdict::Warn("careful".to_owned()))
    );
}

// proves: LOOP-59
#[tokio::test]
async fn unsubscribed_hook_is_not_asked() {
    let fixed = FixedHooks::new(|| HookVerdict::Stop("no".to_owned()));
    let error = HookRequest::OnError {
        message: "x".to_owned(),
    };
    let all: [Arc<dyn Hooks>; 1] = [fixed.clone()];
    assert_eq!(
        ask_hooks(&all, error).await,
        combined(HookVerdict::Continue)
    );
    assert_eq!(fixed.requests(), 0);
    assert!(!hook_list(&all).hook_set().on_error);
    assert!(hook_list(&all).hook_set().checkpoint);
    assert_eq!(hook_list(&[]).hook_set(), HookSet::default());
    // By default there is no hook, a hook is asked nothing, and its loop hooks do nothing.
    struct NoHooks;
    impl Hooks for NoHooks {
        fn name(&self) -> &str {
            "none"
        }
    }
    let hooks: [Arc<dyn Hooks>; 1] = [Arc::new(NoHooks)];
    let hooks = hook_list(&hooks);
    assert_eq!(hooks.hook_set(), HookSet::default());
    let before = hooks.clone().before_loop(hook_cx(), Vec::new()).await;
    assert_eq!(before, Ok(()));
    let record = LoopRecord::new_running(
        "s".into(),
        "s.m.1".into(),
        "turnery".to_owned(),
        Timestamp::UNIX_EPOCH,
    );
    let issues = hooks.after_loop(hook_cx(), Arc::new(record)).await;
    assert_eq!(issues, [""; 0]);
    let settings = crate::Settings::new(ModelName::new("p", "m"), "");
    assert!(settings.hooks.is_empty());
    let none = HookSet {
        input: false,
        before_turn: false,
        after_turn: false,
        before_tool: false,
        after_tool: false,
        compaction: false,
        on_error: false,
        checkpoint: false,
    };
    assert_eq!(HookSet::default(), none);
    assert!(crate::PromptOptions::default().hooks.is_empty());
}

#[tokio::test]
async fn stop_after_the_fact_is_only_an_issue() {
    let fixed = FixedHooks::new(|| HookVerdict::Stop("no".to_owned()));
    let after = HookRequest::AfterCompaction {
        before: ContextSize::default(),
        after: ContextSize::default(),
    };
    let combined = ask_hooks(&[fixed], after).await;
    assert_eq!(
        (combined.verdict, combined.issues),
        (HookVerdict::Continue, vec!["no".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_hook_stops_before_and_reports_after() {
    let hanging: [Arc<dyn Hooks>; 1] = [Arc::new(HangingHooks)];
    let text = "the hook hanging did not answer within 60s".to_owned();
    assert_eq!(
        ask_hooks(&hanging, HookRequest::BeforeTurn { turn_index: 0 }).await,
        combined(HookVerdict::Stop(text.clone()))
    );
    let after = HookRequest::AfterTurn {
        turn_index: 0,
        usage: None,
    };
    let combined = ask_hooks(&hanging, after).await;
    assert_eq!(
        (combined.verdict, combined.issues),
        (HookVerdict::Continue, vec![text.clone()])
    );
    let began = hook_list(&hanging).before_loop(hook_cx(), Vec::new()).await;
    assert_eq!(began, Err(text.clone()));
    let record = LoopRecord::new_running(
        SessionId::from("s"),
        LoopId::from("s.m.1"),
        "turnery".to_owned(),
        turnery_store::now(),
    );
    let ended = hook_list(&hanging)
        .after_loop(hook_cx(), Arc::new(record))
        .await;
    assert_eq!(ended, [text]);
}

#[tokio::test]
async fn panicking_hook_stops_before_and_reports_after() {
    let broken: [Arc<dyn Hooks>; 1] = [FixedHooks::new(|| panic!("fixed"))];
    let text = "the hook fixed panicked".to_owned();
    assert_eq!(
        ask_hooks(&broken, HookRequest::Checkpoint).await,
        combined(HookVerdict::Stop(text.clone()))
    );
    let after = HookRequest::AfterTurn {
        turn_index: 0,
        usage: None,
    };
    let combined = ask_hooks(&broken, after).await;
    assert_eq!(
        (combined.verdict, combined.issues),
        (HookVerdict::Continue, vec![text])
    );
}

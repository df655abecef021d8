//! Tests of commands that judge candidates in their folders.

use crate::{
    candidate_folders::{
        applied_edit, assert_no_folders, evaluate, in_mode, read, repository, writer,
    },
    fixture::{LARGE_CAPACITY, ModelAct, TestModel},
};
use turnery_agent::{JudgeCommand, SelectionStrategy, WinnerChanges};
use turnery_tools::Mode;

/// The first candidate for which the command succeeds wins; its output is stored.
// proves: LOOP-75
#[tokio::test]
async fn command_judges_in_the_folder_of_each_candidate() {
    for (line, winner, codes) in [
        ("echo tried; grep -q b f", 1, [Some(1), Some(0)]),
        ("echo tried; grep -q '[ab]' f", 0, [Some(0), Some(0)]),
        ("echo tried; exit 3", 0, [Some(3), Some(3)]),
        ("echo tried; kill -9 $$", 0, [None, None]),
        // What a judge changes is no change of the candidate.
        ("echo tried; echo x > g; grep -q b f", 1, [Some(1), Some(0)]),
    ] {
        let world = repository(&[writer("a", "f"), writer("b", "f")], Mode::Edit);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        let judge = SelectionStrategy::Command(JudgeCommand::new(line));
        let result = evaluate(&session, in_mode(&["a", "b"], Mode::Edit), judge).await;
        let result = result.unwrap();
        let group = result.loops[0].parallel_group.as_ref().unwrap();
        assert_eq!(group.selected_config_index, winner, "{line}");
        let judged = group.command.as_ref().unwrap();
        assert_eq!(judged.command, line);
        let found: Vec<Option<i32>> = judged.results.iter().map(|it| it.exit_code).collect();
        assert_eq!(found, codes, "{judged:?}");
        for check in &judged.results {
            assert!(check.output.starts_with("tried\n"), "{check:?}");
        }
        assert_eq!(judged.results[1].loop_id, result.loops[1].loop_id);
        assert_eq!(
            result.loops[1].parallel_group.as_ref().unwrap().command,
            group.command
        );
        assert!(!world.folder.path().join("g").exists());
        let issues: Vec<&str> = result.issues().collect();
        let fails = !codes.contains(&Some(0));
        assert_eq!(issues.len(), usize::from(fails), "{issues:?}");
        if fails {
            // What no candidate got right is kept for the user, and not applied.
            let changes = result.changes.as_ref();
            assert!(matches!(
                changes,
                Some(WinnerChanges::NotApplied { kept: Some(_), .. })
            ));
            assert!(!["a\n", "b\n"].contains(&read(&world, "f").as_str()));
            assert_eq!(result.loops.len(), 2);
        } else {
            assert_eq!(read(&world, "f"), ["a\n", "b\n"][winner as usize]);
            let (title, _) = applied_edit(&result.loops[2]);
            assert!(
                title.contains(&format!("for which `{line}` ended with")),
                "{title}"
            );
        }
        assert_eq!(world.loops(session.id()).await, result.loops);
        assert_no_folders(&world, &session);
    }
}

/// A judge that takes too long is stopped for each candidate; a failed candidate is not judged.
#[tokio::test]
async fn slow_judge_is_stopped_and_failed_candidate_not_judged() {
    let bad = TestModel::new("bad", &[&[ModelAct::Fail]]);
    let world = repository(&[bad, writer("b", "f")], Mode::Edit);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let judge = SelectionStrategy::Command(JudgeCommand {
        line: "sleep 60".to_owned(),
        timeout: std::time::Duration::from_millis(100),
    });
    let result = evaluate(&session, in_mode(&["bad", "b"], Mode::Edit), judge).await;
    let result = result.unwrap();
    // No candidate was found good.
    assert_eq!(read(&world, "f"), "first\n");
    let group = result.loops[0].parallel_group.as_ref().unwrap();
    let judged = &group.command.as_ref().unwrap().results;
    assert_eq!(judged.len(), 1);
    assert_eq!(judged[0].output, "\n[stopped after 0.1 s]");
}

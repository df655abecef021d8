//! Tests of replays and their results.

use super::*;
use crate::{facts::AgentFacts, play_suite};
use std::{path::Path, time::Duration};

/// Returns an agent that answers its first two requests with a pair of codes, for its first, its second and all
/// later starts.
fn scripted_agent(folder: &Path, codes: [[i32; 2]; 3]) -> AgentSpec {
    let [first, second, later] = codes.map(|[one, other]| format!("set -- {one} {other}"));
    let script = format!(
        "mkdir {0}/first 2> {0}/errors && {first} || {{ mkdir {0}/second 2> {0}/errors && {second} || {later}; }}; \
         id=0; for code; do read line; id=$((id + 1)); \
         echo '{{\"jsonrpc\":\"2.0\",\"id\":'$id',\"error\":{{\"code\":'$code',\"message\":\"no\"}}}}'; done; \
         cat > {0}/rest",
        folder.display()
    );
    AgentSpec {
        command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        ..AgentSpec::default()
    }
}

/// Returns the rules that failed last, and the failures that did not recur.
fn failed_and_flaky(codes: [[i32; 2]; 3]) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = scripted_agent(folder.path(), codes);
    let case = "# x\nstart\n\
        > {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"_x/y\"}\n< {\"error\": {\"code\": -32601}} @ EXT-4\n\
        > {\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"x/y\"}\n< {\"error\": {\"code\": -32601}} @ RPC-9\n\
        exit 0\n";
    let cases = [Case::parse("asking", case).expect("a case")];
    let options = PlayOptions {
        jobs: 1,
        ..PlayOptions::default()
    };
    let facts = Some(AgentFacts::default());
    let mut played = play_suite(&cases, &agent, &options, facts, &|_| ()).expect("played");
    let once =
        replay_failures(&mut played, &cases, &agent, &options, &|_| ()).expect("played again");
    let once = once.iter().map(ToString::to_string).collect();
    let failed = played.outcomes[0].findings();
    let failed = failed.map(|(rule, _)| rule.to_owned()).collect();
    (failed, once)
}

const RIGHT_CODE: i32 = -32601;
const WRONG_CODE: i32 = -32603;

#[test]
fn failure_of_first_play_only_is_flaky() {
    let (failed, once) = failed_and_flaky([
        [WRONG_CODE, RIGHT_CODE],
        [RIGHT_CODE, RIGHT_CODE],
        [WRONG_CODE, WRONG_CODE],
    ]);
    assert_eq!(failed, Vec::<String>::new());
    assert_eq!(once.len(), 1);
    assert!(once[0].starts_with("EXT-4: asking, line 4: "), "{once:?}");
}

#[test]
fn failure_in_both_plays_is_a_failure() {
    let (failed, once) = failed_and_flaky([
        [WRONG_CODE, RIGHT_CODE],
        [-32000, RIGHT_CODE],
        [RIGHT_CODE, RIGHT_CODE],
    ]);
    assert_eq!(failed, ["EXT-4"]);
    assert_eq!(once, Vec::<String>::new());
}

#[test]
fn failure_of_second_play_only_is_flaky() {
    let (failed, once) = failed_and_flaky([
        [WRONG_CODE, RIGHT_CODE],
        [WRONG_CODE, WRONG_CODE],
        [WRONG_CODE, RIGHT_CODE],
    ]);
    assert_eq!(failed, ["EXT-4"]);
    assert_eq!(once.len(), 1);
    assert!(once[0].starts_with("RPC-9: asking, line 6: "), "{once:?}");
}

#[test]
fn failure_of_first_and_third_play_is_a_failure() {
    let (failed, once) = failed_and_flaky([
        [WRONG_CODE, RIGHT_CODE],
        [RIGHT_CODE, WRONG_CODE],
        [WRONG_CODE, RIGHT_CODE],
    ]);
    assert_eq!(failed, ["EXT-4"]);
    assert_eq!(once.len(), 1);
    assert!(once[0].starts_with("RPC-9: asking, line 6: "), "{once:?}");
}

/// The first two starts hang. Later ones take longer than the first patience, and refuse company.
#[test]
fn replay_is_alone_and_has_twice_the_patience() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "cd {}; if mkdir 1 || mkdir 2; then exec sleep 1000; fi 2> errors; trap 'rm here.$$' EXIT; : > here.$$; \
         sleep 1.3; set -- here.*; [ $# = 1 ] || exit 1; \
         read line; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}'; cat > rest",
        folder.path().display()
    );
    let agent = AgentSpec {
        command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        ..AgentSpec::default()
    };
    let case = "# x\nstart\n> {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"_x/y\"}\n< {\"result\": {}} @ EXT-4\nexit 0\n";
    let cases = ["one", "other"].map(|name| Case::parse(name, case).expect("a case"));
    let options = PlayOptions {
        patience: Duration::from_secs(1),
        jobs: 2,
        ..PlayOptions::default()
    };
    let facts = Some(AgentFacts::default());
    let mut played = play_suite(&cases, &agent, &options, facts, &|_| ()).expect("played");
    let flaky =
        replay_failures(&mut played, &cases, &agent, &options, &|_| ()).expect("played again");
    let flaky: Vec<_> = flaky.iter().map(|one| one.case.as_str()).collect();
    assert_eq!(flaky, ["one", "other"], "{:?}", played.outcomes);
    assert!(played.outcomes.iter().all(CaseOutcome::is_passed));
}

//! What is played again, and what comes of it.

use super::*;
use crate::Facts;
use std::path::Path;

/// Answers its first two requests with a code each; the first time it is started, the second, and ever after.
fn agent(folder: &Path, codes: [[i32; 2]; 3]) -> Agent {
    let [first, second, later] = codes.map(|[one, other]| format!("set -- {one} {other}"));
    let script = format!(
        "mkdir {0}/first 2> {0}/errors && {first} || {{ mkdir {0}/second 2> {0}/errors && {second} || {later}; }}; \
         id=0; for code; do read line; id=$((id + 1)); \
         echo '{{\"jsonrpc\":\"2.0\",\"id\":'$id',\"error\":{{\"code\":'$code',\"message\":\"no\"}}}}'; done; \
         cat > {0}/rest",
        folder.display()
    );
    Agent {
        command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        ..Agent::default()
    }
}

/// The rules that failed in the end, and what failed in another play only.
fn played(codes: [[i32; 2]; 3]) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = agent(folder.path(), codes);
    let case = "# x\nstart\n\
        > {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"_x/y\"}\n< {\"error\": {\"code\": -32601}} @ EXT-4\n\
        > {\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"x/y\"}\n< {\"error\": {\"code\": -32601}} @ RPC-9\n\
        exit 0\n";
    let cases = [Case::parse("asking", case).expect("a case")];
    let options = Options {
        jobs: 1,
        ..Options::default()
    };
    let facts = Some(Facts::default());
    let mut played = play_all(&cases, &agent, &options, facts, &|_| ()).expect("played");
    let once = replay(&mut played, &cases, &agent, &options, &|_| ()).expect("played again");
    let once = once.iter().map(ToString::to_string).collect();
    let failed = played.outcomes[0].findings();
    let failed = failed.map(|(rule, _)| rule.to_owned()).collect();
    (failed, once)
}

const RIGHT: i32 = -32601;
const WRONG: i32 = -32603;

#[test]
fn what_fails_once_only_is_told_apart() {
    let (failed, once) = played([[WRONG, RIGHT], [RIGHT, RIGHT], [WRONG, WRONG]]);
    assert_eq!(failed, Vec::<String>::new());
    assert_eq!(once.len(), 1);
    assert!(once[0].starts_with("EXT-4: asking, line 4: "), "{once:?}");
}

#[test]
fn what_fails_twice_has_failed() {
    let (failed, once) = played([[WRONG, RIGHT], [-32000, RIGHT], [RIGHT, RIGHT]]);
    assert_eq!(failed, ["EXT-4"]);
    assert_eq!(once, Vec::<String>::new());
}

#[test]
fn what_fails_the_second_time_only_is_told_apart_too() {
    let (failed, once) = played([[WRONG, RIGHT], [WRONG, WRONG], [WRONG, RIGHT]]);
    assert_eq!(failed, ["EXT-4"]);
    assert_eq!(once.len(), 1);
    assert!(once[0].starts_with("RPC-9: asking, line 6: "), "{once:?}");
}

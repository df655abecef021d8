//! Every response that opens a session says how commands are confined, and no update does.

use crate::harness::{TestEnv, result_of};
use serde_json::json;

#[test]
fn open_responses_report_sandbox_and_updates_do_not() {
    let world = TestEnv::without_answers();
    for (mut client, methods) in [
        (
            world.client(json!({})),
            &["session/load", "session/resume", "session/fork"][..],
        ),
        (world.client_v2(), &["session/resume"]),
    ] {
        let new = client.request("session/new", world.new_session_params());
        let id = result_of(&new)["sessionId"].clone();
        let mut answers = vec![new];
        for method in methods {
            let params = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
            answers.push(client.request(method, params));
        }
        for answer in &answers {
            let said = &result_of(answer)["_meta"]["turnery"]["sandbox"];
            assert_eq!(said, "Commands are not confined: the sandbox is off.");
        }
        for message in client.take_buffered() {
            let sandbox = &message["params"]["_meta"]["turnery"]["sandbox"];
            let of_update = &message["params"]["update"]["_meta"]["turnery"]["sandbox"];
            assert!(sandbox.is_null() && of_update.is_null(), "{message}");
        }
    }
}

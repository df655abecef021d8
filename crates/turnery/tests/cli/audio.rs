//! Recordings in a prompt: `turnery run --audio`, and how they are stored.

use crate::home::Home;
use serde_json::{Value, json};

#[tokio::test]
async fn recording_is_sent_stored_and_exported() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "heard"}]}]));
    let file = home.write_file("voice.dat", "ID3");
    let file = file.to_str().expect("UTF-8");
    let run = [
        "run", "--model", &model, "--format", "json", "--audio", file, "listen",
    ];
    let refused = home.run(&run).await;
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("takes no recordings"),
        "{refused:?}"
    );

    let listens = format!("[models.\"{model}\"]\naudio = true\n");
    home.write_file("turnery/config.toml", &listens);
    let done = home.run(&run).await.stdout_json();
    assert_eq!(done["text"], "heard");
    let id = done["session_id"].as_str().expect("an id");
    let whole = home.run(&["sessions", "export", id]).await;
    let said = |document: &Value| document["loops"][0]["messages"][0]["message"]["content"].clone();
    assert_eq!(
        said(&whole.stdout_json()),
        json!([
            {"type": "text", "text": "listen"},
            {"type": "audio", "mime_type": "audio/mpeg", "base64": "SUQz"},
        ])
    );
    let document = home.write_file("session.json", &whole.stdout);
    let import = [
        "sessions",
        "import",
        document.to_str().expect("UTF-8"),
        "--new",
    ];
    let copy = home.run(&import).await;
    let copy = copy.stdout.trim_end();
    let again = home.run(&["sessions", "export", copy]).await.stdout_json();
    assert_eq!(said(&again), said(&whole.stdout_json()));
    let shown = home.run(&["sessions", "show", copy]).await;
    assert!(
        shown
            .stdout
            .ends_with("> listen\n> (a recording, audio/mpeg)\nheard\n"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn invalid_recording_is_a_usage_error() {
    let home = Home::new();
    let file = home.write_file("note.wav", "text");
    let file = file.to_str().expect("UTF-8");
    let done = home.run(&["run", "--audio", file, "listen"]).await;
    assert_eq!(done.code, Some(2));
    assert_eq!(
        done.stderr,
        format!("turnery: --audio {file}: is no WAV or MP3 recording\n")
    );
}

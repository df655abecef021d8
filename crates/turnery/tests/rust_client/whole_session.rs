//! Plays a whole session and records it in the format of `conformance/clients/whole-session.json`.

use crate::{
    client::{Client, error_code, with_client},
    history::{History, current_options},
};
use agent_client_protocol::{
    Result,
    schema::ProtocolVersion,
    v1::schema::{
        CloseSessionRequest, DeleteSessionRequest, ForkSessionRequest, InitializeRequest,
        LoadSessionRequest, NewSessionRequest, ResumeSessionRequest, SetSessionConfigOptionRequest,
        SetSessionModeRequest,
    },
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Folders of the session, and its record so far.
struct WholeSession {
    project: PathBuf,
    crowded_folder: PathBuf,
    model: String,
    report: Map<String, Value>,
}

/// Plays the whole session with an agent that `command` starts.
pub(crate) async fn run_whole_session(command: &[String], model: &str, home: &Path) -> Value {
    let mut story = WholeSession {
        project: home.join("project"),
        crowded_folder: home.join("many"),
        model: model.to_owned(),
        report: Map::new(),
    };
    for folder in [&story.project, &story.crowded_folder, &home.join("turnery")] {
        fs::create_dir(folder).expect("a folder");
    }
    fs::write(story.project.join("greeting.txt"), "Hello, world\n").expect("a file");
    let settings = format!("[models.\"{model}\"]\ncontext_window = 10_000\n");
    fs::write(home.join("turnery/config.toml"), settings).expect("a file");
    let (id, before) = with_client(command, home, async |client| {
        story.run_first_process(&client).await
    })
    .await;
    with_client(command, home, async |client| {
        story.load_in_second_process(&client, &id, &before).await?;
        let fork = story.fork_close_and_resume(&client, &id, &before).await?;
        story.list_and_delete(&client, &id, &fork).await
    })
    .await;
    Value::Object(story.report)
}

fn session_id_of(answer: &Value) -> String {
    answer["sessionId"].as_str().expect("an id").to_owned()
}

impl WholeSession {
    fn record(&mut self, part: &str, what: Value) {
        self.report.insert(part.to_owned(), what);
    }

    fn project_files(&self) -> BTreeMap<String, String> {
        let files = fs::read_dir(&self.project).expect("the project");
        let read = files.map(|file| {
            let file = file.expect("a file");
            let text = fs::read_to_string(file.path()).expect("a text");
            (file.file_name().to_string_lossy().into_owned(), text)
        });
        read.collect()
    }

    /// Plays the first process: prompts, permissions, settings, cancels.
    async fn run_first_process(&mut self, client: &Client) -> Result<(String, History)> {
        let hello = client
            .request(InitializeRequest::new(ProtocolVersion::V1))
            .await?;
        let can = &hello["agentCapabilities"];
        let mut used = vec!["close", "delete", "fork", "list", "resume"];
        used.retain(|name| can["sessionCapabilities"].get(name).is_some());
        self.record(
            "hello",
            json!({
                "version": hello["protocolVersion"],
                "name": hello["agentInfo"]["name"],
                "load": can["loadSession"],
                "sessions": used,
            }),
        );
        let made = client
            .request(NewSessionRequest::new(self.project.clone()))
            .await?;
        let mode = &made["modes"]["currentModeId"];
        self.record(
            "new",
            json!({"mode": mode, "options": current_options(&made)}),
        );
        let id = session_id_of(&made);

        client.log().permission_answers = ["allow_once", "reject_once", "allow_once"].into();
        let stop = client.prompt(&id, "Greet the world").await?;
        let history = client.history(&id);
        let usage = history.latest_update("usage_update");
        let greeted = json!({
            "stop": stop,
            "asked": client.log().permissions,
            "statuses": history.statuses,
            "files": self.project_files(),
            "plan": history.plan(),
            "usage": {"used": usage["used"], "size": usage["size"]},
        });
        self.record("greeted", greeted);

        let set = |mode: &'static str| client.request(SetSessionModeRequest::new(id.clone(), mode));
        let none = error_code(set("none").await);
        set("edit").await?;
        let options = current_options(client.history(&id).latest_update("config_option_update"));
        let edited = json!({
            "error of a mode that is none": none,
            "told": options,
            "stop": client.prompt(&id, "Change it again").await?,
            "files": self.project_files(),
            "plan": client.history(&id).plan(),
        });
        self.record("edited", edited);
        self.change_options(client, &id).await?;

        let talks = client.prompt_and_cancel(&id, "Wait for me", "thinking about it");
        let talks = talks.await?;
        let runs = client.prompt_and_cancel(&id, "Run something long", "begun\\n");
        let runs = runs.await?;
        let asked = client.log().permissions.len();
        self.record(
            "cancelled",
            json!({"while it talks": talks, "while a tool runs": runs, "asked in all": asked}),
        );
        let history = client.history(&id);
        self.record("live", json!(history.items));
        Ok((id, history))
    }

    /// Changes thinking, mode and model, and resets the model.
    async fn change_options(&mut self, client: &Client, id: &str) -> Result<()> {
        let set = |option: &'static str, value: &str| {
            let id = id.to_owned();
            client.request(SetSessionConfigOptionRequest::new(id, option, value))
        };
        let mut answers = Vec::new();
        for (option, value) in [("thinking", "high"), ("mode", "auto"), ("model", "offline")] {
            answers.push(set(option, value).await?);
        }
        let last = &answers[2]["configOptions"];
        let options = last.as_array().expect("a list").iter();
        let models: Vec<&Value> = options
            .filter(|option| option["id"] == "model")
            .flat_map(|option| option["options"].as_array().expect("a list"))
            .map(|model| &model["value"])
            .collect();
        let stop = client.prompt(id, "show greeting.txt").await?;
        let set = json!({
            "answers": answers.iter().map(current_options).collect::<Vec<_>>(),
            "mode told": client.history(id).latest_update("current_mode_update")["currentModeId"],
            "models": models,
            "stop of the other model": stop,
            "back": current_options(&set("model", &self.model).await?),
        });
        self.record("set", set);
        Ok(())
    }

    /// Plays the second process, which must load everything from the first.
    async fn load_in_second_process(
        &mut self,
        client: &Client,
        id: &str,
        before: &History,
    ) -> Result<()> {
        client
            .request(InitializeRequest::new(ProtocolVersion::V1))
            .await?;
        let listed = client.list_pages(&self.project).await?.concat();
        let ids: Vec<String> = listed.iter().map(session_id_of).collect();
        assert_eq!(ids, [id]);
        let listed = listed
            .iter()
            .map(|it| json!({"cwd": it["cwd"], "title": it["title"]}));
        self.record("listed", listed.collect());

        let load = LoadSessionRequest::new(id.to_owned(), self.project.clone());
        let answer = client.request(load).await?;
        let history = client.history(id);
        let same = history.items == before.items;
        let loaded = json!({
            "history": if same { json!("as live") } else { json!(history.items) },
            "plan": history.plan(),
            "mode": answer["modes"]["currentModeId"],
            "options": current_options(&answer),
            "ids are those of before": history.agent_item_ids() == before.agent_item_ids(),
            "stop": client.prompt(id, "What did you do?").await?,
            "answer": client.history(id).items.last(),
        });
        self.record("loaded", loaded);
        Ok(())
    }

    /// Forks, closes, loads and resumes the session.
    async fn fork_close_and_resume(
        &mut self,
        client: &Client,
        id: &str,
        before: &History,
    ) -> Result<String> {
        let request = ForkSessionRequest::new(id.to_owned(), self.project.clone());
        let fork = session_id_of(&client.request(request).await?);
        assert_ne!(fork, id);
        let broken = error_code(client.prompt(&fork, "Break down").await);
        client
            .request(CloseSessionRequest::new(fork.clone()))
            .await?;
        let closed = error_code(client.prompt(&fork, "Hello?").await);
        client.forget(&fork);
        let load = LoadSessionRequest::new(fork.clone(), self.project.clone());
        client.request(load).await?;
        let items = client.history(&fork).items;
        let after = items.strip_prefix(&*before.items).unwrap_or(&items);
        let forked = json!({
            "error of the model": broken,
            "error when closed": closed,
            "history after that of before": after,
        });
        self.record("forked", forked);

        client
            .request(CloseSessionRequest::new(id.to_owned()))
            .await?;
        client.forget(id);
        let resume = ResumeSessionRequest::new(id.to_owned(), self.project.clone());
        client.request(resume).await?;
        let history = client.history(id).items;
        let stop = client.prompt(id, "Do something forbidden").await?;
        self.record("resumed", json!({"history": history, "stop": stop}));
        Ok(fork)
    }

    /// Lists the sessions page by page, and deletes them.
    async fn list_and_delete(&mut self, client: &Client, id: &str, fork: &str) -> Result<()> {
        for _ in 0..101 {
            client
                .request(NewSessionRequest::new(self.crowded_folder.clone()))
                .await?;
        }
        let pages = client.list_pages(&self.crowded_folder).await?;
        let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
        let different: BTreeSet<String> = pages.concat().iter().map(session_id_of).collect();
        let pages = json!({"sizes": sizes, "sessions": different.len()});
        self.record("pages", pages);

        let listed = client.list_pages(&self.project).await?.concat();
        let names = listed.iter().map(|it| match session_id_of(it) {
            it if it == id => "session",
            it if it == fork => "fork",
            _ => "another",
        });
        let before: BTreeSet<&str> = names.collect();
        client
            .request(DeleteSessionRequest::new(fork.to_owned()))
            .await?;
        client
            .request(CloseSessionRequest::new(id.to_owned()))
            .await?;
        client
            .request(DeleteSessionRequest::new(id.to_owned()))
            .await?;
        let after = client.list_pages(&self.project).await?.concat();
        let load = LoadSessionRequest::new(id.to_owned(), self.project.clone());
        let deleted = json!({
            "before": before,
            "after": after,
            "error of a load": error_code(client.request(load).await),
        });
        self.record("deleted", deleted);
        Ok(())
    }
}

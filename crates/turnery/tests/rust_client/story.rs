//! Story: a whole session, and what came of it, in the words of `conformance/clients/whole-session.json`.

use crate::{
    client::{Client, code, connected},
    history::{History, current},
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

/// Where it plays, and what came of it so far.
struct Story {
    project: PathBuf,
    many: PathBuf,
    model: String,
    tale: Map<String, Value>,
}

/// The whole story, told by an agent that `command` starts.
pub(crate) async fn told(command: &[String], model: &str, home: &Path) -> Value {
    let mut story = Story {
        project: home.join("project"),
        many: home.join("many"),
        model: model.to_owned(),
        tale: Map::new(),
    };
    for folder in [&story.project, &story.many, &home.join("turnery")] {
        fs::create_dir(folder).expect("a folder");
    }
    fs::write(story.project.join("greeting.txt"), "Hello, world\n").expect("a file");
    let settings = format!("[models.\"{model}\"]\ncontext_window = 10_000\n");
    fs::write(home.join("turnery/config.toml"), settings).expect("a file");
    let (id, before) = connected(command, home, async |client| story.begin(&client).await).await;
    connected(command, home, async |client| {
        story.go_on(&client, &id, &before).await?;
        let fork = story.leave_and_come_back(&client, &id, &before).await?;
        story.tidy_up(&client, &id, &fork).await
    })
    .await;
    Value::Object(story.tale)
}

fn id_of(answer: &Value) -> String {
    answer["sessionId"].as_str().expect("an id").to_owned()
}

impl Story {
    fn tell(&mut self, part: &str, what: Value) {
        self.tale.insert(part.to_owned(), what);
    }

    fn files(&self) -> BTreeMap<String, String> {
        let files = fs::read_dir(&self.project).expect("the project");
        let read = files.map(|file| {
            let file = file.expect("a file");
            let text = fs::read_to_string(file.path()).expect("a text");
            (file.file_name().to_string_lossy().into_owned(), text)
        });
        read.collect()
    }

    /// The first process: prompts, permissions, settings, cancels.
    async fn begin(&mut self, client: &Client) -> Result<(String, History)> {
        let hello = client
            .ask(InitializeRequest::new(ProtocolVersion::V1))
            .await?;
        let can = &hello["agentCapabilities"];
        let mut used = vec!["close", "delete", "fork", "list", "resume"];
        used.retain(|name| can["sessionCapabilities"].get(name).is_some());
        self.tell(
            "hello",
            json!({
                "version": hello["protocolVersion"],
                "name": hello["agentInfo"]["name"],
                "load": can["loadSession"],
                "sessions": used,
            }),
        );
        let made = client
            .ask(NewSessionRequest::new(self.project.clone()))
            .await?;
        let mode = &made["modes"]["currentModeId"];
        self.tell("new", json!({"mode": mode, "options": current(&made)}));
        let id = id_of(&made);

        client.seen().answers = ["allow_once", "reject_once", "allow_once"].into();
        let stop = client.prompt(&id, "Greet the world").await?;
        let history = client.of(&id);
        let usage = history.newest("usage_update");
        let greeted = json!({
            "stop": stop,
            "asked": client.seen().asked,
            "statuses": history.statuses,
            "files": self.files(),
            "plan": history.plan(),
            "usage": {"used": usage["used"], "size": usage["size"]},
        });
        self.tell("greeted", greeted);

        let set = |mode: &'static str| client.ask(SetSessionModeRequest::new(id.clone(), mode));
        let none = code(set("none").await);
        set("edit").await?;
        let options = current(client.of(&id).newest("config_option_update"));
        let edited = json!({
            "error of a mode that is none": none,
            "told": options,
            "stop": client.prompt(&id, "Change it again").await?,
            "files": self.files(),
            "plan": client.of(&id).plan(),
        });
        self.tell("edited", edited);
        self.set(client, &id).await?;

        let talks = client.cancel(&id, "Wait for me", "thinking about it");
        let talks = talks.await?;
        let runs = client.cancel(&id, "Run something long", "begun\\n");
        let runs = runs.await?;
        let asked = client.seen().asked.len();
        self.tell(
            "cancelled",
            json!({"while it talks": talks, "while a tool runs": runs, "asked in all": asked}),
        );
        let history = client.of(&id);
        self.tell("live", json!(history.items));
        Ok((id, history))
    }

    /// Thinking, mode and model are changed, and the model is changed back.
    async fn set(&mut self, client: &Client, id: &str) -> Result<()> {
        let set = |option: &'static str, value: &str| {
            let id = id.to_owned();
            client.ask(SetSessionConfigOptionRequest::new(id, option, value))
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
            "answers": answers.iter().map(current).collect::<Vec<_>>(),
            "mode told": client.of(id).newest("current_mode_update")["currentModeId"],
            "models": models,
            "stop of the other model": stop,
            "back": current(&set("model", &self.model).await?),
        });
        self.tell("set", set);
        Ok(())
    }

    /// The second process: it knows all that was said in the first.
    async fn go_on(&mut self, client: &Client, id: &str, before: &History) -> Result<()> {
        client
            .ask(InitializeRequest::new(ProtocolVersion::V1))
            .await?;
        let listed = client.pages(&self.project).await?.concat();
        let ids: Vec<String> = listed.iter().map(id_of).collect();
        assert_eq!(ids, [id]);
        let listed = listed
            .iter()
            .map(|it| json!({"cwd": it["cwd"], "title": it["title"]}));
        self.tell("listed", listed.collect());

        let load = LoadSessionRequest::new(id.to_owned(), self.project.clone());
        let answer = client.ask(load).await?;
        let history = client.of(id);
        let same = history.items == before.items;
        let loaded = json!({
            "history": if same { json!("as live") } else { json!(history.items) },
            "plan": history.plan(),
            "mode": answer["modes"]["currentModeId"],
            "options": current(&answer),
            "ids are those of before": history.ids_of_the_agent() == before.ids_of_the_agent(),
            "stop": client.prompt(id, "What did you do?").await?,
            "answer": client.of(id).items.last(),
        });
        self.tell("loaded", loaded);
        Ok(())
    }

    /// Fork, close, load and resume.
    async fn leave_and_come_back(
        &mut self,
        client: &Client,
        id: &str,
        before: &History,
    ) -> Result<String> {
        let request = ForkSessionRequest::new(id.to_owned(), self.project.clone());
        let fork = id_of(&client.ask(request).await?);
        assert_ne!(fork, id);
        let broken = code(client.prompt(&fork, "Break down").await);
        client.ask(CloseSessionRequest::new(fork.clone())).await?;
        let closed = code(client.prompt(&fork, "Hello?").await);
        client.forget(&fork);
        let load = LoadSessionRequest::new(fork.clone(), self.project.clone());
        client.ask(load).await?;
        let items = client.of(&fork).items;
        let after = items.strip_prefix(&*before.items).unwrap_or(&items);
        let forked = json!({
            "error of the model": broken,
            "error when closed": closed,
            "history after that of before": after,
        });
        self.tell("forked", forked);

        client.ask(CloseSessionRequest::new(id.to_owned())).await?;
        client.forget(id);
        let resume = ResumeSessionRequest::new(id.to_owned(), self.project.clone());
        client.ask(resume).await?;
        let history = client.of(id).items;
        let stop = client.prompt(id, "Do something forbidden").await?;
        self.tell("resumed", json!({"history": history, "stop": stop}));
        Ok(fork)
    }

    /// List page by page, and delete.
    async fn tidy_up(&mut self, client: &Client, id: &str, fork: &str) -> Result<()> {
        for _ in 0..101 {
            client
                .ask(NewSessionRequest::new(self.many.clone()))
                .await?;
        }
        let pages = client.pages(&self.many).await?;
        let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
        let different: BTreeSet<String> = pages.concat().iter().map(id_of).collect();
        let pages = json!({"sizes": sizes, "sessions": different.len()});
        self.tell("pages", pages);

        let listed = client.pages(&self.project).await?.concat();
        let names = listed.iter().map(|it| match id_of(it) {
            it if it == id => "session",
            it if it == fork => "fork",
            _ => "another",
        });
        let before: BTreeSet<&str> = names.collect();
        client
            .ask(DeleteSessionRequest::new(fork.to_owned()))
            .await?;
        client.ask(CloseSessionRequest::new(id.to_owned())).await?;
        client.ask(DeleteSessionRequest::new(id.to_owned())).await?;
        let after = client.pages(&self.project).await?.concat();
        let load = LoadSessionRequest::new(id.to_owned(), self.project.clone());
        let deleted = json!({
            "before": before,
            "after": after,
            "error of a load": code(client.ask(load).await),
        });
        self.tell("deleted", deleted);
        Ok(())
    }
}

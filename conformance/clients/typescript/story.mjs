// Story: a whole session, and what came of it, in the words of `../whole-session.json`.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Agent } from "./agent.mjs";
import { code, connected } from "./client.mjs";
import { History, current } from "./history.mjs";

/** The whole story, told by an agent that `command` starts. */
export async function told(command, model, home) {
  const [project, many] = [join(home, "project"), join(home, "many")];
  for (const folder of [project, many, join(home, "turnery")]) mkdirSync(folder);
  writeFileSync(join(project, "greeting.txt"), "Hello, world\n");
  const settings = `[models."${model}"]\ncontext_window = 10_000\n`;
  writeFileSync(join(home, "turnery/config.toml"), settings);
  const tale = {};
  const known = await inProcess(command, home, project, (client) =>
    begin(client, project, model, tale),
  );
  await inProcess(command, home, project, async (client) => {
    await goOn(client, project, known, tale);
    const fork = await leaveAndComeBack(client, known, tale);
    await tidyUp(client, project, many, known.session, fork, tale);
  });
  return tale;
}

async function inProcess(command, home, project, body) {
  const agent = Agent.start(command, home);
  const told = await connected(agent, project, body);
  assert.deepEqual(await agent.end(), { code: 0, signal: null });
  // Every line that it wrote is one of the official schema.
  assert.deepEqual(agent.faults, []);
  return told;
}

const files = (project) =>
  Object.fromEntries(
    readdirSync(project).map((name) => [name, readFileSync(join(project, name), "utf8")]),
  );
const copy = (value) => structuredClone(value);

/** The first process: prompts, permissions, settings, cancels. */
async function begin(client, project, model, tale) {
  const hello = await client.hello();
  const can = hello.agentCapabilities;
  const used = ["close", "delete", "fork", "list", "resume"];
  tale.hello = {
    version: hello.protocolVersion,
    name: hello.agentInfo.name,
    load: can.loadSession,
    sessions: used.filter((name) => can.sessionCapabilities[name]),
  };
  const made = await client.new();
  const session = made.sessionId;
  const history = client.of(session);
  tale.new = { mode: made.modes.currentModeId, options: current(made) };

  client.answers = ["allow_once", "reject_once", "allow_once"];
  tale.greeted = {
    stop: await client.prompt(session, "Greet the world"),
    asked: copy(client.asked),
    statuses: copy([...history.statuses.values()]),
    files: files(project),
    plan: history.plan(),
    usage: { used: history.newest.usage_update.used, size: history.newest.usage_update.size },
  };

  const none = await code(client.setMode(session, "none"));
  await client.setMode(session, "edit");
  tale.edited = {
    "error of a mode that is none": none,
    told: history.options(),
    stop: await client.prompt(session, "Change it again"),
    files: files(project),
    plan: history.plan(),
  };

  const answers = [];
  for (const [option, value] of [["thinking", "high"], ["mode", "auto"], ["model", "offline"]]) {
    answers.push(await client.setOption(session, option, value));
  }
  const models = answers.at(-1).configOptions.find((option) => option.id === "model");
  tale.set = {
    answers: answers.map(current),
    "mode told": history.newest.current_mode_update.currentModeId,
    models: models.options.map((option) => option.value),
    "stop of the other model": await client.prompt(session, "show greeting.txt"),
    back: current(await client.setOption(session, "model", model)),
  };

  tale.cancelled = {
    "while it talks": await client.cancel(session, "Wait for me", "thinking about it"),
    "while a tool runs": await client.cancel(session, "Run something long", "begun\\n"),
    "asked in all": client.asked.length,
  };
  tale.live = history.items;
  return { session, history };
}

/** The second process: it knows all that was said in the first. */
async function goOn(client, project, { session, history: before }, tale) {
  await client.hello();
  const listed = (await client.pages(project)).flat();
  assert.deepEqual(listed.map((one) => one.sessionId), [session]);
  tale.listed = listed.map(({ cwd, title }) => ({ cwd, title }));

  const answer = await client.load(session);
  const history = client.of(session);
  const same = isDeepStrictEqual(history.items, before.items);
  tale.loaded = {
    history: same ? "as live" : copy(history.items),
    plan: history.plan(),
    mode: answer.modes.currentModeId,
    options: current(answer),
    "ids are those of before": isDeepStrictEqual(history.idsOfTheAgent(), before.idsOfTheAgent()),
    stop: await client.prompt(session, "What did you do?"),
    answer: history.items.at(-1),
  };
}

/** Fork, close, load and resume. */
async function leaveAndComeBack(client, { session, history: before }, tale) {
  const fork = (await client.fork(session)).sessionId;
  assert.notEqual(fork, session);
  const broken = await code(client.prompt(fork, "Break down"));
  await client.close(fork);
  const closed = await code(client.prompt(fork, "Hello?"));
  client.histories.set(fork, new History());
  await client.load(fork);
  const { items } = client.of(fork);
  const length = before.items.length;
  const same = isDeepStrictEqual(items.slice(0, length), before.items);
  tale.forked = {
    "error of the model": broken,
    "error when closed": closed,
    "history after that of before": same ? items.slice(length) : items,
  };

  await client.close(session);
  client.histories.set(session, new History());
  await client.resume(session);
  tale.resumed = {
    history: copy(client.of(session).items),
    stop: await client.prompt(session, "Do something forbidden"),
  };
  return fork;
}

/** List page by page, and delete. */
async function tidyUp(client, project, many, session, fork, tale) {
  for (let made = 0; made < 101; made += 1) await client.new(many);
  const pages = await client.pages(many);
  tale.pages = {
    sizes: pages.map((page) => page.length),
    sessions: new Set(pages.flat().map((one) => one.sessionId)).size,
  };

  const names = { [session]: "session", [fork]: "fork" };
  const before = (await client.pages(project)).flat().map((one) => names[one.sessionId]);
  await client.delete(fork);
  await client.close(session);
  await client.delete(session);
  tale.deleted = {
    before: before.sort(),
    after: (await client.pages(project)).flat(),
    "error of a load": await code(client.load(session)),
  };
}

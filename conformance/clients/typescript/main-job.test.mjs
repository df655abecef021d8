// The main job, through the official TypeScript client: new, prompt with tools and permission, diff,
// plan, mode, cancel, load in a second process, list, delete.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as acp from "@agentclientprotocol/sdk";
import { Agent } from "./agent.mjs";

const home = realpathSync(mkdtempSync(join(tmpdir(), "turnery-client-")));
const project = join(home, "project");
mkdirSync(project);
const greeting = join(project, "greeting.txt");
writeFileSync(greeting, "Hello, world\n");
after(() => rmSync(home, { recursive: true, force: true }));

const limit = { timeout: 60_000 };

/** Connect a client that answers permission requests with `choose`, and run `body`. */
async function session(agent, choose, body, clientCapabilities = {}) {
  const updates = [];
  const asks = [];
  const waiting = [];
  const app = acp
    .client({ name: "test" })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      updates.push(params);
      for (const wake of waiting.splice(0)) wake();
    })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      asks.push(params);
      return choose(params);
    });
  const seen = async (wanted) => {
    while (!updates.some(wanted)) await new Promise((wake) => waiting.push(wake));
  };
  await app.connectWith(agent.stream, async (ctx) => {
    const hello = await ctx.request(acp.methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities,
      clientInfo: { name: "test", version: "1" },
    });
    await body({ ctx, hello, updates, asks, seen });
  });
}

const kinds = (updates) => updates.map((u) => u.update.sessionUpdate);
const textOf = (updates, kind) =>
  updates
    .filter((u) => u.update.sessionUpdate === kind)
    .map((u) => u.update.content.text)
    .join("");
const allow = (params) => ({
  outcome: {
    outcome: "selected",
    optionId: params.options.find((o) => o.kind === "allow_once").optionId,
  },
});
const reject = (params) => ({
  outcome: {
    outcome: "selected",
    optionId: params.options.find((o) => o.kind === "reject_once").optionId,
  },
});
const prompt = (ctx, sessionId, text) =>
  ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

let sessionId;

test("a prompt reads, asks, edits, and ends after all its updates", limit, async () => {
  const agent = Agent.start(home);
  await session(agent, allow, async ({ ctx, hello, updates, asks }) => {
    assert.equal(hello.protocolVersion, 1);
    assert.equal(hello.agentInfo.name, "turnery");
    assert.equal(hello.agentCapabilities.loadSession, true);
    assert.ok(hello.authMethods.length >= 1);

    const made = await ctx.request(acp.methods.agent.session.new, { cwd: project, mcpServers: [] });
    sessionId = made.sessionId;
    assert.equal(made.modes.currentModeId, "ask");
    assert.equal(made.configOptions.find((o) => o.category === "mode").currentValue, "ask");

    const answer = await prompt(ctx, sessionId, "Greet the world from greeting.txt");
    assert.equal(answer.stopReason, "end_turn");
    assert.equal(readFileSync(greeting, "utf8"), "Good morning, world\n");

    assert.equal(textOf(updates, "agent_thought_chunk"), "First I look at the file.");
    assert.equal(
      textOf(updates, "agent_message_chunk"),
      "I read the greeting first.The greeting says good morning now.",
    );
    assert.ok(!kinds(updates).includes("user_message_chunk"), "the live prompt is not echoed");

    const plan = updates.find((u) => u.update.sessionUpdate === "plan").update;
    assert.deepEqual(plan.entries, [
      { content: "Read the greeting", priority: "high", status: "completed" },
      { content: "Change the greeting", priority: "high", status: "in_progress" },
    ]);

    // Each call: announced as pending, then in progress, then completed.
    for (const kind of ["read", "edit"]) {
      const call = updates.find(
        (u) => u.update.sessionUpdate === "tool_call" && u.update.kind === kind,
      ).update;
      assert.equal(call.status ?? "pending", "pending");
      const statuses = updates
        .filter((u) => u.update.toolCallId === call.toolCallId && u.update.status)
        .map((u) => u.update.status);
      assert.deepEqual(statuses.slice(-2), ["in_progress", "completed"]);
      assert.deepEqual(call.locations, [{ path: greeting, ...(call.locations[0].line ? { line: call.locations[0].line } : {}) }]);
    }

    assert.equal(asks.length, 1, "reading needs no permission, editing does");
    const [ask] = asks;
    assert.equal(ask.toolCall.kind, "edit");
    assert.deepEqual(ask.toolCall.content[0], {
      type: "diff",
      path: greeting,
      oldText: "Hello, world\n",
      newText: "Good morning, world\n",
    });
    const optionKinds = ask.options.map((o) => o.kind).sort();
    assert.deepEqual(optionKinds, ["allow_always", "allow_once", "reject_always", "reject_once"]);

    // The answer of the prompt is the last line of it.
    const answered = agent.lines.findIndex((l) => l.result?.stopReason === "end_turn");
    const later = agent.lines.slice(answered + 1).filter((l) => l.method === "session/update");
    assert.deepEqual(later, []);
  });
  assert.deepEqual(await agent.end(), { code: 0, signal: null });
  assert.deepEqual(agent.faults, []);
});

test("a cancelled prompt is answered with cancelled", limit, async () => {
  const agent = Agent.start(home);
  await session(agent, allow, async ({ ctx, updates, seen }) => {
    await ctx.request(acp.methods.agent.session.resume, { sessionId, cwd: project, mcpServers: [] });
    assert.deepEqual(
      kinds(updates).filter((k) => k.endsWith("_chunk") || k.startsWith("tool_call")),
      [],
      "resume replays nothing",
    );
    const answer = prompt(ctx, sessionId, "Wait for me");
    await seen((u) => u.update.content?.text === "I am thinking about it");
    await ctx.notify(acp.methods.agent.session.cancel, { sessionId });
    assert.equal((await answer).stopReason, "cancelled");
  });
  assert.deepEqual(await agent.end(), { code: 0, signal: null });
  assert.deepEqual(agent.faults, []);
});

test("another process loads the whole conversation and goes on with it", limit, async () => {
  const agent = Agent.start(home);
  await session(agent, reject, async ({ ctx, updates, asks }) => {
    const listed = await ctx.request(acp.methods.agent.session.list, { cwd: project });
    assert.deepEqual(
      listed.sessions.map((s) => [s.sessionId, s.cwd, s.title]),
      [[sessionId, project, "Greet the world from greeting.txt"]],
    );

    await ctx.request(acp.methods.agent.session.load, { sessionId, cwd: project, mcpServers: [] });
    assert.equal(
      textOf(updates, "user_message_chunk"),
      "Greet the world from greeting.txtWait for me",
    );
    assert.equal(
      textOf(updates, "agent_message_chunk"),
      "I read the greeting first.The greeting says good morning now.I am thinking about it",
    );
    const finals = updates
      .filter((u) => u.update.sessionUpdate.startsWith("tool_call"))
      .reduce((states, u) => {
        if (u.update.status) states.set(u.update.toolCallId, u.update.status);
        return states;
      }, new Map());
    assert.deepEqual([...finals.values()], ["completed", "completed", "completed"]);
    assert.ok(
      updates.some((u) => u.update.content?.[0]?.type === "diff"),
      "the diff survives a restart",
    );

    updates.length = 0;
    assert.equal((await prompt(ctx, sessionId, "What did you do?")).stopReason, "end_turn");
    assert.equal(textOf(updates, "agent_message_chunk"), "I changed greeting.txt.");

    updates.length = 0;
    assert.equal((await prompt(ctx, sessionId, "Change it again")).stopReason, "end_turn");
    assert.equal(asks.length, 1);
    assert.equal(readFileSync(greeting, "utf8"), "Good morning, world\n", "a rejected edit is not made");
    assert.equal(textOf(updates, "agent_message_chunk"), "Then I leave it as it is.");
    assert.ok(updates.some((u) => u.update.status === "failed"));

    assert.equal((await prompt(ctx, sessionId, "Do something forbidden")).stopReason, "refusal");
    await assert.rejects(prompt(ctx, sessionId, "Break down"), (error) => {
      assert.equal(error.code, -32603);
      assert.match(JSON.stringify(error.data) + error.message, /the model does not like this/);
      return true;
    });

    // With "edit", the edit needs no permission: asked no second time.
    await ctx.request(acp.methods.agent.session.setMode, { sessionId, modeId: "edit" });
    assert.ok(
      updates.some((u) => u.update.sessionUpdate === "config_option_update"),
      "modes and options are kept in step",
    );
    await assert.rejects(
      ctx.request(acp.methods.agent.session.setMode, { sessionId, modeId: "nonsense" }),
      (error) => error.code === -32602,
    );

    await ctx.request(acp.methods.agent.session.close, { sessionId });
    await assert.rejects(prompt(ctx, sessionId, "Hello?"), (error) => error.code === -32002);
    await ctx.request(acp.methods.agent.session.delete, { sessionId });
    const after = await ctx.request(acp.methods.agent.session.list, { cwd: project });
    assert.deepEqual(after.sessions, []);
    await assert.rejects(
      ctx.request(acp.methods.agent.session.load, { sessionId, cwd: project, mcpServers: [] }),
      (error) => error.code === -32002,
    );
  });
  assert.deepEqual(await agent.end(), { code: 0, signal: null });
  assert.deepEqual(agent.faults, []);
});

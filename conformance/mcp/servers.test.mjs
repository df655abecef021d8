// The reference MCP servers, side by side in one session: three over stdio, one over streamable HTTP; with
// one that crashes on purpose, and one that is not there. Every line that turnery writes is checked
// against the official schema.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import * as acp from "@agentclientprotocol/sdk";
import { Agent } from "../clients/typescript/agent.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const of = (name) => join(here, "node_modules/@modelcontextprotocol", name, "dist/index.js");
// Only a hang takes longer.
const limit = { timeout: 600_000 };

const home = realpathSync(mkdtempSync(join(tmpdir(), "turnery-mcp-")));
const project = join(home, "project");
mkdirSync(project);
writeFileSync(join(project, "note.txt"), "from the file\n");
after(() => rmSync(home, { recursive: true, force: true }));

// The server over HTTP, and a proxy before it that keeps what it is sent.
let remote;
let proxy;
const requests = [];
before(async () => {
  // The server wants to be told its port, and somebody else may take that first: then another one is tried.
  let port;
  for (let listens = false; !listens; ) {
    port = await new Promise((resolve) => {
      const probe = http.createServer().listen(0, "127.0.0.1", () => {
        const { port } = probe.address();
        probe.close(() => resolve(port));
      });
    });
    remote = spawn(process.execPath, [of("server-everything"), "streamableHttp"], {
      env: { PATH: process.env.PATH, PORT: String(port) },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    listens = await new Promise((resolve, reject) => {
      remote.stderr.on("data", (data) => {
        said += data;
        if (said.includes("listening")) resolve(true);
      });
      remote.on("exit", () => {
        if (/EADDRINUSE/.test(said)) resolve(false);
        else reject(new Error(`the server ended: ${said}`));
      });
    });
  }
  proxy = http.createServer((request, response) => {
    const seen = { method: request.method, headers: request.rawHeaders, body: "" };
    requests.push(seen);
    const onward = http.request(
      { port, host: "127.0.0.1", path: request.url, method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.on("data", (data) => (seen.body += data));
    request.pipe(onward);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
});
after(() => {
  remote?.kill("SIGKILL");
  proxy?.closeAllConnections();
  proxy?.close();
});

const secret = "s3cret-välue with \"quotes\"";
const servers = () => [
  {
    name: "everything",
    command: process.execPath,
    args: [of("server-everything"), "stdio", "", "ü"],
    env: [
      { name: "EMPTY", value: "" },
      { name: "SECRET_TOKEN", value: secret },
    ],
  },
  {
    type: "http",
    name: "everything-http",
    url: `http://127.0.0.1:${proxy.address().port}/mcp`,
    headers: [
      { name: "Authorization", value: "Bearer t0p-s3cret" },
      { name: "X-Empty", value: "" },
      { name: "X-Unicode", value: "ü" },
    ],
  },
  { name: "files", command: process.execPath, args: [of("server-filesystem"), project], env: [] },
  {
    name: "memory",
    command: process.execPath,
    args: [of("server-memory")],
    env: [
      { name: "MEMORY_FILE_PATH", value: join(home, "memory.json") },
      { name: "UNUSED_TOKEN", value: "unus3d-s3cret" },
    ],
  },
  {
    name: "crashing",
    command: process.execPath,
    args: [join(here, "crashing.mjs"), join(home, "starts")],
    env: [],
  },
  { name: "absent", command: join(home, "no-such-server"), args: ["--key=k3y-value"], env: [] },
];

function start() {
  const scenario = join(here, "../scenarios/mcp.json");
  const child = spawn(process.env.TURNERY, ["acp", "--model", `scripted:${scenario}`], {
    env: {
      PATH: process.env.PATH,
      HOME: home,
      TURNERY_HOME: join(home, "turnery"),
      RUST_LOG: "trace",
      OUR_API_KEY: "never-inherited",
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  return new Agent(child);
}

async function connected(agent, body) {
  const updates = [];
  const asks = [];
  const waiting = [];
  const app = acp
    .client({ name: "test" })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      for (const wake of waiting.splice(0)) wake();
    })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      asks.push(params);
      const { optionId } = params.options.find((o) => o.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId } };
    });
  const seen = async (wanted) => {
    while (!updates.some(wanted)) await new Promise((wake) => waiting.push(wake));
    return updates.find(wanted);
  };
  await app.connectWith(agent.stream, async (ctx) => {
    const hello = await ctx.request(acp.methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: { session: { notices: {} } },
      clientInfo: { name: "test", version: "1" },
    });
    const prompt = (sessionId, text, _meta) =>
      ctx.request(acp.methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: "text", text }],
        ...(_meta ? { _meta } : {}),
      });
    await body({ ctx, hello, updates, asks, seen, prompt });
  });
}

// The last call of that id; of one in a later prompt it has a mark behind it.
const is = (u, id) => u.toolCallId?.startsWith(id);
const ended = (updates, id) =>
  updates.findLast((u) => is(u, id) && ["completed", "failed"].includes(u.status));
const text = (update) => (update.content ?? []).map((c) => c.content?.text ?? "").join("\n");
const running = (pid) => {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};
// What `read` gives, or `gone` if the process or thread has ended meanwhile.
const unlessGone = (read, gone) => {
  try {
    return read();
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return gone;
    throw error;
  }
};
const descendants = (pid) => {
  // A child stands with the thread that started it.
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`), []);
  const startedBy = (thread) =>
    unlessGone(() => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8"), "").split(" ");
  const children = threads.flatMap(startedBy).filter(Boolean);
  return children.flatMap((child) => [child, ...descendants(child)]);
};

let sessionId;
let pids;

test("servers are used side by side, and a dead one sinks nothing", limit, async () => {
  const agent = start();
  await connected(agent, async ({ ctx, hello, updates, asks, seen, prompt }) => {
    assert.deepEqual(hello.agentCapabilities.mcpCapabilities, { http: true, sse: false });
    const sse = { type: "sse", name: "old", url: "http://127.0.0.1:1/", headers: [] };
    await assert.rejects(
      ctx.request(acp.methods.agent.session.new, { cwd: project, mcpServers: [sse] }),
      (error) => error.code === -32602,
    );
    const before = performance.now();
    ({ sessionId } = await ctx.request(acp.methods.agent.session.new, {
      cwd: project,
      mcpServers: servers(),
    }));
    assert.ok(performance.now() - before < 1000, "session/new waits for no server");

    const trace = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
    const answer = await prompt(sessionId, "Use them all", trace);
    assert.equal(answer.stopReason, "end_turn");
    assert.equal(text(ended(updates, "c-echo")), "Echo: over stdio");
    assert.equal(text(ended(updates, "c-http")), "Echo: over HTTP");
    assert.equal(text(ended(updates, "c-file")), "from the file\n");
    assert.match(text(ended(updates, "c-memory")), /speaks MCP/);
    assert.match(readFileSync(join(home, "memory.json"), "utf8"), /turnery/);
    assert.deepEqual(
      asks.map((ask) => [ask.toolCall.name, ask.toolCall.rawInput.message]).slice(0, 2),
      [
        ["mcp__everything__echo", "over stdio"],
        ["mcp__everything-http__echo", "over HTTP"],
      ],
    );
    assert.match(asks[0].toolCall.content[0].content.text, /^Server everything, tool echo:/);

    const notice = await seen((u) => u.sessionUpdate === "notice");
    assert.equal(notice.title, "MCP server absent");
    assert.match(notice.description, /cannot start/);

    const call = requests.find(({ body }) => body.includes("over HTTP"));
    const header = (name) => call.headers[call.headers.indexOf(name.toLowerCase()) + 1];
    assert.equal(header("authorization"), "Bearer t0p-s3cret");
    assert.equal(header("x-empty"), "");
    assert.equal(Buffer.from(header("x-unicode"), "latin1").toString(), "ü");
    assert.equal(JSON.parse(call.body).params._meta.traceparent, trace.traceparent);

    await prompt(sessionId, "Show me more");
    const image = ended(updates, "c-image").content.find((c) => c.content?.type === "image");
    assert.equal(image.content.mimeType, "image/png");
    assert.equal(ended(updates, "c-structured").rawOutput.conditions, "Light rain / drizzle");
    const env = JSON.parse(text(ended(updates, "c-env")));
    assert.deepEqual([env.EMPTY, env.SECRET_TOKEN], ["", secret]);
    assert.equal(env.OUR_API_KEY, undefined, "a key of ours is not handed on");
    assert.match(text(ended(updates, "c-list")), /demo:\/\//);
    assert.match(text(ended(updates, "c-long")), /completed/);
    assert.ok(
      updates.some((u) => u.toolCallId === "c-long" && /\(1 of 2\)|1 of 2/.test(text(u))),
      "progress is shown",
    );
  });
  pids = descendants(agent.child.pid);
  assert.ok(pids.length >= 8, `${pids} are its servers, and one process above each`);
  assert.deepEqual(await agent.end(), { code: 0, signal: null });
  assert.deepEqual(pids.filter(running), [], "no server outlives it");
  assert.deepEqual(agent.faults, []);
  // What tools were asked and answered is in the log for those who want it; get-env was told to tell.
  const log = agent.errors.split("\n").filter((line) => !line.includes(" turnery::tool: "));
  for (const word of ["s3cret", "k3y-value"]) {
    assert.deepEqual(log.filter((line) => line.includes(word)), []);
  }
  // Nor is what no tool told kept anywhere.
  const exported = execFileSync(process.env.TURNERY, ["sessions", "export", sessionId], {
    env: { PATH: process.env.PATH, HOME: home, TURNERY_HOME: join(home, "turnery") },
  });
  const files = readdirSync(join(home, "turnery"), { recursive: true, withFileTypes: true });
  const kept = files
    .filter((it) => it.isFile())
    .map((it) => readFileSync(join(it.parentPath ?? it.path, it.name)));
  assert.ok(Buffer.concat(kept).includes("over HTTP"), "this is where it is kept");
  for (const word of ["t0p-s3cret", "unus3d-s3cret", "k3y-value"]) {
    assert.ok([exported, ...kept].every((bytes) => !bytes.includes(word)), word);
  }
});

test("a session that is loaded is connected again, with the list that was sent", limit, async () => {
  const agent = start();
  await connected(agent, async ({ ctx, updates, seen, prompt }) => {
    const [everything, , , , crashing] = servers();
    await ctx.request(acp.methods.agent.session.load, {
      sessionId,
      cwd: project,
      mcpServers: [everything, crashing],
    });
    const offered = await seen(
      (u) =>
        u.sessionUpdate === "available_commands_update" &&
        u.availableCommands.some((c) => c.name.startsWith("everything:")),
    );
    const names = offered.availableCommands.map((c) => c.name);
    assert.ok(names.includes("help") && names.includes("everything:args-prompt"), names.join());
    assert.ok(!names.some((name) => name.startsWith("everything-http:")));

    const said = () => updates.filter((u) => u.sessionUpdate === "agent_message_chunk").at(-1);
    await prompt(sessionId, "/everything:simple-prompt");
    assert.equal(said().content.text, "The prompt came.");
    await prompt(sessionId, "/everything:args-prompt Paris");
    assert.equal(said().content.text, "It rains in Paris.");
    const missing = await prompt(sessionId, "/everything:args-prompt");
    assert.equal(missing.stopReason, "end_turn");
    assert.match(said().content.text, /city is missing/);

    await prompt(sessionId, "Crash");
    const crash = ended(updates, "c-crash");
    assert.equal(crash.status, "failed");
    assert.match(text(crash), /it ended before it answered/);
    const notice = await seen((u) => u.sessionUpdate === "notice" && /crashing/.test(u.title));
    assert.match(notice.description, /exit status: 3.*I crash on purpose/);
    await prompt(sessionId, "And again");
    assert.equal(text(ended(updates, "c-again")), "started 3 times");

    // One that is killed in mid-call fails that call; the others go on, and its next use starts it again.
    const works = (u) => is(u, "c-wait") && /of 600/.test(text(u));
    const dies = prompt(sessionId, "Wait long");
    await seen(works);
    const cmdline = (pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8");
    // Each server has a process of turnery above it, which ends what it leaves behind.
    const isServer = (line) => line.includes("everything") && !line.includes("--turnery-supervisor");
    const victim = descendants(agent.child.pid).find((pid) => isServer(cmdline(pid)));
    process.kill(Number(victim), "SIGKILL");
    assert.equal((await dies).stopReason, "end_turn");
    assert.match(text(ended(updates, "c-wait")), /MCP server everything: it ended before it answered/);
    const others = updates.length;
    await prompt(sessionId, "And again");
    assert.equal(text(ended(updates.slice(others), "c-again")), "started 3 times");

    const waits = prompt(sessionId, "Wait long");
    const first = ended(updates, "c-wait").toolCallId;
    await seen((u) => works(u) && u.toolCallId !== first);
    const before = performance.now();
    await ctx.notify(acp.methods.agent.session.cancel, { sessionId });
    assert.equal((await waits).stopReason, "cancelled");
    assert.ok(performance.now() - before < 60_000, "a cancel waits for no server");

    pids = descendants(agent.child.pid);
    assert.equal(pids.length, 4, "two servers, each below a process that ends it");
    await ctx.request(acp.methods.agent.session.close, { sessionId });
    assert.deepEqual(pids.filter(running), [], "they end with their session");
  });
  assert.deepEqual(await agent.end(), { code: 0, signal: null });
  assert.deepEqual(agent.faults, []);
});

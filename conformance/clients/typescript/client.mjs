// Client: the official client, and what the story asks of an agent through it.
import * as acp from "@agentclientprotocol/sdk/unstable";
import { History } from "./history.mjs";

const { agent: asked, client: heard } = acp.methods;

/** Run `body` with a client that is connected to `agent`. */
export async function connected(agent, project, body) {
  const client = new Client(project);
  const app = acp
    .client({ name: "typescript" })
    .onNotification(heard.session.update, ({ params }) => client.takes(params))
    .onRequest(heard.session.requestPermission, ({ params }) => client.decides(params));
  return app.connectWith(agent.stream, async (connection) => {
    client.connection = connection;
    return body(client);
  });
}

class Client {
  histories = new Map();
  asked = [];
  // What its person will say, in this order.
  answers = [];
  waiting = [];

  constructor(project) {
    this.at = { cwd: project, mcpServers: [] };
  }

  of(sessionId) {
    if (!this.histories.has(sessionId)) this.histories.set(sessionId, new History());
    return this.histories.get(sessionId);
  }

  takes({ sessionId, update }) {
    this.of(sessionId).take(update);
    for (const wake of this.waiting.splice(0)) wake();
  }

  decides({ options, toolCall }) {
    const kind = this.answers.shift();
    this.asked.push([toolCall.title, options.map((option) => option.kind).sort(), kind]);
    const { optionId } = options.find((option) => option.kind === kind);
    return { outcome: { outcome: "selected", optionId } };
  }

  hello() {
    return this.connection.request(asked.initialize, {
      protocolVersion: 1,
      clientCapabilities: {},
      clientInfo: { name: "typescript", version: "1" },
    });
  }

  new(cwd = this.at.cwd) {
    return this.connection.request(asked.session.new, { ...this.at, cwd });
  }

  load(sessionId) {
    return this.connection.request(asked.session.load, { ...this.at, sessionId });
  }

  resume(sessionId) {
    return this.connection.request(asked.session.resume, { ...this.at, sessionId });
  }

  fork(sessionId) {
    return this.connection.request(asked.session.fork, { ...this.at, sessionId });
  }

  close(sessionId) {
    return this.connection.request(asked.session.close, { sessionId });
  }

  delete(sessionId) {
    return this.connection.request(asked.session.delete, { sessionId });
  }

  /** The sessions of a folder, page by page. */
  async pages(cwd) {
    const pages = [];
    let cursor;
    do {
      const page = await this.connection.request(asked.session.list, { cwd, cursor });
      pages.push(page.sessions);
      cursor = page.nextCursor;
    } while (cursor);
    return pages;
  }

  setMode(sessionId, modeId) {
    return this.connection.request(asked.session.setMode, { sessionId, modeId });
  }

  setOption(sessionId, configId, value) {
    return this.connection.request(asked.session.setConfigOption, { sessionId, configId, value });
  }

  /** Why it stopped. */
  async prompt(sessionId, text) {
    this.of(sessionId).prompted(text);
    const prompt = [{ type: "text", text }];
    const answer = await this.connection.request(asked.session.prompt, { sessionId, prompt });
    return answer.stopReason;
  }

  /** Prompt, and cancel once `seen` is part of what came last. */
  async cancel(sessionId, text, seen) {
    const { items } = this.of(sessionId);
    const answer = this.prompt(sessionId, text);
    while (!JSON.stringify(items.at(-1)).includes(seen)) {
      await new Promise((wake) => this.waiting.push(wake));
    }
    await this.connection.notify(asked.session.cancel, { sessionId });
    return answer;
  }
}

/** The error that the agent answers with. */
export const code = (answer) =>
  answer.then(
    (value) => `no error: ${JSON.stringify(value)}`,
    (error) => error.code,
  );

// aimock, a mock of the providers' APIs by other authors, in strict mode: the requests that turnery sends in each of its
// four formats reach the right endpoint and are understood there, and turnery understands the streams of responses.
import { LLMock } from "@copilotkit/aimock";
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createHome, deltasOf, run } from "./turnery.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { fixtures } = JSON.parse(readFileSync(join(here, "fixtures.json"), "utf8"));
const responseTo = (prompt) => fixtures.find(({ match }) => match.userMessage === prompt).response;

const { home, remove } = createHome("aimock");
const server = new LLMock({ port: 0, strict: true, logLevel: "silent" });

before(async () => {
  server.addFixturesFromJSON(fixtures);
  await server.start();
  // Strict mode answers 503 if no fixture fits, so a test that passes without any would prove nothing.
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "gpt-5.1", messages: [{ role: "user", content: "nothing fits this" }] }),
  });
  assert.equal(response.status, 503);
  const schema = { type: "object", properties: { risk: { enum: ["low", "high"] } }, required: ["risk"] };
  writeFileSync(join(home, "risk.json"), JSON.stringify(schema));
  writeFileSync(
    join(home, "turnery/config.toml"),
    `[providers.chat]\napi = "openai"\nbase_url = "${server.url}/v1"\nkey_env = "OPENAI_API_KEY"\n` +
      `[providers.responses]\napi = "openai_responses"\nbase_url = "${server.url}/v1"\nkey_env = "OPENAI_API_KEY"\n`,
  );
});
after(() => server.stop());
after(remove);

const formats = [
  { name: "OpenAI Chat Completions", model: "chat/gpt-oss-120b", path: "/v1/chat/completions" },
  { name: "OpenAI Responses", model: "responses/gpt-5.1", path: "/v1/responses" },
  { name: "Anthropic Messages", model: "anthropic/claude-sonnet-4-5", path: "/v1/messages" },
  { name: "Gemini", model: "google/gemini-2.5-flash", path: "/v1beta/models/gemini-2.5-flash:streamGenerateContent" },
];

for (const { name, model, path } of formats) {
  describe(name, () => {
    const env = () => ({
      OPENAI_API_KEY: "sk-mock",
      ANTHROPIC_API_KEY: "sk-mock",
      ANTHROPIC_BASE_URL: server.url,
      GEMINI_API_KEY: "mock",
      GEMINI_BASE_URL: `${server.url}/v1beta`,
    });
    const prompt = (...args) => run(home, model, args, { env: env() });
    const statuses = () => server.getRequests().map(({ response }) => response.status);

    beforeEach(() => {
      server.clearRequests();
      server.resetMatchCounts();
    });
    afterEach(() => {
      for (const { path: requested, response } of server.getRequests()) {
        assert.equal(requested.split("?")[0], path);
        assert.ok(response.fixture, `no fixture fits a request to ${requested}`);
      }
    });

    test("text is streamed", async () => {
      const { code, named, result, stderr } = await prompt("tell me about herons");
      assert.equal(code, 0, stderr);
      const expected = responseTo("tell me about herons").content;
      assert.equal(result.text, expected);
      assert.equal(result.outcome, "finished");
      const deltas = deltasOf(named, "text");
      assert.ok(deltas.length > 5, `${deltas.length} deltas`);
      assert.equal(deltas.join(""), expected);
      assert.deepEqual([result.usage.input, result.usage.output], [120, 17]);
      assert.deepEqual(statuses(), [200]);
    });

    test("two calls run and their results are returned", async () => {
      const { code, named, result, stderr } = await prompt("--thinking", "high", "which code word");
      assert.equal(code, 0, stderr);
      assert.equal(result.text, "It is heron.");
      const { reasoning } = responseTo("which code word");
      assert.equal(deltasOf(named, "thinking").join("").slice(0, reasoning.length), reasoning);
      assert.deepEqual(
        named("tool_execution_end").map(({ tool_name, disposition }) => [tool_name, disposition]).sort(),
        [["list_dir", "executed"], ["read_file", "executed"]],
      );
      assert.deepEqual(statuses(), [200, 200]);
    });

    test("a value ends the prompt", async () => {
      const { code, result, stderr } = await prompt("--output-schema", join(home, "risk.json"), "how risky");
      assert.equal(code, 0, stderr);
      assert.deepEqual(result.value, { risk: "low" });
      assert.deepEqual(statuses(), [200]);
    });

    test("a rate limit is waited out", async () => {
      const { code, result, stderr } = await prompt("busy at first");
      assert.equal(code, 0, stderr);
      assert.equal(result.text, "Now there is time.");
      assert.deepEqual(statuses(), [429, 200]);
    });

    test("a refused key is an error that says so", async () => {
      const { code, result, stderr } = await prompt("with a wrong key");
      assert.deepEqual([code, result.outcome], [1, "provider_error"]);
      assert.match(stderr, /The key is not valid/);
      assert.deepEqual(statuses(), [401]);
    });

    test("a response cut in the middle is an error", async () => {
      const { code, named, result, stderr } = await prompt("cut in the middle");
      assert.deepEqual([code, result.outcome], [1, "provider_error"]);
      assert.match(stderr, /broke off in the middle of the answer/);
      const text = deltasOf(named, "text").join("");
      assert.ok(text.length > 0 && responseTo("cut in the middle").content.startsWith(text), text);
      assert.equal(statuses().length, 1);
    });
  });
}

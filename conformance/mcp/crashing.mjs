// An MCP server that crashes on purpose: `crash` ends the process in mid-call. `count` says how often it
// was started, which it keeps in the file that its only argument names.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const file = process.argv[2];
const starts = (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0) + 1;
writeFileSync(file, String(starts));

const schema = { type: "object", properties: {} };
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "crashing", version: "1" },
  }),
  "tools/list": () => ({
    tools: ["crash", "count"].map((name) => ({ name, inputSchema: schema })),
  }),
  "tools/call": ({ name }) => {
    if (name === "crash") {
      console.error("I crash on purpose");
      process.exit(3);
    }
    return { content: [{ type: "text", text: `started ${starts} times` }] };
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const result = results[method]?.(params);
  const answer = result ? { result } : { error: { code: -32601, message: "no such method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}

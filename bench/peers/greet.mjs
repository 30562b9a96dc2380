// Greets somebody by name: a server made with the SDK for Node.js, without a sandbox. Its folder of packages is the
// argument.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/`);
const from = (name) => import(pathToFileURL(require.resolve(name)));
const { McpServer } = await from("sdk-1.32.2/server/mcp.js");
const { StdioServerTransport } = await from("sdk-1.32.2/server/stdio.js");
const { z } = await from("zod");

const server = new McpServer({ name: "greet", version: "0.1.0" });
server.registerTool(
  "greet",
  { description: "Greets somebody by name", inputSchema: { name: z.string() } },
  async ({ name }) => ({ content: [{ type: "text", text: `Hello, ${name}!` }] }),
);
await server.connect(new StdioServerTransport());

// One session with a server, by the official TypeScript SDK.
//
//     node session.mjs PACKAGES TARGET ERA
//
// PACKAGES is the folder of the SDK. TARGET is JSON: {"url": ...} or
// {"command": ..., "args": [...]}. ERA is "legacy" or a version. Prints what the server did as one
// JSON object, for the test to check.

import { createRequire } from 'node:module';

const [packages, target, era] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const PATIENCE = 60_000;
setTimeout(() => {
    console.error('the session takes too long');
    process.exit(1);
}, PATIENCE).unref();

const told = (result) => ({
    error: result.isError === true,
    text: result.content.filter((block) => block.type === 'text').map((block) => block.text),
    structured: result.structuredContent ?? null,
    meta: result._meta ?? {},
});

const server = JSON.parse(target);
const transport = server.url
    ? new StreamableHTTPClientTransport(new URL(server.url))
    : new StdioClientTransport(server);
const client = new Client(
    { name: 'session', version: '1.0.0' },
    {
        capabilities: { elicitation: {} },
        versionNegotiation: { mode: era === 'legacy' ? era : { pin: era } },
    },
);
const answers = [];
const forms = [];
client.setRequestHandler('elicitation/create', async ({ params }) => {
    forms.push({ message: params.message, schema: params.requestedSchema });
    return answers.shift();
});
await client.connect(transport);

const call = async (name, input = {}, options = {}) =>
    told(await client.callTool({ name, arguments: input }, options));

const { tools } = await client.listTools();
const seen = {
    protocol: client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion().name,
    tools: Object.fromEntries(tools.map((tool) => [tool.name, tool.description])),
};
seen.simple = await call('test_simple_text');
seen.sum = await call('test_sum', { numbers: [1, 2, 39] });
seen.failed = await call('test_error_handling');

seen.progress = [];
await call('test_tool_with_progress', {}, {
    onprogress: ({ progress, total }) => seen.progress.push([progress, total]),
});

// Cancels a call that would never end, once it runs.
const giveUp = new AbortController();
seen.ended = [];
await call('test_endless', {}, {
    onprogress: () => giveUp.abort(),
    signal: giveUp.signal,
}).then((result) => seen.ended.push(result), () => undefined);
seen.after = await call('test_sum', { numbers: [4] });

answers.push({ action: 'accept', content: { name: 'Ada' } });
seen.accepted = await call('test_input_required_result_elicitation');
answers.push({ action: 'decline' });
seen.declined = await call('test_input_required_result_elicitation');
seen.forms = forms;

await client.close();
console.log(JSON.stringify(seen));
process.exit(0);

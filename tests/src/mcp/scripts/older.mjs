// One session with a server, by an older official TypeScript SDK.
//
//     node older.mjs PACKAGES TARGET SDK CALLS [REPORTS]
//
// PACKAGES is the folder of the SDKs. TARGET is JSON: {"url": ...} or
// {"command": ..., "args": [...]}. SDK is the name of the package. CALLS is how often the tool
// `hostile_run` is called, which reports REPORTS steps, by default ten. With 0, the tools of the
// conformance bundle are called instead. Prints what the client got as one JSON object.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, target, sdk, calls, reports = '10'] = process.argv.slice(2);
const dist = (path) => {
    const require = createRequire(`${packages}/`);
    return import(pathToFileURL(require.resolve(`${sdk}/${path}`)));
};
setTimeout(() => {
    console.error('the session takes too long');
    process.exit(1);
}, 120_000).unref();

const { Client } = await dist('client/index.js');
const server = JSON.parse(target);
let transport;
if (server.url) {
    const { StreamableHTTPClientTransport } = await dist('client/streamableHttp.js');
    transport = new StreamableHTTPClientTransport(new URL(server.url));
} else {
    const { StdioClientTransport } = await dist('client/stdio.js');
    transport = new StdioClientTransport(server);
}
const client = new Client({ name: 'older', version: '1.0.0' }, { capabilities: {} });
const seen = { errors: [], reports: 0, results: {} };
client.onerror = (error) => seen.errors.push(String(error.message ?? error));
await client.connect(transport);
const { tools } = await client.listTools();
seen.tools = tools;
const call = async (name, input, onprogress) =>
    client.callTool({ name, arguments: input }, undefined, onprogress ? { onprogress } : undefined);
if (Number(calls) > 0) {
    for (let number = 0; number < Number(calls); number += 1) {
        await call('hostile_run', { do: 'progress', n: Number(reports) }, () => (seen.reports += 1));
    }
} else {
    for (const name of ['test_simple_text', 'test_image_content', 'test_audio_content', 'test_multiple_content_types']) {
        seen.results[name] = await call(name, {});
    }
}
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);

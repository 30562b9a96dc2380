// Makes a component of one module, as bundle.mjs writes it.
//
//     node componentize.mjs MODULE OUT --engine ENGINE --wit DIR --world WORLD
//         --toolchain DIR [--disable FEATURE,FEATURE]
//
// ENGINE is `quickjs` (small, quick, no HTTP and no promises) or `starlingmonkey`.
// FEATURE is for StarlingMonkey: stdio, random, clocks, http or fetch-event. Unless
// said otherwise fetch-event, and http in a world without it: the host refuses a
// component that imports wasi:http and declares no host.

import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chdir, exit, stderr } from "node:process";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const ENGINES = { quickjs, starlingmonkey };

// StarlingMonkey has wasi:http by itself, for `fetch`: the world's would stand beside
// it, unused.
const WITHOUT_HTTP = { "driver-http": "driver-random", "driver-all": "driver-keyvalue" };

function fail(message) {
  stderr.write(`error: ${message}\n`);
  exit(1);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    engine: { type: "string" },
    wit: { type: "string" },
    world: { type: "string" },
    toolchain: { type: "string" },
    disable: { type: "string" },
  },
});
const [module, out] = positionals.map((path) => resolve(path));
if (positionals.length !== 2 || !values.wit || !values.world || !values.toolchain) {
  fail("usage: node componentize.mjs MODULE OUT --engine E --wit DIR --world W --toolchain DIR");
}
const engine = ENGINES[values.engine];
if (!engine) fail(`the engine is ${Object.keys(ENGINES).join(" or ")}, not ${values.engine}`);

try {
  await writeFile(out, await engine(await readFile(module, "utf8")));
} catch (error) {
  fail(error.message);
}

async function quickjs(source) {
  const { default: tool } = await load("componentize-qjs", "0.4.5", "index.js");
  const { component } = await tool.componentize({
    jsSource: source,
    witPath: resolve(values.wit),
    world: values.world,
    // The host runs no component-model async.
    sync: true,
  });
  return component;
}

async function starlingmonkey(source) {
  const name = "@bytecodealliance/componentize-js";
  const { componentize } = await load(name, "0.23.0", "src/componentize.js");
  const unused = values.world in WITHOUT_HTTP ? "fetch-event" : "http,fetch-event";
  const disabled = values.disable ?? unused;
  const witPath = resolve(values.wit);
  // componentize-js mistakes its path where the temporary directory lies below the
  // current one.
  chdir(join(resolve(values.toolchain), "node_modules", name));
  const { component } = await componentize(source, {
    // A bare name: a path is looked for at the end, and not found.
    sourceName: "driver.js",
    witPath,
    worldName: WITHOUT_HTTP[values.world] ?? values.world,
    disableFeatures: disabled.split(",").filter(Boolean),
    // Its snapshot program makes a cache, by default in the home directory of the system's records.
    env: { XDG_CACHE_HOME: tmpdir() },
  });
  return component;
}

/** Imports a package of the toolchain directory, and of nowhere else. */
async function load(name, version, file) {
  const folder = join(resolve(values.toolchain), "node_modules", name);
  let manifest;
  try {
    manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  } catch {
    fail(`${folder} is missing: npm install --prefix ${values.toolchain} ${name}@${version}`);
  }
  if (manifest.version !== version) {
    stderr.write(`warning: ${name} is ${manifest.version}; this build is tested with ${version}\n`);
  }
  return import(pathToFileURL(join(folder, file)));
}

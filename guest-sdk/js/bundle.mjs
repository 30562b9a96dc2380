// Makes one module of a driver in JavaScript or TypeScript, the modules it imports
// and the globals of runtime.js. In worlds with HTTP it has warm.js, too.
//
//     node bundle.mjs SOURCE OUT --world WORLD --toolchain DIR
//
// SOURCE exports `handler`. DIR is a directory with `node_modules/esbuild`; nothing
// is taken from a node_modules beside SOURCE but what SOURCE itself imports.

import { readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { exit, stderr } from "node:process";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const DRIVER = {
  log: "toolward:driver/log@0.1.0",
  progress: "toolward:driver/progress@0.1.0",
  secrets: "toolward:driver/secrets@0.1.0",
  tools: "toolward:driver/tools@0.1.0",
};
const RANDOM = { ...DRIVER, random: "wasi:random/random@0.2.12" };
const KEYVALUE = {
  store: "wasi:keyvalue/store@0.2.0-draft",
  atomics: "wasi:keyvalue/atomics@0.2.0-draft",
};

// What each world lets a driver import. An interface that its world does not have
// fails the build of the component. HTTP is the engine's own `fetch`.
const WORLDS = {
  driver: { interfaces: DRIVER, http: false },
  "driver-random": { interfaces: RANDOM, http: false },
  "driver-keyvalue": { interfaces: { ...RANDOM, ...KEYVALUE }, http: false },
  "driver-http": { interfaces: RANDOM, http: true },
  "driver-all": { interfaces: { ...RANDOM, ...KEYVALUE }, http: true },
};

function fail(message) {
  stderr.write(`error: ${message}\n`);
  exit(1);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { world: { type: "string" }, toolchain: { type: "string" } },
});
const [source, out] = positionals;
if (positionals.length !== 2 || !values.world || !values.toolchain) {
  fail("usage: node bundle.mjs SOURCE OUT --world WORLD --toolchain DIR");
}
const world = WORLDS[values.world];
if (!world) fail(`no world is called ${values.world}; use ${Object.keys(WORLDS).join(", ")}`);

/** The globals, and what connects toolward.js to the interfaces of the world. */
async function hostModule() {
  const names = Object.keys(world.interfaces);
  // With HTTP the engine is StarlingMonkey, which warm.js is for.
  const scripts = world.http ? ["runtime.js", "warm.js"] : ["runtime.js"];
  return [
    ...names.map((name) => `import * as ${name} from "${world.interfaces[name]}";`),
    ...(await Promise.all(scripts.map(text))),
    `const host = { ${names.join(", ")}, http: ${world.http}, running: false };`,
    `globalThis[Symbol.for("toolward.host")] = host;`,
    `install(host, "${values.world}");`,
    world.http ? "warm(host.log.write);" : "",
  ].join("\n");
}

const text = (name) => readFile(new URL(name, import.meta.url), "utf8");

const host = {
  name: "toolward-host",
  setup(build) {
    build.onResolve({ filter: /^toolward-host$/ }, () => ({ path: "host", namespace: "toolward" }));
    build.onLoad({ filter: /^host$/, namespace: "toolward" }, async () => ({
      contents: await hostModule(),
    }));
    build.onResolve({ filter: /^node:/ }, ({ path }) => ({
      errors: [{ text: `${path} belongs to Node.js, which a component does not have` }],
    }));
  },
};

const esbuild = await load("esbuild", "0.28.2");
const folder = dirname(resolve(source));
const entry = `./${basename(source)}`;
try {
  await esbuild.build({
    stdin: {
      // In this order: the driver's modules run after the globals are there.
      contents: `import "toolward-host";\nexport { handler } from ${JSON.stringify(entry)};`,
      resolveDir: folder,
      sourcefile: "entry.js",
    },
    // Paths in messages and in the component begin here.
    absWorkingDir: folder,
    bundle: true,
    outfile: resolve(out),
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2022",
    charset: "utf8",
    external: ["toolward:*", "wasi:*"],
    plugins: [host],
    logLevel: "warning",
    color: false,
  });
} catch (error) {
  // esbuild has printed what is wrong with the sources.
  if (!error.errors) fail(error.message);
  exit(1);
}

/** Imports a package of the toolchain directory, and of nowhere else. */
async function load(name, version) {
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
  const { default: module } = await import(pathToFileURL(join(folder, manifest.main)));
  return module;
}

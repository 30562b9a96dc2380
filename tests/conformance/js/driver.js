// The conformance tools in JavaScript. `../README.md` says what each of them answers.
import {
  ask as questions,
  driver,
  form,
  keyvalue as buckets,
  log,
  progress,
  secrets,
  ToolError,
  tools,
} from "./toolward.js";

const operations = {
  greet: ({ name }) => `Hello, ${name}!`,

  log() {
    log.info("from the guest", { n: 1 });
    console.log("to stdout");
    console.error("to stderr");
    return "logged";
  },

  progress() {
    for (const step of [1, 2, 3]) progress.report(step, 3, `step ${step}`);
    return "reported";
  },

  error() {
    const cause = { why: "asked" };
    throw new ToolError("probe:own", "asked for", { retryable: true, cause });
  },

  throw() {
    throw new TypeError("uncaught boom");
  },

  random() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return { number: Math.random(), bytes: Array.from(bytes) };
  },

  memory() {
    const mebibyte = (_, number) => new Uint8Array(1 << 20).fill(number + 1);
    return Array.from({ length: 128 }, mebibyte).length;
  },

  loop() {
    for (;;);
  },

  json({ depth }) {
    let value = [];
    for (let level = 1; level < depth; level++) value = [value];
    return value;
  },

  recurse() {
    const deeper = (depth) => 1 + deeper(depth + 1);
    return deeper(0);
  },
};

const probe = ({ input }) => ({ result: operations[input.op](input) });

const echo = ({ input }) => ({ result: input.text });

const keyvalue = ({ input }) => ({ result: buckets.open("conformance").increment(input.key) });

function secret() {
  const placeholder = secrets.placeholder("conformance-token");
  return { result: { start: placeholder.slice(0, 4), length: placeholder.length } };
}

const tool = ({ input }) => ({ result: tools.call("conformance.echo", { text: input.text }) });

function ask({ answers, state }) {
  if (!answers) {
    const schema = {
      type: "object",
      properties: { name: { type: "string" } },
      required: ["name"],
    };
    return questions({ who: form("Whom shall I greet?", schema) }, { greeting: "Hello" });
  }
  const { status, value } = answers.who;
  if (status !== "accepted") throw new ToolError("probe:nobody", status);
  return { result: `${state.greeting}, ${value.name}!` };
}

function files() {
  throw new ToolError("probe:no_files", "no world gives files to JavaScript");
}

async function http({ input }) {
  const response = await fetch(input.url);
  return { result: { status: response.status, body: await response.text() } };
}

export const handler = driver({
  "conformance.probe": probe,
  "conformance.echo": echo,
  "conformance.keyvalue": keyvalue,
  "conformance.secret": secret,
  "conformance.tool": tool,
  "conformance.ask": ask,
  "conformance.files": files,
  "conformance.http": http,
});

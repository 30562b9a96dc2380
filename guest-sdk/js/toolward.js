// What the author of a Toolward driver in JavaScript or TypeScript uses.
//
//     import { driver } from "./toolward.js";
//     export const handler = driver({
//       "text.greet": ({ input }) => ({ greeting: `Hello, ${input.name}!` }),
//     });
//
// A driver carries out tool contracts as a WebAssembly component of the world
// `toolward:driver@0.1.0`. This file turns that world into plain values. It grants
// nothing and enforces nothing; the host does. It imports nothing either: the
// build connects it to the interfaces of its world, and a test to stand-ins.
// Types and their meanings are in toolward.d.ts.

// Where the build and the tests put the interfaces of the world.
const HOST = Symbol.for("toolward.host");

// How fetch marks its errors with the code that they have if nothing catches them.
const CODE = Symbol.for("toolward.code");

// StarlingMonkey passes a u64 as a BigInt and runs promises to their end.
// QuickJS passes a number and runs no promise.
let wide = false;

// A time or a size as a u64. Infinity is the most that a number counts exactly.
function u64(number) {
  const whole = Math.trunc(Math.min(Math.max(number, 0), Number.MAX_SAFE_INTEGER));
  return wide ? BigInt(whole) : whole;
}

function host(name) {
  const found = globalThis[HOST]?.[name];
  if (found === undefined) {
    const world = name === "store" || name === "atomics" ? "driver-keyvalue" : "driver";
    throw new Error(`this build has no interface "${name}": it needs the world ${world}`);
  }
  return found;
}

// A `result` that is an error is thrown: as it is by QuickJS, as the payload of an
// Error by StarlingMonkey.
const refusal = (error) =>
  error !== null && typeof error === "object" && "payload" in error ? error.payload : error;

// A value of another type than the world's ends the call with a trap, not with an
// exception; so what the author gives is checked before it crosses.

// Text that UTF-8 can hold: half of a surrogate pair is replaced.
const wellFormed = (text) => text.toWellFormed();

const kind = (value) => (value === null ? "null" : typeof value);

function text(value, name) {
  if (typeof value !== "string") throw new TypeError(`${name} is ${kind(value)}, not a string`);
  return wellFormed(value);
}

function number(value, name) {
  if (typeof value !== "number") throw new TypeError(`${name} is ${kind(value)}, not a number`);
  return value;
}

function count(value, name) {
  if (!(number(value, name) >= 0)) throw new TypeError(`${name} is ${value}, not 0 or more`);
  return u64(value);
}

const optional = (value, name, check) => (value == null ? undefined : check(value, name));

function bytes(value, name) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (!ArrayBuffer.isView(value)) {
    throw new TypeError(`${name} is ${kind(value)}, not a Uint8Array`);
  }
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

const textOrBytes = (value, name) =>
  typeof value === "string" ? new TextEncoder().encode(value) : bytes(value, name);

// JSON text. JSON.stringify writes half of a surrogate pair as an escape, which is no
// Unicode text to other readers.
function jsonText(value, name, replace) {
  const written = JSON.stringify(value, replace);
  if (written === undefined) throw new TypeError(`${name} has no JSON form`);
  if (!written.includes("\\ud")) return written;
  return written.replace(/\\(?:u(d[89a-f]..)|.)/g, (escape, half) => (half ? "\ufffd" : escape));
}

export class ToolError extends Error {
  constructor(code, message, { retryable, retryAfterMs, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ToolError";
    this.code = code;
    this.retryable = retryable ?? retryAfterMs !== undefined;
    this.retryAfterMs = retryAfterMs;
  }
}

// The text of whatever was thrown. Describing it can throw in turn.
function describe(error) {
  try {
    if (error instanceof Error) return `${error.name}: ${error.message}`;
    if (typeof error === "string") return error;
    return json(refusal(error)) ?? String(error);
  } catch {
    return "an error that can't be shown";
  }
}

// JSON text, or undefined where the value has none.
function json(value) {
  try {
    return jsonText(value, "", (_, inner) => (inner instanceof Error ? describe(inner) : inner));
  } catch {
    return undefined;
  }
}

// Longest stack in a log record, in characters: endless recursion has a long one.
const MAX_STACK = 2000;

// Longest message of an exception that nobody caught, in characters; it may hold a
// whole input.
const MAX_MESSAGE = 1024;

const bounded = (text) =>
  text.length > MAX_MESSAGE ? `${wellFormed(text.slice(0, MAX_MESSAGE))}…` : text;

// What `execute` throws.
function failure(error) {
  let record;
  try {
    record = errorRecord(error instanceof ToolError ? error : uncaught(error));
  } catch {
    record = errorRecord(new ToolError("internal", bounded(describe(error))));
  }
  // QuickJS reads the record from what is thrown, StarlingMonkey from `payload`.
  return Object.assign(new Error(record.message), record, { payload: record });
}

function errorRecord({ code, message, retryable, retryAfterMs, cause }) {
  const wait = Number(retryAfterMs ?? NaN);
  return {
    code: wellFormed(String(code)),
    message: wellFormed(String(message)),
    retryable: Boolean(retryable),
    retryAfterMs: Number.isNaN(wait) ? undefined : u64(wait),
    cause: cause === undefined ? undefined : json(cause),
  };
}

function uncaught(error) {
  const text = bounded(describe(error));
  try {
    const stack = String(error?.stack ?? "").slice(0, MAX_STACK);
    log.error(`uncaught ${text}`, stack === "" ? undefined : { stack });
  } catch {
    // The record helps the author; the error itself has to get out.
  }
  const code = error?.[CODE];
  if (code === undefined) return new ToolError("internal", text);
  return new ToolError(code, bounded(String(error.message)), {
    retryable: code === "upstream_error",
  });
}

function received(raw) {
  const { code, message, retryable, retryAfterMs, cause } = raw;
  return new ToolError(code, message, {
    retryable,
    retryAfterMs: retryAfterMs == null ? undefined : Number(retryAfterMs),
    cause: cause == null ? undefined : JSON.parse(cause),
  });
}

export function driver(handlers) {
  const known = Object.keys(handlers);
  return {
    execute(invocation) {
      wide = typeof invocation.remainingMs === "bigint";
      if (globalThis[HOST]) globalThis[HOST].running = true;
      try {
        if (!known.includes(invocation.tool)) {
          const text = `this driver implements ${known.join(", ")}, not ${invocation.tool}`;
          throw new ToolError("not_found", text);
        }
        const result = handlers[invocation.tool](read(invocation));
        if (typeof result?.then !== "function") return outcome(result);
        if (!wide) {
          throw new ToolError(
            "internal",
            `the handler of ${invocation.tool} is asynchronous, which QuickJS does not run: ` +
              "make it a plain function, or build it with StarlingMonkey",
          );
        }
        // What has a `then` may have no `catch`.
        return Promise.resolve(result)
          .then(outcome)
          .catch((error) => {
            throw failure(error);
          });
      } catch (error) {
        throw failure(error);
      }
    },
  };
}

function read(invocation) {
  const { id, tool, toolVersion, attempt, idempotencyKey, resume } = invocation;
  const call = {
    id,
    tool,
    toolVersion,
    input: JSON.parse(invocation.input),
    context: JSON.parse(invocation.context),
    attempt,
    remainingMs: Number(invocation.remainingMs),
    idempotencyKey,
    answers: undefined,
    state: undefined,
  };
  if (resume != null) {
    call.answers = Object.fromEntries(
      resume.answers.map(({ key, reply }) => [
        key,
        reply.tag === "accepted"
          ? { status: "accepted", value: JSON.parse(reply.val) }
          : { status: reply.tag },
      ]),
    );
    const state = new TextDecoder().decode(Uint8Array.from(resume.state));
    call.state = state === "" ? undefined : JSON.parse(state);
  }
  return call;
}

function outcome(result) {
  if (result instanceof Questions) return { tag: "needs-input", val: result.lower() };
  const reply = result instanceof Reply ? result : new Reply(result, []);
  if (reply.value === undefined) {
    throw new ToolError("internal", "the handler returned no JSON value; `null` is one");
  }
  const structured = jsonText(reply.value, "what the handler returned");
  return { tag: "done", val: { structured, content: Array.from(reply.content, lowerBlock) } };
}

export class Reply {
  constructor(value, content = []) {
    this.value = value;
    this.content = content;
  }
}

export function reply(value, ...content) {
  const blocks = content.flat();
  // Checked here, where the author finds what is wrong, and again on the way out.
  blocks.forEach(lowerBlock);
  return new Reply(value, blocks);
}

const ROLES = ["user", "assistant"];

function role(value) {
  if (ROLES.includes(value)) return value;
  throw new TypeError(`audience has ${describe(value)}, not of ${ROLES.join(" and ")}`);
}

function lowerAnnotations({ audience, priority }) {
  if (audience != null && !Array.isArray(audience)) {
    throw new TypeError(`audience is ${kind(audience)}, not an array`);
  }
  return {
    audience: Array.from(audience ?? [], role),
    priority: optional(priority, "priority", number),
  };
}

function lowerBlock(block) {
  if (kind(block) !== "object") throw new TypeError(`a content block is ${kind(block)}`);
  const { annotations } = block;
  return {
    content: lowerContent(block),
    annotations: annotations == null ? undefined : lowerAnnotations(annotations),
  };
}

function lowerContent(block) {
  const { type } = block;
  switch (type) {
    case "text":
      return { tag: "text", val: text(block.text, "text") };
    case "image":
    case "audio": {
      const data = bytes(block.data, "data");
      return { tag: type, val: { data, mimeType: text(block.mimeType, "mimeType") } };
    }
    case "resource_link": {
      const val = {
        uri: text(block.uri, "uri"),
        name: text(block.name, "name"),
        title: optional(block.title, "title", text),
        description: optional(block.description, "description", text),
        mimeType: optional(block.mimeType, "mimeType", text),
        size: optional(block.size, "size", count),
      };
      return { tag: "resource-link", val };
    }
    case "resource": {
      if (kind(block.resource) !== "object") {
        throw new TypeError(`resource is ${kind(block.resource)}, not an object`);
      }
      const { uri, mimeType, text: inside, blob } = block.resource;
      const body =
        inside == null
          ? { tag: "blob", val: bytes(blob, "blob") }
          : { tag: "text", val: text(inside, "text") };
      const type = optional(mimeType, "mimeType", text);
      return { tag: "embedded", val: { uri: text(uri, "uri"), mimeType: type, body } };
    }
    default:
      throw new ToolError("internal", `no content block has the type ${describe(type)}`);
  }
}

const some = (object) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value != null));

function liftBlock({ content: { tag, val }, annotations }) {
  const notes = annotations == null ? undefined : some(annotations);
  return some({ ...liftContent(tag, val), annotations: notes });
}

function liftContent(tag, val) {
  switch (tag) {
    case "text":
      return { type: "text", text: val };
    case "image":
    case "audio":
      return { type: tag, data: Uint8Array.from(val.data), mimeType: val.mimeType };
    case "resource-link": {
      const size = val.size == null ? undefined : Number(val.size);
      return some({ type: "resource_link", ...val, size });
    }
    default: {
      const { uri, mimeType, body } = val;
      const inside = body.tag === "text" ? { text: body.val } : { blob: Uint8Array.from(body.val) };
      return { type: "resource", resource: some({ uri, mimeType, ...inside }) };
    }
  }
}

class Question {
  constructor(tag, val) {
    this.tag = tag;
    this.val = val;
    Object.freeze(this);
  }
}

class Questions {
  #state;

  constructor(questions, state) {
    this.questions = Object.entries(questions).map(([key, question]) => {
      if (question instanceof Question) return [wellFormed(key), question];
      throw new TypeError(`the question ${key} is not of form, sample or roots`);
    });
    this.#state = state === undefined ? "" : jsonText(state, "state");
    if (this.questions.length === 0) throw new ToolError("internal", "ask() was given no question");
  }

  lower() {
    return {
      questions: this.questions.map(([key, { tag, val }]) => ({ key, ask: { tag, val } })),
      state: new TextEncoder().encode(this.#state),
    };
  }
}

export const ask = (questions, state) => new Questions(questions, state);

export function form(message, schema) {
  const val = { message: text(message, "message"), schema: jsonText(schema, "schema") };
  return new Question("form", Object.freeze(val));
}

export const sample = (parameters) => new Question("sample", jsonText(parameters, "parameters"));

export const roots = () => new Question("roots");

const LEVELS = ["trace", "debug", "info", "warn", "error"];

const level = (name) => (message, fields) => log.write(name, message, fields);

export const log = {
  write(name, message, fields) {
    if (!LEVELS.includes(name)) {
      throw new TypeError(`level is ${describe(name)}, not of ${LEVELS.join(", ")}`);
    }
    const record = fields === undefined ? undefined : json(fields);
    host("log").write(name, wellFormed(String(message)), record);
  },
  trace: level("trace"),
  debug: level("debug"),
  info: level("info"),
  warn: level("warn"),
  error: level("error"),
};

export const progress = {
  report(done, total, message) {
    host("progress").report({
      done: number(done, "done"),
      total: optional(total, "total", number),
      message: optional(message, "message", text),
    });
  },
};

function secret(slug, operation) {
  slug = text(slug, "slug");
  try {
    return operation(host("secrets"), slug);
  } catch (error) {
    switch (refusal(error)) {
      case "denied":
        throw new ToolError(
          "unauthorised",
          `the secret ${slug} is not declared, or not granted for this`,
        );
      case "missing":
        throw new ToolError("auth_required", `the secret ${slug} is granted, but has no value`);
      case "failed":
        throw new ToolError("upstream_error", `the store of the secret ${slug} failed`);
      default:
        throw error;
    }
  }
}

export const secrets = {
  placeholder: (slug) => secret(slug, (host, slug) => host.placeholder(slug)),
  reveal: (slug) => secret(slug, (host, slug) => Uint8Array.from(host.reveal(slug))),
  store: (slug, value) =>
    secret(slug, (host, slug) => host.store(slug, textOrBytes(value, "value"))),
};

// Less than 0 where the time is over.
function timeout(value, name) {
  if (Number.isNaN(number(value, name))) throw new TypeError(`${name} is not a number`);
  return u64(value);
}

export const tools = {
  call: (tool, input, options) => tools.send(tool, input, options).value,

  send(tool, input, { timeoutMs } = {}) {
    const request = {
      tool: text(tool, "tool"),
      input: jsonText(input ?? null, "input"),
      timeoutMs: optional(timeoutMs, "timeoutMs", timeout),
    };
    let output;
    try {
      output = host("tools").call(request);
    } catch (error) {
      if (error instanceof ToolError) throw error;
      const raw = refusal(error);
      throw typeof raw?.code === "string" ? received(raw) : error;
    }
    return new Reply(JSON.parse(output.structured), output.content.map(liftBlock));
  },
};

export class Bucket {
  #name;
  #bucket;

  constructor(name) {
    this.#name = name = text(name, "name");
    const { open } = host("store");
    const denied = `the bucket ${name} is not declared, or not granted`;
    this.#bucket = this.#try(() => open(name), denied);
  }

  get(key) {
    const value = this.#try(() => this.#bucket.get(text(key, "key")));
    return value == null ? undefined : Uint8Array.from(value);
  }

  getText(key) {
    const value = this.get(key);
    return value === undefined ? undefined : new TextDecoder().decode(value);
  }

  getJson(key) {
    const value = this.getText(key);
    return value === undefined ? undefined : JSON.parse(value);
  }

  set(key, value) {
    this.#try(() => this.#bucket.set(text(key, "key"), textOrBytes(value, "value")));
  }

  setJson(key, value) {
    this.set(key, jsonText(value, "value"));
  }

  delete(key) {
    this.#try(() => this.#bucket.delete(text(key, "key")));
  }

  has(key) {
    return this.#try(() => this.#bucket.exists(text(key, "key")));
  }

  increment(key, delta = 1) {
    const { increment } = host("atomics");
    const add = count(delta, "delta");
    return Number(this.#try(() => increment(this.#bucket, text(key, "key"), add)));
  }

  *keys() {
    let cursor;
    do {
      const page = this.#try(() => this.#bucket.listKeys(cursor));
      yield* page.keys;
      cursor = page.cursor;
    } while (cursor != null);
  }

  #try(operation, denied = `the bucket ${this.#name} may not be written`) {
    try {
      return operation();
    } catch (error) {
      const raw = refusal(error);
      switch (raw?.tag) {
        case "access-denied":
        case "no-such-store":
          throw new ToolError("unauthorised", denied);
        case "other":
          throw new ToolError("upstream_error", `the bucket ${this.#name}: ${raw.val}`);
        default:
          throw error;
      }
    }
  }
}

export const keyvalue = { open: (name) => new Bucket(name) };

// Calls a driver without a host, in its own tests: values go through JSON as they do
// in a component. What it leaves out is the host: schemas, limits, policy. What the
// host would grant is given with the call.

import { ToolError } from "./toolward.js";

const HOST = Symbol.for("toolward.host");

const bytes = (value) => (typeof value === "string" ? new TextEncoder().encode(value) : value);
const text = (value) => new TextDecoder().decode(value);

// Keys of one page: few, so that tests see more than one.
const PAGE = 2;

export async function invoke(handler, tool, input, options = {}) {
  const seen = { log: [], progress: [] };
  const before = globalThis[HOST];
  globalThis[HOST] = { ...standIns(options, seen), running: true };
  try {
    const { tag, val } = await handler.execute(invocation(tool, input, options));
    if (tag === "done") {
      return { value: JSON.parse(val.structured), content: val.content, ...seen };
    }
    const questions = Object.fromEntries(val.questions.map(({ key, ask }) => [key, ask]));
    const state = text(val.state);
    return { questions, state: state === "" ? undefined : JSON.parse(state), ...seen };
  } catch (error) {
    if (!error?.payload) throw error;
    const { code, message, retryable, retryAfterMs, cause } = error.payload;
    throw new ToolError(code, message, {
      retryable,
      retryAfterMs: retryAfterMs === undefined ? undefined : Number(retryAfterMs),
      cause: cause === undefined ? undefined : JSON.parse(cause),
    });
  } finally {
    globalThis[HOST] = before;
  }
}

function invocation(tool, input, { context = {}, attempt = 1, answers, state }) {
  return {
    id: "00000000-0000-7000-8000-000000000000",
    tool,
    toolVersion: "1.0.0",
    input: JSON.stringify(input),
    context: JSON.stringify(context),
    attempt,
    remainingMs: 30000n,
    idempotencyKey: "test",
    resume: answers && {
      state: bytes(state === undefined ? "" : JSON.stringify(state)),
      answers: Object.entries(answers).map(([key, { status, value }]) => ({
        key,
        reply: { tag: status, val: status === "accepted" ? JSON.stringify(value) : undefined },
      })),
    },
  };
}

function standIns({ secrets = {}, tools = {}, buckets = {} }, seen) {
  const secret = (slug) => {
    if (!Object.hasOwn(secrets, slug)) throw "denied";
    return secrets[slug];
  };
  return {
    log: {
      write(level, message, fields) {
        seen.log.push({ level, message, fields: fields && JSON.parse(fields) });
      },
    },
    progress: { report: (update) => seen.progress.push(update) },
    secrets: {
      placeholder(slug) {
        secret(slug);
        return `placeholder:${slug}`;
      },
      reveal: (slug) => bytes(secret(slug)),
      store(slug, value) {
        secret(slug);
        secrets[slug] = text(value);
      },
    },
    tools: {
      call({ tool, input }) {
        if (!Object.hasOwn(tools, tool)) {
          throw { code: "unauthorised", message: `${tool} is not granted`, retryable: false };
        }
        const value = tools[tool](JSON.parse(input));
        return { structured: JSON.stringify(value), content: [] };
      },
    },
    store: {
      open(name) {
        if (!Object.hasOwn(buckets, name)) throw { tag: "access-denied" };
        return new TestBucket(buckets[name]);
      },
    },
    atomics: {
      increment(bucket, key, delta) {
        const sum = BigInt(text(bucket.get(key) ?? bytes("0"))) + BigInt(delta);
        bucket.set(key, bytes(String(sum)));
        return sum;
      },
    },
  };
}

class TestBucket {
  constructor(pairs) {
    this.pairs = pairs;
  }

  get(key) {
    return this.pairs.has(key) ? bytes(this.pairs.get(key)) : undefined;
  }

  set(key, value) {
    this.pairs.set(key, value);
  }

  delete(key) {
    this.pairs.delete(key);
  }

  exists(key) {
    return this.pairs.has(key);
  }

  listKeys(cursor) {
    const from = Number(cursor ?? 0);
    const keys = [...this.pairs.keys()];
    const next = from + PAGE;
    return {
      keys: keys.slice(from, next),
      cursor: next < keys.length ? BigInt(next) : undefined,
    };
  }
}

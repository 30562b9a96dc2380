// What handlers get and what becomes of what they return, without WebAssembly.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ask, driver, form, keyvalue, log, progress } from "../toolward.js";
import { Reply, reply, sample, secrets, ToolError, tools } from "../toolward.js";
import { invoke } from "../toolward-testing.js";

const run = (handle, input, options) => invoke(driver({ t: handle }), "t", input, options);

const refused = async (handle, code, options) => {
  const error = await run(handle, {}, options).then(assert.fail, (error) => error);
  assert.equal(error.code, code, error.message);
  return error;
};

test("a handler gets input and context as values, and its value is the output", async () => {
  const { value } = await run(({ input, context, attempt }) => ({ input, context, attempt }), [1], {
    context: { tenant: "a" },
    attempt: 2,
  });
  assert.deepEqual(value, { input: [1], context: { tenant: "a" }, attempt: 2 });
});

test("an asynchronous handler is waited for", async () => {
  assert.equal((await run(async () => "later", {})).value, "later");
  await refused(async () => Promise.reject(new ToolError("not_found", "none")), "not_found");
});

test("a tool that the driver does not implement is not found", async () => {
  const error = await invoke(driver({ a: () => 1 }), "toString", {}).catch((error) => error);
  assert.equal(error.code, "not_found");
  assert.equal(error.message, "this driver implements a, not toString");
});

test("a tool error keeps its code, its cause and when to come back", async () => {
  const error = await refused(() => {
    throw new ToolError("a:b", "later", { retryAfterMs: 5, cause: { why: new Error("x") } });
  }, "a:b");
  assert.deepEqual([error.retryable, error.retryAfterMs], [true, 5]);
  assert.deepEqual(error.cause, { why: "Error: x" });
});

test("any other exception is internal, with its name and text", async () => {
  const message = async (thrown) => {
    const error = await refused(() => {
      throw thrown;
    }, "internal");
    return error.message;
  };
  assert.equal(await message(new TypeError("boom")), "TypeError: boom");
  assert.equal(await message("text"), "text");
  assert.equal(await message({ a: 1 }), '{"a":1}');
  assert.equal(await message(undefined), "undefined");
  assert.equal(await message(null), "null");
  const loop = {};
  loop.loop = loop;
  assert.equal(await message(loop), "[object Object]");
});

test("an error of fetch has the code that it was marked with", async () => {
  const error = await refused(() => {
    const mark = { [Symbol.for("toolward.code")]: "upstream_error" };
    throw Object.assign(new TypeError("broken"), mark);
  }, "upstream_error");
  assert.deepEqual([error.message, error.retryable], ["broken", true]);
});

test("a value without JSON form is an internal error", async () => {
  await refused(() => {}, "internal");
  await refused(() => 1n, "internal");
  assert.equal((await run(() => null, {})).value, null);
});

test("a reply has blocks beside its value", async () => {
  const { value, content } = await run(
    () =>
      reply(
        1,
        { type: "text", text: "one", annotations: { audience: ["user"] } },
        { type: "resource_link", uri: "a:b", name: "c", size: 7 },
      ),
    {},
  );
  assert.equal(value, 1);
  assert.deepEqual(content[0].content, { tag: "text", val: "one" });
  assert.deepEqual(content[0].annotations.audience, ["user"]);
  assert.deepEqual([content[1].content.tag, content[1].content.val.size], ["resource-link", 7n]);
  await refused(() => reply(1, { type: "video" }), "internal");
});

test("a handler asks, and is called again with the answers and its state", async () => {
  const greet = ({ answers, state }) => {
    if (!answers) return ask({ who: form("Who?", { type: "object" }) }, { greeting: "Hello" });
    return answers.who.status === "accepted" ? `${state.greeting}, ${answers.who.value}` : "nobody";
  };
  const asked = await run(greet, {});
  assert.equal(asked.questions.who.val.message, "Who?");
  const { state } = asked;
  const answered = (who) => run(greet, {}, { answers: { who }, state });
  assert.equal((await answered({ status: "accepted", value: "Ada" })).value, "Hello, Ada");
  assert.equal((await answered({ status: "declined" })).value, "nobody");
  await refused(() => ask({}), "internal");
});

test("log and progress reach the host", async () => {
  const invoked = await run(() => {
    log.warn("odd", { row: 7 });
    progress.report(1, 3, "one");
    return 0;
  }, {});
  assert.deepEqual(invoked.log, [{ level: "warn", message: "odd", fields: { row: 7 } }]);
  assert.deepEqual(invoked.progress, [{ done: 1, total: 3, message: "one" }]);
});

test("secrets, tools and buckets are denied without a grant", async () => {
  await refused(() => secrets.placeholder("token"), "unauthorised");
  await refused(() => tools.call("text.upper", "a"), "unauthorised");
  await refused(() => keyvalue.open("visits").get("a"), "unauthorised");
});

test("secrets, tools and buckets do what is granted", async () => {
  const visits = new Map();
  const use = () => {
    const bucket = keyvalue.open("visits");
    for (const key of ["a", "b", "c", "a"]) bucket.increment(key);
    bucket.setJson("json", { x: 1 });
    bucket.delete("b");
    secrets.store("token", "new");
    return {
      keys: [...bucket.keys()],
      a: bucket.getText("a"),
      json: bucket.getJson("json"),
      missing: bucket.has("b"),
      secret: new TextDecoder().decode(secrets.reveal("token")),
      upper: tools.call("text.upper", "a"),
    };
  };
  const { value } = await run(use, {}, {
    secrets: { token: "old" },
    tools: { "text.upper": (input) => input.toUpperCase() },
    buckets: { visits },
  });
  assert.deepEqual(value, {
    keys: ["a", "c", "json"],
    a: "2",
    json: { x: 1 },
    missing: false,
    secret: "new",
    upper: "A",
  });
  assert.equal(new TextDecoder().decode(visits.get("c")), "1");
});

test("an error of a called tool passes with its own code", async () => {
  const fails = () => {
    throw new ToolError("text:empty", "nothing");
  };
  await refused(() => tools.call("t2", ""), "text:empty", { tools: { t2: fails } });
});

test("half of a surrogate pair is replaced wherever text goes out", async () => {
  const half = "🦀".slice(0, 1);
  const { value, content, log: records } = await run(() => {
    log.info(`a${half}`, { [half]: half });
    progress.report(1, 2, half);
    return reply({ [half]: `${half}🦀\\ud83e` }, { type: "text", text: half });
  }, {});
  assert.deepEqual(value, { "\ufffd": "\ufffd🦀\\ud83e" });
  assert.equal(content[0].content.val, "\ufffd");
  assert.deepEqual(records, [{ level: "info", message: "a\ufffd", fields: { "\ufffd": "\ufffd" } }]);
  const error = await refused(() => {
    throw new ToolError("a:b", half, { cause: half });
  }, "a:b");
  assert.deepEqual([error.message, error.cause], ["\ufffd", "\ufffd"]);
  const asked = await run(() => ask({ [half]: form(half, { title: half }) }, half), {});
  assert.deepEqual(asked.questions["\ufffd"].val, { message: "\ufffd", schema: '{"title":"\ufffd"}' });
  assert.equal(asked.state, "\ufffd");
});

test("a time to wait is one that the host takes", async () => {
  const wait = async (retryAfterMs) => {
    const error = await refused(() => {
      throw new ToolError("a:b", "later", { retryAfterMs });
    }, "a:b");
    return error.retryAfterMs;
  };
  assert.equal(await wait(-5), 0);
  assert.equal(await wait(1.9), 1);
  assert.equal(await wait(1e30), Number.MAX_SAFE_INTEGER);
  assert.equal(await wait(Infinity), Number.MAX_SAFE_INTEGER);
  assert.equal(await wait(NaN), undefined);
});

test("a value of a wrong type is an error with its name", async () => {
  const link = { type: "resource_link", uri: "a:b", name: "c" };
  const image = { type: "image", data: new Uint8Array(1), mimeType: "image/png" };
  const wrong = [
    [/size/, () => reply(1, { ...link, size: -1 })],
    [/size/, () => reply(1, { ...link, size: NaN })],
    [/size/, () => reply(1, { ...link, size: "1" })],
    [/uri/, () => reply(1, { ...link, uri: undefined })],
    [/title/, () => reply(1, { ...link, title: 5 })],
    [/text/, () => reply(1, { type: "text", text: 5 })],
    [/text/, () => reply(1, { type: "text" })],
    [/data/, () => reply(1, { ...image, data: "string" })],
    [/mimeType/, () => reply(1, { ...image, mimeType: undefined })],
    [/blob/, () => reply(1, { type: "resource", resource: { uri: "a:b" } })],
    [/resource/, () => reply(1, { type: "resource" })],
    [/audience/, () => reply(1, { ...image, annotations: { audience: ["nobody"] } })],
    [/audience/, () => reply(1, { ...image, annotations: { audience: "user" } })],
    [/priority/, () => reply(1, { ...image, annotations: { priority: "high" } })],
    [/content block/, () => reply(1, null)],
    [/level/, () => log.write("shout", "a")],
    [/total/, () => progress.report(1, "x", 5)],
    [/message/, () => progress.report(1, 2, 5)],
    [/done/, () => progress.report()],
    [/question k/, () => ask({ k: 5 })],
    [/state/, () => ask({ k: form("a", {}) }, () => {})],
    [/message/, () => form(5, {})],
    [/schema/, () => form("a")],
    [/parameters/, () => sample()],
    [/slug/, () => secrets.reveal(5)],
    [/value/, () => secrets.store("token", 5)],
    [/tool/, () => tools.call(5)],
    [/timeoutMs/, () => tools.call("t", 1, { timeoutMs: NaN })],
    [/name/, () => keyvalue.open(5)],
    [/key/, () => keyvalue.open("b").get(5)],
    [/value/, () => keyvalue.open("b").set("k", 5)],
    [/delta/, () => keyvalue.open("b").increment("k", -1)],
  ];
  const options = { secrets: { token: "" }, buckets: { b: new Map() } };
  for (const [name, make] of wrong) {
    const error = await run(make, {}, options).then(assert.fail, (error) => error);
    assert.match(error.message, /^TypeError: /);
    assert.match(error.message, name);
  }
  await refused(() => new Reply(1, [{ type: "text" }]), "internal");
  assert.equal((await run(() => new Reply(1, [{ type: "text", text: "" }]), {})).value, 1);
});

test("an exception that can't be shown is still an error", async () => {
  const getter = (target, name) =>
    Object.defineProperty(target, name, {
      get() {
        throw new Error("no");
      },
    });
  const thrown = [
    { toString: null },
    { toString: () => ({}), toJSON: () => undefined },
    getter({}, "payload"),
    getter(new Error("a"), "message"),
    getter(new Error("a"), "stack"),
    getter({}, Symbol.for("toolward.code")),
    getter(new ToolError("a:b", "c"), "message"),
    new ToolError("a:b", "c", { retryAfterMs: Symbol("x") }),
    Object.create(null),
    Symbol("x"),
  ];
  for (const what of thrown) {
    await refused(() => {
      throw what;
    }, "internal");
    await refused(() => Promise.reject(what), "internal");
  }
});

test("the message of an uncaught exception is bounded", async () => {
  const error = await refused(() => {
    throw new Error("x".repeat(3e6));
  }, "internal");
  assert.equal(error.message.length, 1025);
});

test("what has only a `then` is waited for", async () => {
  const thenable = (settle) => () => ({ then: settle });
  assert.equal((await run(thenable((resolve) => resolve("later")), {})).value, "later");
  await refused(thenable((_, reject) => reject(new ToolError("a:b", "c"))), "a:b");
  await refused(
    thenable(() => {
      throw new Error("boom");
    }),
    "internal",
  );
});

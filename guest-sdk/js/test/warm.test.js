// What warm.js uses is used in both globals, and stays what it was.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createContext, runInContext } from "node:vm";

import { warm } from "../warm.js";

const shapes = (global) =>
  ["Array", "JSON", "Map", "Object", "Promise", "String"].map((name) => {
    const found = global[name];
    return [name, found, Object.getOwnPropertyDescriptors(found.prototype ?? found)];
  });

test("both globals are warmed, and stay what they were", (t) => {
  const other = createContext({});
  const globals = [globalThis, runInContext("globalThis", other)];
  const before = globals.map(shapes);
  const names = globals.map(Object.getOwnPropertyNames);
  const uses = globals.map((global) => t.mock.method(global.Object, "fromEntries"));
  const encoded = t.mock.method(TextEncoder.prototype, "encodeInto");
  warm(runInContext("() => {}", other));
  assert.deepEqual(uses.map((use) => use.mock.callCount()), [1, 1]);
  assert.equal(encoded.mock.callCount(), 2);
  t.mock.restoreAll();
  assert.deepEqual(globals.map(shapes), before);
  assert.deepEqual(globals.map(Object.getOwnPropertyNames), names);
});

test("an engine that makes no function of text is left as it is", () => {
  const refuses = () => {};
  refuses.constructor = function () {
    throw new EvalError("no");
  };
  warm(refuses);
});

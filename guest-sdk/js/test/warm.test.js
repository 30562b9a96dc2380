// What warm.js uses must be there in every engine, and must leave nothing behind.
import assert from "node:assert/strict";
import { test } from "node:test";

import { warm } from "../warm.js";

test("both globals are warmed, and stay what they were", () => {
  const before = Object.getOwnPropertyNames(globalThis);
  const sources = [];
  const imported = {
    constructor: function (source) {
      sources.push(source);
      return new Function(source);
    },
  };
  warm(imported);
  assert.equal(sources.length, 1);
  assert.match(sources[0], /^\(function exercise\(\)/);
  assert.deepEqual(Object.getOwnPropertyNames(globalThis), before);
});

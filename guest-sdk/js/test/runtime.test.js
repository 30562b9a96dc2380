// The globals that runtime.js gives to QuickJS, compared with those of Node.js.
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { test } from "node:test";

import { install } from "../runtime.js";

const NodeEncoder = globalThis.TextEncoder;
const NodeDecoder = globalThis.TextDecoder;
const written = [];
const host = {
  log: { write: (level, message) => written.push([level, message]) },
  random: { getRandomBytes: (length) => webcrypto.getRandomValues(new Uint8Array(length)) },
  http: false,
  running: false,
};

for (const name of ["TextEncoder", "TextDecoder", "crypto"]) delete globalThis[name];
globalThis.console = {};
install(host, "driver-random");

test("randomness is refused until a call runs", () => {
  assert.throws(() => Math.random(), /the same in every call/);
  host.running = true;
  const numbers = Array.from({ length: 2000 }, () => Math.random());
  assert.equal(new Set(numbers).size, 2000);
  assert.ok(numbers.every((number) => number >= 0 && number < 1));
  assert.match(crypto.randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
  assert.equal(crypto.getRandomValues(new Uint16Array(3)).length, 3);
  assert.throws(() => crypto.getRandomValues(new Uint8Array(65537)), RangeError);
});

test("the console writes to the log", () => {
  console.log("a", 1, { b: 2 }, new TypeError("c"), undefined);
  console.assert(false, "d");
  console.log("🦀".slice(0, 1), Object.create(null, { toJSON: { get: assert.fail } }));
  assert.deepEqual(written, [
    ["info", 'a 1 {"b":2} TypeError: c undefined'],
    ["error", "assertion failed: d"],
    ["info", "\ufffd object"],
  ]);
});

test("fetch says which world has it", () => {
  assert.throws(() => fetch("https://a.example"), /driver-http/);
});

test("text becomes the bytes that Node.js makes", () => {
  const edges = "\u0000\u007f\u0080\u07ff\u0800\uffff\u{10000}\u{10ffff}";
  for (const text of ["", "a", "é✓🦀", "a\ud800b", "\udc00", edges]) {
    assert.deepEqual(new TextEncoder().encode(text), new NodeEncoder().encode(text));
  }
});

test("bytes become the text that Node.js makes", () => {
  // Bytes at which the rules change, so that chance finds the odd cases.
  const edges = [0, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbb, 0xbf, 0xc0, 0xc2, 0xdf];
  edges.push(0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff);
  for (let round = 0; round < 20000; round++) {
    const length = Math.floor(Math.random() * 8);
    const byte = () => edges[Math.floor(Math.random() * edges.length)];
    const bytes = Uint8Array.from({ length }, byte);
    assert.equal(new TextDecoder().decode(bytes), new NodeDecoder().decode(bytes), `${bytes}`);
  }
  const mark = new Uint8Array([0xef, 0xbb, 0xbf]);
  const long = "🦀é".repeat(10000);
  assert.equal(new TextDecoder().decode(new TextEncoder().encode(long)), long);
  assert.equal(new TextDecoder("UTF8", { ignoreBOM: true }).decode(mark), "\ufeff");
  assert.throws(() => new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([0xff])));
  assert.throws(() => new TextDecoder("latin1"), RangeError);
});

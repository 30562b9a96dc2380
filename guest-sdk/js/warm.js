// StarlingMonkey makes its standard classes, and built-in functions that are written in JavaScript, when they are
// first used. The build keeps the engine's memory, so what is used here is there in each call, which then runs half as
// many instructions.

/**
 * @param {Function} imported a function of the world. The code that converts values has a global object of its own,
 *   which this function belongs to; that global's classes are made too.
 */
export function warm(imported) {
  exercise(TextEncoder, TextDecoder);
  try {
    new imported.constructor("...classes", `(${exercise})(...classes)`)(TextEncoder, TextDecoder);
  } catch {
    // An engine that makes no function of text runs the driver as well, only slower.
  }
}

// Runs in both globals, so it uses nothing from outside itself but what it is given: one global has no TextEncoder.
// The build runs what is left pending.
function exercise(TextEncoder, TextDecoder) {
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    try {
      void globalThis[name]?.prototype;
    } catch {
      // It can't be read here.
    }
  }

  JSON.parse(JSON.stringify({ list: [1, "text", null, true, 0.5], object: {} }));
  const bytes = new TextEncoder().encode("text");
  new TextEncoder().encodeInto("text", new Uint8Array(8));
  new TextDecoder().decode(bytes);
  const view = new DataView(new ArrayBuffer(16));
  view.setUint32(0, view.getUint32(8, true), true);
  view.setBigInt64(0, BigInt.asUintN(64, view.getBigInt64(8, true)), true);
  Number(BigInt(1));

  const list = Array.from([1], (item) => item).map((item) => item);
  list.filter((item) => item).includes(1);
  Array.isArray(list);
  Array(2).fill("text").join(" ");
  Object.assign({}, Object.fromEntries(Object.entries({ key: "value" })));
  Object.keys({});
  new Map().set("key", "value").get("key");
  "text".slice(1).split("").includes("x");
  "text".toWellFormed();

  class Failure extends Error {}
  try {
    throw new Failure("text");
  } catch (error) {
    void error.stack;
  }
  const waits = async () => {
    await null;
    await Promise.resolve().then(() => {});
  };
  waits().catch(() => {});
}

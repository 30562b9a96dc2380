// StarlingMonkey makes standard classes, and functions that it has in JavaScript, when they are first used. The
// build keeps the engine's memory; so what is used here is there in each call, and half of what a call computes
// is saved.

/**
 * @param {Function} imported a function of the world. What converts values between the world and a driver has a
 *   global object of its own, and is warmed there too.
 */
export function warm(imported) {
  exercise();
  new imported.constructor(`(${exercise})()`)();
}

// In both globals: it uses nothing from outside itself. What is left pending, the build runs.
function exercise() {
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    try {
      void globalThis[name]?.prototype;
    } catch {
      // Not a class.
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

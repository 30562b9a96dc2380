// Globals that QuickJS lacks, or that both engines have in a form that a driver
// can't use. The build puts this before the driver's own modules, so that they
// find these globals while they are loaded.
//
// The engine is started at build time and its memory is kept, so what happens
// then happens once for all calls: randomness is refused until a call runs.

/**
 * @param host the interfaces of the world, by name; `running` is set by the first call
 * @param world the world's name, for messages
 */
export function install(host, world) {
  installConsole(host);
  installRandom(host, world);
  globalThis.TextEncoder ??= Utf8Encoder;
  globalThis.TextDecoder ??= Utf8Decoder;
  installFetch(host, world);
}

const LEVELS = {
  log: "info",
  info: "info",
  debug: "debug",
  trace: "debug",
  warn: "warn",
  error: "error",
};

function installConsole(host) {
  const console = (globalThis.console ??= {});
  for (const [name, level] of Object.entries(LEVELS)) {
    console[name] = (...parts) => {
      if (!host.running) return;
      // Half of a surrogate pair is no text to the host.
      const text = parts.map(shown).join(" ").toWellFormed();
      host.log.write(level, text, undefined);
    };
  }
  console.assert = (holds, ...parts) => {
    if (!holds) console.error("assertion failed:", ...parts);
  };
}

function shown(part) {
  if (typeof part === "string") return part;
  for (const show of [shownFully, String]) {
    try {
      return show(part);
    } catch {
      // A value may throw where it is read.
    }
  }
  return typeof part;
}

const shownFully = (part) =>
  part instanceof Error ? `${part.name}: ${part.message}` : (JSON.stringify(part) ?? String(part));

// The most that one call of the host's function gives.
const MOST_BYTES = 65536;

function installRandom(host, world) {
  const crypto = (globalThis.crypto ??= cryptoOf(host, world));
  for (const name of ["getRandomValues", "randomUUID"]) {
    const method = crypto[name].bind(crypto);
    const value = (...parameters) => {
      if (host.running) return method(...parameters);
      throw new Error("randomness while the driver is loaded would be the same in every call");
    };
    Object.defineProperty(crypto, name, { value });
  }

  const pool = new Uint32Array(256);
  let used = pool.length;
  Math.random = () => {
    if (used === pool.length) {
      crypto.getRandomValues(pool);
      used = 0;
    }
    // 53 bits, as many as a number between 0 and 1 holds evenly.
    const high = pool[used++] >>> 5;
    const low = pool[used++] >>> 6;
    return (high * 67108864 + low) / 9007199254740992;
  };
}

function cryptoOf(host, world) {
  return {
    getRandomValues(array) {
      if (!host.random) {
        throw new Error(`the world ${world} has no randomness: build it for driver-random`);
      }
      if (array.byteLength > MOST_BYTES) {
        throw new RangeError(`at most ${MOST_BYTES} bytes at once`);
      }
      const view = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      view.set(host.random.getRandomBytes(view.length));
      return array;
    },
    randomUUID() {
      const bytes = this.getRandomValues(new Uint8Array(16));
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    },
  };
}

// The code that an error of fetch has as a tool error, if nothing catches it.
const CODE = Symbol.for("toolward.code");

function installFetch(host, world) {
  if (!host.http) {
    globalThis.fetch = () => {
      throw new Error(`the world ${world} has no HTTP: build the driver for driver-http`);
    };
    return;
  }
  const own = globalThis.fetch;
  globalThis.fetch = async (resource, options) => {
    let origin, response;
    try {
      ({ origin } = new URL(resource.url ?? resource));
      response = own(resource, options);
    } catch (error) {
      throw marked(error, "input_invalid");
    }
    // The engine has one error for all. What the host does not grant fails at once, a
    // connection to another machine later.
    let code = "unauthorised";
    setTimeout(() => (code = "upstream_error"), 0);
    try {
      return await response;
    } catch (error) {
      if (!error.message.startsWith("NetworkError")) throw error;
      const text = code === "unauthorised" ? REFUSED : "got no answer";
      throw marked(new TypeError(`the request to ${origin} ${text}`, { cause: error }), code);
    }
  };
}

const REFUSED =
  "was refused at once: the contract, the driver's egress list and the operator's policy all " +
  "have to allow it, and a server has to listen there";

const marked = (error, code) => Object.assign(error, { [CODE]: code });

class Utf8Encoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    text = String(text).toWellFormed();
    const bytes = new Uint8Array(text.length * 3);
    let length = 0;
    for (let at = 0; at < text.length; at++) {
      const point = text.codePointAt(at);
      if (point < 0x80) {
        bytes[length++] = point;
        continue;
      }
      if (point < 0x800) {
        bytes[length++] = 0xc0 | (point >> 6);
      } else {
        if (point < 0x10000) {
          bytes[length++] = 0xe0 | (point >> 12);
        } else {
          at++;
          bytes[length++] = 0xf0 | (point >> 18);
          bytes[length++] = 0x80 | ((point >> 12) & 0x3f);
        }
        bytes[length++] = 0x80 | ((point >> 6) & 0x3f);
      }
      bytes[length++] = 0x80 | (point & 0x3f);
    }
    return bytes.slice(0, length);
  }
}

// Code points for one call of String.fromCodePoint, whose arguments take stack.
const CHUNK = 4096;

class Utf8Decoder {
  #fatal;
  #keepMark;

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*utf-?8\s*$/i.test(label)) throw new RangeError(`only UTF-8 is read, not ${label}`);
    this.#fatal = fatal;
    this.#keepMark = ignoreBOM;
  }

  get encoding() {
    return "utf-8";
  }

  decode(input = new Uint8Array(), { stream = false } = {}) {
    if (stream) throw new TypeError("this decoder does not read streams");
    const bytes = ArrayBuffer.isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input);
    let text = "";
    let points = [];
    for (let at = 0; at < bytes.length; ) {
      const [point, length] = character(bytes, at);
      if (point === undefined && this.#fatal) throw new TypeError(`no UTF-8 at byte ${at}`);
      points.push(point ?? 0xfffd);
      at += length;
      if (points.length === CHUNK) {
        text += String.fromCodePoint(...points);
        points = [];
      }
    }
    text += String.fromCodePoint(...points);
    return !this.#keepMark && text.startsWith("\ufeff") ? text.slice(1) : text;
  }
}

// The code point at a place and its length in bytes. Where there is none: how
// many bytes one replacement character stands for (Unicode 15, section 3.9).
function character(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return [first, 1];
  const size = first < 0xc2 || first > 0xf4 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (size === 1) return [undefined, 1];
  // The second byte has bounds of its own: no overlong form, no surrogate,
  // nothing past U+10FFFF.
  let least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  let most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  let point = first & (0xff >> (size + 1));
  for (let next = 1; next < size; next++) {
    const byte = bytes[at + next];
    if (!(byte >= least && byte <= most)) return [undefined, next];
    point = (point << 6) | (byte & 0x3f);
    least = 0x80;
    most = 0xbf;
  }
  return [point, size];
}

// Cuts HTML into tags and text, as browsers do it: nothing is an error, and each
// character is looked at a bounded number of times.

import { decode } from "./entities.js";

// What stands in these is text up to their end tag.
const RAW = new Set(["iframe", "noembed", "noframes", "script", "style", "xmp"]);
const RAW_WITH_ENTITIES = new Set(["textarea", "title"]);

const SPACE = /[\t\n\f\r ]/;
const LETTER = /[A-Za-z]/;

// Most tags have no attributes.
const NONE = new Map();

/** Yields `{ text }`, `{ open, attributes, closed }` and `{ close }`. */
export function* tokens(html) {
  // Where the text begins that was not given yet, and where to look on.
  let from = 0;
  let at = 0;
  while (at < html.length) {
    const mark = html.indexOf("<", at);
    if (mark === -1) break;
    const next = html[mark + 1] ?? "";
    const ends = next === "/" && LETTER.test(html[mark + 2] ?? "");
    const starts = LETTER.test(next);
    if (!starts && !ends && next !== "!" && next !== "?" && next !== "/") {
      // Not a tag: the character itself.
      at = mark + 1;
      continue;
    }
    if (mark > from) yield { text: decode(html.slice(from, mark)) };
    if (!starts && !ends) {
      from = at = endOfMarkup(html, mark);
      continue;
    }
    const tag = readTag(html, mark + (ends ? 2 : 1));
    from = at = tag.end;
    if (tag.unfinished) return;
    if (ends) {
      yield { close: tag.name };
      continue;
    }
    yield { open: tag.name, attributes: tag.attributes, closed: tag.closed };
    if (tag.name === "plaintext") {
      yield { text: html.slice(from) };
      return;
    }
    const raw = RAW.has(tag.name);
    if (raw || RAW_WITH_ENTITIES.has(tag.name)) {
      at = endOf(html, tag.name, from);
      const text = html.slice(from, at);
      if (text !== "") yield { text: raw ? text : decode(text) };
      from = at;
    }
  }
  if (from < html.length) yield { text: decode(html.slice(from)) };
}

/** Where a comment, a doctype or something like it ends. */
function endOfMarkup(html, open) {
  if (html.startsWith("<!--", open)) {
    if (html.startsWith("<!-->", open)) return open + 5;
    if (html.startsWith("<!--->", open)) return open + 6;
    return after(html, "-->", open + 4);
  }
  if (html.startsWith("<![CDATA[", open)) return after(html, "]]>", open);
  return after(html, ">", open);
}

function after(html, text, from) {
  const found = html.indexOf(text, from);
  return found === -1 ? html.length : found + text.length;
}

/** Where the end tag of a raw element stands. */
function endOf(html, name, from) {
  const end = new RegExp(`</${name}(?=[\\t\\n\\f\\r />])`, "gi");
  end.lastIndex = from;
  return end.exec(html)?.index ?? html.length;
}

/** A tag from its name on. */
function readTag(html, from) {
  let at = from;
  while (at < html.length && !SPACE.test(html[at]) && html[at] !== ">" && html[at] !== "/") at++;
  const name = html.slice(from, at).toLowerCase();
  let attributes = NONE;
  let closed = false;
  while (at < html.length) {
    const character = html[at];
    if (character === ">") return { name, attributes, closed, end: at + 1 };
    if (character === "/" || SPACE.test(character)) {
      closed = character === "/";
      at++;
      continue;
    }
    closed = false;
    const start = at;
    // A `=` at the start belongs to the name.
    at++;
    while (at < html.length && !/[\t\n\f\r />=]/.test(html[at])) at++;
    const key = html.slice(start, at).toLowerCase();
    while (at < html.length && SPACE.test(html[at])) at++;
    let value = "";
    if (html[at] === "=") {
      at++;
      while (at < html.length && SPACE.test(html[at])) at++;
      [value, at] = readValue(html, at);
    }
    if (attributes === NONE) attributes = new Map();
    // The first of two attributes counts.
    if (!attributes.has(key)) attributes.set(key, value);
  }
  return { name, attributes, closed, end: at, unfinished: true };
}

function readValue(html, at) {
  const quote = html[at];
  if (quote === '"' || quote === "'") {
    const end = html.indexOf(quote, at + 1);
    if (end === -1) return ["", html.length];
    return [decode(html.slice(at + 1, end), true), end + 1];
  }
  const start = at;
  while (at < html.length && !/[\t\n\f\r >]/.test(html[at])) at++;
  return [decode(html.slice(start, at), true), at];
}

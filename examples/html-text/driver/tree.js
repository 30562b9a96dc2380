// Makes a tree of the tags. Broken HTML gives a tree too: end tags that were left out are
// put in, those too many are passed over.

import { tokens } from "./tokens.js";

const set = (names) => new Set(names.split(" "));

const VOID = set(
  "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
);

export const BLOCKS = set(
  "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset " +
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu " +
    "nav ol optgroup option p pre search section summary table tbody td tfoot th thead tr ul",
);

// What starts one of these ends a paragraph.
const ENDS_PARAGRAPH = new Set(BLOCKS);
for (const name of set("head html body caption td th tr tbody thead tfoot option optgroup legend")) {
  ENDS_PARAGRAPH.delete(name);
}

// Elements that one of these ends before it starts: their names, and where to stop looking.
const CELLS = set("td th");
const ROWS = set("td th tr");
const SECTIONS = set("td th tr tbody thead tfoot caption colgroup");
const OUTSIDE_ROWS = set("table tbody thead tfoot");
const HEADINGS = set("h1 h2 h3 h4 h5 h6");
const TABLE = set("table");
const PARAGRAPH = set("p");
const LISTS = set("ul ol menu dir table");
const IMPLIED = new Map([
  ["li", [set("li"), LISTS]],
  ["dt", [set("dt dd"), set("dl table")]],
  ["dd", [set("dt dd"), set("dl table")]],
  ["td", [CELLS, set("tr table")]],
  ["th", [CELLS, set("tr table")]],
  ["tr", [ROWS, TABLE]],
  ["tbody", [SECTIONS, TABLE]],
  ["thead", [SECTIONS, TABLE]],
  ["tfoot", [SECTIONS, TABLE]],
  ["option", [set("option"), set("select datalist")]],
  ["a", [set("a"), set("td th table")]],
]);
for (const name of HEADINGS) IMPLIED.set(name, [HEADINGS, set("div section article td th table li")]);

// An end tag inside of these does not end what lies outside; but for those of tables.
const SCOPES = set("td th caption table");

// Deeper elements are put beside each other: the tree is walked by recursion.
const MAX_DEPTH = 80;

/** The tree's root: `{ name, attributes, children, block }`. Children are elements and
 *  texts; `block` says whether a block lies below. */
export function parse(html) {
  const open = new Open(element("#root", NONE));
  for (const token of tokens(html)) {
    if (token.text !== undefined) {
      open.last.children.push(token.text);
    } else if (token.close !== undefined) {
      if (token.close === "br") open.last.children.push(element("br", NONE));
      open.close(token.close);
    } else {
      open.start(token.open === "image" ? "img" : token.open, token);
    }
  }
  return open.root;
}

const NONE = new Map();

function element(name, attributes) {
  return { name, attributes, children: [], block: false };
}

/** The elements that are open, from the root on. */
class Open {
  #stack;
  // How many of each name are in the stack, and how many lie deeper than it goes.
  #counts = new Map();
  #deeper = new Map();

  constructor(root) {
    this.#stack = [root];
  }

  get root() {
    return this.#stack[0];
  }

  get last() {
    return this.#stack.at(-1);
  }

  start(name, { attributes, closed }) {
    if (ENDS_PARAGRAPH.has(name)) this.#imply(PARAGRAPH, SCOPES);
    const implied = IMPLIED.get(name);
    if (implied) this.#imply(...implied);
    if (CELLS.has(name) && OUTSIDE_ROWS.has(this.last.name)) this.#push(element("tr", NONE));
    const inForeign = closed && (name === "svg" || this.#has("svg") || this.#has("math"));
    const node = element(name, attributes);
    if (VOID.has(name) || inForeign) this.#append(node);
    else this.#push(node);
  }

  /** An end tag: ends what lies in the element, too. Without one it is passed over. */
  close(name) {
    const deeper = this.#deeper.get(name) ?? 0;
    if (deeper > 0) {
      this.#deeper.set(name, deeper - 1);
      return;
    }
    const names = HEADINGS.has(name) ? HEADINGS : new Set([name]);
    if (![...names].some((name) => this.#has(name))) return;
    const stop = SECTIONS.has(name) || name === "table" ? TABLE : SCOPES;
    for (let at = this.#stack.length - 1; at > 0; at--) {
      if (names.has(this.#stack[at].name)) {
        this.#cut(at);
        return;
      }
      if (stop.has(this.#stack[at].name)) return;
    }
  }

  /** Ends the elements with these names, as far as to one where to stop. */
  #imply(names, stop) {
    let found = false;
    for (const name of names) found ||= this.#has(name);
    if (!found) return;
    let lowest;
    for (let at = this.#stack.length - 1; at > 0; at--) {
      if (names.has(this.#stack[at].name)) lowest = at;
      if (stop.has(this.#stack[at].name)) break;
    }
    if (lowest !== undefined) this.#cut(lowest);
  }

  #has(name) {
    return (this.#counts.get(name) ?? 0) > 0;
  }

  #append(node) {
    this.last.children.push(node);
    if (!BLOCKS.has(node.name)) return;
    const stack = this.#stack;
    for (let at = stack.length - 1; at >= 0 && !stack[at].block; at--) stack[at].block = true;
  }

  #push(node) {
    this.#append(node);
    const within = this.#stack.length < MAX_DEPTH;
    const counts = within ? this.#counts : this.#deeper;
    counts.set(node.name, (counts.get(node.name) ?? 0) + 1);
    if (within) this.#stack.push(node);
  }

  #cut(length) {
    while (this.#stack.length > length) {
      const { name } = this.#stack.pop();
      this.#counts.set(name, this.#counts.get(name) - 1);
    }
  }
}

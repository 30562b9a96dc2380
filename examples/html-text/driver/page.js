// A page's tree as text. What its author hid, or what is no text, is left out.

import { resolve } from "./address.js";
import { BLOCKS } from "./tree.js";
import { Writer, collapsed, seen } from "./writer.js";

const set = (names) => new Set(names.split(" "));

const DROPPED = set(
  "audio base canvas col colgroup datalist dialog embed iframe link meta noembed noframes " +
    "object script select style svg template textarea title video",
);
// Around the text of a page, rather than in it.
const AROUND = set("nav aside footer header search");
const AROUND_ROLES = set("navigation banner contentinfo complementary search");

const HIDING_STYLE =
  /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:px|em|rem|pt|%)?|opacity\s*:\s*0(?:\.0+)?)\s*(?:!\s*important\s*)?(?:;|$)/i;

const MARKS = new Map([
  ["b", "**"],
  ["strong", "**"],
  ["em", "*"],
  ["i", "*"],
  ["del", "~~"],
  ["s", "~~"],
  ["code", "`"],
  ["kbd", "`"],
  ["samp", "`"],
  ["tt", "`"],
]);

// More columns than this are more than a table for readers.
const MAX_COLUMNS = 50;
const MAX_LINKS = 1000;

export class Page {
  #links = new Map();
  #style;
  #base;
  #mainOnly;
  #writer = new Writer();
  #hidden = 0;
  // In how many marks this is, and in how many lists.
  #marked = 0;
  #lists = 0;

  constructor(root, { links = "inline", base, mainOnly = false }) {
    this.root = root;
    this.#style = links;
    this.#mainOnly = mainOnly;
    const own = find(root, (node) => node.name === "base" && node.attributes.has("href"));
    this.#base = (own && resolve(own.attributes.get("href"), base)) ?? base;
    // A relative one can complete no other.
    if (this.#base !== undefined && !/^https?:\/\//i.test(this.#base)) this.#base = base;
  }

  title() {
    const title = find(this.root, ({ name }) => name === "title");
    return title ? textOf(title) : "";
  }

  language() {
    const html = find(this.root, ({ name }) => name === "html");
    return (html?.attributes.get("lang") ?? "").trim().slice(0, 35);
  }

  description() {
    const meta = find(this.root, ({ name, attributes }) => {
      const which = attributes.get("name") ?? attributes.get("property") ?? "";
      return name === "meta" && /^(og:)?description$/i.test(which);
    });
    return collapsed(meta?.attributes.get("content") ?? "").trim();
  }

  /** The text; `links` and `hidden` are known after it. */
  text() {
    const is = (wanted) => (node) =>
      node.name === wanted || (wanted === "main" && node.attributes.get("role") === "main");
    const main = this.#mainOnly && (find(this.root, is("main")) ?? find(this.root, is("article")));
    this.#blocks((main || this.root).children, Boolean(main));
    this.#writer.block();
    if (this.#style === "list") {
      for (const [address, { number }] of this.#links) this.#writer.verbatim([`[${number}]: ${address}`]);
    }
    return this.#writer.toString();
  }

  get links() {
    return [...this.#links].map(([url, { text }]) => ({ text, url }));
  }

  get hidden() {
    return this.#hidden;
  }

  /** Whether an element is passed over. */
  #skips(node, inMain) {
    const { name, attributes } = node;
    if (DROPPED.has(name)) return true;
    const style = attributes.get("style");
    const hidden =
      (attributes.has("hidden") && attributes.get("hidden").toLowerCase() !== "until-found") ||
      attributes.get("aria-hidden")?.toLowerCase() === "true" ||
      (style !== undefined && HIDING_STYLE.test(style));
    if (hidden) {
      this.#hidden++;
      return true;
    }
    if (!this.#mainOnly) return false;
    // The header of an article belongs to it.
    if (inMain && (name === "header" || name === "footer")) return false;
    return AROUND.has(name) || AROUND_ROLES.has(attributes.get("role")?.toLowerCase());
  }

  #blocks(children, inMain) {
    const writer = this.#writer;
    for (const child of children) {
      if (typeof child === "string") {
        writer.add(collapsed(child));
      } else if (!child.block && !BLOCKS.has(child.name)) {
        writer.add(this.#inline(child, inMain));
      } else if (!this.#skips(child, inMain)) {
        this.#block(child, inMain || child.name === "article");
      }
    }
  }

  #block(node, inMain) {
    const writer = this.#writer;
    const { name, children } = node;
    const inside = () => this.#blocks(children, inMain);
    if (!BLOCKS.has(name)) {
      // An inline element around blocks: only its link is kept.
      inside();
      const link = name === "a" ? this.#link(node, textOf(node)) : undefined;
      if (link) writer.add(` ${link}`);
      return;
    }
    switch (name) {
      case "h1":
      case "h2":
      case "h3":
      case "h4":
      case "h5":
      case "h6": {
        writer.block();
        const text = this.#inlineAll(children, inMain).trim();
        if (text !== "") writer.add(`${"#".repeat(Number(name[1]))} ${text}`);
        writer.block();
        break;
      }
      case "hr":
        writer.block();
        writer.verbatim(["---"]);
        writer.block();
        break;
      case "pre":
        writer.block();
        this.#verbatim(node);
        writer.block();
        break;
      case "blockquote":
        writer.block();
        writer.within("> ", "> ", () => {
          inside();
          writer.end();
          writer.close();
        });
        writer.block();
        break;
      case "ul":
      case "ol":
      case "menu":
      case "dir":
        this.#list(node, inMain);
        break;
      case "dt":
        writer.end();
        inside();
        writer.end();
        break;
      case "dd":
        writer.within("    ", "    ", inside);
        break;
      case "table":
        writer.block();
        this.#table(node, inMain);
        writer.block();
        break;
      case "li":
        writer.within("- ", "  ", inside);
        break;
      case "div":
      case "tr":
      case "td":
      case "th":
      case "option":
      case "summary":
      case "legend":
        writer.end();
        inside();
        writer.end();
        break;
      default:
        writer.block();
        inside();
        writer.block();
    }
  }

  #list({ name, attributes, children }, inMain) {
    const writer = this.#writer;
    // A list in a list begins right below its item.
    writer.end();
    if (this.#lists === 0) writer.block();
    this.#lists++;
    let number = parseInt(attributes.get("start") ?? "1", 10);
    if (!Number.isSafeInteger(number)) number = 1;
    let first = this.#lists === 1;
    for (const child of children) {
      if (typeof child === "string") {
        if (child.trim() !== "") writer.add(collapsed(child));
        continue;
      }
      if (this.#skips(child, inMain)) continue;
      const own = parseInt(child.attributes.get("value") ?? "", 10);
      if (name === "ol" && child.name === "li" && Number.isSafeInteger(own)) number = own;
      const mark = name === "ol" ? `${number}. ` : "- ";
      if (child.name !== "li") {
        this.#blocks([child], inMain);
        continue;
      }
      writer.end();
      if (!first) writer.close();
      first = false;
      writer.within(mark, " ".repeat(mark.length), () => this.#blocks(child.children, inMain));
      number++;
    }
    writer.end();
    writer.close();
    this.#lists--;
    if (this.#lists === 0) writer.block();
  }

  #verbatim(node) {
    const lines = seen(rawText(node)).replaceAll("\r", "").replaceAll("\u00a0", " ").split("\n");
    if (lines[0] === "") lines.shift();
    while (lines.length > 0 && lines.at(-1).trim() === "") lines.pop();
    if (lines.length === 0) return;
    const fence = lines.some((line) => line.includes("```")) ? "~~~~" : "```";
    this.#writer.verbatim([fence, ...lines, fence]);
  }

  #table(node, inMain) {
    const rows = rowsOf(node);
    const writer = this.#writer;
    this.#blocks(strays(node), inMain);
    writer.block();
    for (const child of node.children) {
      if (child.name === "caption" && !this.#skips(child, inMain)) {
        this.#blocks(child.children, inMain);
        writer.block();
      }
    }
    const cells = rows.filter((row) => !this.#skips(row, inMain)).map((row) => this.#cells(row, inMain));
    const wide = cells.reduce((most, row) => Math.max(most, row.length), 0);
    const simple = cells.every((row) => row.every(({ simple }) => simple));
    if (!simple || wide < 2) {
      // Made to lay out the page, not to be read as a table.
      for (const { node: cell } of cells.flat()) {
        if (cell === undefined) continue;
        writer.end();
        this.#blocks(cell.children, inMain);
        writer.end();
      }
      return;
    }
    const lines = cells.map((row) => {
      const texts = row.map(({ node: cell }) => {
        if (cell === undefined) return "";
        const text = this.#inlineAll(cell.children, inMain).replace(/[ \n]+/g, " ").trim();
        return text.replaceAll("|", "\\|");
      });
      while (texts.length < wide) texts.push("");
      return texts;
    });
    const line = (texts) => `| ${texts.join(" | ")} |`;
    const [head, ...body] = lines.filter((texts) => texts.some((text) => text !== ""));
    if (head === undefined) return;
    writer.verbatim([line(head), line(head.map(() => "---")), ...body.map(line)]);
  }

  #cells(row, inMain) {
    const cells = [];
    for (const child of row.children) {
      if (child.name !== "td" && child.name !== "th") continue;
      if (this.#skips(child, inMain)) continue;
      cells.push({ node: child, simple: isSimple(child) });
      let more = parseInt(child.attributes.get("colspan") ?? "1", 10);
      while (--more > 0 && cells.length < MAX_COLUMNS) cells.push({ node: undefined, simple: true });
      if (cells.length >= MAX_COLUMNS) break;
    }
    return cells;
  }

  /** Inline text; a line end in it is a `br`. */
  #inline(node, inMain) {
    if (this.#skips(node, inMain)) return "";
    const { name, attributes, children } = node;
    switch (name) {
      case "br":
        return "\n";
      case "wbr":
        return "";
      case "img": {
        const alt = collapsed(attributes.get("alt") ?? "").trim();
        return alt === "" ? "" : `[image: ${alt}]`;
      }
      case "input": {
        const shown = /^(submit|button|reset)$/i.test(attributes.get("type") ?? "");
        return shown ? collapsed(attributes.get("value") ?? "") : "";
      }
      case "q":
        return `“${this.#inlineAll(children, inMain)}”`;
      case "a": {
        const text = this.#inlineAll(children, inMain);
        return around(text, (core) => this.#link(node, core) ?? core);
      }
      default: {
        const mark = this.#marked > 0 ? undefined : MARKS.get(name);
        if (mark === undefined) return this.#inlineAll(children, inMain);
        // Marks in marks add nothing for a reader.
        this.#marked++;
        const text = this.#inlineAll(children, inMain);
        this.#marked--;
        return around(text, (core) => mark + core + mark);
      }
    }
  }

  #inlineAll(children, inMain) {
    return children
      .map((child) => {
        if (typeof child === "string") return collapsed(child);
        const text = this.#inline(child, inMain);
        return BLOCKS.has(child.name) ? ` ${text} ` : text;
      })
      .join("");
  }

  /** A link as it is written; undefined where there is nothing to follow. */
  #link({ attributes }, written) {
    const href = attributes.get("href");
    const text = written.replace(/[ \n]+/g, " ").trim();
    if (href === undefined || href.trim().startsWith("#") || text === "") return undefined;
    const address = resolve(href, this.#base);
    if (address === undefined) return undefined;
    if (!this.#links.has(address)) {
      if (this.#links.size >= MAX_LINKS) return undefined;
      this.#links.set(address, { text: text.slice(0, 200).toWellFormed(), number: this.#links.size + 1 });
    }
    if (this.#style === "drop") return undefined;
    if (this.#style === "list") return `${text} [${this.#links.get(address).number}]`;
    return text === address ? address : `[${text}](${address})`;
  }
}

/** What `write` makes of the text, its white space kept outside. */
function around(text, write) {
  const core = text.trim();
  if (core === "") return text;
  const start = text.length - text.trimStart().length;
  return text.slice(0, start) + write(core) + text.slice(start + core.length);
}

/** The first element, in the order of the page, that is wanted. */
function find(node, wanted) {
  for (const child of node.children) {
    if (typeof child === "string" || child.name === "svg") continue;
    if (wanted(child)) return child;
    const found = find(child, wanted);
    if (found) return found;
  }
  return undefined;
}

function rawText(node) {
  return node.children
    .map((child) => (typeof child === "string" ? child : child.name === "br" ? "\n" : rawText(child)))
    .join("");
}

const textOf = (node) => collapsed(rawText(node)).trim();

/** The rows of a table, without those of tables in it. */
function rowsOf(node) {
  return node.children.flatMap((child) => {
    if (child.name === "tr") return [child];
    return ["tbody", "thead", "tfoot"].includes(child.name) ? rowsOf(child) : [];
  });
}

/** What stands in a table but in no cell; browsers show it before. */
function strays(node) {
  return node.children.flatMap((child) => {
    if (typeof child === "string") return child.trim() === "" ? [] : [child];
    if (["tbody", "thead", "tfoot", "tr"].includes(child.name)) return strays(child);
    return ["td", "th", "caption"].includes(child.name) ? [] : [child];
  });
}

/** Whether a cell fits in one line. */
function isSimple(node) {
  let paragraphs = 0;
  const walk = ({ children }) =>
    children.every((child) => {
      if (typeof child === "string") return true;
      if (["table", "ul", "ol", "dl", "pre", "blockquote", "hr"].includes(child.name)) return false;
      if (/^h[1-6]$/.test(child.name)) return false;
      if (child.name === "p") paragraphs++;
      return paragraphs < 2 && walk(child);
    });
  return walk(node);
}

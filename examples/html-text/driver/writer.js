// Lines of text: white space as a browser collapses it, blank lines between blocks, and
// what stands before the lines of quotes and list items.

// What nobody sees but a program reads: soft hyphens, marks of direction and of zero
// width, tags, controls. U+200C and U+200D stay: scripts and emoji need them.
const UNSEEN =
  /[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/gu;

/** Text without what nobody sees. */
export const seen = (text) => text.replace(UNSEEN, "");

/** A text of the page: its line ends are spaces. */
export const collapsed = (text) => seen(text).replace(/[ \t\n\f\r]+/g, " ");

export class Writer {
  #lines = [];
  #parts = [];
  #blank = false;
  // What stands before each line: `first` once, then `rest`.
  #prefixes = [];

  /** More of the paragraph. A line end in it is meant. */
  add(text) {
    if (text !== "") this.#parts.push(text);
  }

  /** The end of a line that holds something. */
  end() {
    const text = this.#parts.join("");
    this.#parts = [];
    for (const line of text.split("\n")) {
      const trimmed = line.replaceAll("\u00a0", " ").replace(/ +/g, " ").trim();
      if (trimmed !== "") this.#write(trimmed);
    }
  }

  /** The end of a block, and the start of one: nothing is before the first of an item. */
  block() {
    this.end();
    const started = this.#prefixes.at(-1)?.used ?? true;
    if (started) this.#blank = this.#lines.length > 0;
  }

  /** Lines that stay as they are. */
  verbatim(lines) {
    this.end();
    for (const line of lines) this.#write(line.trimEnd());
  }

  /** What `body` writes, with something before its lines. */
  within(first, rest, body) {
    this.end();
    const prefix = { first, rest, used: false };
    this.#prefixes.push(prefix);
    body();
    this.end();
    this.#prefixes.pop();
  }

  /** Next lines follow without a blank one. */
  close() {
    this.#blank = false;
  }

  toString() {
    this.end();
    return this.#lines.join("\n");
  }

  #write(line) {
    if (this.#blank) {
      const before = this.#prefixes.filter(({ used }) => used).map(({ rest }) => rest);
      this.#lines.push(before.join("").trimEnd());
      this.#blank = false;
    }
    let before = "";
    for (const prefix of this.#prefixes) {
      before += prefix.used ? prefix.rest : prefix.first;
      prefix.used = true;
    }
    this.#lines.push((before + line).trimEnd());
  }
}

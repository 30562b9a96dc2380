// `html.to-text`: a page as text that a person or a model reads.

import { Page } from "./page.js";
import { driver } from "./toolward.js";
import { parse } from "./tree.js";

const MAX_CHARACTERS = 100_000;

function toText({ input }) {
  const page = new Page(parse(input.html), {
    links: input.links,
    base: input.base_url,
    mainOnly: input.main_only,
  });
  const whole = page.text();
  const text = cut(whole, input.max_characters ?? MAX_CHARACTERS);
  return {
    text,
    title: page.title(),
    language: page.language(),
    description: page.description(),
    links: page.links,
    hidden: page.hidden,
    truncated: text.length < whole.length,
  };
}

/** The whole lines that fit, or else what fits of the first. */
function cut(text, most) {
  if (text.length <= most) return text;
  const end = text.lastIndexOf("\n", most);
  // Without half a character.
  if (end <= 0) return text.slice(0, most).replace(/[\ud800-\udbff]$/, "");
  return text.slice(0, end).trimEnd();
}

export const handler = driver({ "html.to-text": toText });

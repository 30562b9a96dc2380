import assert from "node:assert/strict";
import { test } from "node:test";

import { resolve } from "./address.js";
import { handler } from "./driver.js";
import { decode } from "./entities.js";
import { invoke } from "./toolward-testing.js";

const all = async (html, more) => (await invoke(handler, "html.to-text", { html, ...more })).value;
const text = async (html, more) => (await all(html, more)).text;

async function gives(pairs) {
  for (const [html, expected] of Object.entries(pairs)) assert.equal(await text(html), expected, html);
}

test("white space is as in a browser", async () => {
  await gives({
    " a\n\t b <i> c </i>d": "a b *c* d",
    "<p>a<p>b<div>c</div>d": "a\n\nb\n\nc\nd",
    "a<br>b<br><br>c": "a\nb\nc",
    "<p>&nbsp;</p><p></p>a<hr>b": "a\n\n---\n\nb",
    "<pre>\n a\n  b\n\n</pre>": "```\n a\n  b\n```",
    "<h2>A <b>b</b></h2>c": "## A **b**\n\nc",
    "<blockquote>a<p>b</blockquote>c": "> a\n>\n> b\n\nc",
    "<dl><dt>t<dd>d<dt>u<dd>e</dl>": "t\n    d\nu\n    e",
    "": "",
  });
});

test("lists are nested and numbered", async () => {
  await gives({
    "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e": "- a\n- b\n  - c\n- d\n\ne",
    "<ol start=9><li>a<li><p>b</p><p>c</p><li value=3>d</ol>": "9. a\n10. b\n\n    c\n3. d",
    "<p>x<ul><li>a</ul>": "x\n\n- a",
    "<li>a</li><li>b</li>": "- a\n- b",
  });
});

test("tables are tables, and those that lay out a page are not", async () => {
  await gives({
    "<table><tr><th>a<th>b<tr><td>1 | 2<td>3</table>": "| a | b |\n| --- | --- |\n| 1 \\| 2 | 3 |",
    "<table><caption>C</caption><tr><td colspan=2>a<tr><td>b<td><p>c</p></table>":
      "C\n\n| a |  |\n| --- | --- |\n| b | c |",
    "<table><tr><td><h1>a</h1></td><td><ul><li>b</ul></td></tr></table>": "# a\n\n- b",
    "<table><tr><td>a</td></tr></table>": "a",
    "<table><td>a<td>b<tr>c<td>d</table>": "c\n\n| a | b |\n| --- | --- |\n| d |  |",
    "<table><tr><td><table><tr><td>a<td>b</table><td>c</table>": "| a | b |\n| --- | --- |\n\nc",
  });
});

test("scripts, styles and what is hidden are left out", async () => {
  const html =
    "<head><style>p{}</style><script>if (a < b) '</p>'</script><title>T &amp; U</title>" +
    "<body>a<script src=x></SCRIPT ><noscript>b</noscript><!-- <p>c --><p hidden>d</p>" +
    "<p style='color: red; display : none'>e</p><span aria-hidden=true>f</span><svg><title>g</title>" +
    "<text>h</text></svg><template>i</template><select><option>j</select>k\u200b\u{e0041}l";
  const page = await all(html);
  assert.equal(page.text, "abkl");
  assert.equal(page.title, "T & U");
  assert.equal(page.hidden, 3);
});

test("broken pages give what can be read of them", async () => {
  await gives({
    "a < b && c > d": "a < b && c > d",
    "a<b": "a",
    "a<b>c": "a**c**",
    "</p></div>a</span>": "a",
    "<p><b>a<p>b</b>c": "**a**\n\nbc",
    "a<!-- b": "a",
    "a<!doctype html>b<?php c ?>d": "abd",
    "<a href='x>b": "",
    "<p class=a/b title='>'>c</p x=y>d": "c\n\nd",
    "<script>a": "",
    "<div><p>a</div>b": "a\n\nb",
    "<td>a</td></table>b": "a\nb",
    "<textarea><b></textarea>a": "a",
  });
});

test("neither depth nor length is too much", async () => {
  const deep = 20_000;
  assert.equal(await text("<div>".repeat(deep) + "a" + "</div>".repeat(deep) + "b"), "a\nb");
  assert.match(await text("<ul><li>".repeat(deep) + "a"), /- a$/);
  assert.equal(await text("<b>".repeat(deep) + "a"), "**a**");
  assert.equal((await text("<table><tr><td>".repeat(2000) + "a")).trim(), "a");
  const started = Date.now();
  for (const piece of ["<", "<!--", "</a", "<a ", "<p>", "&", "&a", "a ", "<a href='", "<b> ", "<td>", "[", "<title>"]) {
    await text(piece.repeat(1_000_000 / piece.length));
  }
  assert.ok(Date.now() - started < 30_000);
});

test("character references are decoded", () => {
  for (const [written, expected] of Object.entries({
    "&lt;&AMP;&quot;&apos;&nbsp;&hellip;&Omega;&rarr;&thinsp;&Tab;&yuml;&Ccaron;&uring;":
      "<&\"'\u00a0…Ω→\u2009\tÿČů",
    "&#65;&#x42;&#x1F600;&#128;&#0;&#xD800;&#x110000;&#99999999999;": "AB😀€\ufffd\ufffd\ufffd\ufffd",
    "&copy &copyb &notit; &notin; &nope; & &; &#; &#x;": "© ©b ¬it; ∉ &nope; & &; &#; &#x;",
  })) {
    assert.equal(decode(written), expected, written);
  }
  assert.equal(decode("?a=1&copy=2&reg&lt;&amp=&ampx", true), "?a=1&copy=2®<&amp=&ampx");
});

test("links are completed, and only those that can be followed", async () => {
  const html =
    "<a href='/b c'>b</a> <a href=javascript:alert(1)>x</a> <a href=' java\nscript:x'>y</a> <a href=#f>z</a> " +
    "<a href=https://e.example/>https://e.example/</a> <a href=/b%20c>again</a> <a href=q><img src=i></a>";
  const base_url = "https://a.example/d/e?f";
  const page = await all(html, { base_url });
  assert.equal(
    page.text,
    "[b](https://a.example/b%20c) x y z https://e.example/ [again](https://a.example/b%20c)",
  );
  assert.deepEqual(page.links, [
    { text: "b", url: "https://a.example/b%20c" },
    { text: "https://e.example/", url: "https://e.example/" },
  ]);
  assert.equal(await text(html, { links: "drop" }), "b x y z https://e.example/ again");
  assert.equal(
    await text("<a href=/x>a</a> <a href=y><p>b</p></a>", { links: "list", base_url }),
    "a [1]\n\nb\n\nb [2]\n\n[1]: https://a.example/x\n[2]: https://a.example/d/y",
  );
  assert.equal(await text("<base href=/r/><a href=s>a</a>", { base_url }), "[a](https://a.example/r/s)");
});

test("addresses are those of RFC 3986", () => {
  const base = "http://a/b/c/d;p?q";
  for (const [reference, expected] of Object.entries({
    g: "http://a/b/c/g",
    "./g/": "http://a/b/c/g/",
    "/g": "http://a/g",
    "//g": "http://g",
    "?y": "http://a/b/c/d;p?y",
    "g?y#s": "http://a/b/c/g?y#s",
    "#s": "http://a/b/c/d;p?q#s",
    ".": "http://a/b/c/",
    "..": "http://a/b/",
    "../../../g": "http://a/g",
    "/./g": "http://a/g",
    "mailto:x@y.example": "mailto:x@y.example",
  })) {
    assert.equal(resolve(reference, base), expected, reference);
  }
});

test("the main part is found, and its own header kept", async () => {
  const html =
    "<header>h</header><nav>n</nav><main><article><header><h1>t</h1></header><nav>m</nav>a</article></main><footer>f</footer>";
  assert.equal(await text(html, { main_only: true }), "# t\n\na");
  assert.equal(await text("<div role=banner>x</div><p>a</p><aside>b</aside>", { main_only: true }), "a");
});

test("what is too long ends after a line", async () => {
  const page = await all("<p>one<p>two<p>three", { max_characters: 9 });
  assert.deepEqual([page.text, page.truncated], ["one\n\ntwo", true]);
  assert.equal(await text("😀😀", { max_characters: 3 }), "😀");
});

test("language and description of the page are given", async () => {
  const page = await all("<html lang=de><meta name=Description content=' a\n b '>");
  assert.deepEqual([page.language, page.description], ["de", "a b"]);
});

//! The text of an HTML page, as a reader would copy it: headings and list items
//! marked, scripts and styles left out, white space as it is shown.

use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};
use serde::Serialize;

use crate::reference;

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Link {
    text: String,
    url: String,
}

#[derive(Default)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    pub(crate) links: Vec<Link>,
    /// What has to come before the next text.
    gap: Gap,
    /// Inside how many elements that keep their white space.
    preformatted: usize,
    /// The element whose content is left out, and how many of it are open.
    skipped: Option<(Vec<u8>, usize)>,
    in_title: bool,
    /// Where the link that is open leads, and where its text starts.
    link: Option<(String, usize)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Cell,
    Line,
    Paragraph,
}

impl Page {
    pub(crate) fn plain(text: String) -> Self {
        Page {
            text,
            ..Page::default()
        }
    }

    /// Reads a page found at `base`.
    pub(crate) fn read(html: &str, base: &str) -> Self {
        let mut page = Page::default();
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
            match token {
                Token::StartTag(tag) => page.start(&tag, base),
                Token::EndTag(tag) => page.end(&tag.name),
                Token::String(text) => page.string(&String::from_utf8_lossy(&text)),
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
        }
        page.title = page.title.map(|title| collapsed(&title));
        page
    }

    fn start(&mut self, tag: &StartTag<()>, base: &str) {
        let name = tag.name.as_slice();
        if let Some((skipped, open)) = &mut self.skipped {
            if skipped == name && !tag.self_closing {
                *open += 1;
            }
            return;
        }
        match name {
            b"script" | b"style" | b"template" | b"noscript" | b"svg" | b"iframe" | b"object"
            | b"canvas" | b"select"
                if !tag.self_closing =>
            {
                self.skipped = Some((name.to_vec(), 1));
            }
            b"title" => {
                self.in_title = self.title.is_none();
                self.title.get_or_insert_default();
            }
            b"br" | b"tr" => self.need(Gap::Line),
            b"td" | b"th" if !self.at_start_of_line() => self.need(Gap::Cell),
            b"li" => {
                self.need(Gap::Line);
                self.word("- ");
            }
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                self.need(Gap::Paragraph);
                let level = name.last().map_or(1, |digit| usize::from(digit - b'0'));
                self.word(&format!("{} ", "#".repeat(level)));
            }
            b"pre" | b"textarea" => {
                self.need(Gap::Paragraph);
                self.preformatted += 1;
            }
            b"img" => {
                if let Some(alt) = attribute(tag, b"alt") {
                    self.string(&alt);
                }
            }
            b"a" => {
                if let Some(href) = attribute(tag, b"href") {
                    self.link = Some((reference::resolve(base, &href), self.text.len()));
                }
            }
            name if is_block(name) => self.need(Gap::Paragraph),
            _ => {}
        }
    }

    fn end(&mut self, name: &HtmlString) {
        let name = name.as_slice();
        if let Some((skipped, open)) = &mut self.skipped {
            if skipped == name {
                *open -= 1;
                if *open == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            b"title" => self.in_title = false,
            b"pre" | b"textarea" => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.need(Gap::Paragraph);
            }
            b"a" => self.end_link(),
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => self.need(Gap::Paragraph),
            name if is_block(name) => self.need(Gap::Paragraph),
            _ => {}
        }
    }

    fn end_link(&mut self) {
        if let Some((url, from)) = self.link.take() {
            let text = collapsed(self.text.get(from..).unwrap_or_default());
            if url.starts_with("http") {
                self.links.push(Link { text, url });
            }
        }
    }

    fn string(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
            return;
        }
        if self.preformatted > 0 {
            self.word(text);
            return;
        }
        if text.starts_with(char::is_whitespace) {
            self.need(Gap::Space);
        }
        for word in text.split_whitespace() {
            self.word(word);
            self.need(Gap::Space);
        }
        if !text.ends_with(char::is_whitespace) && self.gap == Gap::Space {
            self.gap = Gap::None;
        }
    }

    fn need(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    fn word(&mut self, word: &str) {
        if !self.text.is_empty() {
            self.text.push_str(match self.gap {
                Gap::None => "",
                Gap::Space if self.text.ends_with(' ') => "",
                Gap::Space => " ",
                Gap::Cell => " | ",
                Gap::Line => "\n",
                Gap::Paragraph if self.text.ends_with("- ") => "",
                Gap::Paragraph => "\n\n",
            });
        }
        self.gap = Gap::None;
        self.text.push_str(word);
    }

    fn at_start_of_line(&self) -> bool {
        self.gap >= Gap::Line || self.text.is_empty()
    }
}

fn attribute(tag: &StartTag<()>, name: &[u8]) -> Option<String> {
    let value = tag.attributes.get(name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_block(name: &[u8]) -> bool {
    const BLOCKS: [&[u8]; 26] = [
        b"address",
        b"article",
        b"aside",
        b"blockquote",
        b"body",
        b"dd",
        b"details",
        b"div",
        b"dl",
        b"dt",
        b"fieldset",
        b"figcaption",
        b"figure",
        b"footer",
        b"form",
        b"header",
        b"hr",
        b"main",
        b"nav",
        b"ol",
        b"p",
        b"section",
        b"summary",
        b"table",
        b"title",
        b"ul",
    ];
    BLOCKS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(html: &str) -> String {
        Page::read(html, "https://a.example/b/").text
    }

    #[test]
    fn text_reads_as_it_is_shown() {
        for (html, expected) in [
            ("<p>One\n  two<p>Three", "One two\n\nThree"),
            ("a<b>b</b>c <i> d </i> e", "abc d e"),
            ("one<br>two", "one\ntwo"),
            ("<h2>Head</h2>text", "## Head\n\ntext"),
            ("<ul><li>one<li>two</ul>after", "- one\n- two\n\nafter"),
            (
                "<ul><li><p>one</p></li><li><p>two</p></li></ul>",
                "- one\n\n- two",
            ),
            (
                "<table><tr><th>a<th>b<tr><td>1<td>2</table>",
                "a | b\n1 | 2",
            ),
            ("<pre>  x\n   y</pre>z", "  x\n   y\n\nz"),
            ("caf&eacute; &lt;b&gt; &#8364;", "café <b> €"),
            ("<img alt='A cat'> <img>", "A cat"),
            ("<div><div>deep</div></div>", "deep"),
        ] {
            assert_eq!(text(html).trim_end(), expected, "{html}");
        }
    }

    #[test]
    fn what_is_not_shown_is_left_out() {
        for html in [
            "<script>if (a < b) { x = '</p>' }</script>seen",
            "<style>p { color: red }</style>seen",
            "<head><title>T</title><meta name=a></head><body>seen",
            "<svg><title>no</title><svg></svg>no</svg>seen",
            "<template><p>no</template>seen",
            "<!-- no -->seen",
            "<noscript>no</noscript>seen",
        ] {
            assert_eq!(text(html), "seen", "{html}");
        }
    }

    #[test]
    fn links_are_absolute_and_lead_to_the_web() {
        let page = Page::read(
            "<a href='../c?d'>One <b>two</b></a> <a href='mailto:x@y'>no</a> <a name=z>no</a>",
            "https://a.example/b/",
        );
        let link = Link {
            text: "One two".to_owned(),
            url: "https://a.example/c?d".to_owned(),
        };
        assert_eq!(page.links, [link]);
    }

    #[test]
    fn the_first_title_counts() {
        let page = Page::read(
            "<title> A &amp;\n B </title><title>C</title>",
            "https://a.example",
        );
        assert_eq!(page.title.as_deref(), Some("A & B"));
    }

    #[test]
    fn a_page_of_broken_markup_is_read_without_a_panic() {
        for html in [
            "</p></a></h9>",
            "<a href",
            "<svg>",
            "<li",
            "<pre><pre>",
            "&#xffffffff;",
            "<h1",
            "<",
        ] {
            text(html);
        }
    }
}

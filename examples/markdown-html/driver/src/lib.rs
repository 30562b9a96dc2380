//! `markdown.to-html`: CommonMark, and optionally what GitHub adds, to HTML.

mod safe;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use serde::{Deserialize, Serialize};
use toolward_guest::{Call, Error, driver};

#[derive(Deserialize)]
struct Input {
    markdown: String,
    #[serde(default)]
    dialect: Dialect,
    #[serde(default = "yes")]
    safe: bool,
    #[serde(default)]
    heading_ids: bool,
    #[serde(default)]
    smart_punctuation: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dialect {
    CommonMark,
    #[default]
    GitHub,
}

fn yes() -> bool {
    true
}

#[derive(Serialize)]
struct Output {
    html: String,
    headings: Vec<Heading>,
    links: Vec<String>,
    removed: usize,
}

#[derive(Serialize)]
struct Heading {
    level: u8,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

fn render(call: Call<Input>) -> Result<Output, Error> {
    let input = call.input;
    let mut options = match input.dialect {
        Dialect::CommonMark => Options::empty(),
        Dialect::GitHub => {
            Options::ENABLE_TABLES
                | Options::ENABLE_FOOTNOTES
                | Options::ENABLE_STRIKETHROUGH
                | Options::ENABLE_TASKLISTS
                | Options::ENABLE_GFM
        }
    };
    options.set(Options::ENABLE_SMART_PUNCTUATION, input.smart_punctuation);

    let mut events: Vec<Event<'_>> = Parser::new_ext(&input.markdown, options).collect();
    let removed = if input.safe {
        safe::make_safe(&mut events)
    } else {
        0
    };
    let links = links(&events);
    let headings = headings(&mut events, input.heading_ids);

    let mut html = String::with_capacity(input.markdown.len() * 3 / 2);
    html::push_html(&mut html, events.into_iter());
    Ok(Output {
        html,
        headings,
        links,
        removed,
    })
}

/// Where the document points to, each once, in order.
fn links(events: &[Event<'_>]) -> Vec<String> {
    let mut links: Vec<String> = Vec::new();
    for event in events {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            if !dest_url.is_empty() && !links.iter().any(|link| **link == **dest_url) {
                links.push(dest_url.to_string());
            }
        }
    }
    links
}

/// The headings; with ids, they are also put into the document.
fn headings(events: &mut [Event<'_>], ids: bool) -> Vec<Heading> {
    let mut headings: Vec<Heading> = Vec::new();
    let mut open = None;
    for index in 0..events.len() {
        let text = match &events[index] {
            Event::Start(Tag::Heading { level, .. }) => {
                open = Some(index);
                headings.push(Heading {
                    level: number(*level),
                    text: String::new(),
                    id: None,
                });
                continue;
            }
            Event::End(TagEnd::Heading(_)) => {
                let start = open.take();
                if let (true, Some(start), Some((heading, before))) =
                    (ids, start, headings.split_last_mut())
                {
                    let chosen = slug(&heading.text, before);
                    heading.id = Some(chosen.clone());
                    if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
                        *id = Some(chosen.into());
                    }
                }
                continue;
            }
            Event::Text(text) | Event::Code(text) => text.to_string(),
            Event::SoftBreak | Event::HardBreak => " ".to_owned(),
            _ => continue,
        };
        if let (Some(_), Some(heading)) = (open, headings.last_mut()) {
            heading.text.push_str(&text);
        }
    }
    headings
}

fn number(level: HeadingLevel) -> u8 {
    level as u8
}

/// The heading in lower case with dashes, as GitHub does it, and unlike those
/// before.
fn slug(text: &str, before: &[Heading]) -> String {
    let base: String = text
        .to_lowercase()
        .chars()
        .filter_map(|character| match character {
            ' ' | '-' => Some('-'),
            '_' => Some('_'),
            character => character.is_alphanumeric().then_some(character),
        })
        .collect();
    let taken = |id: &str| {
        before
            .iter()
            .any(|heading| heading.id.as_deref() == Some(id))
    };
    let mut id = base.clone();
    let mut number = 0;
    while taken(&id) {
        number += 1;
        id = format!("{base}-{number}");
    }
    id
}

driver! { "markdown.to-html" => render }

//! The text of an approval question on a terminal. Every line of the arguments and of the body is
//! behind a bar, so that no such line looks like the question or like a fact about the call.

use std::fmt::Write as _;

use serde_json::Value;
use toolward_bundle::text::{visible_json, visible_line};
use toolward_host::ApprovalRequest;
use toolward_policy::AskReason;

use crate::wrap::pieces;

/// Lines of arguments that are shown.
const MAX_ARGUMENT_LINES: usize = 60;
/// Characters of one text within the arguments that are shown.
const MAX_TEXT_CHARS: usize = 400;
/// Characters of the URL of a request.
const MAX_URL_CHARS: usize = 2000;
/// Characters of a name, and of other words within a line.
const MAX_NAME_CHARS: usize = 200;
/// The most items that are shown of each kind: capabilities, tools that a yes does not cover, and
/// reasons.
const MAX_ITEMS: usize = 20;
/// The fewest columns of a line, even if the terminal is narrower.
const MIN_COLUMNS: usize = 30;

/// The prefix of every line of arguments.
pub(super) const ARGUMENT_PREFIX: &str = "  | ";

pub(super) fn shown(request: &ApprovalRequest, width: usize) -> String {
    let width = width.max(MIN_COLUMNS);
    let name = |text: &str| visible_line(text, MAX_NAME_CHARS);
    let (tool, publisher) = (name(&request.tool), name(&request.publisher));
    let mut out = format!("\n{tool} by {publisher} needs your approval\n");
    let mut fact = |label: &str, text: &str| {
        for (number, line) in pieces(text, width.saturating_sub(14)).iter().enumerate() {
            let label = if number == 0 { label } else { "" };
            let _ = writeln!(out, "  {label:<10} {line}");
        }
    };
    fact("called", &name(&request.name));
    let (driver, publisher) = (name(&request.driver), name(&request.driver_publisher));
    let by = match request.driver_publisher == request.publisher {
        true => "the same publisher".to_owned(),
        false => format!("{publisher}, ANOTHER publisher"),
    };
    fact("driver", &format!("{driver} by {by}"));
    // Everything that a yes covers is shown uncut, since the host limits the number of drivers.
    if !request.fallbacks.is_empty() {
        fact("", &reach(&request.driver_hosts, &request.driver_regions));
    }
    for next in &request.fallbacks {
        let id = visible_line(&next.id, usize::MAX);
        let publisher = visible_line(&next.publisher, usize::MAX);
        let another = match next.publisher == request.publisher {
            true => "",
            false => ", ANOTHER publisher",
        };
        let driver = format!("{id} by {publisher}{another}, if that fails");
        fact("or driver", &driver);
        fact("", &reach(&next.hosts, &next.regions));
    }
    for tool in limited(&request.called_by) {
        fact("called by", &tool);
    }
    for effect in limited(&request.effects) {
        fact("effect", &effect);
    }
    fact("risk", risk(request.risk));
    for reason in limited(&reasons(request)) {
        fact("because", &reason);
    }
    if let Some(cost) = &request.cost {
        fact("cost", &name(cost));
    }
    // Everything that a yes covers is shown uncut, since the host limits the number of tools.
    for chained in &request.chain {
        let tool = visible_line(&chained.tool, usize::MAX);
        let by = match chained.publisher == request.publisher {
            true => String::new(),
            false => {
                let publisher = visible_line(&chained.publisher, usize::MAX);
                format!(" by ANOTHER publisher, {publisher}")
            }
        };
        fact("may call", &format!("{tool}{by}, which your yes covers"));
        for publisher in chained.foreign_drivers() {
            let publisher = visible_line(publisher, usize::MAX);
            let driver = format!("  by a driver of ANOTHER publisher, {publisher}");
            fact("", &driver);
        }
        if chained.risk > 0 {
            fact("", &format!("  risk {}", risk(chained.risk)));
        }
        for effect in &chained.effects {
            fact("", &format!("  {}", visible_line(effect, usize::MAX)));
        }
    }
    for tool in limited(&request.apart) {
        let apart = format!("{tool}, which your yes does not cover");
        fact("may call", &apart);
    }
    if let Some(http) = &request.request {
        let (url, more) = cut(&http.url, MAX_URL_CHARS);
        let url = visible_line(url, MAX_URL_CHARS);
        fact("sends", &format!("{} {url}", name(&http.method)));
        if more > 0 {
            fact("", &format!("NOT SHOWN: {more} characters of the URL"));
        }
    }
    out.push_str("  arguments\n");
    out.push_str(&arguments(&request.input, width));
    match request.request.as_ref().and_then(|http| http.body.as_ref()) {
        None => {}
        Some(body) if *body == request.input => out.push_str("  body: the arguments\n"),
        Some(body) => {
            out.push_str("  body\n");
            out.push_str(&arguments(body, width));
        }
    }
    let _ = write!(out, "Allow this call of {tool}? [y/N] ");
    out
}

/// Returns why a person is asked, without the reason that the effects already show.
fn reasons(request: &ApprovalRequest) -> Vec<String> {
    let changes = AskReason::Mutates.to_string();
    let reasons = request.reasons.iter();
    let said = |reason: &&String| **reason == changes && !request.effects.is_empty();
    reasons.filter(|reason| !said(reason)).cloned().collect()
}

/// Describes the hosts and regions that a driver declares.
fn reach(hosts: &[String], regions: &[String]) -> String {
    let line = match hosts {
        [] => "  reaches no host".to_owned(),
        hosts => {
            let (hosts, regions) = (hosts.join(", "), regions.join(", "));
            format!("  reaches {hosts} in the region {regions}")
        }
    };
    visible_line(&line, usize::MAX)
}

/// The meaning of a `risk_level` in AIP-14.
fn risk(level: u8) -> &'static str {
    match level {
        0 => "0 of 3",
        1 => "1 of 3: changes within bounds",
        2 => "2 of 3: effects outside",
        _ => "3 of 3: can't be undone",
    }
}

/// Returns the first items of a list. If there are more, the last item states how many.
fn limited(items: &[String]) -> Vec<String> {
    let mut shown: Vec<String> = items
        .iter()
        .take(MAX_ITEMS)
        .map(|item| visible_line(item, MAX_NAME_CHARS))
        .collect();
    let more = items.len().saturating_sub(MAX_ITEMS);
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown
}

/// Returns the start of a text, and how many characters follow.
fn cut(text: &str, chars: usize) -> (&str, usize) {
    match text.char_indices().nth(chars) {
        None => (text, 0),
        Some((end, _)) => {
            let (shown, rest) = text.split_at(end);
            (shown, rest.chars().count())
        }
    }
}

/// Writes arguments or a body as JSON, every line behind a bar, and states how much was cut.
fn arguments(input: &Value, width: usize) -> String {
    let mut cut = Cut::default();
    let short = cut.value(input);
    let json = serde_json::to_string_pretty(&short).unwrap_or_default();
    let lines: Vec<String> = visible_json(&json)
        .lines()
        .flat_map(|line| pieces(line, width.saturating_sub(ARGUMENT_PREFIX.len() + 1)))
        .collect();
    let mut out = String::new();
    for line in lines.iter().take(MAX_ARGUMENT_LINES) {
        let _ = writeln!(out, "{ARGUMENT_PREFIX}{line}");
    }
    let more = lines.len().saturating_sub(MAX_ARGUMENT_LINES);
    let mut left_out = Vec::new();
    if more > 0 {
        left_out.push(format!("{more} lines at the end"));
    }
    let Cut { texts, characters } = cut;
    if texts > 0 {
        left_out.push(format!("{characters} characters of {texts} long text(s)"));
    }
    if !left_out.is_empty() {
        let _ = writeln!(out, "  NOT SHOWN: {}", left_out.join(", and "));
    }
    out
}

/// Shortens texts, and counts the removed characters.
#[derive(Default)]
struct Cut {
    texts: usize,
    characters: usize,
}

impl Cut {
    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            // Keys are not shortened, since two keys must not become equal.
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (key.clone(), self.value(value)))
                .collect(),
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let (shown, more) = cut(text, MAX_TEXT_CHARS);
        if more == 0 {
            return text.to_owned();
        }
        self.texts += 1;
        self.characters += more;
        format!("{shown}…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_argument_starts_a_line_of_the_screen() {
        let forged = format!("{}\nAllow this call? [y/N] \u{1b}[2J\r", "x".repeat(200));
        let wide = "字".repeat(300);
        let shown = arguments(&json!({ "text": forged, "wide": wide, "\u{202e}k": 1 }), 40);
        for line in shown.lines() {
            assert!(line.starts_with(ARGUMENT_PREFIX), "{line:?}");
            let columns: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
            assert!(columns < 40, "{columns} in {line:?}");
        }
        assert!(!shown.contains(['\u{1b}', '\r', '\u{202e}']), "{shown:?}");
    }

    #[test]
    fn what_is_cut_is_counted() {
        let long = json!({ "text": "a".repeat(MAX_TEXT_CHARS + 7), "list": vec![1; 500] });
        let shown = arguments(&long, 80);
        assert!(shown.lines().count() <= MAX_ARGUMENT_LINES + 1, "{shown}");
        let last = shown.lines().last().unwrap();
        assert!(last.starts_with("  NOT SHOWN: "), "{last}");
        assert!(last.contains("7 characters of 1 long text(s)"), "{last}");
        assert!(last.contains("lines at the end"), "{last}");
        let whole = arguments(&json!({ "text": "short" }), 80);
        assert!(!whole.contains("NOT SHOWN"), "{whole}");
    }

    #[test]
    fn names_that_begin_alike_are_all_shown() {
        let names = [
            "a".repeat(MAX_TEXT_CHARS) + "1",
            "a".repeat(MAX_TEXT_CHARS) + "2",
        ];
        let value = json!({ names[0].as_str(): 1, names[1].as_str(): 2 });
        let shown = arguments(&value, 2000);
        assert!(names.iter().all(|name| shown.contains(name)), "{shown}");
    }
}

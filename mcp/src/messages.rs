//! Estimates the memory that a message takes, before the message is parsed. rmcp converts every
//! value several times, and takes hundreds of bytes for a `0`. The estimate scans the text once.

use rmcp::model::RequestId;
use serde_json::value::RawValue;
use toolward_support::report::codes;

/// The most bytes of a message. A tool's input may have 1 MiB. The rest is room for escapes, and
/// for answers and state that come with the input.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2 << 20;

/// The limits of a message: bytes and values.
pub(crate) type MessageSize = (usize, usize);
/// The limits of a tool call or a list of messages. A tool's input may have 250,000 values; the
/// rest is room for the message around it.
pub(crate) const LARGE: MessageSize = (MAX_MESSAGE_BYTES, 260_000);
/// The limits of any other message. The answer to a form fits, since the host takes at most 64 KiB.
pub(crate) const SMALL: MessageSize = (1 << 20, 20_000);

/// The most messages of a list.
pub(crate) const MAX_BATCH_MESSAGES: usize = 256;
/// The most bytes of answers that are stored until a list can be answered. An answer beyond this
/// limit is replaced by an error.
pub(crate) const MAX_BATCH_ANSWERS_BYTES: usize = 32 << 20;

/// The deepest nesting of arrays and objects. A tool's input may have 64 levels; the rest is room
/// for the message around it.
const MAX_DEPTH: usize = 72;

/// The most memory that a byte of text takes while it is parsed and handled. This and the next
/// constants are measured values with a margin, in bytes.
const BYTE_COST: usize = 8;
/// The most memory of a value, and of a member's name.
const VALUE_COST: usize = 256;
/// The additional memory of an array or object that is not empty.
const ARRAY_COST: usize = 512;
const OBJECT_COST: usize = 1024;

codes! {
    /// Why a message is not parsed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Flaw: Error {
        Bytes(most: usize) = "message-too-large", "a message of MCP has more bytes than the server reads",
            ("expected a message of at most {most} bytes");
        Values(most: usize) = "message-too-complex",
            "a message of MCP has more values, or more deeply nested ones, than the server reads",
            ("expected a message of at most {most} values, found more");
        Depth(most: usize) = "message-too-complex", ("expected at most {most} nested arrays and objects, found more");
    }
}

/// The members of a message, or of its parameters, that a scan finds.
const MEMBERS: [&str; 5] = ["id", "method", "params", "arguments", "_meta"];

/// The shape of a JSON text. For other text it is undefined.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan<'t> {
    bytes: usize,
    values: usize,
    depth: usize,
    cost: usize,
    /// The values of [`MEMBERS`]. If the text is cut off, members after the cut are missing.
    members: [Option<&'t [u8]>; MEMBERS.len()],
    /// Whether it has a member that only answers have, even if the member's value is cut off.
    answers: bool,
}

/// Scans the text of a message.
pub(crate) fn scan(text: &[u8]) -> Scan<'_> {
    let mut scan = Scan {
        bytes: text.len(),
        values: 1,
        cost: VALUE_COST.saturating_add(text.len().saturating_mul(BYTE_COST)),
        ..Scan::default()
    };
    let mut depth = 0_usize;
    // The memory of the array or object that was opened last, if it is empty so far.
    let mut opened = None;
    // In the outermost object: the string that ended last, the name of the member whose value is
    // being read, and the value's start.
    let (mut last, mut member, mut start): (&[u8], &[u8], usize) = (&[], &[], 0);
    let mut at = 0_usize;
    while let Some(&byte) = text.get(at) {
        let here = at;
        at = at.saturating_add(1);
        if byte.is_ascii_whitespace() {
            continue;
        }
        if matches!(byte, b']' | b'}') {
            opened = None;
        } else if let Some(cost) = opened.take() {
            scan.values = scan.values.saturating_add(1);
            scan.takes(cost);
        }
        match byte {
            b'"' => {
                at = end_of_text(text, at);
                if depth == 1 {
                    last = text.get(here..at).unwrap_or_default();
                }
            }
            b'[' | b'{' => {
                depth = depth.saturating_add(1);
                scan.depth = scan.depth.max(depth);
                opened = Some(match byte {
                    b'[' => ARRAY_COST.saturating_add(VALUE_COST),
                    _ => OBJECT_COST.saturating_add(VALUE_COST),
                });
            }
            b':' => {
                scan.takes(VALUE_COST);
                if depth == 1 {
                    (member, start) = (last, at);
                    scan.answers |= is(member, "result") || is(member, "error");
                }
            }
            b',' | b']' | b'}' => {
                if depth == 1 {
                    let known = MEMBERS.iter().position(|name| is(member, name));
                    if let Some(value) = known.and_then(|known| scan.members.get_mut(known)) {
                        *value = text.get(start..here).map(<[u8]>::trim_ascii);
                    }
                    member = &[];
                }
                if byte == b',' {
                    scan.values = scan.values.saturating_add(1);
                    scan.takes(VALUE_COST);
                } else {
                    depth = depth.saturating_sub(1);
                }
            }
            _ => {}
        }
    }
    scan
}

/// Whether a JSON text is a list.
pub(crate) fn is_list(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Returns the text of each item of a list; `None` for text that is not a list in JSON.
pub(crate) fn items(text: &[u8]) -> Option<Vec<&[u8]>> {
    let items: Vec<&RawValue> = serde_json::from_slice(text).ok()?;
    Some(items.iter().map(|item| item.get().as_bytes()).collect())
}

/// Whether a member's name, as written in the text, is this one.
fn is(written: &[u8], name: &str) -> bool {
    // Each character of the name may be written as an escape of six characters.
    let short = written.len() <= name.len().saturating_mul(6).saturating_add(2);
    let escaped = short && written.contains(&b'\\');
    match escaped {
        true => serde_json::from_slice::<String>(written).is_ok_and(|written| written == name),
        false => matches!(written, [b'"', inside @ .., b'"'] if inside == name.as_bytes()),
    }
}

/// Returns the end of a JSON string, after its closing quote. `at` is the place after the opening
/// quote.
fn end_of_text(text: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = text.get(at) {
        at = at.saturating_add(match byte {
            b'\\' => 2,
            _ => 1,
        });
        if byte == b'"' {
            break;
        }
    }
    at
}

impl<'t> Scan<'t> {
    /// Returns the text of the value of one of [`MEMBERS`]. If the member occurs several times, the
    /// last one counts.
    pub(crate) fn member(&self, name: &str) -> Option<&'t [u8]> {
        let mut members = MEMBERS.iter().zip(self.members);
        members.find_map(|(known, value)| value.filter(|_| *known == name))
    }

    fn takes(&mut self, bytes: usize) {
        self.cost = self.cost.saturating_add(bytes);
    }

    /// Returns the name of its method as written in the text, with any escapes. Empty if it has
    /// none.
    pub(crate) fn method(&self) -> &'t [u8] {
        match self.member("method") {
            Some([b'"', name @ .., b'"']) => name,
            _ => b"",
        }
    }

    /// Whether it has no `method`, like each answer to a request of the server.
    pub(crate) fn is_answer(&self) -> bool {
        self.member("method").is_none()
    }

    /// Whether it has a member that only answers have, and no `method`. That is enough to classify
    /// a truncated text.
    pub(crate) fn is_seen_to_answer(&self) -> bool {
        self.answers && self.is_answer()
    }

    /// Whether it has an id, even one that can't be read.
    pub(crate) fn has_id(&self) -> bool {
        self.member("id").is_some()
    }

    /// The id as rmcp reads it, if it can be read.
    pub(crate) fn id(&self) -> Option<RequestId> {
        serde_json::from_slice(self.member("id")?).ok()
    }

    /// Returns the id if the message is a request. An answer's id is left out, since it is one of
    /// the server's ids.
    pub(crate) fn request_id(&self) -> Option<RequestId> {
        (!self.is_answer()).then(|| self.id()).flatten()
    }

    /// Returns the most memory that the message takes while it is parsed and handled, in bytes.
    ///
    /// # Errors
    ///
    /// If it exceeds a limit.
    pub(crate) fn cost(&self, (bytes, values): MessageSize) -> Result<usize, Flaw> {
        if self.bytes > bytes {
            Err(Flaw::Bytes(bytes))
        } else if self.values > values {
            Err(Flaw::Values(values))
        } else if self.depth > MAX_DEPTH {
            Err(Flaw::Depth(MAX_DEPTH))
        } else {
            Ok(self.cost)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn counted(value: &Value) -> usize {
        match value {
            Value::Array(items) => items.iter().map(counted).sum::<usize>() + 1,
            Value::Object(members) => members.values().map(counted).sum::<usize>() + 1,
            _ => 1,
        }
    }

    #[test]
    fn values_and_levels_are_counted_whatever_stands_in_texts() {
        for (text, depth) in [
            ("0", 0),
            ("\"[,{:\\\"[,\"", 0),
            ("[]", 1),
            (" [ ] ", 1),
            ("[0]", 1),
            ("[[],{},[[]],\"]\",-1e3,true , null]", 3),
            ("{\"a\":{\"b,\":[1,2,{\"c\\\\\":[]}]},\"d\": \"}\"}", 5),
            ("{\"\":\"\\\\\",\"a\":[\"\\\"\",\"[\"]}", 2),
        ] {
            let scan = scan(text.as_bytes());
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                (scan.values, scan.depth),
                (counted(&value), depth),
                "{text}"
            );
        }
    }

    #[test]
    fn id_and_method_are_read_from_the_top_level_alone_and_from_what_is_cut_off() {
        let of = |text: &str| {
            let scan = scan(text.as_bytes());
            (scan.id(), scan.method() == b"tools/call", scan.is_answer())
        };
        let text = |id: &str| Some(RequestId::String(id.into()));
        let call = r#"{"jsonrpc":"2.0","id" : 7 ,"method":"tools/call","params":{"id":8,"#;
        assert_eq!(of(call), (Some(RequestId::Number(7)), true, false));
        assert_eq!(
            of(r#"{"params":{"method":"tools/call"},"id":"a\"\u00e9","method":"x"}"#),
            (text("a\"é"), false, false)
        );
        assert!(of(r#"{"id":7,"result":{"id":1}}"#).2);
        for seven in ["7.0", "70e-1", "7"] {
            let text = format!(r#"{{"\u0069d":{seven},"meth\u006fd":"tools/call"}}"#);
            assert_eq!(of(&text), (Some(RequestId::Number(7)), true, false));
        }
        let seen = |text: &str| scan(text.as_bytes()).is_seen_to_answer();
        assert!(seen(r#"{"id":7,"result":{"a"#) && seen(r#"{"\u0065rror":"#));
        assert!(!seen(r#"{"id":7,"params":{"result":1,"#));
        assert!(!seen(r#"{"id":7,"method":"x","result":1,"#));
        for none in [
            r#"{"id":{"id":1}}"#,
            r#"{"id":1"#,
            r#"{"id":1.5}"#,
            r#"{"idx":1,"\u0069\u0064\u0064":2}"#,
            "[7]",
            "\"id\"",
            "{",
        ] {
            assert_eq!(of(none).0, None, "{none}");
        }
    }

    #[test]
    fn the_items_of_a_list_are_found_whatever_is_in_them() {
        let of = |text: &str| -> Vec<String> {
            let items = items(text.as_bytes()).unwrap().into_iter();
            items
                .map(|item| String::from_utf8(item.to_vec()).unwrap())
                .collect()
        };
        assert_eq!(of(" [ ] "), Vec::<String>::new());
        let text = r#" [{"a":[1,{"b":"],["}]} , "x,]", 7,[[]] ] "#;
        let expected = [r#"{"a":[1,{"b":"],["}]}"#, r#""x,]""#, "7", "[[]]"];
        assert_eq!(of(text), expected);
        assert!(is_list(b" \n[") && !is_list(b"{[") && !is_list(b""));
    }

    #[test]
    fn what_is_no_json_is_looked_at_to_its_end() {
        for text in [
            "]]]}}}",
            "\"\\",
            "{{{{",
            ":::,,,",
            "[\"",
            "\\\"",
            "\u{feff}{}",
        ] {
            let _ = scan(text.as_bytes());
        }
        let _ = scan(&[0xff; 100]);
    }

    #[test]
    fn all_that_a_tool_may_be_given_may_be_sent() {
        let limits = toolward_contract::json::Limits::default();
        let around = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":"#;
        let zeros = format!(
            "{around}{{\"a\":{}}}}}}}",
            json!(vec![0; limits.values - 2])
        );
        let deep = limits.depth;
        let nested = format!("{around}{}{}}}}}", "[".repeat(deep), "]".repeat(deep));
        let long = format!("{around}\"{}\"}}}}", "\\n".repeat(limits.bytes / 2));
        for text in [zeros, nested, long] {
            let scan = scan(text.as_bytes());
            assert_eq!(scan.method(), b"tools/call");
            assert!(scan.cost(LARGE).is_ok(), "{text:.99}");
            // No more than half of what all share.
            assert!(scan.cost < crate::http::HttpLimits::default().memory / 2);
        }
    }

    #[test]
    fn what_takes_too_much_is_refused_and_more_of_it_for_a_call() {
        let many = |count: usize| format!("{{\"a\":{}}}", json!(vec![0; count]));
        let cost = |text: &str, size| scan(text.as_bytes()).cost(size);
        for size in [SMALL, LARGE] {
            let (_, values) = size;
            assert!(cost(&many(values - 2), size).is_ok());
            assert_eq!(cost(&many(values - 1), size), Err(Flaw::Values(values)));
        }
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(cost(&nested(MAX_DEPTH), SMALL).is_ok());
        assert_eq!(
            cost(&nested(MAX_DEPTH + 1), LARGE),
            Err(Flaw::Depth(MAX_DEPTH))
        );
        let (bytes, _) = SMALL;
        let long = format!("\"{}\"", "x".repeat(bytes));
        assert_eq!(cost(&long, SMALL), Err(Flaw::Bytes(bytes)));
        assert!(cost(&long, LARGE).is_ok());
    }
}

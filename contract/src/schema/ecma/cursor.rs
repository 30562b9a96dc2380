//! Walks over a pattern. Knows of its syntax what is read in several places.

#[derive(Clone)]
pub(super) struct Cursor<'p> {
    rest: &'p str,
}

impl<'p> Cursor<'p> {
    pub(super) fn new(pattern: &'p str) -> Self {
        Self { rest: pattern }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut rest = self.rest.chars();
        let c = rest.next();
        self.rest = rest.as_str();
        c
    }

    /// What lies between this place and a later one.
    pub(super) fn up_to(&self, later: &Self) -> &'p str {
        let length = self.rest.len().saturating_sub(later.rest.len());
        self.rest.get(..length).unwrap_or_default()
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// What comes before `end`, which is read as well.
    pub(super) fn until(&mut self, end: char) -> Option<&'p str> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text)
    }

    /// So many hexadecimal digits.
    pub(super) fn hex(&mut self, digits: usize) -> Option<u32> {
        let (text, rest) = self.rest.split_at_checked(digits)?;
        let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u32::from_str_radix(text, 16).ok().filter(|_| plain)?;
        self.rest = rest;
        Some(value)
    }

    /// `{n}`, `{n,}` or `{n,m}` after its `{`, which is read. Nothing more is read if it is none.
    pub(super) fn braces(&mut self) -> Option<&'p str> {
        let (inner, rest) = self.rest.split_once('}')?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
        if !number(least) || !(most.is_empty() || number(most)) {
            return None;
        }
        let braces = self.rest.get(..=inner.len())?;
        self.rest = rest;
        Some(braces)
    }

    /// The name of a group, whose `<` is read.
    pub(super) fn group_name(&mut self) -> Result<&'p str, String> {
        let name = self.until('>').unwrap_or_default();
        let fits = |c: char| c.is_alphanumeric() || "$_\\{}\u{200C}\u{200D}".contains(c);
        let first = name.chars().next();
        if first.is_none_or(char::is_numeric) || !name.chars().all(fits) {
            return Err("a group with an invalid name".to_owned());
        }
        Ok(name)
    }
}

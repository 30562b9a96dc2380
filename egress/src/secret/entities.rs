//! The names that HTML has for ASCII characters (HTML Standard, section 13.5).

use std::ops::Range;

/// One name, without `&` and `;`.
pub(crate) struct Entity {
    pub(crate) name: &'static [u8],
    pub(crate) byte: u8,
    /// Whether browsers read it without `;` too.
    pub(crate) bare: bool,
}

const fn named(name: &'static str, byte: u8) -> Entity {
    let (name, bare) = (name.as_bytes(), false);
    Entity { name, byte, bare }
}

const fn bare(name: &'static str, byte: u8) -> Entity {
    let bare = true;
    Entity {
        bare,
        ..named(name, byte)
    }
}

/// All of them, sorted.
pub(crate) static ENTITIES: &[Entity] = &[
    bare("AMP", b'&'),
    named("DiacriticalGrave", b'`'),
    bare("GT", b'>'),
    named("Hat", b'^'),
    bare("LT", b'<'),
    named("NewLine", b'\n'),
    bare("QUOT", b'"'),
    named("Tab", b'\t'),
    named("UnderBar", b'_'),
    named("VerticalLine", b'|'),
    bare("amp", b'&'),
    named("apos", b'\''),
    named("ast", b'*'),
    named("bsol", b'\\'),
    named("colon", b':'),
    named("comma", b','),
    named("commat", b'@'),
    named("dollar", b'$'),
    named("equals", b'='),
    named("excl", b'!'),
    named("grave", b'`'),
    bare("gt", b'>'),
    named("lbrace", b'{'),
    named("lbrack", b'['),
    named("lcub", b'{'),
    named("lowbar", b'_'),
    named("lpar", b'('),
    named("lsqb", b'['),
    bare("lt", b'<'),
    named("midast", b'*'),
    named("num", b'#'),
    named("percnt", b'%'),
    named("period", b'.'),
    named("plus", b'+'),
    named("quest", b'?'),
    bare("quot", b'"'),
    named("rbrace", b'}'),
    named("rbrack", b']'),
    named("rcub", b'}'),
    named("rpar", b')'),
    named("rsqb", b']'),
    named("semi", b';'),
    named("sol", b'/'),
    named("verbar", b'|'),
    named("vert", b'|'),
];

/// By a first letter: where its names start and end.
#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
static FIRST: [(u8, u8); 128] = {
    let mut first = [(0, 0); 128];
    let mut at = 0;
    while at < ENTITIES.len() {
        let letter = ENTITIES[at].name[0] as usize;
        if first[letter].1 == 0 {
            first[letter].0 = at as u8;
        }
        at += 1;
        first[letter].1 = at as u8;
    }
    first
};

/// Those of `range` whose name has `letter` at `at`.
#[inline]
pub(super) fn starting(letter: u8, at: usize, range: Range<usize>) -> Range<usize> {
    if at == 0 {
        let (start, end) = FIRST.get(usize::from(letter)).copied().unwrap_or_default();
        return usize::from(start)..usize::from(end);
    }
    let names = ENTITIES.get(range.clone()).unwrap_or_default();
    let own = |entity: &Entity| entity.name.get(at).copied();
    let before = names.iter().take_while(|name| own(name) < Some(letter));
    let start = range.start + before.count();
    let names = ENTITIES.get(start..range.end).unwrap_or_default();
    let those = names.iter().take_while(|name| own(name) == Some(letter));
    start..start + those.count()
}

/// The names with the first letter of these.
#[inline]
fn alike(letters: &[u8]) -> &'static [Entity] {
    let first = letters.first().copied().unwrap_or_default();
    let names = ENTITIES.get(starting(first, 0, 0..ENTITIES.len()));
    names.unwrap_or_default()
}

/// What a whole name stands for.
#[inline]
pub(super) fn find(name: &[u8]) -> Option<u8> {
    let found = alike(name).iter().find(|entity| entity.name == name)?;
    Some(found.byte)
}

/// The name at the start of `letters` that HTML knows without `;`, for compatibility.
#[inline]
pub(super) fn find_bare(letters: &[u8]) -> Option<&'static Entity> {
    let starts = |entity: &&Entity| entity.bare && letters.starts_with(entity.name);
    alike(letters).iter().find(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_sorted() {
        assert!(ENTITIES.is_sorted_by(|a, b| a.name < b.name));
    }
}

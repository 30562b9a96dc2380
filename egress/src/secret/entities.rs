//! The names that HTML has for ASCII characters (HTML Standard, section 13.5).

use std::ops::Range;

/// One name, without `&` and `;`.
pub(crate) struct Entity {
    pub(crate) name: &'static [u8],
    pub(crate) byte: u8,
    /// Whether browsers also accept it without `;`.
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

/// All names, sorted.
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

/// The entities in `range` whose name has `letter` at `at`.
pub(super) fn starting(letter: u8, at: usize, range: Range<usize>) -> Range<usize> {
    let names = ENTITIES.get(range.clone()).unwrap_or_default();
    let own = |entity: &Entity| entity.name.get(at).copied();
    let before = names.iter().take_while(|name| own(name) < Some(letter));
    let start = range.start + before.count();
    let names = ENTITIES.get(start..range.end).unwrap_or_default();
    let those = names.iter().take_while(|name| own(name) == Some(letter));
    start..start + those.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_sorted() {
        assert!(ENTITIES.is_sorted_by(|a, b| a.name < b.name));
    }
}

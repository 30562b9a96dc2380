//! SPDX licence expressions: `AND` binds tighter than `OR`; the `/` of older
//! manifests means `OR`.

/// Whether the licences that `allowed` accepts satisfy the expression. An expression that can't be
/// parsed is not satisfied.
pub(crate) fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader {
        words: &words,
        allowed,
    };
    reader.any_of() == Some(true) && reader.words.is_empty()
}

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Reader<'a> {
    fn any_of(&mut self) -> Option<bool> {
        let mut result = self.all_of()?;
        while self.take("OR") {
            result |= self.all_of()?;
        }
        Some(result)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut result = self.one()?;
        while self.take("AND") {
            result &= self.one()?;
        }
        Some(result)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let inner = self.any_of()?;
            return self.take(")").then_some(inner);
        }
        let name = self.next()?;
        if ["OR", "AND", "WITH", ")"].contains(&name) {
            return None;
        }
        if self.take("WITH") {
            let exception = self.next()?;
            return Some((self.allowed)(&format!("{name} WITH {exception}")));
        }
        Some((self.allowed)(name))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.next();
        }
        found
    }

    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::satisfied;

    fn with_mit_and_isc(expression: &str) -> bool {
        satisfied(expression, &|name| {
            ["MIT", "ISC", "A WITH e"].contains(&name)
        })
    }

    #[test]
    fn one_side_of_an_or_suffices_and_both_of_an_and() {
        for fine in [
            "MIT",
            "GPL OR MIT",
            "GPL/MIT",
            "(GPL OR MIT) AND ISC",
            "A WITH e AND ISC",
            "GPL AND X OR MIT",
        ] {
            assert!(with_mit_and_isc(fine), "{fine}");
        }
        for refused in ["GPL", "GPL AND MIT", "MIT AND (GPL OR X)", "A", "A WITH f"] {
            assert!(!with_mit_and_isc(refused), "{refused}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for broken in [
            "",
            "MIT OR",
            "(MIT",
            "MIT)",
            "MIT ISC",
            "OR MIT",
            "MIT WITH",
            "none named",
        ] {
            assert!(!with_mit_and_isc(broken), "{broken}");
        }
    }
}

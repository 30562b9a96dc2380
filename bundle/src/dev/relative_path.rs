//! Rules for the paths that `bundle.toml` gives. The rules for what lies inside
//! a signed bundle are `toolward-signing`'s.

/// Checks a path below the bundle's directory: `/` between segments, none of
/// them empty, `.`, `..`, hidden, or with a character that some file system
/// treats specially.
pub(crate) fn check_relative(path: &str) -> Result<(), String> {
    for segment in path.split('/') {
        if segment.is_empty() {
            return Err("it is empty, absolute, or has an empty segment".to_owned());
        }
        if segment.starts_with('.') {
            return Err(format!("the segment {segment:?} starts with a dot"));
        }
        if let Some(bad) = segment
            .chars()
            .find(|c| !matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.'))
        {
            return Err(format!("it contains {bad:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_bundle() {
        for good in ["driver", "drivers/x/driver.wasm"] {
            assert_eq!(check_relative(good), Ok(()), "{good}");
        }
        for bad in [
            "", "/etc", "../x", "a/../b", "a//b", "a/", ".", "C:x", "a\\b",
        ] {
            assert!(check_relative(bad).is_err(), "{bad}");
        }
    }
}

//! `pictures`: screens of the terminal for README and book, drawn from the golden files of the tests. A picture holds
//! what its file has, and nothing else.

mod screen;
mod svg;

use std::path::Path;

use crate::{Outcome, repository};

const SCREENS: &str = "tests/golden/screens";
const PICTURES: &str = "docs/src/pictures";

/// Columns of the terminals whose screens are drawn.
const COLUMNS: usize = 80;

/// A picture, of a screen or of a part of one.
struct Picture {
    /// Of the golden file and of the picture.
    name: &'static str,
    /// How the first line begins that is no longer drawn; the whole screen has none.
    until: Option<&'static str>,
}

const ALL: [Picture; 3] = [
    Picture {
        name: "demo",
        until: Some("To give an agent"),
    },
    Picture {
        name: "approval",
        until: None,
    },
    Picture {
        name: "held-update",
        until: None,
    },
];

/// Draws all pictures, or compares them with those that are there.
pub(crate) fn run(check: bool) -> Outcome {
    let root = repository::root()?;
    let folder = root.join(PICTURES);
    let mut stale = Vec::new();
    for picture in &ALL {
        let path = folder.join(format!("{}.svg", picture.name));
        let drawn = picture.draw(&root)?;
        if check {
            if std::fs::read_to_string(&path).ok().as_deref() != Some(&drawn) {
                stale.push(format!("{} is stale", path.display()));
            }
            continue;
        }
        let written = std::fs::create_dir_all(&folder);
        let written = written.and_then(|()| std::fs::write(&path, drawn));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for path in repository::entries(&folder)? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        // Those curves are of `bench/growth_page.py`.
        if !name.starts_with("growth-") && ALL.iter().all(|picture| picture.name != name) {
            stale.push(format!("{} is not drawn by this chore", path.display()));
        }
    }
    if !stale.is_empty() {
        return Err(format!(
            "{}\nrun `cargo xtask pictures`, and commit what it writes",
            stale.join("\n")
        ));
    }
    println!("{PICTURES}: {} pictures", ALL.len());
    Ok(())
}

impl Picture {
    fn draw(&self, root: &Path) -> Outcome<String> {
        let file = format!("{SCREENS}/{}-{COLUMNS}-colours.txt", self.name);
        let text = repository::read(&root.join(&file))?;
        let describe = |error| format!("{file}: {error}");
        let part = part(&text, self.until).map_err(describe)?;
        let lines = screen::lines(part, COLUMNS).map_err(describe)?;
        Ok(svg::drawn(&lines, COLUMNS))
    }
}

/// The lines before the one that begins so, without empty ones at the end.
fn part<'a>(text: &'a str, until: Option<&str>) -> Outcome<&'a str> {
    let Some(until) = until else {
        return Ok(text);
    };
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        if screen::plain(line).starts_with(until) {
            let before = text.get(..length).unwrap_or_default();
            return Ok(before.trim_end_matches('\n'));
        }
        length += line.len();
    }
    Err(format!("no line begins with {until:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_before_a_line() {
        let text = "a\n\n\u{241b}[1mb1\u{241b}[0m\nc\n";
        assert_eq!(part(text, Some("b")).unwrap(), "a");
        assert_eq!(part(text, None).unwrap(), text);
        part(text, Some("x")).unwrap_err();
    }
}

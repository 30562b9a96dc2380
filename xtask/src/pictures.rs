//! `pictures`: screens of the terminal for README and book, drawn from the golden files of the tests, and curves,
//! drawn from what `growth` measured. A picture holds what its file has, and nothing else.

pub(crate) mod chart;
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
    /// How the first line and the last one begin; the whole screen has none.
    part: Option<(&'static str, &'static str)>,
}

const ALL: [Picture; 3] = [
    Picture {
        name: "demo",
        part: Some(("The tool demo.thief may", "  stopped: toolward:memory")),
    },
    Picture {
        name: "approval",
        part: Some(("notes.append@1.0.0 by", "Allow this call")),
    },
    Picture {
        name: "held-update",
        part: None,
    },
];

/// Draws all pictures, or compares them with those that are there.
pub(crate) fn run(check: bool) -> Outcome {
    let root = repository::root()?;
    let folder = root.join(PICTURES);
    let mut stale = Vec::new();
    let mut pictures = crate::growth::pictures(&root)?;
    for picture in &ALL {
        pictures.push((picture.name.to_owned(), picture.draw(&root)?));
    }
    for (name, drawn) in &pictures {
        let path = folder.join(format!("{name}.svg"));
        if check {
            if std::fs::read_to_string(&path).ok().as_deref() != Some(drawn) {
                stale.push(format!("{} is stale", path.display()));
            }
            continue;
        }
        let written = std::fs::create_dir_all(&folder);
        let written = written.and_then(|()| std::fs::write(&path, drawn));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for path in repository::entries(&folder)? {
        let known = |(name, _): &(String, String)| path.ends_with(format!("{name}.svg"));
        if !pictures.iter().any(known) {
            stale.push(format!("{} is not drawn by this chore", path.display()));
        }
    }
    if !stale.is_empty() {
        return Err(format!(
            "{}\nrun `cargo xtask pictures`, and commit what it writes",
            stale.join("\n")
        ));
    }
    println!("{PICTURES}: {} pictures", pictures.len());
    Ok(())
}

impl Picture {
    fn draw(&self, root: &Path) -> Outcome<String> {
        let file = format!("{SCREENS}/{}-{COLUMNS}-colours.txt", self.name);
        let text = repository::read(&root.join(&file))?;
        let describe = |error| format!("{file}: {error}");
        let part = part(&text, self.part).map_err(describe)?;
        let lines = screen::lines(&part, COLUMNS).map_err(describe)?;
        Ok(svg::drawn(&lines, COLUMNS))
    }
}

/// The lines from the one that begins so to the one that ends it.
fn part(text: &str, part: Option<(&str, &str)>) -> Outcome<String> {
    let Some((first, last)) = part else {
        return Ok(text.to_owned());
    };
    let lines = || text.lines().enumerate();
    let begins = |(_, line): &(usize, &str), with: &str| screen::plain(line).starts_with(with);
    let start = lines().find(|line| begins(line, first));
    let (start, _) = start.ok_or_else(|| format!("no line begins with {first:?}"))?;
    let end = lines().skip(start).find(|line| begins(line, last));
    let (end, _) = end.ok_or_else(|| format!("no later line begins with {last:?}"))?;
    let lines = lines().skip(start).take(end + 1 - start);
    Ok(lines.map(|(_, line)| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_ends() {
        let text = "a\n\u{241b}[1mb1\u{241b}[0m\nc\nd2\ne\n";
        assert_eq!(
            part(text, Some(("b", "d"))).unwrap(),
            "\u{241b}[1mb1\u{241b}[0m\nc\nd2\n"
        );
        assert_eq!(part(text, None).unwrap(), text);
        part(text, Some(("x", "d"))).unwrap_err();
        part(text, Some(("b", "a"))).unwrap_err();
    }
}

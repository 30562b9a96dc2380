//! `book`: checks the documentation in `docs/` and renders its pages. Rendering needs a separate
//! package; checking needs none.

mod links;
mod shown;

use crate::{Outcome, process, repository};

/// Checks the book, and, unless `check` is set, renders it to `target/book`.
pub(crate) fn run(check: bool) -> Outcome {
    let root = repository::root()?;
    let source = root.join("docs/src");
    let mut problems = links::problems(&source)?;
    problems.extend(shown::problems(&root, &source)?);
    if !problems.is_empty() {
        return Err(format!("the book:\n  {}", problems.join("\n  ")));
    }
    println!("docs: every page is in the summary, and every link leads somewhere");
    if check {
        return Ok(());
    }
    let target = repository::target()?;
    process::run(
        repository::cargo()
            .args(["run", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("xtask/book/Cargo.toml"))
            .arg("--target-dir")
            .arg(target.join("xtask-book"))
            .arg("--")
            .arg(root.join("docs"))
            .arg(target.join("book")),
    )?;
    println!(
        "the book is in {}",
        target.join("book/index.html").display()
    );
    Ok(())
}

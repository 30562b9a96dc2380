//! Compares README and the book with the code: the commands that they show are run, and each
//! snippet of Rust must be copied from a file that compiles. `cargo xtask docs --check` compares
//! generated pages and copied code.

mod architecture;
mod changes;
mod embedding;
mod errors;
mod expected;
mod faults;
mod links;
mod markdown;
mod paths;
mod session;
mod shell;
mod threats;
mod tutorial;

use std::path::{Path, PathBuf};

use markdown::{Block, Page};

use crate::support::outside::have;
use crate::support::{Machine, root};

/// Commands that no page's test runs, with the place that runs them.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "cargo xtask test",
        "whoever runs this test; it would start itself",
    ),
    (
        "toolward mcp config cursor --write --name toolward-demo -- $flags \\\n    --state-dir $demo/state --cache-dir $demo/cache",
        "the test of the tutorial, which types the answers",
    ),
];

/// Commands of other programs: how the command starts, and how to find out whether the program
/// exists. If the program is missing, its commands are left out.
const OUTSIDE: &[(&str, &str, &str)] = &[
    ("openssl ", "openssl", "version"),
    ("tar --zstd ", "zstd", "--version"),
];

/// All pages of the book, by their path below `docs/src`.
fn book() -> Vec<Page> {
    let mut files = Vec::new();
    collect(&root().join("docs/src"), &mut files);
    files.sort();
    files.iter().map(|file| Page::read(file)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

fn readme() -> Page {
    Page::read(&root().join("README.md"))
}

/// README and the pages next to it.
fn beside_readme() -> Vec<Page> {
    [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ]
    .iter()
    .map(|name| Page::read(&root().join(name)))
    .collect()
}

/// Runs the commands of pages. Each page starts with the machine as the previous one left it.
fn book_pages(names: &[&str]) {
    let machine = Machine::new();
    let records = records(&machine);
    for (place, name) in names.iter().enumerate() {
        let page = Page::read(&root().join("docs/src").join(name));
        let mut steps = session::runnable(&page);
        assert!(
            !steps.is_empty(),
            "{name} shows no command: remove its test"
        );
        steps.retain(|step| {
            OUTSIDE.iter().all(|(command, program, argument)| {
                !step.command.starts_with(command) || have(program, &[argument])
            })
        });
        let shell = match place {
            0 => shell::in_scratch(&machine),
            _ => shell::shell(&machine),
        };
        session::run(&page.path, &steps, shell, &records);
    }
}

/// The directory in which the runner stores the output of a page's commands.
fn records(machine: &Machine) -> PathBuf {
    let folder = machine.home().join(".page");
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// Makes one test for each page that shows commands, or for several pages that continue each other.
/// The tests run in parallel, and a failure names its page.
macro_rules! pages {
    ($($test:ident = $($page:literal)+;)*) => {
        const PAGES: &[&str] = &[$($($page),+),*];
        $(
            #[test]
            fn $test() {
                book_pages(&[$($page),+]);
            }
        )*
    };
}

pages! {
    the_page_on_three_tools_does_what_it_shows = "three-tools.md";
    the_publishers_pages_do_what_they_show = "publishers.md" "publisher-keys.md";
    the_page_on_languages_does_what_it_shows = "languages.md";
    the_page_on_importing_does_what_it_shows = "importing.md";
    the_operators_pages_do_what_they_show = "operators.md" "installing.md" "granting.md";
    the_examples_page_does_what_it_shows = "examples.md";
    the_page_on_serving_does_what_it_shows = "serve.md";
    the_page_on_serving_over_http_does_what_it_shows = "serve-http.md";
    the_results_page_does_what_it_shows = "results.md";
    the_page_on_aml_does_what_it_shows = "formats/aml.md";
    the_page_on_bundles_does_what_it_shows = "formats/bundle.md";
    the_page_on_signatures_does_what_it_shows = "formats/signature.md";
    the_page_on_contracts_does_what_it_shows = "formats/contract.md";
    the_page_on_drivers_does_what_it_shows = "formats/driver.md";
    the_page_on_the_index_does_what_it_shows = "formats/index.md";
    the_page_on_prompts_does_what_it_shows = "formats/prompts.md";
    the_page_on_agent_tool_does_what_it_shows = "specifications/agent-tool.md";
}

#[test]
fn the_readme_does_what_it_shows() {
    let page = readme();
    let machine = Machine::new();
    let shell = shell::in_checkout(&machine);
    session::run(
        &page.path,
        &session::runnable(&page),
        shell,
        &records(&machine),
    );
}

#[test]
fn the_readme_has_the_commands_of_the_main_job_and_of_the_tests() {
    let checks = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let first = checks.lines().find_map(|line| line.strip_prefix("step "));
    let readme = readme();
    let blocks = readme.blocks();
    let steps = || blocks.iter().flat_map(session::steps);
    assert!(steps().any(|step| Some(step.command.as_str()) == first));
    assert!(steps().any(|step| step.command.starts_with("cargo run -- serve ")));
}

#[test]
fn no_page_with_commands_is_forgotten() {
    let source = root().join("docs/src");
    let with_commands: Vec<String> = book()
        .iter()
        .filter(|page| !session::runnable(page).is_empty())
        .map(|page| {
            page.path
                .strip_prefix(&source)
                .unwrap()
                .display()
                .to_string()
        })
        .collect();
    let mut tested: Vec<String> = PAGES.iter().map(|page| (*page).to_owned()).collect();
    tested.sort();
    assert_eq!(with_commands, tested);
}

#[test]
fn commands_stand_in_console_blocks_and_those_not_run_are_listed() {
    for page in book().iter().chain(&beside_readme()) {
        for block in page.blocks() {
            let place = format!("{}:{}", page.path.display(), block.line);
            match block.language.as_str() {
                "console" => {}
                "console,norun" => {
                    for step in session::steps(&block) {
                        let listed = NOT_RUN.iter().any(|(command, _)| *command == step.command);
                        assert!(listed, "{place}: `{}` is run by nobody", step.command);
                    }
                }
                "sh" | "bash" | "shell" | "" => panic!("{place}: use `console` or `text`"),
                _ => {
                    let command = block.lines.iter().find(|line| line.starts_with("$ "));
                    assert!(
                        command.is_none(),
                        "{place}: a command outside of a console block"
                    );
                }
            }
        }
    }
}

/// Generated pages, made from tables in the code for looking things up.
const GENERATED: &[&str] = &["reference/commands.md", "reference/diagnostics.md"];

#[test]
fn each_page_has_fewer_than_400_lines() {
    let source = root().join("docs/src");
    for page in book().iter().chain(&beside_readme()) {
        let name = page.path.strip_prefix(&source).unwrap_or(&page.path);
        let name = name.to_str().unwrap();
        if GENERATED.contains(&name) {
            continue;
        }
        // Copied blocks do not count, since their length is that of their file.
        let blocks = page.blocks();
        let copied = blocks.iter().filter(|block| is_copied(page, block));
        let copied: usize = copied.map(|block| block.lines.len()).sum();
        let lines = page.text().lines().count() - copied;
        assert!(lines < 400, "{name}: {lines} lines; split it");
    }
}

/// The comment above a block that names the source of a copied block.
const SOURCE: &str = "<!-- from: ";

/// Whether a block is copied from a file, which `cargo xtask docs --check` compares.
fn is_copied(page: &Page, block: &Block) -> bool {
    // The fence is between the comment and the block.
    let above = block.line.checked_sub(3);
    let text = page.text();
    let above = above.and_then(|number| text.lines().nth(number));
    above.is_some_and(|line| line.starts_with(SOURCE))
}

#[test]
fn rust_in_the_book_is_copied_from_files_that_compile() {
    for page in book().iter().chain([&readme()]) {
        for block in page.blocks() {
            assert!(
                !block.language.starts_with("rust") || is_copied(page, &block),
                "{}:{}: copy a compiled file instead",
                page.path.display(),
                block.line
            );
        }
    }
}

#[test]
fn code_in_the_book_is_in_its_page() {
    let mut copied = 0;
    for page in book() {
        let text = page.text();
        assert!(
            !text.contains("{{#"),
            "{}: a code host shows no includes",
            page.path.display()
        );
        let blocks = page.blocks();
        let found = blocks.iter().filter(|block| is_copied(&page, block));
        let found = found.count();
        assert_eq!(
            found,
            text.lines().filter(|line| line.starts_with(SOURCE)).count(),
            "{}: a source without its block",
            page.path.display()
        );
        copied += found;
    }
    assert!(copied > 10, "only {copied} blocks are copied");
}

//! Renders a book: `xtask-book SOURCE TARGET`. Downloads nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use mdbook_driver::MDBook;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(source), Some(target)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: xtask-book SOURCE TARGET");
        return ExitCode::from(2);
    };
    let rendered = MDBook::load(source).and_then(|mut book| {
        book.config.build.build_dir = target;
        book.build()
    });
    match rendered {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:?}");
            ExitCode::FAILURE
        }
    }
}

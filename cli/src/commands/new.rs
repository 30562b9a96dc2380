//! `new`: makes a bundle to start from.

#[cfg(feature = "adapters")]
mod runloop;

use toolward_author::build::Plan;
use toolward_author::scaffold::{self, Language, ScaffoldOptions};

use super::build;
use crate::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory to make; it must not exist
    directory: PathBuf,

    /// The id of the bundle and its tool, such as text.greet
    ///
    /// [default: the directory's name]
    #[arg(long)]
    id: Option<String>,

    /// The publisher who will sign [default: local, until you write your name into bundle.toml]
    #[arg(long)]
    publisher: Option<String>,

    /// What the bundle is made of
    ///
    /// `bundle`: contracts and drivers. `runloop`: a tools.json of version 1, in Runloop's form,
    /// whose tools are HTTP requests.
    #[cfg(feature = "adapters")]
    #[arg(long, value_enum, default_value = "bundle")]
    format: Format,

    #[cfg(feature = "adapters")]
    #[command(flatten)]
    entry: runloop::Entry,

    /// The driver's language
    #[arg(long, value_name = "LANGUAGE", default_value = "rust", value_parser = language)]
    language: Language,
}

/// The publisher of a bundle whose author has named none.
const NO_PUBLISHER: &str = "local";

impl Arguments {
    /// Returns the publisher. If none was chosen, writes a note, since operators trust a publisher
    /// by its name.
    fn publisher(&self, context: &Context) -> String {
        self.publisher.clone().unwrap_or_else(|| {
            context.note(format!(
                "the publisher is `{NO_PUBLISHER}`: before you sign, write your name as `publisher` into bundle.toml, or give \
                 --publisher NAME"
            ));
            NO_PUBLISHER.to_owned()
        })
    }

    /// Reports the files that were made.
    fn report(&self, id: &str, files: &[String], context: &Context) -> Result {
        let directory = self.directory.display().to_string();
        let value = json!({ "ok": true, "directory": directory, "id": id, "files": files });
        context.result(&value, places(&self.directory, files))
    }
}

/// Lists files below a directory, one on each line.
pub(super) fn places(directory: &Path, files: &[impl AsRef<Path>]) -> String {
    let places = files
        .iter()
        .map(|file| directory.join(file).display().to_string());
    places.collect::<Vec<_>>().join("\n")
}

#[cfg(feature = "adapters")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Bundle,
    Runloop,
}

fn language(word: &str) -> std::result::Result<Language, String> {
    let words = || Language::all().map(Language::word).collect::<Vec<_>>();
    Language::named(word).ok_or_else(|| format!("expected one of {}", words().join(", ")))
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result {
    let directory = &arguments.directory;
    let name = || directory.file_name().unwrap_or_default();
    let id = arguments.id.clone();
    let id = id.unwrap_or_else(|| name().to_string_lossy().to_ascii_lowercase());
    #[cfg(feature = "adapters")]
    match arguments.format {
        Format::Runloop => return runloop::run(arguments, id, context),
        Format::Bundle => arguments.entry.unused()?,
    }
    let options = ScaffoldOptions {
        id,
        publisher: arguments.publisher(context),
        created: context.created()?,
        language: arguments.language,
    };
    let files = scaffold::create(directory, &options).map_err(failed)?;
    arguments.report(&options.id, &files, context)?;
    // The bundle's sources come from this command, so building them needs no consent.
    if let Ok(plan) = Plan::read(directory) {
        build::remember_consent(&plan, false, context);
    }
    let directory = directory.display();
    context.note(format!(
        "\nNext:\n  toolward check {directory}\n  toolward build {directory}\n  toolward test --dev {directory}"
    ));
    Ok(())
}

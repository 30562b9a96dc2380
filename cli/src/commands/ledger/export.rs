//! `ledger export`: writes rows as lines of JSON, or copies for other programs: tlog-tiles, frames
//! of Runloop, cassettes.

#[cfg(feature = "adapters")]
use toolward_adapters::frames::Attachments;
use toolward_ledger::{Reader, Selection};

#[cfg(feature = "adapters")]
use super::Found;
use super::{Rows, Which, json_of, no_row, rows};
use crate::prelude::*;

/// Rows that are read at once, and bytes that are written at once.
const PAGE_ROWS: u64 = 256;
const WRITE_BYTES: usize = 64 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write tlog-tiles instead, into this directory, which must not exist
    #[arg(long, value_name = "DIR", conflicts_with = "cassette")]
    tiles: Option<PathBuf>,

    /// Write the calls of installed attachments as Runloop's frames
    ///
    /// Attachments are the entries of tools.json, version 1. The frames contain the payloads that
    /// the ledger still has.
    #[cfg(feature = "adapters")]
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["cassette", "tiles"])]
    format: Option<Format>,

    /// Write calls with their payloads and proofs to this file
    ///
    /// For `serve --replay`. The file has mode 0600.
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,

    /// Put this principal's calls into the cassette: a name, `local` for you
    #[arg(long, value_name = "NAME", requires = "cassette")]
    principal: Option<String>,

    /// Put the calls of all principals into the cassette
    #[arg(long, requires = "cassette", conflicts_with = "principal")]
    all: bool,

    /// Write only rows FROM..TO [default: all]
    ///
    /// With --cassette or --format, write the calls that ended in these rows. --format also writes
    /// calls that started in these rows and have no end.
    #[arg(long, value_parser = rows, value_name = "FROM..TO", conflicts_with = "tiles")]
    rows: Option<Rows>,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

/// Other forms of an export.
#[cfg(feature = "adapters")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Runloop,
}

impl Arguments {
    pub(super) fn run(&self, context: &Context) -> Result {
        let found = self.which.find(context)?;
        let reader = found.reader(context)?;
        if let Some(directory) = &self.tiles {
            return tiles(directory, &reader, context);
        }
        if let Some(path) = &self.cassette {
            return self.cassette(path, &reader, context);
        }
        #[cfg(feature = "adapters")]
        if let Some(Format::Runloop) = self.format {
            return self.runloop(&found, &reader, context);
        }
        self.lines(&reader)
    }

    fn rows(&self, reader: &Reader) -> Result<(u64, u64)> {
        let size = reader.size()?;
        let Rows { from, to } = self.rows.unwrap_or_default();
        Ok((from, to.unwrap_or(size).min(size)))
    }

    fn lines(&self, reader: &Reader) -> Result {
        let (mut from, to) = self.rows(reader)?;
        let mut lines = Vec::with_capacity(WRITE_BYTES * 2);
        while from < to {
            let next = from.saturating_add(PAGE_ROWS).min(to);
            for row in reader.rows(from, next)? {
                let value = json!({ "leaf": row.leaf, "record": json_of(&row), "seq": row.seq });
                serde_json::to_writer(&mut lines, &value).map_err(unwritable)?;
                lines.push(b'\n');
            }
            if lines.len() >= WRITE_BYTES {
                raw(&lines)?;
                lines.clear();
            }
            from = next;
        }
        raw(&lines)
    }

    fn cassette(&self, path: &Path, reader: &Reader, context: &Context) -> Result {
        let person = self.principal.as_ref().map(|name| -> Result<_> {
            let missing = || no_row(format!("of a principal {name:?}"));
            reader.person_of(name)?.ok_or_else(missing)
        });
        let Rows { from, to } = self.rows.unwrap_or_default();
        let selection = Selection {
            from,
            to,
            person: person.transpose()?,
            all: self.all,
        };
        let export = reader.cassette(&selection)?;
        let keeps = "`keep = \"all\"` in `[ledger]` keeps";
        if export.calls == 0 {
            context.warning(format!("no call was copied: {keeps} what a cassette needs"));
        }
        file::write_new_private(path, &export.bytes)?;
        for (why, count) in &export.left_out {
            let calls = counted(*count, "call");
            context.note(match *why {
                "unfinished" => format!("left out: {calls} without a result"),
                "unsigned" => format!(
                    "left out: {calls} that no checkpoint covers; `toolward ledger checkpoint` signs them"
                ),
                payload => {
                    format!("left out: {calls} without {payload}; {keeps} those of later calls")
                }
            });
        }
        let value = json!({
            "ok": true, "file": path.display().to_string(), "calls": export.calls, "left_out": export.left_out,
        });
        let calls = counted(export.calls, "call");
        context.result(&value, format_args!("{}: {calls}", path.display()))
    }

    #[cfg(feature = "adapters")]
    fn runloop(&self, found: &Found, reader: &Reader, context: &Context) -> Result {
        let source = BundleSource {
            trust: self.which.trust(),
            store: self.store.0.clone(),
            ..BundleSource::default()
        };
        let contents = source.contents(context)?;
        let attachments = Attachments::of(&contents);
        let (from, to) = self.rows(reader)?;
        reader.calls::<Failure>(from, to, |call| {
            if let Some(frames) = attachments.frames(&call, reader, &found.settings)? {
                for frame in &frames {
                    context.value(frame)?;
                }
            }
            Ok(())
        })
    }
}

fn tiles(directory: &Path, reader: &Reader, context: &Context) -> Result {
    if directory.symlink_metadata().is_ok() {
        let message = format!("{}: it is there already", directory.display());
        return Err(Failure::failed(OperatorCode::OutputExists, message)
            .hint("name a directory that is not there yet"));
    }
    let size = reader.export_tiles(directory)?;
    let value = json!({ "ok": true, "directory": directory.display().to_string(), "rows": size });
    let shown = directory.display();
    context.result(&value, format_args!("{shown}: {size} rows"))
}

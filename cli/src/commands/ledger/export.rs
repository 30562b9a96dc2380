//! `ledger export`: all rows as lines of JSON, or a copy in the layout of tlog-tiles.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Which, show};
use crate::environment::Environment;
use crate::failure::{Code, Failure, Kind, OperatorCode, Result};
use crate::output::{Output, raw};

/// Rows that are read at once, and bytes that are written at once.
const PAGE_ROWS: u64 = 256;
const WRITE_BYTES: usize = 64 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write tlog-tiles instead, into a directory that is made for them
    #[arg(long, value_name = "DIR")]
    tiles: Option<PathBuf>,

    #[command(flatten)]
    which: Which,
}

impl Arguments {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let reader = self.which.find(environment)?.reader(output)?;
        if let Some(directory) = &self.tiles {
            if directory.symlink_metadata().is_ok() {
                let message = format!("{}: it is there already", directory.display());
                return Err(
                    Failure::new(Kind::Failed, OperatorCode::OutputExists, message)
                        .hint("name a directory that is not there yet"),
                );
            }
            let size = reader.export_tiles(directory)?;
            let value = json!({ "ok": true, "directory": directory, "rows": size });
            let shown = directory.display();
            return output.result(&value, format_args!("{shown}: {size} rows"));
        }
        let size = reader.size()?;
        let mut lines = Vec::with_capacity(WRITE_BYTES * 2);
        for from in (0..size).step_by(PAGE_ROWS as usize) {
            for row in reader.rows(from, from.saturating_add(PAGE_ROWS).min(size))? {
                let value = json!({
                    "leaf": row.leaf, "record": show::json_of(&row), "seq": row.seq,
                });
                serde_json::to_writer(&mut lines, &value)
                    .map_err(|error| Failure::new(Kind::Failed, Code::OutputUnwritable, error))?;
                lines.push(b'\n');
            }
            if lines.len() >= WRITE_BYTES {
                raw(&lines)?;
                lines.clear();
            }
        }
        raw(&lines)
    }
}

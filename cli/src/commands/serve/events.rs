//! `serve --events`: appends the events of calls to a file as JSON lines. The file is opened before
//! the process confines itself, and written on a separate thread.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use toolward_adapters::records::event_record;
use toolward_host::{Events, Heard, HostBuilder};
use toolward_support::files::{Lock, Problem, Protection};

use crate::prelude::*;

/// Size of the file at which its lines move to the older file.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Bytes that are written at once.
const BATCH_BYTES: usize = 64 << 10;

/// Where events of calls are written.
#[derive(Debug, Args)]
pub(crate) struct EventFlags {
    /// Append the events of calls to this file, one JSON object on each line
    ///
    /// The file has mode 0600. At 64 MiB its lines move to FILE.1.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    events: Option<PathBuf>,
}

impl EventFlags {
    /// Keeps all guests out of the event files.
    pub(super) fn protect(&self, builder: HostBuilder) -> HostBuilder {
        let files = self.events.iter();
        let files = files.flat_map(|path| [path.clone(), older(path)]);
        files.fold(builder, |builder, file| {
            builder.protect("a file of events", file)
        })
    }

    /// Opens the files.
    pub(super) fn open(&self) -> Result<Option<EventFile>> {
        let path = self.events.as_ref();
        path.map(|path| EventFile::open(path, MAX_FILE_BYTES))
            .transpose()
    }
}

/// Returns the path of the file to which older lines move.
fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// The open event files.
pub(super) struct EventFile {
    file: File,
    older: File,
    bytes: u64,
    max_bytes: u64,
    /// Whether the last line may be incomplete.
    torn: bool,
}

impl EventFile {
    fn open(path: &Path, max_bytes: u64) -> Result<Self> {
        let opened = |path: &Path| open(path).map_err(|problem| Failure::unwritable(path, problem));
        let mut file = opened(path)?;
        let bytes = file.seek(SeekFrom::End(0));
        let bytes = bytes.map_err(|error| Failure::unwritable(path, error))?;
        // A process that was killed may have left an incomplete line.
        let whole = ends_with_line(&file, bytes);
        let torn = !whole.map_err(|error| Failure::unwritable(path, error))?;
        Ok(Self {
            older: opened(&older(path))?,
            file,
            bytes,
            max_bytes,
            torn,
        })
    }

    /// Writes whole lines.
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let more = lines.len() as u64;
        if self.bytes > 0 && self.bytes.saturating_add(more) > self.max_bytes {
            self.rotate()?;
        }
        if std::mem::replace(&mut self.torn, true) && self.bytes > 0 {
            self.file.write_all(b"\n")?;
            self.bytes = self.bytes.saturating_add(1);
        }
        self.file.write_all(lines)?;
        self.bytes = self.bytes.saturating_add(more);
        self.torn = false;
        Ok(())
    }

    /// Moves the lines to the older file. A confined process can't rename files.
    fn rotate(&mut self) -> io::Result<()> {
        self.older.set_len(0)?;
        self.older.rewind()?;
        self.file.rewind()?;
        let mut buffer = vec![0; BATCH_BYTES];
        loop {
            let read = self.file.read(&mut buffer)?;
            match buffer.get(..read) {
                None | Some([]) => break,
                Some(bytes) => self.older.write_all(bytes)?,
            }
        }
        self.file.set_len(0)?;
        self.file.rewind()?;
        (self.bytes, self.torn) = (0, false);
        Ok(())
    }

    /// Writes the events from `events` on a separate thread. Call it after the process is confined,
    /// since a thread that exists before that would not be confined.
    pub(super) fn follow(self, events: Events, runtime: &Handle) -> Result<Following> {
        let stop = CancellationToken::new();
        let (stopped, runtime) = (stop.clone(), runtime.clone());
        let thread = std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || run(self, events, &runtime, &stopped))
            .map_err(Failure::runtime)?;
        Ok(Following { stop, thread })
    }
}

/// Opens a file that only this user may access, without following a link, and locks it.
fn open(path: &Path) -> std::result::Result<File, Problem> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let failed = |action| move |source| Problem::Io { action, source };
    let mut options = OpenOptions::new();
    // Opened for appending, so the offset that a failed rotation leaves does not matter.
    options.read(true).append(true).create(true).mode(0o600);
    options.custom_flags(flags);
    let file = options.open(path).map_err(failed("opened"))?;
    let metadata = file.metadata().map_err(failed("read"))?;
    if !metadata.is_file() {
        return Err(Problem::NotAFile);
    }
    Protection::Private.check(&metadata)?;
    toolward_support::files::lock(&file, Lock::Exclusive, Duration::ZERO)
        .map_err(failed("locked"))?;
    Ok(file)
}

/// Whether a file of this many bytes is empty or ends with a complete line.
fn ends_with_line(file: &File, bytes: u64) -> io::Result<bool> {
    let Some(last) = bytes.checked_sub(1) else {
        return Ok(true);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
}

/// The thread that writes events.
pub(super) struct Following {
    stop: CancellationToken,
    thread: JoinHandle<()>,
}

impl Following {
    /// Waits until all events so far are written.
    pub(super) fn end(self) {
        self.stop.cancel();
        if self.thread.join().is_err() {
            tracing::error!("the thread that writes events panicked");
        }
    }
}

fn run(mut file: EventFile, mut events: Events, runtime: &Handle, stop: &CancellationToken) {
    let mut lines = Vec::new();
    let mut fails = false;
    loop {
        // Waiting for events works even after the runtime has shut down, since it needs no timer or
        // I/O.
        let first = runtime.block_on(async {
            tokio::select! {
                biased;
                heard = events.next() => Some(heard),
                () = stop.cancelled() => None,
            }
        });
        let Some(first) = first else {
            return;
        };
        lines.clear();
        add(&mut lines, &first);
        while lines.len() < BATCH_BYTES
            && let Some(next) = events.try_next()
        {
            add(&mut lines, &next);
        }
        let failed = file.write(&lines);
        if let (Err(error), false) = (&failed, fails) {
            tracing::warn!(%error, "events can't be written, and are left out until they can");
        }
        fails = failed.is_err();
    }
}

fn add(lines: &mut Vec<u8>, heard: &Heard) {
    let written = match heard {
        Heard::Event(event) => serde_json::to_writer(&mut *lines, &event_record(event)),
        Heard::Lost(lost) => serde_json::to_writer(&mut *lines, &json!({ "lost": lost })),
    };
    // Writing to memory does not fail.
    if written.is_ok() {
        lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_full_file_moves_to_the_older_one_and_no_line_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut file = EventFile::open(&path, 10).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            file.write(line.as_bytes()).unwrap();
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(
            (read(&older(&path)), read(&path)),
            ("three\n".into(), "four\n".into())
        );
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&older(&path))), (0o600, 0o600));
    }

    #[test]
    fn half_a_line_of_an_earlier_process_is_ended_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        toolward_support::files::create(&path, b"{\"ha", 0o600).unwrap();
        EventFile::open(&path, 100)
            .unwrap()
            .write(b"whole\n")
            .unwrap();
        let next = |line| EventFile::open(&path, 100).unwrap().write(line).unwrap();
        next(b"next\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"ha\nwhole\nnext\n");
    }

    #[test]
    fn a_link_a_file_of_others_and_one_that_is_written_already_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let target = folder.path().join("target");
        std::fs::write(&target, "kept").unwrap();
        symlink(&target, &path).unwrap();
        assert!(EventFile::open(&path, 100).is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"kept");

        std::fs::remove_file(&path).unwrap();
        toolward_support::files::create(&path, b"", 0o644).unwrap();
        assert!(EventFile::open(&path, 100).is_err());

        std::fs::remove_file(&path).unwrap();
        let first = EventFile::open(&path, 100).unwrap();
        assert!(EventFile::open(&path, 100).is_err());
        drop(first);
        assert!(EventFile::open(&path, 100).is_ok());
    }
}

//! Files as `wasi:filesystem` has them, with nothing of a library between: any
//! path goes to the host as it is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::bindings::toolward::driver::types::ToolError;
use wasip2::clocks::wall_clock::Datetime;
use wasip2::filesystem::preopens;
use wasip2::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, NewTimestamp,
    OpenFlags, PathFlags, filesystem_error_code,
};
use wasip2::io::streams::StreamError;

use crate::{failed, told};

/// Longest content that a result shows.
const SHOWN: usize = 4096;

/// Most entries that a listing shows.
const LISTED: usize = 1000;

thread_local! {
    /// Descriptors that a step gave a name, for the steps after it.
    static HELD: RefCell<BTreeMap<String, Rc<Descriptor>>> = const { RefCell::new(BTreeMap::new()) };
}

#[derive(Deserialize)]
pub(crate) struct Files {
    op: String,
    /// What `path` starts from: a name given by `as`, or a preopen's path. The
    /// first preopen where it is missing.
    at: Option<String>,
    #[serde(default)]
    path: String,
    /// The other descriptor of `rename`, `link` and `same`; that of `at` without it.
    to_at: Option<String>,
    /// The other path; what a symbolic link holds.
    #[serde(default)]
    to: String,
    /// Keeps what `open` gives under this name.
    #[serde(rename = "as")]
    keep: Option<String>,
    /// Whether a symbolic link at the path's end is followed.
    #[serde(default)]
    follow: bool,
    /// Of `open`: create, directory, exclusive, truncate.
    #[serde(default)]
    how: Vec<String>,
    /// Of `open`: read, write, mutate-directory, file-sync, data-sync, write-sync.
    flags: Option<Vec<String>>,
    text: Option<String>,
    /// Bytes, files, seconds.
    #[serde(default)]
    n: u64,
    #[serde(default)]
    offset: u64,
}

/// A refusal, by the interface's own name of it.
type Done<T = Value> = Result<T, String>;

fn name(code: ErrorCode) -> String {
    code.name().to_owned()
}

pub(crate) fn act(op: &Files) -> Result<Value, ToolError> {
    let result = match op.op.as_str() {
        "preopens" => Ok(preopened()),
        "open" => open(op),
        "close" => close(op),
        "read" => read(op),
        "read-stream" => read_stream(op),
        "write" => write(op),
        "write-stream" => write_stream(op, false),
        "append-stream" => write_stream(op, true),
        "write-zeroes" => write_zeroes(op),
        "open-many" => open_many(op),
        "create-many" => create_many(op),
        "mkdir-many" => mkdir_many(op),
        "list" => list(op),
        "list-many" => list_many(op),
        "flags" => on(op, |at| {
            at.get_flags().map(|flags| json!(format!("{flags:?}")))
        }),
        "type" => on(op, |at| at.get_type().map(|kind| json!(kind_of(kind)))),
        "stat" => on(op, |at| at.stat().map(|found| about(&found))),
        "stat-at" => on(op, |at| {
            at.stat_at(follow(op), &op.path).map(|found| about(&found))
        }),
        "hash" => on(op, |at| {
            at.metadata_hash()
                .map(|hash| json!(format!("{:016x}{:016x}", hash.upper, hash.lower)))
        }),
        "hash-at" => on(op, |at| {
            at.metadata_hash_at(follow(op), &op.path)
                .map(|hash| json!(format!("{:016x}{:016x}", hash.upper, hash.lower)))
        }),
        "same" => other(op).and_then(|to| on(op, |at| Ok(json!(at.is_same_object(&to))))),
        "set-size" => on(op, |at| at.set_size(op.n).map(|()| json!(op.n))),
        "set-times" => on(op, |at| at.set_times(time(op), time(op)).map(yes)),
        "set-times-at" => on(op, |at| {
            at.set_times_at(follow(op), &op.path, time(op), time(op))
                .map(yes)
        }),
        "mkdir" => on(op, |at| at.create_directory_at(&op.path).map(yes)),
        "rmdir" => on(op, |at| at.remove_directory_at(&op.path).map(yes)),
        "unlink" => on(op, |at| at.unlink_file_at(&op.path).map(yes)),
        "rename" => {
            other(op).and_then(|to| on(op, |at| at.rename_at(&op.path, &to, &op.to).map(yes)))
        }
        "link" => other(op).and_then(|to| {
            on(op, |at| {
                at.link_at(follow(op), &op.path, &to, &op.to).map(yes)
            })
        }),
        "symlink" => on(op, |at| at.symlink_at(&op.to, &op.path).map(yes)),
        "readlink" => on(op, |at| at.readlink_at(&op.path).map(Value::from)),
        "sync" => on(op, |at| at.sync().map(yes)),
        "sync-data" => on(op, |at| at.sync_data().map(yes)),
        "advise" => on(op, |at| {
            at.advise(op.offset, op.n, Advice::WillNeed).map(yes)
        }),
        other => {
            return Err(failed(
                "input_invalid",
                format!("fs has no operation {other}"),
            ));
        }
    };
    Ok(told(result))
}

fn yes((): ()) -> Value {
    json!(true)
}

fn on(op: &Files, act: impl FnOnce(&Descriptor) -> Result<Value, ErrorCode>) -> Done {
    act(&*at(op)?).map_err(name)
}

fn at(op: &Files) -> Done<Rc<Descriptor>> {
    descriptor(op.at.as_deref())
}

fn other(op: &Files) -> Done<Rc<Descriptor>> {
    descriptor(op.to_at.as_deref().or(op.at.as_deref()))
}

fn descriptor(of: Option<&str>) -> Done<Rc<Descriptor>> {
    let held = of.and_then(|of| HELD.with_borrow(|held| held.get(of).cloned()));
    held.or_else(|| {
        preopens::get_directories()
            .into_iter()
            .find(|(_, path)| of.is_none_or(|of| of == path))
            .map(|(found, _)| Rc::new(found))
    })
    .ok_or_else(|| "no-preopen".to_owned())
}

fn follow(op: &Files) -> PathFlags {
    if op.follow {
        PathFlags::SYMLINK_FOLLOW
    } else {
        PathFlags::empty()
    }
}

fn preopened() -> Value {
    let list = preopens::get_directories();
    let list = list.iter().map(|(found, path)| {
        let flags = found.get_flags();
        json!({
            "path": path,
            "type": found.get_type().map(kind_of).unwrap_or("?"),
            "flags": flags.map_or_else(name, |flags| format!("{flags:?}")),
        })
    });
    json!(list.collect::<Vec<_>>())
}

fn open_at(op: &Files, flags: DescriptorFlags) -> Done<Descriptor> {
    let mut how = OpenFlags::empty();
    for word in &op.how {
        how |= match word.as_str() {
            "create" => OpenFlags::CREATE,
            "directory" => OpenFlags::DIRECTORY,
            "exclusive" => OpenFlags::EXCLUSIVE,
            "truncate" => OpenFlags::TRUNCATE,
            other => return Err(format!("no such way to open: {other}")),
        };
    }
    let mut wanted = flags;
    if let Some(words) = &op.flags {
        wanted = DescriptorFlags::empty();
        for word in words {
            wanted |= match word.as_str() {
                "read" => DescriptorFlags::READ,
                "write" => DescriptorFlags::WRITE,
                "mutate-directory" => DescriptorFlags::MUTATE_DIRECTORY,
                "file-sync" => DescriptorFlags::FILE_INTEGRITY_SYNC,
                "data-sync" => DescriptorFlags::DATA_INTEGRITY_SYNC,
                "write-sync" => DescriptorFlags::REQUESTED_WRITE_SYNC,
                other => return Err(format!("no such flag: {other}")),
            };
        }
    }
    at(op)?
        .open_at(follow(op), &op.path, how, wanted)
        .map_err(name)
}

fn open(op: &Files) -> Done {
    let opened = open_at(op, DescriptorFlags::READ)?;
    let kind = opened.get_type().map_err(name)?;
    let flags = opened.get_flags().map_err(name)?;
    if let Some(keep) = &op.keep {
        HELD.with_borrow_mut(|held| held.insert(keep.clone(), Rc::new(opened)));
    }
    Ok(json!({"type": kind_of(kind), "flags": format!("{flags:?}")}))
}

fn close(op: &Files) -> Done {
    let of = op.at.as_deref().unwrap_or_default();
    let held = HELD.with_borrow_mut(|held| held.remove(of));
    held.map(|_| json!(true)).ok_or("no-descriptor".to_owned())
}

/// The file at the path, or the descriptor itself where there is no path.
fn file(op: &Files, flags: DescriptorFlags) -> Done<Rc<Descriptor>> {
    if op.path.is_empty() {
        return at(op);
    }
    open_at(op, flags).map(Rc::new)
}

fn shown(bytes: &[u8]) -> Value {
    let shown = bytes.get(..SHOWN).unwrap_or(bytes);
    json!({"bytes": bytes.len(), "text": String::from_utf8_lossy(shown)})
}

/// At most `n` bytes (64 KiB where it is 0) in one call of `read`.
fn read(op: &Files) -> Done {
    let most = if op.n == 0 { 64 * 1024 } else { op.n };
    let (bytes, _end) = file(op, DescriptorFlags::READ)?
        .read(most, op.offset)
        .map_err(name)?;
    Ok(shown(&bytes))
}

/// All bytes from `offset` on, through a stream.
fn read_stream(op: &Files) -> Done {
    let file = file(op, DescriptorFlags::READ)?;
    let stream = file.read_via_stream(op.offset).map_err(name)?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(64 * 1024) {
            Ok(mut chunk) => bytes.append(&mut chunk),
            Err(StreamError::Closed) => return Ok(shown(&bytes)),
            Err(error) => return Err(stream_code(&error)),
        }
    }
}

fn stream_code(error: &StreamError) -> String {
    match error {
        StreamError::Closed => "closed".to_owned(),
        StreamError::LastOperationFailed(error) => {
            filesystem_error_code(error).map_or_else(|| error.to_debug_string(), name)
        }
    }
}

/// What is written: `text`, or `n` bytes.
fn content(op: &Files) -> Vec<u8> {
    match &op.text {
        Some(text) => text.clone().into_bytes(),
        None => vec![b'x'; op.n as usize],
    }
}

fn for_writing(op: &Files) -> Done<Rc<Descriptor>> {
    file(op, DescriptorFlags::READ | DescriptorFlags::WRITE)
}

/// One call of `write` at `offset`; says how much was taken.
fn write(op: &Files) -> Done {
    let written = for_writing(op)?.write(&content(op), op.offset);
    written.map(Value::from).map_err(name)
}

/// Through a stream, in pieces of 4 KiB, from `offset` on or at the end.
fn write_stream(op: &Files, append: bool) -> Done {
    let file = for_writing(op)?;
    let stream = if append {
        file.append_via_stream()
    } else {
        file.write_via_stream(op.offset)
    }
    .map_err(name)?;
    let content = content(op);
    for (n, piece) in content.chunks(4096).enumerate() {
        stream
            .blocking_write_and_flush(piece)
            .map_err(|error| format!("{} after {} bytes", stream_code(&error), n * 4096))?;
    }
    Ok(json!(content.len()))
}

/// `n` zeroes from `offset` on, as many with one call as the host takes.
fn write_zeroes(op: &Files) -> Done {
    let file = for_writing(op)?;
    let stream = file.write_via_stream(op.offset).map_err(name)?;
    let mut left = op.n;
    while left > 0 {
        stream.subscribe().block();
        let room = stream.check_write().map_err(|error| stream_code(&error))?;
        let now = room.min(left);
        stream
            .write_zeroes(now)
            .map_err(|error| stream_code(&error))?;
        left -= now;
    }
    stream
        .blocking_flush()
        .map_err(|error| stream_code(&error))?;
    Ok(json!(op.n))
}

/// Opens the path `n` times and closes nothing.
fn open_many(op: &Files) -> Done {
    for n in 0..op.n {
        match open_at(op, DescriptorFlags::READ) {
            Ok(opened) => std::mem::forget(opened),
            Err(error) => return Ok(json!({"opened": n, "failed": error})),
        }
    }
    Ok(json!({"opened": op.n}))
}

/// Empty files `path0`, `path1`, … until one fails.
fn create_many(op: &Files) -> Done {
    let at = at(op)?;
    for n in 0..op.n {
        let path = format!("{}{n}", op.path);
        let how = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        if let Err(error) = at.open_at(follow(op), &path, how, DescriptorFlags::WRITE) {
            return Ok(json!({"made": n, "failed": name(error)}));
        }
    }
    Ok(json!({"made": op.n}))
}

/// Directories inside each other, `n` deep, until one fails.
fn mkdir_many(op: &Files) -> Done {
    let at = at(op)?;
    let mut path = op.path.clone();
    for n in 0..op.n {
        if let Err(error) = at.create_directory_at(&path) {
            return Ok(json!({"made": n, "failed": name(error)}));
        }
        path.push_str("/d");
    }
    Ok(json!({"made": op.n}))
}

fn directory(op: &Files) -> Done<Rc<Descriptor>> {
    if op.path.is_empty() {
        return at(op);
    }
    at(op)?
        .open_at(
            follow(op),
            &op.path,
            OpenFlags::DIRECTORY,
            DescriptorFlags::READ,
        )
        .map(Rc::new)
        .map_err(name)
}

fn list(op: &Files) -> Done {
    let entries = directory(op)?.read_directory().map_err(name)?;
    let mut names = Vec::new();
    let mut count = 0usize;
    while let Some(entry) = entries.read_directory_entry().map_err(name)? {
        count += 1;
        if names.len() < LISTED {
            names.push(entry.name);
        }
    }
    names.sort();
    Ok(json!({"count": count, "names": names}))
}

/// Starts listing the directory `n` times and ends no listing.
fn list_many(op: &Files) -> Done {
    let directory = directory(op)?;
    for n in 0..op.n {
        match directory.read_directory() {
            Ok(entries) => std::mem::forget(entries),
            Err(error) => return Ok(json!({"opened": n, "failed": name(error)})),
        }
    }
    Ok(json!({"opened": op.n}))
}

fn time(op: &Files) -> NewTimestamp {
    NewTimestamp::Timestamp(Datetime {
        seconds: op.n,
        // `offset` makes nanoseconds that are none possible.
        nanoseconds: u32::try_from(op.offset).unwrap_or(u32::MAX),
    })
}

fn kind_of(kind: DescriptorType) -> &'static str {
    match kind {
        DescriptorType::Unknown => "unknown",
        DescriptorType::BlockDevice => "block-device",
        DescriptorType::CharacterDevice => "character-device",
        DescriptorType::Directory => "directory",
        DescriptorType::Fifo => "fifo",
        DescriptorType::SymbolicLink => "symbolic-link",
        DescriptorType::RegularFile => "regular-file",
        DescriptorType::Socket => "socket",
    }
}

fn about(found: &DescriptorStat) -> Value {
    json!({
        "type": kind_of(found.type_),
        "size": found.size,
        "links": found.link_count,
        "modified": found.data_modification_timestamp.map(|time| time.seconds),
    })
}

//! Files as Rust's standard library sees them: it picks the preopen by the path's
//! start and hands the host the rest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::{Duration, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::bindings::toolward::driver::types::ToolError;

use crate::{failed, told};

/// Longest content that a result shows.
const SHOWN: usize = 4096;

#[derive(Deserialize)]
pub(crate) struct Standard {
    op: String,
    #[serde(default)]
    path: String,
    /// The other path of `rename`, `copy` and `link`.
    #[serde(default)]
    to: String,
    #[serde(default)]
    text: String,
    /// Bytes, files, seconds.
    #[serde(default)]
    n: u64,
    #[serde(default)]
    offset: u64,
}

pub(crate) fn act(op: &Standard) -> Result<Value, ToolError> {
    let result = match op.op.as_str() {
        "read" => read(op),
        "write" => fs::write(&op.path, &op.text).map(|()| json!(op.text.len())),
        "write-bytes" => write_bytes(op),
        "append" => OpenOptions::new()
            .append(true)
            .open(&op.path)
            .and_then(|mut file| file.write_all(op.text.as_bytes()))
            .map(|()| json!(op.text.len())),
        "create-new" => File::create_new(&op.path).map(|_| json!(true)),
        "create-many" => Ok(create_many(op)),
        "open-many" => Ok(open_many(op)),
        "truncate" => OpenOptions::new()
            .write(true)
            .open(&op.path)
            .and_then(|file| file.set_len(op.n))
            .map(|()| json!(op.n)),
        "mkdir" => fs::create_dir(&op.path).map(|()| json!(true)),
        "mkdir-all" => fs::create_dir_all(&op.path).map(|()| json!(true)),
        "rmdir" => fs::remove_dir(&op.path).map(|()| json!(true)),
        "remove-all" => fs::remove_dir_all(&op.path).map(|()| json!(true)),
        "unlink" => fs::remove_file(&op.path).map(|()| json!(true)),
        "rename" => fs::rename(&op.path, &op.to).map(|()| json!(true)),
        "copy" => fs::copy(&op.path, &op.to).map(Value::from),
        "link" => fs::hard_link(&op.path, &op.to).map(|()| json!(true)),
        "readlink" => fs::read_link(&op.path).map(|path| json!(path.to_string_lossy())),
        "stat" => fs::metadata(&op.path).map(|found| about(&found)),
        "lstat" => fs::symlink_metadata(&op.path).map(|found| about(&found)),
        "exists" => fs::exists(&op.path).map(Value::from),
        "list" => list(&op.path),
        "set-times" => File::open(&op.path)
            .and_then(|file| file.set_modified(UNIX_EPOCH + Duration::from_secs(op.n)))
            .map(|()| json!(op.n)),
        other => {
            return Err(failed(
                "input_invalid",
                format!("std-fs has no operation {other}"),
            ));
        }
    };
    Ok(told(result.map_err(code)))
}

/// A short, stable name of the error, as far as the library tells them apart.
fn code(error: io::Error) -> String {
    format!("{:?}: {error}", error.kind())
}

fn about(found: &fs::Metadata) -> Value {
    json!({
        "file": found.is_file(),
        "directory": found.is_dir(),
        "link": found.is_symlink(),
        "size": found.len(),
    })
}

/// From `offset`, at most `n` bytes where it is not 0.
fn read(op: &Standard) -> io::Result<Value> {
    let mut file = File::open(&op.path)?;
    file.seek(SeekFrom::Start(op.offset))?;
    let mut bytes = Vec::new();
    let most = if op.n == 0 { u64::MAX } else { op.n };
    file.take(most).read_to_end(&mut bytes)?;
    let shown = bytes.get(..SHOWN).unwrap_or(&bytes);
    Ok(json!({"bytes": bytes.len(), "text": String::from_utf8_lossy(shown)}))
}

/// `n` bytes from `offset` on, in pieces of 64 KiB.
fn write_bytes(op: &Standard) -> io::Result<Value> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&op.path)?;
    file.seek(SeekFrom::Start(op.offset))?;
    let piece = vec![b'x'; 64 * 1024];
    let mut left = op.n;
    while left > 0 {
        let now = left.min(piece.len() as u64);
        file.write_all(&piece[..now as usize]).map_err(|error| {
            io::Error::new(error.kind(), format!("{error} after {} bytes", op.n - left))
        })?;
        left -= now;
    }
    file.flush()?;
    Ok(json!(op.n))
}

/// Empty files `path0`, `path1`, … until one fails.
fn create_many(op: &Standard) -> Value {
    for n in 0..op.n {
        if let Err(error) = File::create(format!("{}{n}", op.path)) {
            return json!({"made": n, "failed": code(error)});
        }
    }
    json!({"made": op.n})
}

/// Opens the file `n` times and closes none.
fn open_many(op: &Standard) -> Value {
    for n in 0..op.n {
        match File::open(&op.path) {
            Ok(file) => std::mem::forget(file),
            Err(error) => return json!({"opened": n, "failed": code(error)}),
        }
    }
    json!({"opened": op.n})
}

fn list(path: &str) -> io::Result<Value> {
    let mut names = fs::read_dir(path)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(json!(names))
}

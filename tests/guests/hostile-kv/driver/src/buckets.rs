//! Operations on a bucket, with any name, key and value.

use hostile_common::toolward_guest::bindings::toolward::driver::types::ToolError;
use hostile_common::{Course, Input, failed, told};
use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::keyvalue::bindings::wasi::keyvalue::store::{self, Bucket, Error};
use toolward_guest::keyvalue::bindings::wasi::keyvalue::{atomics, batch};

/// Most keys that a result shows.
const LISTED: usize = 1000;

#[derive(Deserialize)]
pub(crate) struct Buckets {
    op: String,
    #[serde(default)]
    bucket: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    keys: Vec<String>,
    text: Option<String>,
    /// Bytes of a value without `text`; how many keys, how much to add.
    #[serde(default)]
    n: u64,
    cursor: Option<u64>,
}

fn name(error: Error) -> String {
    match error {
        Error::NoSuchStore => "no-such-store".to_owned(),
        Error::AccessDenied => "access-denied".to_owned(),
        Error::Other(text) => format!("other: {text}"),
    }
}

fn value(op: &Buckets) -> Vec<u8> {
    match &op.text {
        Some(text) => text.clone().into_bytes(),
        None => vec![b'x'; op.n as usize],
    }
}

fn text(bytes: &[u8]) -> Value {
    let shown = bytes.get(..4096).unwrap_or(bytes);
    json!({"bytes": bytes.len(), "text": String::from_utf8_lossy(shown)})
}

pub(crate) fn act(op: &Buckets) -> Result<Value, ToolError> {
    let act: fn(&Buckets, &Bucket) -> Result<Value, Error> = match op.op.as_str() {
        "open" => |_, _| Ok(json!(true)),
        "get" => |op, bucket| {
            Ok(bucket
                .get(&op.key)?
                .map_or(Value::Null, |value| text(&value)))
        },
        "set" => |op, bucket| bucket.set(&op.key, &value(op)).map(|()| json!(true)),
        "delete" => |op, bucket| bucket.delete(&op.key).map(|()| json!(true)),
        "exists" => |op, bucket| bucket.exists(&op.key).map(Value::from),
        "increment" => |op, bucket| atomics::increment(bucket, &op.key, op.n).map(Value::from),
        "page" => |op, bucket| {
            let page = bucket.list_keys(op.cursor)?;
            Ok(json!({"count": page.keys.len(), "keys": page.keys, "cursor": page.cursor}))
        },
        "list" => list,
        "get-many" => |op, bucket| {
            let found = batch::get_many(bucket, &op.keys)?;
            let found = found
                .iter()
                .map(|pair| pair.as_ref().map(|(key, value)| (key, text(value))));
            Ok(json!(found.collect::<Vec<_>>()))
        },
        "set-many" => |op, bucket| {
            let pairs: Vec<_> = op.keys.iter().map(|key| (key.clone(), value(op))).collect();
            batch::set_many(bucket, &pairs).map(|()| json!(pairs.len()))
        },
        "delete-many" => {
            |op, bucket| batch::delete_many(bucket, &op.keys).map(|()| json!(op.keys.len()))
        }
        "fill" => fill,
        "fill-keys" => fill_keys,
        "open-many" => open_many,
        other => {
            return Err(failed(
                "input_invalid",
                format!("kv has no operation {other}"),
            ));
        }
    };
    let result = store::open(&op.bucket).and_then(|bucket| act(op, &bucket));
    Ok(told(result.map_err(name)))
}

/// All keys, over all pages.
fn list(_: &Buckets, bucket: &Bucket) -> Result<Value, Error> {
    let mut keys = Vec::new();
    let (mut count, mut pages) = (0, 0);
    let mut cursor = None;
    loop {
        let page = bucket.list_keys(cursor)?;
        count += page.keys.len();
        pages += 1;
        keys.extend(
            page.keys
                .into_iter()
                .take(LISTED.saturating_sub(keys.len())),
        );
        cursor = page.cursor;
        if cursor.is_none() {
            keys.sort();
            return Ok(json!({"count": count, "pages": pages, "keys": keys}));
        }
    }
}

/// Values of 64 KiB under `key0`, `key1`, … until `n` bytes or a refusal.
fn fill(op: &Buckets, bucket: &Bucket) -> Result<Value, Error> {
    let piece = vec![b'x'; 64 * 1024];
    let pieces = op.n.div_ceil(piece.len() as u64);
    for n in 0..pieces {
        if let Err(error) = bucket.set(&format!("{}{n}", op.key), &piece) {
            return Ok(json!({"written": n * piece.len() as u64, "failed": name(error)}));
        }
    }
    Ok(json!({"written": pieces * piece.len() as u64}))
}

/// Empty values under `n` keys.
fn fill_keys(op: &Buckets, bucket: &Bucket) -> Result<Value, Error> {
    for n in 0..op.n {
        if let Err(error) = bucket.set(&format!("{}{n}", op.key), b"") {
            return Ok(json!({"made": n, "failed": name(error)}));
        }
    }
    Ok(json!({"made": op.n}))
}

/// Opens the bucket `n` times more and closes none.
fn open_many(op: &Buckets, _: &Bucket) -> Result<Value, Error> {
    for n in 0..op.n {
        match store::open(&op.bucket) {
            Ok(bucket) => std::mem::forget(bucket),
            Err(error) => return Ok(json!({"opened": n, "failed": name(error)})),
        }
    }
    Ok(json!({"opened": op.n}))
}

/// Opens a bucket, reads pages and values of it, `n` times, and keeps all of it.
pub(crate) fn hoard(input: &Input) -> Value {
    let mut course = Course::new(input.n);
    for at in 0..input.n {
        course.tell(at);
        let Ok(bucket) = store::open(&input.name) else {
            return json!({"refused": at});
        };
        std::mem::forget(bucket.list_keys(None));
        let keys = vec!["key".to_owned(); 8];
        std::mem::forget(batch::get_many(&bucket, &keys));
        std::mem::forget(bucket);
    }
    json!(input.n)
}

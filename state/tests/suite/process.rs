//! A second process: this test binary again, which reads its task from its environment.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use toolward_state::Store;

use crate::bucket;

const TASK: &str = "STATE_TEST_TASK";
const FILE: &str = "STATE_TEST_FILE";

/// Increments that the second process makes, each confirmed by the store.
pub(crate) const COUNT: u64 = 300;

/// A process that is killed when dropped.
pub(crate) struct Other {
    pub(crate) child: Child,
    pub(crate) lines: BufReader<ChildStdout>,
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Other {
    pub(crate) fn start(task: &str, file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--ignored", "--exact", "--nocapture", "process::child"])
            .env(TASK, task)
            .env(FILE, file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, lines }
    }

    /// Reads up to a line that contains `word`, and returns this line.
    pub(crate) fn line_with(&mut self, word: &str) -> String {
        for line in self.lines.by_ref().lines() {
            let line = line.expect("text");
            if line.contains(word) {
                return line;
            }
        }
        panic!("the other process ended without saying `{word}`");
    }
}

/// The main function of the second process. By itself, it tests nothing.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let (Some(task), Some(file)) = (std::env::var_os(TASK), std::env::var_os(FILE)) else {
        return;
    };
    let store = Store::open(file).expect("a store");
    let own = bucket(&store, "acme", "alice", "shared");
    match task.to_str().expect("a word") {
        "increment" => {
            println!("ready");
            for n in 0..COUNT {
                own.increment("number", 1).expect("increments");
                own.set(&format!("other-{n}"), b"").expect("sets");
            }
        }
        // Writes until it is killed.
        "write" => {
            for n in 0_u64.. {
                own.set_many(&[
                    (format!("a-{}", n % 50), n.to_string().repeat(2000)),
                    (format!("b-{}", n % 50), n.to_string().repeat(2000)),
                    ("last".to_owned(), n.to_string()),
                ])
                .expect("sets");
                if n % 7 == 6 {
                    own.delete_many(&[format!("a-{}", n % 50), format!("b-{}", n % 50)])
                        .expect("deletes");
                }
                println!("written {n}");
            }
        }
        "hold" => {
            let file = std::env::var_os(FILE).expect("a file");
            drop(store);
            let sql = rusqlite::Connection::open(file).expect("opens");
            sql.execute_batch("BEGIN IMMEDIATE").expect("locks");
            println!("locked");
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        other => panic!("no such task: {other}"),
    }
}

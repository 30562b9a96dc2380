//! Runs the conformance tools (`tests/conformance/README.md`) with each guest library. All
//! libraries must give the same answers.

mod table;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::toolchain::build;
use crate::mcp::raw::Raw;
use crate::support::{Machine, copy, long, root};

/// The page with the answers of each library. With `BLESS=1` the tests write it.
const PAGE: &str = "docs/src/languages/conformance.md";

/// A guest library, and the features of its toolchain.
struct Library {
    /// Its column of [`PAGE`].
    name: &'static str,
    /// The lines of `[[build]]` that name a driver's source: first of the driver for all tools but
    /// one, and then, if the toolchain has HTTP, of the driver that makes requests.
    source: (&'static str, Option<&'static str>),
    /// The driver's source and the library, each with its path in the repository and its place in
    /// the bundle.
    copied: &'static [(&'static str, &'static str)],
    /// Whether an uncaught error keeps its text instead of trapping.
    catches: bool,
    /// Whether the language has files.
    files: bool,
}

const RUST: Library = Library {
    name: "Rust",
    source: (
        "kind = \"wasm\"\nsource = \"driver/probe.wasm\"",
        Some("kind = \"wasm\"\nsource = \"driver/http.wasm\""),
    ),
    copied: &[
        ("tests/guests/sdk/probe.wasm", "driver/probe.wasm"),
        ("tests/guests/sdk/http.wasm", "driver/http.wasm"),
    ],
    catches: false,
    files: true,
};

const QUICKJS: Library = Library {
    name: "QuickJS",
    source: (
        "kind = \"js\"\nsource = \"driver/driver.js\"\nworld = \"driver-keyvalue\"",
        None,
    ),
    copied: &[
        ("tests/conformance/js/driver.js", "driver/driver.js"),
        ("guest-sdk/js/toolward.js", "driver/toolward.js"),
    ],
    catches: true,
    files: false,
};

/// The source is that of [`QUICKJS`]. Only the driver that makes requests runs in this engine,
/// since its world asks for HTTP.
const STARLINGMONKEY: Library = Library {
    name: "StarlingMonkey",
    source: (
        QUICKJS.source.0,
        Some("kind = \"js\"\nsource = \"driver/driver.js\"\nworld = \"driver-http\""),
    ),
    ..QUICKJS
};

const PYTHON: Library = Library {
    name: "Python",
    source: (
        "kind = \"python\"\nsource = \"driver/driver.py\"\nworld = \"driver-keyvalue\"",
        Some("kind = \"python\"\nsource = \"driver/driver.py\"\nworld = \"driver-http\""),
    ),
    copied: &[
        ("tests/conformance/python/driver.py", "driver/driver.py"),
        (
            "guest-sdk/python/toolward_guest.py",
            "driver/toolward_guest.py",
        ),
    ],
    catches: true,
    files: true,
};

const GO: Library = Library {
    name: "Go",
    source: (
        "kind = \"go\"\nsource = \"driver\"",
        Some("kind = \"go\"\nsource = \"driver/http\""),
    ),
    copied: &[
        ("tests/conformance/go", "driver"),
        ("guest-sdk/go", "driver/toolward"),
    ],
    catches: true,
    files: true,
};

const C: Library = Library {
    name: "C",
    source: ("kind = \"c\"\nsource = \"driver\"", None),
    copied: &[
        ("tests/conformance/c", "driver"),
        ("guest-sdk/c", "driver/toolward"),
    ],
    catches: false,
    files: true,
};

#[test]
fn rust_conforms() {
    RUST.conforms();
}

#[test]
fn go_conforms() {
    // Its two drivers take 9 s to compile.
    if long() {
        GO.conforms();
    }
}

#[test]
fn c_conforms() {
    C.conforms();
}

#[test]
fn javascript_in_quickjs_conforms() {
    QUICKJS.conforms();
}

#[test]
fn javascript_in_starlingmonkey_conforms() {
    // Its engine takes 16 s of processor time to compile.
    if long() {
        STARLINGMONKEY.conforms();
    }
}

#[test]
fn python_conforms() {
    // It takes 13 s to compile, twice.
    if long() {
        PYTHON.conforms();
    }
}

impl Library {
    fn conforms(&self) {
        let probe = Probe::new(self);
        probe.without_grants(self.catches);
        probe.with_grants(self.files);
        probe.asks();
        if self.source.1.is_some() {
            probe.makes_requests();
        } else {
            probe.found("HTTP requests", "none");
        }
        table::holds(self.name, &probe.found.into_inner());
    }
}

/// A bundle under work with the conformance tools, built, with its policy.
struct Probe {
    machine: Machine,
    port: u16,
    /// The results, by row of [`PAGE`].
    found: RefCell<BTreeMap<&'static str, String>>,
}

impl Probe {
    fn new(library: &Library) -> Self {
        let machine = Machine::new();
        let port = serve();
        let from = root().join("tests/conformance");
        let number = |text: String| text.replace("18473", &port.to_string());
        let mut manifest = std::fs::read_to_string(from.join("bundle.toml")).unwrap();
        for part in ["tools", "drivers"] {
            copy(&from.join(part), &machine.path(&format!("probe/{part}")));
        }
        let (source, http) = library.source;
        let mut builds = vec![("conformance", source)];
        if let Some(http) = http {
            builds.push(("conformance-http", http));
        } else {
            for part in ["tools/conformance.http", "drivers/conformance-http"] {
                std::fs::remove_dir_all(machine.path(&format!("probe/{part}"))).unwrap();
            }
        }
        for (driver, source) in builds {
            manifest +=
                &format!("\n[[build]]\n{source}\noutput = \"drivers/{driver}/driver.wasm\"\n");
        }
        machine.write("probe/bundle.toml", manifest);
        for (from, place) in library.copied {
            copy(&root().join(from), &machine.path(&format!("probe/{place}")));
        }
        if http.is_some() {
            for file in [
                "probe/tools/conformance.http/TOOL.md",
                "probe/drivers/conformance-http/DRIVER.md",
            ] {
                machine.write(file, number(machine.text(file)));
            }
        }
        let policy = std::fs::read_to_string(from.join("policy.toml")).unwrap();
        let publisher = machine.path("probe").canonicalize().unwrap();
        let publisher = format!("dev:{}", publisher.display());
        machine.write(
            "policy/policy.toml",
            number(policy).replace("PUBLISHER", &publisher),
        );
        machine.write("policy/data/in.txt", "from the host\n");
        let built = build(&machine, "probe --allow-build").ends(0).json();
        assert!(built["built"].is_array(), "{built}");
        machine
            .toolward("check probe --deny-warnings --json")
            .ends(0);
        Self {
            machine,
            port,
            found: RefCell::default(),
        }
    }

    /// Adds a result to a row of the page.
    fn found(&self, row: &'static str, outcome: impl Into<String>) {
        self.found.borrow_mut().insert(row, outcome.into());
    }

    /// Adds the code of a failed reply to a row of the page.
    fn failed(&self, row: &'static str, reply: &Value) {
        let code = reply["error"]["code"].as_str();
        let code = code.unwrap_or_else(|| panic!("{reply}"));
        self.found(row, format!("`{code}`"));
    }

    fn command(&self, words: &str) -> crate::support::Run {
        self.machine
            .toolward(&format!(
                "{words} --dev probe --policy-file policy/policy.toml --state-dir state"
            ))
            .env("TOOLWARD_CONFORMANCE_TOKEN", "0123456789")
    }

    /// Returns the envelope of a call.
    fn call(&self, tool: &str, input: &Value, flags: &str) -> Value {
        let ended = self
            .command(&format!("call {tool} --json {flags}"))
            .arg("--input")
            .arg(input.to_string())
            .end();
        ended.json()
    }

    fn op(&self, input: &Value) -> Value {
        self.call("conformance.probe", input, "--timeout 10000")
    }

    #[track_caller]
    fn gives(&self, tool: &str, input: &Value, expected: &Value) {
        let reply = self.call(tool, input, "");
        assert_eq!(&reply["value"]["result"], expected, "{reply}");
    }

    fn without_grants(&self, catches: bool) {
        let probe = "conformance.probe";
        let greet = json!({"op": "greet", "name": "Ådå 🦀"});
        self.gives(probe, &greet, &json!("Hello, Ådå 🦀!"));
        self.gives(probe, &json!({"op": "log"}), &json!("logged"));
        self.gives(probe, &json!({"op": "progress"}), &json!("reported"));
        self.found("greeting, log, progress", "yes");

        let own = self.op(&json!({"op": "error"}));
        let error = &own["error"];
        assert_eq!(error["code"], "probe:own", "{own}");
        assert_eq!(error["message"], "asked for", "{own}");
        assert_eq!(error["retryable"], true, "{own}");
        assert_eq!(error["cause"], json!({"why": "asked"}), "{own}");
        assert_eq!(error["origin"], "driver", "{own}");
        self.failed("an error code that the tool defines", &own);

        let thrown = self.op(&json!({"op": "throw"}));
        let error = &thrown["error"];
        let (code, text) = match catches {
            true => ("internal", &error["message"]),
            false => ("upstream_error", &error["cause"]["stderr"]),
        };
        assert_eq!(error["code"], code, "{thrown}");
        assert!(text.as_str().unwrap().contains("uncaught boom"), "{thrown}");
        self.failed("an uncaught exception or panic", &thrown);

        let random = || self.op(&json!({"op": "random"}))["value"]["result"].clone();
        let (first, second) = (random(), random());
        for key in ["number", "bytes"] {
            assert!(!first[key].is_null(), "{first}");
            assert_ne!(first[key], second[key]);
        }
        self.found("randomness", "fresh in each call");

        let memory = self.op(&json!({"op": "memory"}));
        assert_eq!(
            memory["error"]["limit"]["limit"], "memory_bytes",
            "{memory}"
        );
        self.failed("allocating 100 MiB at once", &memory);
        let endless = self.call(probe, &json!({"op": "loop"}), "--timeout 1500");
        assert_eq!(endless["error"]["code"], "timeout", "{endless}");
        self.failed("an endless loop", &endless);

        let nested = self.op(&json!({"op": "json", "depth": 63}));
        let text = nested["value"]["result"].to_string();
        assert_eq!(text, format!("{}{}", "[".repeat(63), "]".repeat(63)));
        for (depth, row) in [
            (64, "an output with 65 levels of JSON"),
            (100_000, "an output with 100,001 levels of JSON"),
        ] {
            let deep = self.op(&json!({"op": "json", "depth": depth}));
            assert_eq!(deep["ok"], false, "{deep}");
            self.failed(row, &deep);
        }
        let recursion = self.op(&json!({"op": "recurse"}));
        let code = recursion["error"]["code"].as_str().unwrap();
        let known = ["internal", "toolward:limit_exceeded"].contains(&code);
        // If the language keeps its own stack in memory, the recursion ends in a trap.
        assert!(known || !catches && code == "upstream_error", "{recursion}");
        self.failed("endless recursion", &recursion);
        // No failed call left anything behind.
        self.gives(
            probe,
            &json!({"op": "greet", "name": "Ada"}),
            &json!("Hello, Ada!"),
        );
    }

    fn with_grants(&self, files: bool) {
        for count in [1, 2] {
            self.gives("conformance.keyvalue", &json!({"key": "a"}), &json!(count));
        }
        self.found("a key-value bucket", "yes");
        let secret = self.call("conformance.secret", &json!({}), "");
        assert_eq!(secret["value"]["result"]["length"], 64, "{secret}");
        self.found("a secret's placeholder", "yes");
        self.gives(
            "conformance.tool",
            &json!({"text": "ü"}),
            &json!({"result": "ü"}),
        );
        self.found("calling another tool", "yes");
        let written = self.call("conformance.files", &json!({}), "");
        if files {
            self.found("files of a workspace", "yes");
            assert_eq!(written["value"]["result"], 14, "{written}");
            assert_eq!(self.machine.text("policy/data/out.txt"), "FROM THE HOST\n");
        } else {
            assert_eq!(written["error"]["code"], "probe:no_files", "{written}");
            self.found("files of a workspace", "none");
        }
        // Without the policy no tool starts.
        let denied = self
            .machine
            .toolward("call conformance.keyvalue --json --dev probe --set key=a")
            .ends(4)
            .json();
        assert_eq!(denied["error"]["code"], "unauthorised", "{denied}");
        assert_eq!(denied["error"]["origin"], "host", "{denied}");
    }

    /// Questions reach the person behind an MCP client, and the answers return.
    fn asks(&self) {
        let unheard = self.call("conformance.ask", &json!({}), "");
        assert_eq!(unheard["error"]["code"], "input_unavailable", "{unheard}");
        let serve = self.command("serve").into_command();
        let mut raw = Raw::open(serve, json!({"elicitation": {}}));
        for (id, action, expected) in [
            (
                1,
                json!({"action": "accept", "content": {"name": "Ada"}}),
                Ok("Hello, Ada!"),
            ),
            (2, json!({"action": "decline"}), Err("declined")),
            (3, json!({"action": "cancel"}), Err("cancelled")),
        ] {
            raw.call(id, "conformance_ask", &json!({}));
            let question = loop {
                let message = raw.next(Duration::from_secs(60)).unwrap();
                if message["method"] == "elicitation/create" {
                    break message;
                }
            };
            let message = question["params"]["message"].as_str().unwrap();
            assert!(message.ends_with("Whom shall I greet?"), "{question}");
            raw.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": action}));
            let answer = raw.answer(id);
            let result = &answer["result"];
            match expected {
                Ok(greeting) => {
                    assert_eq!(result["structuredContent"]["result"], greeting, "{answer}");
                }
                Err(message) => {
                    assert_eq!(result["isError"], true, "{answer}");
                    let error = &result["_meta"]["toolward/error"];
                    assert_eq!(error["code"], "probe:nobody", "{answer}");
                    assert_eq!(error["message"], message, "{answer}");
                }
            }
        }
        self.found("questions to a person, and continuing afterwards", "yes");
    }

    fn makes_requests(&self) {
        let at = |path: &str| json!({"url": format!("http://127.0.0.1:{}{path}", self.port)});
        let http = "conformance.http";
        self.gives(
            http,
            &at("/hello"),
            &json!({"status": 200, "body": "hello"}),
        );
        self.gives(http, &at("/gone"), &json!({"status": 404, "body": "gone"}));
        let denied = self.call(http, &json!({"url": "http://127.0.0.1:1/"}), "");
        assert_eq!(denied["error"]["code"], "unauthorised", "{denied}");
        assert_eq!(denied["meta"]["violations_total"], 1, "{denied}");
        let invalid = self.call(http, &json!({"url": "x"}), "");
        assert_eq!(invalid["error"]["code"], "input_invalid", "{invalid}");
        self.found("HTTP requests", "yes");
    }
}

/// Starts a server on this machine that serves `/hello`. Returns its port.
fn serve() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let (status, body) = match first.contains(" /hello ") {
                true => ("200 OK", "hello"),
                false => ("404 Not Found", "gone"),
            };
            let length = body.len();
            let _ = (&stream).write_all(
                format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                )
                .as_bytes(),
            );
        }
    });
    port
}

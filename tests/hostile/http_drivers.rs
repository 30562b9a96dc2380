//! Drivers of `kind: http` (AIP-31) with a real https server. The tests check the requests that
//! arrive there, and that no input, secret or answer can misuse these drivers.

mod asked;
mod fallback;
mod held;
mod outcomes;
mod requests;
mod secrets;
mod templates;

use serde_json::{Value, json};
use toolward_host::secrets::Sources;
use toolward_host::{CallError, Host, Limits, Reply, Request, SharedState};

use crate::vault::Vault;
use crate::world::{Bundle, policy_of};

const TOOL: &str = "things.use";
const VALUE: &str = "s3cr3t/value+0123456789=";
/// The value as it is encoded in a query.
const ENCODED: &str = "s3cr3t%2Fvalue%2B0123456789%3D";

/// A service and the driver of a bundle that uses it.
struct Service {
    vault: Vault,
    host: Host,
    _bundle: Bundle,
}

/// A test's lines for the contract, driver and policy.
struct Terms {
    /// More fields of DRIVER.md.
    driver: Value,
    /// `metadata.http`.
    request: Value,
    /// More lines of TOOL.md.
    tool: &'static str,
    /// Whether the contract declares that it changes something.
    changes: bool,
    /// `inputs` of TOOL.md.
    inputs: &'static str,
    /// `outputs` of TOOL.md.
    outputs: &'static str,
    /// Whether a person is asked.
    asks: bool,
    /// The destinations of the secret `THINGS_KEY`, as lines of `[[secret]]`.
    secret: &'static str,
    limits: Limits,
}

impl Terms {
    fn of(request: Value) -> Terms {
        Terms {
            driver: json!({}),
            request,
            tool: "",
            changes: true,
            inputs: "{ type: object }",
            outputs: "{}",
            asks: false,
            secret: "header = \"authorization\"",
            limits: Limits::default(),
        }
    }

    fn driver(self, driver: Value) -> Terms {
        Terms { driver, ..self }
    }

    fn limits(self, limits: Limits) -> Terms {
        Terms { limits, ..self }
    }

    fn tool(self, tool: &'static str) -> Terms {
        Terms { tool, ..self }
    }

    fn secret(self, secret: &'static str) -> Terms {
        Terms { secret, ..self }
    }

    fn inputs(self, inputs: &'static str) -> Terms {
        Terms { inputs, ..self }
    }

    fn outputs(self, outputs: &'static str) -> Terms {
        Terms { outputs, ..self }
    }

    fn asking(self) -> Terms {
        Terms { asks: true, ..self }
    }

    fn reading(self) -> Terms {
        Terms {
            changes: false,
            ..self
        }
    }

    async fn serve(self) -> Service {
        self.on(Vault::saying("{\"ok\": true}").await)
    }

    fn on(self, vault: Vault) -> Service {
        let port = vault.port;
        let bundle = Bundle::empty();
        let access = match self.changes {
            true => format!("mutates: [\"network:api.test:{port}\"]\napproval: on-mutate\n"),
            false => format!("requires: {{ network: [\"api.test:{port}\"] }}\n"),
        };
        bundle.write(
            &format!("tools/{TOOL}/TOOL.md"),
            format!(
                "---\nname: Things\nid: {TOOL}\ndescription: Uses things.\nversion: 1.0.0\ninputs: {}\n\
                 outputs: {}\n{access}{}---\n",
                self.inputs, self.outputs, self.tool
            ),
        );
        let mut driver = json!({
            "name": "Things", "id": "things-http", "description": "Uses things.", "version": "1.0.0", "kind": "http",
            "base_url": format!("https://api.test:{port}/base/"), "network": { "egress": [format!("api.test:{port}")] },
            "implements": [{ "tool": TOOL, "version": "1.x", "metadata": { "http": self.request } }],
        });
        let more = self.driver.as_object().unwrap().clone();
        let fields = driver.as_object_mut().unwrap();
        fields.extend(more);
        fields.retain(|_, value| !value.is_null());
        bundle.write(
            "drivers/things-http/DRIVER.md",
            format!("---\n{driver}\n---\n"),
        );
        let policy = format!(
            "[[secret]]\nslug = \"THINGS_KEY\"\npublisher = \"PUBLISHER\"\nenv = \"TOKEN\"\n\
             origin = \"https://api.test:{port}\"\nmethods = [\"GET\", \"POST\", \"PUT\"]\npath_prefix = \"/\"\n{}\n\
             [[grant]]\npublisher = \"PUBLISHER\"\ndriver = \"things-http\"\npreapproved = {}\n\
             requires = [\"secret:THINGS_KEY\"]\nmutates = [\"network:api.test:{port}\"]\naddresses = [\"127.0.0.0/8\"]\n",
            self.secret, !self.asks
        );
        let sources = Sources::new(
            &policy_of(&policy, &bundle.publisher()),
            "/".as_ref(),
            |name| (name == "TOKEN").then(|| VALUE.to_owned()),
        );
        let host = bundle.builder(&policy);
        let host = host.transport(vault.transport()).secrets(sources);
        let host = host.limits(self.limits);
        // All hosts here derive the same keys from callers' ids, as hosts of one installation do.
        let state = SharedState::keyed([7; 32]);
        let host = host.shared_state(&state).build();
        Service {
            vault,
            host: host.unwrap(),
            _bundle: bundle,
        }
    }
}

impl Service {
    /// Makes a call, and asserts that its reply does not contain the secret's value.
    async fn run(&self, request: Request) -> Reply {
        let reply = self.host.call(request).await;
        let shown = format!("{} {:?}", reply.envelope(), reply.captured);
        for value in [VALUE, ENCODED] {
            assert!(!shown.contains(value), "{shown}");
        }
        reply
    }

    async fn output(&self, input: Value) -> Value {
        match self.run(Request::with_value(TOOL, input)).await.result {
            Ok(output) => output.structured,
            Err(error) => panic!("{error:#?}"),
        }
    }

    async fn error(&self, input: Value) -> CallError {
        match self.run(Request::with_value(TOOL, input)).await.result {
            Ok(output) => panic!("an output: {}", output.structured),
            Err(error) => error,
        }
    }

    /// Returns the only request that the service got.
    fn sent(&self) -> Sent {
        let seen = self.vault.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        Sent::read(&seen[0])
    }
}

/// A received request.
struct Sent {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Sent {
    fn read(text: &str) -> Sent {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.split("\r\n");
        let mut line = lines.next().unwrap().split(' ');
        let mut word = || line.next().unwrap().to_owned();
        let (method, target, version) = (word(), word(), word());
        assert_eq!(version, "HTTP/1.1");
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        });
        Sent {
            method,
            target,
            headers: headers.collect(),
            body: body.to_owned(),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(own, _)| own == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice");
        value
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }
}

//! README's "Trust and update", run as printed. Only the two hosts differ: a registry and a web
//! server on this machine, whose certificate authority the system trusts.

use std::process::Command;

use super::registry::Server;
use super::secure::{Certificates, SecureWeb};
use super::{document, key, listed, release, reworded, ship};
use crate::support::{Draft, Machine, Run, Session, root};

/// The hosts that README names.
const WEB: &str = "acme.example";
const REGISTRY: &str = "registry.example";

/// The commands of README's block.
fn printed() -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, section) = readme.split_once("\n## Trust and update\n").unwrap();
    let (_, block) = section.split_once("```text\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().map(str::to_owned).collect()
}

/// A release with this sequence and version.
fn version(sequence: u64, version: &str) -> Draft {
    let mut draft = release(sequence);
    draft.manifest.version = version.parse().unwrap();
    draft
}

struct World {
    machine: Machine,
    registry: Server,
    web: SecureWeb,
}

impl World {
    /// A machine that trusts the authority of both servers.
    fn new() -> Option<Self> {
        let certificates = Certificates::new();
        let registry = Server::with(|folder| certificates.for_registry(folder))?;
        let machine = Machine::new();
        machine.write("ca.pem", &certificates.authority);
        Some(Self {
            web: SecureWeb::start(&certificates),
            machine,
            registry,
        })
    }

    /// The command of a printed line.
    fn command(&self, line: &str) -> Command {
        let port = self.registry.address.rsplit(':').next().unwrap();
        let line = line
            .replace(WEB, &format!("localhost:{}", self.web.port))
            .replace(REGISTRY, &format!("localhost:{port}"));
        let words = line.strip_prefix("toolward ").expect("a line of README's");
        let mut command = self.machine.toolward(words).into_command();
        command.env("SSL_CERT_FILE", self.machine.path("ca.pem"));
        command
    }

    fn run(&self, line: &str) -> Run {
        Run::new(self.command(line))
    }
}

#[test]
fn the_readmes_install_and_trust_runs_as_printed() {
    let lines = printed();
    let [add, install, call, update, revoke] = lines.as_slice() else {
        panic!("five commands: {lines:?}");
    };
    let Some(world) = World::new() else {
        return;
    };
    let machine = &world.machine;
    // The publisher's commands.
    let one = key(machine, "one");
    document(machine, "acme", "one");
    world
        .web
        .put("acme.publisher.json", machine.read("acme.publisher.json"));
    let publish = |sequence: u64, tag: &str, words: bool| {
        let draft = version(sequence, tag);
        let draft = if words { reworded(draft) } else { draft };
        let digest = ship(machine, &draft, &one, "b.toolbundle");
        let target = "oci://registry.example/acme/text-stats";
        let push = format!("toolward publisher push b.toolbundle {target}:{tag}");
        let mut push = world.command(&push);
        push.arg("--trust-key=one.pub.pem");
        Run::new(push).ends(0);
        digest
    };
    let first = publish(1, "1.0.0", false);

    // README's command, on a terminal.
    let mut session = Session::start(world.command(add), 120, "");
    session.sees("by another way? [y/N] ");
    session.types("y\r");
    session.sees("How many days old");
    session.types("\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.stdout.contains("at most 90 days old"), "{left:?}");
    let doctor = world.run("toolward doctor").end();
    assert!(
        doctor.stdout.contains("`trust add` trusts acme for text"),
        "{doctor}"
    );

    machine.write("notes.txt", "Tea with Ada");
    world.run(install).ends(0);
    world.run(call).ends(0);
    // No newer release exists yet.
    let same = world.run(update).ends(0);
    assert!(same.stdout.contains("unchanged"), "{same}");
    // The publisher publishes the next release.
    publish(2, "1.1.0", false);
    let updated = world.run(update).ends(0);
    assert!(updated.stdout.contains("1.1.0"), "{updated}");
    assert_eq!(listed(machine)[0]["version"], "1.1.0");
    world.run(call).ends(0);

    machine
        .toolward("publisher revoke acme --key one.pem -o acme.revocations.json")
        .arg(format!("--bundle={first}=leaks"))
        .ends(0);
    let revocations = machine.read("acme.revocations.json");
    world.web.put("acme.revocations.json", revocations);
    let told = world.run(revoke).ends(0);
    assert!(told.stdout.contains("1 bundle\n"), "{told}");
    world.run(call).ends(0);

    // A release with another surface waits for a person.
    publish(3, "1.2.0", true);
    let held = world.run(update).ends(4);
    assert!(held.stdout.contains("1.2.0 is held"), "{held}");
    assert_eq!(listed(machine)[0]["version"], "1.1.0");
}

//! Publishers that an operator trusts by their documents, and their bundles: installed, updated,
//! rotated, revoked. Each refusal is judged by exit code, error code, and by what stays unchanged.

mod actions;
mod asked;
mod bare_keys;
mod channels;
mod compiling;
pub(crate) mod disks;
mod elsewhere;
mod embedding;
mod first_use;
mod forgetting;
mod fronted;
mod layout;
mod mending;
mod misstated;
mod moving;
mod not_loaded;
mod prefixes;
mod printed;
mod protecting;
mod racing;
mod recorded;
pub(crate) mod registry;
mod releases;
mod revoking;
mod rotating;
pub(crate) mod secure;
mod serving;
mod story;
mod substituting;
mod unread;
mod updating;
pub(crate) mod web;
mod withheld;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::Value;
use toolward_signing::Digest;
use toolward_signing::key::SigningKey;
use toolward_signing::secrecy::ExposeSecret as _;
use toolward_signing::timestamp::Timestamp;

use crate::support::bundle::{TOOLS_JSON, new_key};
use crate::support::{Draft, Ended, Machine, tree};

/// The bundle that most tests publish, its tool, and the prefixes that both need.
pub(crate) const ID: &str = "text.stats-bundle";
const TOOL_MD: &str = "tools/text.stats/TOOL.md";
const GRANT: &str = "--prefix text --prefix text-stats";

/// A new key, as `NAME.pem` and `NAME.pub.pem` in the work directory.
pub(crate) fn key(machine: &Machine, name: &str) -> SigningKey {
    let key = new_key(&machine.work(), name);
    write_key(machine, name, &key);
    key
}

fn write_key(machine: &Machine, name: &str, key: &SigningKey) {
    let file = format!("{name}.pem");
    machine.write(&file, key.to_pem().unwrap().expose_secret());
    let owner_only = fs::Permissions::from_mode(0o600);
    fs::set_permissions(machine.path(&file), owner_only).unwrap();
}

/// One creation time for all releases, so that the same release always has the same bytes.
fn now() -> Timestamp {
    static NOW: OnceLock<u64> = OnceLock::new();
    let seconds = NOW.get_or_init(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap().as_secs()
    });
    Timestamp::from_unix(seconds.cast_signed()).unwrap()
}

/// A release of acme with the version 1.SEQUENCE.0.
pub(crate) fn release(sequence: u64) -> Draft {
    release_of("text-stats", sequence)
}

/// Makes a release of another example in the same way.
pub(crate) fn release_of(example: &str, sequence: u64) -> Draft {
    let mut draft = Draft::of(example);
    draft.manifest.publisher = "acme".to_owned();
    draft.manifest.sequence = sequence;
    draft.manifest.version = format!("1.{sequence}.0").parse().unwrap();
    draft.manifest.created = now();
    draft
}

/// The release with another description of its tool, and no other change.
pub(crate) fn reworded(draft: Draft) -> Draft {
    let reword = |text: &str| text.replace("Nothing leaves the sandbox", "Ask me about anything");
    draft.change(TOOL_MD, reword).change(TOOLS_JSON, reword)
}

/// Signs a release, writes its archive, and returns its manifest's digest.
pub(crate) fn ship(machine: &Machine, draft: &Draft, key: &SigningKey, file: &str) -> String {
    let signed = draft.sign(key);
    signed.write_archive(&machine.path(file));
    Digest::of(&signed.manifest).to_string()
}

/// Makes `NAME.publisher.json` with the key `KEY.pem`. Returns its fingerprint.
pub(crate) fn document(machine: &Machine, name: &str, key: &str) -> String {
    let file = format!("{name}.publisher.json");
    machine
        .toolward(&format!(
            "publisher new {name} --public-key {key}.pub.pem --key {key}.pem -o {file}"
        ))
        .ends(0);
    let shown = machine.toolward(&format!("publisher show {file} --json"));
    shown.ends(0).json()["fingerprint"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Runs `trust add` for a document with its fingerprint, which may contain spaces.
fn add(machine: &Machine, name: &str, grant: &str, fingerprint: &str) -> crate::support::Run {
    machine
        .toolward(&format!("trust add {name}.publisher.json {grant}"))
        .arg(format!("--fingerprint={fingerprint}"))
}

/// A machine that trusts acme with the key `one`.
pub(crate) fn trusting() -> (Machine, SigningKey) {
    let machine = Machine::new();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    add(&machine, "acme", GRANT, &fingerprint).ends(0);
    (machine, one)
}

/// A machine that trusts acme and has installed its release with sequence 1, which runs.
pub(crate) fn installed() -> (Machine, SigningKey) {
    installed_in(|machine| machine)
}

fn installed_in(prepare: impl FnOnce(Machine) -> Machine) -> (Machine, SigningKey) {
    let (machine, one) = trusting();
    let machine = prepare(machine);
    ship(&machine, &release(1), &one, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    (machine, one)
}

/// Returns the installed bundles, one value each.
pub(crate) fn listed(machine: &Machine) -> Vec<Value> {
    machine.toolward("list --json").ends(0).json_lines()
}

/// Returns the sequence of the only installed bundle.
#[track_caller]
fn sequence(machine: &Machine) -> u64 {
    let listed = listed(machine);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["id"], ID);
    listed[0]["sequence"].as_u64().unwrap()
}

/// Calls the installed tool, and asserts that it runs.
#[track_caller]
fn runs(machine: &Machine) -> Ended {
    let ended = machine.toolward("call text.stats --set text=one").ends(0);
    assert_eq!(ended.json()["words"], 1, "{ended}");
    ended
}

/// Calls the installed tool, and asserts that it is not loaded, with this code as the reason.
#[track_caller]
fn is_not_loaded(machine: &Machine, code: &str) {
    let ended = machine.toolward("call text.stats --set text=one").ends(3);
    ended.says(code);
    ended.warns(&format!("{ID} is installed and not loaded"));
    ended.warns(&format!("({code})"));
}

/// Returns an operator's files: the trusted publishers and the installed bundles.
fn kept(machine: &Machine) -> BTreeMap<String, String> {
    let mut kept = BTreeMap::new();
    for folder in [".config/toolward", ".local/share/toolward"] {
        let path = machine.home().join(folder);
        if path.is_dir() {
            kept.extend(files(folder, &path));
        }
    }
    kept
}

fn files(folder: &str, path: &Path) -> BTreeMap<String, String> {
    tree(path)
        .into_iter()
        .filter(|(name, _)| !name.ends_with('/') && !name.ends_with("lock"))
        .map(|(name, what)| (format!("{folder}/{name}"), what))
        .collect()
}

/// Runs a command, and asserts that it fails with these codes and changes nothing.
#[track_caller]
fn refused(machine: &Machine, words: &str, exit: i32, code: &str) -> Ended {
    refused_run(machine, machine.toolward(words), exit, code)
}

#[track_caller]
fn refused_run(machine: &Machine, run: crate::support::Run, exit: i32, code: &str) -> Ended {
    let before = (kept(machine), listed(machine));
    let ended = run.ends(exit);
    ended.says(code);
    assert_eq!((kept(machine), listed(machine)), before, "{ended}");
    ended
}

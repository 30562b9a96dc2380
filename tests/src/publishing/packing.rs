//! `toolward pack`: the same bytes each time, and only listed files.

use std::fs;

use crate::support::{Machine, tree};

const CREATED: &str = "created = \"2026-11-01T00:00:00Z\"\n";

fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    machine
}

/// Removes the line of `bundle.toml` with the time of creation.
fn without_created(machine: &Machine) {
    let text = machine.text("b/bundle.toml");
    let line = text
        .lines()
        .find(|line| line.starts_with("created"))
        .unwrap()
        .to_owned();
    machine.write("b/bundle.toml", text.replace(&format!("{line}\n"), ""));
}

#[test]
fn packing_twice_gives_the_same_bytes() {
    let machine = machine();
    machine
        .toolward("pack b -o one.toolbundle --key acme.pem")
        .ends(0);
    // In another directory, with files made in another order and with other times and modes.
    let other = Machine::new();
    for name in [
        "drivers/hostile/driver.wasm",
        "drivers/hostile/DRIVER.md",
        "bundle.toml",
    ] {
        other.write(&format!("copy/{name}"), machine.read(&format!("b/{name}")));
    }
    other.write(
        "copy/tools/hostile.run/TOOL.md",
        machine.read("b/tools/hostile.run/TOOL.md"),
    );
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(other.path("copy/bundle.toml"), mode).unwrap();
    other.write("acme.pem", machine.read("acme.pem"));
    other
        .toolward("pack copy -o two.toolbundle --key acme.pem")
        .env("TZ", "Asia/Tokyo")
        .ends(0);
    assert!(machine.read("one.toolbundle") == other.read("two.toolbundle"));
}

#[test]
fn a_directory_and_an_archive_hold_the_same() {
    let machine = machine();
    machine.toolward("pack b -o packed --key acme.pem").ends(0);
    machine
        .toolward("pack b -o packed.toolbundle --key acme.pem")
        .ends(0);
    let verify = |name: &str| {
        machine
            .toolward(&format!("verify {name} --trust-key acme.pub.pem --json"))
            .ends(0)
            .json()
    };
    assert_eq!(verify("packed"), verify("packed.toolbundle"));
    let names: Vec<String> = tree(&machine.path("packed"))
        .into_keys()
        .filter(|name| !name.ends_with('/'))
        .collect();
    assert_eq!(
        names,
        [
            "drivers/hostile/DRIVER.md",
            "drivers/hostile/driver.wasm",
            "manifest.dsse.json",
            "manifest.toml",
            "tools.json",
            "tools/hostile.run/TOOL.md",
        ]
    );
}

#[test]
fn the_time_comes_from_bundle_toml_or_source_date_epoch_and_never_from_the_clock() {
    let machine = machine();
    let pack = || machine.toolward("pack b -o out --json");
    pack().env("SOURCE_DATE_EPOCH", "0").ends(0);
    let manifest = machine.text("out/manifest.toml");
    let own = machine.text("b/bundle.toml");
    let line = own
        .lines()
        .find(|line| line.starts_with("created"))
        .unwrap();
    // The author's own values take precedence.
    assert!(manifest.contains(line), "{manifest}");

    without_created(&machine);
    fs::remove_dir_all(machine.path("out")).unwrap();
    let error = pack().ends(1).json();
    assert_eq!(error["error"]["code"], "created-missing");
    assert!(
        error["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("SOURCE_DATE_EPOCH")
    );
    assert!(!machine.path("out").exists());

    pack().env("SOURCE_DATE_EPOCH", "1793491200").ends(0);
    assert!(machine.text("out/manifest.toml").contains(CREATED));
    fs::remove_dir_all(machine.path("out")).unwrap();
    let error = pack().env("SOURCE_DATE_EPOCH", "yesterday").ends(2).json();
    assert_eq!(error["error"]["code"], "source-date-epoch-invalid");
}

#[test]
fn sources_secrets_and_hidden_files_stay_at_home() {
    let machine = machine();
    machine.write("b/driver/src/lib.rs", "fn main() {}");
    machine.write("b/.env", "SECRET=1");
    machine.write("b/tools/.secret", "SECRET=1");
    machine.write("b/acme.pem", machine.read("acme.pem"));
    machine.write("b/README.md", "# b\n");
    let packed = machine.toolward("pack b -o out").ends(0);
    let names: Vec<String> = tree(&machine.path("out")).into_keys().collect();
    assert!(names.contains(&"README.md".to_owned()));
    for name in names {
        for kept in ["driver/", ".env", ".secret", "acme.pem"] {
            assert!(!name.starts_with(kept) && !name.ends_with(kept), "{name}");
        }
    }
    assert!(packed.stderr.contains(".secret"), "{packed}");
}

#[test]
fn a_link_out_of_the_directory_is_not_followed() {
    let machine = machine();
    machine.write("outside.md", "mine");
    let link = machine.path("b/tools/hostile.run/outside.md");
    std::os::unix::fs::symlink(machine.path("outside.md"), link).unwrap();
    let ended = machine.toolward("pack b -o out").ends(1);
    assert!(ended.stderr.contains("outside.md"), "{ended}");
    assert!(!machine.path("out").exists());
}

#[test]
fn a_name_that_not_every_system_has_is_refused() {
    for name in ["aux.md", "with space.md", "TOOL.MD", "caf\u{e9}.md"] {
        let machine = machine();
        machine.write(&format!("b/tools/hostile.run/{name}"), "x");
        let ended = machine.toolward("pack b -o out").ends(1);
        assert!(ended.stderr.contains("error["), "{name}: {ended}");
        assert!(!machine.path("out").exists(), "{name}");
    }
}

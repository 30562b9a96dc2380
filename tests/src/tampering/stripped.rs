//! Provenance that a manifest announces, removed from the bundle afterwards.

use std::fs;

use toolward_signing::envelope::Envelope;
use toolward_signing::key::SigningKey;
use toolward_signing::provenance::{PAYLOAD_TYPE, Provenance};

use super::{call_refused, machine_with_key, refused};
use crate::support::{Draft, Signed};

/// A bundle whose manifest announces its provenance, with the provenance.
fn announced(key: &SigningKey) -> Signed {
    let mut draft = Draft::of("text-stats");
    draft.manifest.provenance = true;
    with_provenance(&draft, key)
}

fn with_provenance(draft: &Draft, key: &SigningKey) -> Signed {
    let mut signed = draft.sign(key);
    let claim = Provenance::new(Vec::new(), "rustc 1.95.0".into(), "wasm32-wasip2".into());
    let mut envelope = Envelope::new(PAYLOAD_TYPE, claim.statement(&signed.manifest).unwrap());
    envelope.sign(key);
    signed.provenance = Some(envelope.to_bytes().unwrap());
    signed
}

#[test]
fn announced_provenance_that_is_stripped_from_an_archive_or_a_directory_is_missed() {
    let (machine, key) = machine_with_key();
    let mut signed = announced(&key);
    let trust = "--trust-key key.pub.pem";
    signed.write_archive(&machine.path("whole.toolbundle"));
    signed.write_directory(&machine.path("whole"));
    for whole in ["whole.toolbundle", "whole"] {
        machine.toolward(&format!("verify {whole} {trust}")).ends(0);
    }
    machine
        .toolward(&format!("install whole.toolbundle {trust}"))
        .ends(0);

    signed.provenance = None;
    signed.write_archive(&machine.path("less.toolbundle"));
    signed.write_directory(&machine.path("less"));
    for less in ["less.toolbundle", "less"] {
        refused(&machine, &format!("{less} {trust}"), "provenance-missing");
        call_refused(
            &machine,
            &format!("--bundle {less} {trust}"),
            "provenance-missing",
        );
        let install = machine.toolward(&format!("install {less} {trust}"));
        install.ends(3).says("provenance-missing");
    }
    // The same for an installed bundle.
    let objects = machine.home().join(".local/share/toolward/store/objects");
    let object = fs::read_dir(objects).unwrap().next().unwrap().unwrap();
    fs::copy(machine.path("less.toolbundle"), object.path()).unwrap();
    let call = machine.toolward(&format!("call text.stats --set text=one {trust}"));
    call.ends(3).says("provenance-missing");
}

#[test]
fn who_requires_provenance_takes_only_what_announces_it() {
    let (machine, key) = machine_with_key();
    let pem = machine.text("key.pub.pem");
    machine.configure(&format!(
        "[[publisher]]\nname = \"acme\"\nkeys = [\"\"\"{pem}\"\"\"]\nprefixes = [\"text\", \
         \"text-stats\"]\n[trust]\nrequire_provenance = true\n"
    ));
    let mut draft = Draft::of("text-stats");
    draft.manifest.publisher = "acme".to_owned();
    // The provenance exists but is not announced, so its file could be removed unnoticed.
    with_provenance(&draft, &key).write_archive(&machine.path("b.toolbundle"));
    refused(&machine, "b.toolbundle", "provenance-missing");
    draft.manifest.provenance = true;
    with_provenance(&draft, &key).write_archive(&machine.path("c.toolbundle"));
    machine.toolward("verify c.toolbundle").ends(0);
}

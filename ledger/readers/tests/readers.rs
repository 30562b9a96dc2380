//! Reads our ledgers with other libraries: `signed_note` and `tlog_tiles` read checkpoints, tiles
//! and proofs.

#[expect(dead_code, reason = "the ledger's own tests use all of it")]
#[path = "../../tests/suite/support.rs"]
mod support;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use signed_note::{Note, StandardVerifier, VerifierList};
use tlog_tiles::{Hash, HashReader as _, Tile, TileHashReader, TileReader};
use toolward_ledger::tree::leaf_hash;

use crate::support::{Place, filled};

/// A checkpoint, read by `signed_note` and `tlog_tiles`.
fn read(place: &Place, note: &str) -> tlog_tiles::Checkpoint {
    let vkey = std::fs::read_to_string(place.ledger().join("ledger.vkey")).unwrap();
    let verifier = StandardVerifier::new(vkey.trim_end()).unwrap();
    let known = VerifierList::new(vec![Box::new(verifier)]);
    let parsed = Note::from_bytes(note.as_bytes()).unwrap();
    let (verified, unverified) = parsed.verify(&known).unwrap();
    assert_eq!((verified.len(), unverified.len()), (1, 0));
    let size = note.lines().nth(1).unwrap();
    let forged = note.replacen(&format!("\n{size}\n"), "\n299\n", 1);
    let forged = Note::from_bytes(forged.as_bytes()).unwrap();
    assert!(forged.verify(&known).is_err());
    tlog_tiles::Checkpoint::from_reader(&mut note.as_bytes(), false).unwrap()
}

/// An exported ledger, in the form that a web server would serve.
struct Exported(PathBuf);

impl Exported {
    fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.0.join(path)).unwrap()
    }
}

impl TileReader for Exported {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        let read = |tile: &Tile| {
            assert!(tile.level_index() < 1000);
            let mut path = format!("tile/{}/{:03}", tile.level(), tile.level_index());
            if tile.width() < 256 {
                path = format!("{path}.p/{}", tile.width());
            }
            Ok(self.read(&path))
        };
        tiles.iter().map(read).collect()
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

fn export(place: &Place) -> Exported {
    let folder = place.directory.path().join("tiles");
    place.reader().export_tiles(&folder).unwrap();
    Exported(folder)
}

#[test]
fn tiles_and_checkpoint_are_read_by_tlog_tiles() {
    let place = filled(298);
    let exported = export(&place);
    let note = String::from_utf8(exported.read("checkpoint")).unwrap();
    let checkpoint = read(&place, &note);
    assert_eq!(checkpoint.size(), 300);
    // The reader checks each tile against the root before it returns a hash.
    let reader = TileHashReader::new(checkpoint.size(), *checkpoint.hash(), &exported);
    assert_eq!(
        tlog_tiles::tree_hash(300, &reader).unwrap(),
        *checkpoint.hash()
    );
    for seq in [0, 1, 255, 256, 299] {
        let index = tlog_tiles::stored_hash_index(0, seq);
        let leaf = reader.read_hashes(&[index]).unwrap()[0];
        assert_eq!(leaf.0, place.reader().row(seq).unwrap().leaf.0);
        let proof = tlog_tiles::prove_record(300, seq, &reader).unwrap();
        tlog_tiles::check_record(&proof, 300, *checkpoint.hash(), seq, leaf).unwrap();
        // Our proof has the same hashes.
        let ours = place.reader().prove(seq).unwrap();
        let lines: Vec<_> = ours
            .lines()
            .skip(2)
            .take_while(|line| !line.is_empty())
            .collect();
        let theirs: Vec<_> = proof.iter().map(|hash| STANDARD.encode(hash.0)).collect();
        assert_eq!(lines, theirs);
        let (head, checkpoint) = ours.split_once("\n\n").unwrap();
        assert!(
            head.starts_with(&format!("c2sp.org/tlog-proof@v1\nindex {seq}\n")),
            "{head}"
        );
        assert_eq!(checkpoint, note);
    }
}

#[test]
fn consistency_is_what_tlog_tiles_shows() {
    let place = filled(298);
    let exported = export(&place);
    let checkpoint = read(
        &place,
        &String::from_utf8(exported.read("checkpoint")).unwrap(),
    );
    let reader = TileHashReader::new(300, *checkpoint.hash(), &exported);
    for old in [1, 2, 3, 128, 255, 256, 257, 299] {
        let theirs = tlog_tiles::prove_tree(300, old, &reader).unwrap();
        let ours = place.reader().prove_consistency(old, 300).unwrap();
        let ours: Vec<_> = ours.iter().map(|hash| Hash(hash.0)).collect();
        assert_eq!(ours, theirs, "{old}");
    }
}

/// The records of an entry bundle.
fn entries(mut bundle: &[u8]) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    while let Some((length, rest)) = bundle.split_first_chunk() {
        let (entry, rest) = rest.split_at(u16::from_be_bytes(*length).into());
        entries.push(entry.to_vec());
        bundle = rest;
    }
    entries
}

#[test]
fn bundles_of_entries_are_the_leaves_of_their_tiles_and_pruned_ones_are_left_out() {
    let place = filled(298);
    let exported = export(&place);
    let check = |entries_path: &str, tile: &str, count: usize| {
        let found = entries(&exported.read(entries_path));
        assert_eq!(found.len(), count);
        let hashes: Vec<u8> = found.iter().flat_map(|entry| leaf_hash(entry).0).collect();
        assert_eq!(hashes, exported.read(tile));
    };
    check("tile/entries/000", "tile/0/000", 256);
    check("tile/entries/001.p/44", "tile/0/001.p/44", 44);
    assert_eq!(exported.read("tile/1/000.p/1").len(), 32);

    let mut maintenance = toolward_ledger::Maintenance::open(&place.ledger(), None).unwrap();
    assert_eq!(maintenance.prune(300).unwrap(), 256);
    let folder = place.directory.path().join("pruned");
    place.reader().export_tiles(&folder).unwrap();
    assert!(!folder.join("tile/entries/000").exists());
    // The row about the pruning comes last, below a separate checkpoint.
    let pruned = Exported(folder.clone());
    assert_eq!(pruned.read("tile/0/000"), exported.read("tile/0/000"));
    let rest = entries(&pruned.read("tile/entries/001.p/45"));
    let before = entries(&exported.read("tile/entries/001.p/44"));
    assert_eq!((rest.len(), rest.get(..44)), (45, before.get(..)));
    let note = String::from_utf8(pruned.read("checkpoint")).unwrap();
    assert_eq!(read(&place, &note).size(), 301);
    // An existing folder is not written to.
    let again = place.reader().export_tiles(Path::new(&folder)).unwrap_err();
    assert_eq!(again.code(), "ledger-io");
}

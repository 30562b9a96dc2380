//! Malicious archives: each trick is refused with a specific code before it has an effect.

use toolward_signing::manifest::MANIFEST_TYPE;
use toolward_signing::verify;

use crate::support::{Sample, acme, code, compress, envelope, key, options, tar_of};

const BLOCK: usize = 512;

/// A tar archive as a list of entries: header and padded content.
struct Tar {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Tar {
    fn sample() -> Self {
        Self::of(&Sample::new().sign(&[&key(1)]).archive())
    }

    fn of(archive: &[u8]) -> Self {
        let tar = tar_of(archive);
        let mut entries = Vec::new();
        let mut at = 0;
        while tar[at] != 0 {
            let header = tar[at..at + BLOCK].to_vec();
            let size = std::str::from_utf8(&header[124..135]).unwrap();
            let size = usize::from_str_radix(size, 8).unwrap();
            let end = at + BLOCK + size.next_multiple_of(BLOCK);
            entries.push((header, tar[at + BLOCK..end].to_vec()));
            at = end;
        }
        Self { entries }
    }

    fn position(&self, name: &str) -> usize {
        self.entries
            .iter()
            .position(|(header, _)| header.starts_with(name.as_bytes()))
            .unwrap()
    }

    /// An entry like the README's, under another name and type.
    fn entry(&self, name: &[u8], kind: u8, content: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut header = self.entries[self.position("README.md")].0.clone();
        header[..100].fill(0);
        header[..name.len()].copy_from_slice(name);
        header[156] = kind;
        let size = format!("{:011o}\0", content.len());
        header[124..136].copy_from_slice(size.as_bytes());
        seal(&mut header);
        let mut padded = content.to_vec();
        padded.resize(content.len().next_multiple_of(BLOCK), 0);
        (header, padded)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut tar = Vec::new();
        for (header, content) in &self.entries {
            tar.extend_from_slice(header);
            tar.extend_from_slice(content);
        }
        tar.extend_from_slice(&[0; 2 * BLOCK]);
        tar
    }

    fn code(&self) -> &'static str {
        refused(&compress(&self.bytes()))
    }
}

/// Recomputes a header's checksum.
fn seal(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn refused(archive: &[u8]) -> &'static str {
    code(verify::archive_bytes(archive, &acme(), &options()))
}

#[test]
fn the_test_can_rebuild_an_archive_that_verifies() {
    let bytes = compress(&Tar::sample().bytes());
    verify::archive_bytes(&bytes, &acme(), &options()).unwrap();
}

#[test]
fn the_order_is_envelope_manifest_provenance_and_then_by_name() {
    let tar = Tar::sample();
    let names: Vec<_> = tar
        .entries
        .iter()
        .map(|(header, _)| {
            let end = header.iter().position(|byte| *byte == 0).unwrap();
            String::from_utf8(header[..end].to_vec()).unwrap()
        })
        .collect();
    assert_eq!(
        names,
        [
            "manifest.dsse.json",
            "manifest.toml",
            "README.md",
            "drivers/text-stats/DRIVER.md",
            "drivers/text-stats/driver.wasm",
            "tools.json",
            "tools/text.stats/TOOL.md",
        ]
    );
    for (header, _) in &tar.entries {
        assert_eq!(&header[100..108], b"0000644\0");
        assert_eq!(&header[136..148], b"00000000000\0");
        assert!(header[108..124].iter().all(|byte| matches!(byte, b'0' | 0)));
    }
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    for name in [
        &b"../evil"[..],
        b"/etc/passwd",
        b"tools/../../evil",
        b"./README.md",
        b"NUL",
        b"com1.txt",
        b"C:evil",
        b"a\\b",
        b".profile",
        b"evil.",
        b"a b",
        b"a//b",
        b"caf\xc3\xa9",
        b"\xff\xfe",
    ] {
        for place in [2, 4, 7] {
            let mut tar = Tar::sample();
            let entry = tar.entry(name, b'0', b"evil");
            tar.entries.insert(place, entry);
            assert_eq!(tar.code(), "path-invalid", "{name:?} at {place}");
        }
    }
}

#[test]
fn everything_but_a_regular_file_is_refused() {
    for kind in [
        b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'S', b'V', b'x', b'g', b'L', b'K', 0,
    ] {
        let mut tar = Tar::sample();
        let mut entry = tar.entry(b"README.md", kind, b"");
        entry.0[157..168].copy_from_slice(b"/etc/passwd");
        seal(&mut entry.0);
        let place = tar.position("README.md");
        tar.entries[place] = entry;
        assert_eq!(tar.code(), "file-type", "{kind}");
        // Also as the first entry, before anything is verified.
        let mut tar = Tar::sample();
        let entry = tar.entry(b"manifest.dsse.json", kind, b"");
        tar.entries.insert(0, entry);
        assert_eq!(tar.code(), "file-type", "{kind}");
    }
}

#[test]
fn pax_and_gnu_headers_in_front_of_an_entry_are_refused() {
    let pax = b"28 path=../../../etc/passwd\n".as_slice();
    for (kind, content) in [
        (b'x', pax),
        (b'g', pax),
        (b'L', b"../../etc/passwd\0".as_slice()),
        (b'x', b"22 GNU.sparse.major=1\n".as_slice()),
    ] {
        let mut tar = Tar::sample();
        let entry = tar.entry(b"././@PaxHeader", kind, content);
        let place = tar.position("README.md");
        tar.entries.insert(place, entry);
        assert_eq!(tar.code(), "file-type");
    }
}

#[test]
fn a_gnu_header_and_one_of_another_size_notation_are_refused() {
    let mut tar = Tar::sample();
    let place = tar.position("README.md");
    tar.entries[place].0[257..265].copy_from_slice(b"ustar  \0");
    seal(&mut tar.entries[place].0);
    assert_eq!(tar.code(), "archive-header");

    let mut tar = Tar::sample();
    tar.entries[place].0[124] = 0x80;
    seal(&mut tar.entries[place].0);
    assert_eq!(tar.code(), "archive-header");
}

#[test]
fn a_header_that_says_more_than_path_and_size_is_refused() {
    for (from, value) in [
        (100, &b"0000755\0"[..]),
        (108, b"0001750\0"),
        (116, b"0001750\0"),
        (136, b"14723052000\0"),
        (157, b"link"),
        (265, b"root"),
        (297, b"root"),
        (329, b"0000001\0"),
        (500, b"x"),
    ] {
        for name in ["manifest.dsse.json", "README.md"] {
            let mut tar = Tar::sample();
            let place = tar.position(name);
            let header = &mut tar.entries[place].0;
            header[from..from + value.len()].copy_from_slice(value);
            seal(header);
            assert_eq!(tar.code(), "archive-header", "{name}, field at {from}");
        }
    }
}

#[test]
fn a_missing_extra_renamed_or_repeated_entry_is_refused() {
    let places = [
        "README.md",
        "drivers/text-stats/driver.wasm",
        "tools/text.stats/TOOL.md",
    ];
    for name in places {
        let mut tar = Tar::sample();
        let place = tar.position(name);
        tar.entries.remove(place);
        assert_eq!(tar.code(), "file-missing", "without {name}");

        let mut tar = Tar::sample();
        let entry = tar.entries[place].clone();
        tar.entries.insert(place + 1, entry.clone());
        assert_eq!(tar.code(), "file-duplicate", "{name} twice");

        let mut tar = Tar::sample();
        tar.entries.push(entry);
        assert_eq!(tar.code(), "file-duplicate", "{name} again at the end");

        let mut tar = Tar::sample();
        let renamed = tar.entry(b"renamed", b'0', b"");
        tar.entries[place].0 = renamed.0;
        assert_eq!(tar.code(), "file-extra", "{name} renamed");
    }
    for place in 2..=7 {
        let mut tar = Tar::sample();
        let entry = tar.entry(b"extra", b'0', b"x");
        tar.entries.insert(place, entry);
        assert_eq!(tar.code(), "file-extra");
    }
    for name in ["manifest.toml", "manifest.dsse.json"] {
        let mut tar = Tar::sample();
        let entry = tar.entries[tar.position(name)].clone();
        tar.entries.insert(5, entry);
        assert_eq!(tar.code(), "file-duplicate");
    }
}

#[test]
fn a_name_that_differs_in_case_only_is_refused() {
    let mut tar = Tar::sample();
    let twin = tar.entry(b"readme.MD", b'0', b"");
    tar.entries.push(twin);
    assert_eq!(tar.code(), "path-conflict");
}

#[test]
fn entries_out_of_order_are_refused() {
    let mut tar = Tar::sample();
    tar.entries.swap(0, 1);
    assert_eq!(tar.code(), "archive-order");
    let mut tar = Tar::sample();
    tar.entries.swap(3, 4);
    assert_eq!(tar.code(), "file-missing");
    let mut tar = Tar::sample();
    tar.entries.remove(0);
    assert_eq!(tar.code(), "archive-order");
    let mut tar = Tar::sample();
    tar.entries.clear();
    assert_eq!(tar.code(), "envelope-missing");
    let mut tar = Tar::sample();
    tar.entries.truncate(1);
    assert_eq!(tar.code(), "manifest-missing");
}

#[test]
fn a_wrong_size_is_refused() {
    let mut tar = Tar::sample();
    let place = tar.position("tools/text.stats/TOOL.md");
    for size in ["00000000003", "77777777777"] {
        tar.entries[place].0[124..135].copy_from_slice(size.as_bytes());
        seal(&mut tar.entries[place].0);
        assert_eq!(tar.code(), "size-mismatch");
    }
}

#[test]
fn a_large_first_entry_is_refused_before_it_is_read() {
    let mut tar = Tar::sample();
    tar.entries[0].0[124..135].copy_from_slice(b"77777777777");
    seal(&mut tar.entries[0].0);
    assert_eq!(tar.code(), "too-large");
}

#[test]
fn padding_that_is_not_zero_is_refused() {
    let mut tar = Tar::sample();
    let place = tar.position("tools/text.stats/TOOL.md");
    *tar.entries[place].1.last_mut().unwrap() = 1;
    assert_eq!(tar.code(), "archive-header");
}

#[test]
fn anything_after_the_end_is_refused() {
    let good = Sample::new().sign(&[&key(1)]).archive();
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, b'x'];
    for tail in [
        &b"x"[..],
        &[0],
        &[0; 4096],
        &skippable,
        &compress(b""),
        &compress(b"more"),
        &good,
    ] {
        let archive = [&good[..], tail].concat();
        assert_eq!(refused(&archive), "archive-trailing-data");
    }
    let mut tar = Tar::sample().bytes();
    tar.push(0);
    assert_eq!(refused(&compress(&tar)), "archive-trailing-data");
    tar.resize(tar.len() + 8 * BLOCK, 0);
    assert_eq!(refused(&compress(&tar)), "archive-trailing-data");
    let mut tar = Tar::sample().bytes();
    let end = tar.len();
    tar[end - BLOCK] = b'x';
    assert_eq!(refused(&compress(&tar)), "archive-trailing-data");
}

#[test]
fn a_tar_archive_split_over_two_frames_is_refused() {
    let tar = Tar::sample().bytes();
    let (one, two) = tar.split_at(2048);
    let archive = [compress(one), compress(two)].concat();
    assert_eq!(refused(&archive), "archive-truncated");
}

#[test]
fn what_does_not_begin_with_a_zstd_frame_is_refused() {
    let good = Sample::new().sign(&[&key(1)]).archive();
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, b'x'];
    for archive in [
        Vec::new(),
        b"\x1f\x8b\x08".to_vec(),
        tar_of(&good),
        [&skippable[..], &good].concat(),
        [b"x", &good[..]].concat(),
    ] {
        assert_eq!(refused(&archive), "archive-format");
    }
    assert_eq!(refused(&good[..4]), "archive-truncated");
    assert_eq!(refused(&compress(b"")), "archive-truncated");
    assert_eq!(
        refused(&compress(b"not a tar archive")),
        "archive-truncated"
    );
    assert_eq!(refused(&compress(&[b'x'; 1024])), "archive-header");
}

#[test]
fn a_frame_that_asks_for_a_large_window_is_refused() {
    let tar = Tar::sample().bytes();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, &tar).unwrap();
    assert_eq!(refused(&encoder.finish().unwrap()), "archive-format");
}

#[test]
fn a_bomb_is_refused_by_its_ratio_and_a_small_bundle_that_compresses_well_is_not() {
    let mut sample = Sample::new();
    sample.files.insert("zeros".to_owned(), vec![0; 7 << 20]);
    let archive = sample.sign(&[&key(1)]).archive();
    verify::archive_bytes(&archive, &acme(), &options()).unwrap();
    sample.files.insert("zeros".to_owned(), vec![0; 9 << 20]);
    assert_eq!(refused(&sample.sign(&[&key(1)]).archive()), "archive-ratio");
}

#[test]
fn a_bundle_larger_than_the_limit_is_refused_before_it_is_read() {
    let mut manifest = Sample::new().manifest();
    for file in &mut manifest.artifacts.files {
        file.size = 200 << 20;
    }
    let manifest = manifest.to_bytes().unwrap();
    let mut signed = Sample::new().sign(&[&key(1)]);
    signed.envelope = envelope(MANIFEST_TYPE, &manifest, &[&key(1)]);
    signed.manifest = manifest;
    assert_eq!(code(signed.verify(&acme())), "too-large");
}

#[test]
fn a_file_larger_than_the_limit_is_refused_by_its_size() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // The file is sparse; reading it would take seconds.
    let size = verify::MAX_BYTES * 4;
    file.as_file().set_len(size).unwrap();
    let refusal = verify::open(file.path(), &acme(), &options()).unwrap_err();
    assert_eq!(refusal.code(), "too-large");
    assert!(refusal.to_string().contains(&size.to_string()), "{refusal}");
}

#[test]
fn an_unsigned_bomb_is_not_expanded() {
    let mut tar = Tar::sample();
    let entry = tar.entry(b"manifest.dsse.json", b'0', &vec![0; 64 << 20]);
    tar.entries[0] = entry;
    assert_eq!(tar.code(), "too-large");
}

#[test]
fn packing_twice_gives_the_same_bytes_in_whatever_order_files_are_given() {
    let signed = Sample::new().sign(&[&key(1)]);
    let archive = signed.archive();
    assert_eq!(signed.archive(), archive);
    let bundle = verify::archive_bytes(&archive, &acme(), &options()).unwrap();
    let mut contents = bundle.contents().unwrap();
    contents.files.reverse();
    let again = toolward_signing::archive::to_bytes(&contents).unwrap();
    assert_eq!(again, archive);
}

#[test]
fn contents_that_no_reader_takes_are_not_written() {
    let signed = Sample::new().sign(&[&key(1)]);
    let bundle = verify::archive_bytes(&signed.archive(), &acme(), &options()).unwrap();
    for (path, code) in [
        ("README.md", "file-duplicate"),
        ("readme.md", "path-conflict"),
        ("MANIFEST.toml", "file-duplicate"),
        ("provenance.dsse.json", "file-duplicate"),
    ] {
        let mut contents = bundle.contents().unwrap();
        contents.files.push((path.parse().unwrap(), b""));
        let refusal = toolward_signing::archive::to_bytes(&contents).unwrap_err();
        assert_eq!(refusal.code(), code);
    }
}

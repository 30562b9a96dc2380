use std::fs;

use super::rings;
use super::source::Crate;
use crate::repository;

#[test]
fn no_files_of_a_crate_import_each_other_in_a_ring() {
    let workspace = repository::root().unwrap();
    let manifest = repository::read(&workspace.join("Cargo.toml")).unwrap();
    let (_, members) = manifest.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let mut problems = String::new();
    let members = members.split('"').skip(1).step_by(2);
    for member in members.chain(["xtask/generate"]) {
        let source = workspace.join(member).join("src");
        let read = |name: &str| fs::read_to_string(source.join(name)).ok();
        let roots = ["lib.rs", "main.rs"].map(|root| read(root).map(|_| Crate::new(root, &read)));
        let found = roots.iter().flatten().flat_map(rings).collect::<Vec<_>>();
        if !found.is_empty() {
            problems += &format!("{member}:\n{}", found.join("\n"));
        }
    }
    assert!(
        problems.is_empty(),
        "files import each other in a ring. Move what is imported to where it belongs, or to a new \
         file that the others import; or merge files that are one idea.\n{problems}"
    );
}

/// Returns the rings of a crate with these lines as its files.
fn rings_of(files: &str) -> Vec<String> {
    let read = |name: &str| {
        let (_, text) = files.split_once(&format!(" {name}: "))?;
        text.lines().next().map(str::to_owned)
    };
    rings(&Crate::new("lib.rs", &read))
}

#[test]
fn a_ring_is_named_with_its_imports() {
    let rings = rings_of(
        " lib.rs: mod a; mod b; mod c; mod d;
        a.rs: use crate::b::{self, B}; pub struct A;
        b.rs: pub struct B; fn b() { format!(\"{}\", super::c::C) }
        c/mod.rs: mod inner { use super::super::a::A as E; } pub struct C;
        d.rs: use crate::a::A as E; use super::c::*;",
    );
    let ring = "  a imports b: crate::b, crate::b::B
  b imports c: super::c::C
  c imports a: super::super::a::A
";
    assert_eq!(rings, [ring]);
}

#[test]
fn a_re_export_is_followed_to_the_file_that_defines_the_item() {
    let files = " lib.rs: mod a; mod b; mod f; pub use b::B; use f as g;
        a.rs: pub struct A; fn a(_: crate::B) {}
        b.rs: use crate::g; pub struct B; fn b(_: g::C) {}
        f.rs: mod c; pub use self::c::C;
        f/c.rs: use crate::a::A; pub struct C;";
    let ring = "  a imports b: crate::B
  b imports f::c: g::C
  f::c imports a: crate::a::A
";
    assert_eq!(rings_of(files), [ring]);
    assert!(rings_of(&files.replace("pub use self::c::C;", "pub struct C;")).is_empty());
}

#[test]
fn modules_with_those_below_them_other_crates_and_tests_make_no_ring() {
    let files = " lib.rs: mod a; mod b; use a::A; pub struct L;
        a.rs: mod below; use below::B; use crate::L; use std::b::C; fn a(_: ::b::C) {}
        a/below.rs: use super::A; pub struct B; mod inner { use super::super::A; }
        b.rs: use crate::a::A; #[cfg(test)] mod missing; impl A { #[cfg(test)] fn c() { super::b::c() } }";
    assert!(rings_of(files).is_empty());
    let files = " lib.rs: mod a; mod b;
        a.rs: #[cfg(test)] use crate::b::B; pub struct A;
        b.rs: use crate::a::A; pub struct B;";
    assert!(rings_of(files).is_empty());
    assert_eq!(rings_of(&files.replace("#[cfg(test)]", "")).len(), 1);
}

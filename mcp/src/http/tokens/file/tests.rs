//! What a file of tokens may hold, and who may read it.

mod adding;

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use super::super::generate;
use super::*;
use crate::http::Refusal;

fn entry(name: &str, hash: &TokenHash, more: &str) -> String {
    format!("[[token]]\nname = \"{name}\"\nhash = \"{hash}\"\n{more}\n")
}

fn refused(text: &str) -> String {
    let error = parse(text).unwrap_err();
    assert_eq!(error.code(), "token-file-invalid", "{error}");
    error.to_string()
}

#[test]
fn a_token_has_what_its_entry_says_and_no_more() {
    let (bare, bare_hash) = generate().unwrap();
    let (full, full_hash) = generate().unwrap();
    let text = entry("bare", &bare_hash, "")
        + &entry(
            "full",
            &full_hash,
            "tools = [\"com.example.*\", \"org.other@2\"]\nmay_approve = true\nrequests = 3",
        );
    let tokens = parse(&text).unwrap();
    let now = SystemTime::now();

    let bare = tokens.find(Some(bare.expose()), now).unwrap();
    assert!(!bare.principal.tools.include("com.example.echo", 1));
    assert!(!bare.principal.may_approve);
    assert_eq!(bare.requests, None);

    let full = tokens.find(Some(full.expose()), now).unwrap();
    assert_eq!(&*full.principal.name, "full");
    assert!(full.principal.tools.include("com.example.echo", 1));
    assert!(!full.principal.tools.include("org.other", 1));
    assert!(full.principal.tools.include("org.other", 2));
    assert!(full.principal.may_approve);
    assert_eq!(full.requests, Some(3));
}

#[test]
fn a_token_holds_until_the_moment_that_it_expires() {
    let (secret, hash) = generate().unwrap();
    let tokens = parse(&entry("one", &hash, "expires = 2030-01-01T00:00:00Z")).unwrap();
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_893_456_000);
    assert!(
        tokens
            .find(Some(secret.expose()), moment - Duration::from_secs(1))
            .is_ok()
    );
    assert_eq!(
        tokens.find(Some(secret.expose()), moment),
        Err(Refusal::Expired)
    );
}

#[test]
fn two_tokens_of_one_name_are_one_principal_only_if_they_may_the_same() {
    let (one, one_hash) = generate().unwrap();
    let (other, other_hash) = generate().unwrap();
    let same =
        entry("one", &one_hash, "tools = [\"*\"]") + &entry("one", &other_hash, "tools = [\"*\"]");
    let tokens = parse(&same).unwrap();
    let now = SystemTime::now();
    assert_eq!(
        tokens.find(Some(one.expose()), now),
        tokens.find(Some(other.expose()), now)
    );
    let differing = entry("one", &one_hash, "tools = [\"*\"]") + &entry("one", &other_hash, "");
    assert!(refused(&differing).contains("line 5"));
}

#[test]
fn what_an_entry_can_not_mean_is_refused_with_its_line() {
    let (_, hash) = generate().unwrap();
    for (text, says) in [
        ("token = 1".to_owned(), "line 1"),
        (entry("", &hash, ""), "name"),
        (entry("Alice", &hash, ""), "name"),
        (entry("local", &hash, ""), "local"),
        (entry("one", &hash, "tool = [\"*\"]"), "unknown field"),
        (entry("one", &hash, "tools = [\"*\", \"a\"]"), "`*`"),
        (entry("one", &hash, "tools = [\"a*\"]"), "a*"),
        (entry("one", &hash, "tools = [\"a@x\"]"), "a@x"),
        (entry("one", &hash, "requests = 0"), "0 requests"),
        (entry("one", &hash, "expires = 2030-01-01"), "expire"),
        (entry("one", &hash, "") + &entry("two", &hash, ""), "twice"),
        (
            "[[token]]\nname = \"one\"\nhash = \"blake3:12\"\n".to_owned(),
            "64 digits",
        ),
        (
            "[[token]]\nname = \"one\"\nhash = \"toolward_secret\"\n".to_owned(),
            "64 digits",
        ),
    ] {
        let error = refused(&text);
        assert!(error.contains(says), "{error}");
        assert!(!error.contains("toolward_secret"), "{error}");
    }
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens.toml");
    let (secret, hash) = generate().unwrap();
    std::fs::write(&path, entry("one", &hash, "")).unwrap();
    for mode in [0o644, 0o640, 0o604, 0o620, 0o602] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.code(), "token-file-unsafe", "{mode:o}");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(
        read(&path)
            .unwrap()
            .find(Some(secret.expose()), SystemTime::now())
            .is_ok()
    );
}

#[test]
fn a_file_that_is_no_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(
        read(directory.path()).unwrap_err().code(),
        "token-file-unsafe"
    );
    assert_eq!(
        read(&directory.path().join("missing")).unwrap_err().code(),
        "token-file-unusable"
    );
}

//! Tokens that the command makes, and the server that accepts them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::raw::PATIENCE;
use super::served::{Served, plain};

/// Returns the server's answer to a request with this token: its status and its body.
fn post(url: &str, token: &str, message: &Value) -> (u16, String) {
    let address = url.strip_prefix("http://").unwrap();
    let (address, path) = address.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = message.to_string();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap();
    (status.parse().unwrap(), answer)
}

fn hello() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "tokens", "version": "1"},
        },
    })
}

#[test]
fn a_server_takes_the_tokens_that_were_made_for_its_file_and_no_other() {
    let machine = plain();
    let made = machine
        .toolward("mcp token alice --tools plain.* --add tokens.toml")
        .ends(0);
    let alice = made.stdout.trim_end().to_owned();
    assert!(alice.starts_with("toolward_") && !alice.contains(char::is_whitespace));
    let bob = machine
        .toolward("mcp token bob --tools plain.* --add tokens.toml --json")
        .ends(0)
        .json();
    let file = machine.text("tokens.toml");
    assert!(file.contains(bob["entry"].as_str().unwrap()), "{file}");
    let bob = bob["token"].as_str().unwrap();
    assert!(!file.contains(&alice) && !file.contains(bob));
    let mode = std::fs::metadata(machine.path("tokens.toml")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    // Without `--add`, the token is printed and added to no file.
    let printed = machine.toolward("mcp token carol --tools *").ends(0);
    let (carol, entry) = printed.stdout.split_once("\n\n").unwrap();
    assert!(
        entry.starts_with("[[token]]\nname = \"carol\"\n"),
        "{entry}"
    );

    let served = Served::plain(&machine, "--tokens tokens.toml");
    for token in [alice.as_str(), bob] {
        let (status, answer) = post(&served.url, token, &hello());
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains("\"serverInfo\""), "{answer}");
    }
    for token in [carol, "toolward_made-up"] {
        let (status, answer) = post(&served.url, token, &hello());
        assert_eq!(status, 401, "{answer}");
        assert!(answer.contains("token-unknown"), "{answer}");
        assert!(!answer.contains("serverInfo"), "{answer}");
    }
}

#[test]
fn no_second_token_of_a_name_is_made_and_the_file_stays_as_it_was() {
    let machine = crate::support::Machine::new();
    machine
        .toolward("mcp token alice --tools * --add tokens.toml")
        .ends(0);
    let before = machine.text("tokens.toml");
    let again = machine
        .toolward("mcp token alice --add tokens.toml")
        .ends(2);
    // No token is made for a name that is taken.
    again.says("token-known");
    assert_eq!(machine.text("tokens.toml"), before);

    let nobody = machine.toolward("mcp token Bob --add tokens.toml").ends(2);
    nobody.says("token-invalid");
    assert_eq!(machine.text("tokens.toml"), before);
    let bare = machine.toolward("mcp token bare").ends(0);
    bare.warns("may use no tool");
}

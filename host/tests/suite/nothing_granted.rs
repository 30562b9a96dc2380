//! If nothing is declared, a guest finds nothing. Each test asserts what did not happen, not only
//! the error.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use serde_json::json;

use crate::fixture::{self, value};

#[tokio::test]
async fn no_environment_arguments_or_input_of_the_host_is_visible() {
    let seen = value(&fixture::hostile(), json!({"do": "environment"})).await;
    for list in ["variables", "arguments"] {
        assert_eq!(seen[list], json!([]), "{seen}");
    }
    assert_eq!(
        (&seen["stdin"], &seen["preopens"]),
        (&json!(0), &json!(0)),
        "{seen}"
    );
    assert_eq!(seen["terminal"], json!(false), "{seen}");
}

#[tokio::test]
async fn no_file_can_be_read_or_listed() {
    let host = fixture::hostile();
    for path in [
        "/etc/passwd",
        "etc/passwd",
        "../../etc/passwd",
        ".",
        "/",
        "/proc/self/environ",
    ] {
        for what in ["read-file", "list-directory"] {
            let seen = value(&host, json!({"do": what, "name": path})).await;
            assert!(seen["refused"].is_string(), "{what} {path}: {seen}");
        }
    }
}

#[tokio::test]
async fn no_file_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("planted");
    let host = fixture::hostile();
    for path in [target.to_str().unwrap(), "planted", "/planted"] {
        let seen = value(&host, json!({"do": "write-file", "name": path})).await;
        assert!(seen["refused"].is_string(), "{path}: {seen}");
    }
    assert!(!target.exists());
    assert!(!std::path::Path::new("planted").exists());
}

#[tokio::test]
async fn no_packet_leaves() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let host = fixture::hostile();

    let address = tcp.local_addr().unwrap().to_string();
    let seen = value(&host, json!({"do": "connect", "name": address})).await;
    assert!(seen["refused"].is_string(), "{seen}");
    assert!(tcp.accept().is_err(), "a connection arrived");

    let address = udp.local_addr().unwrap().to_string();
    let seen = value(&host, json!({"do": "send-datagram", "name": address})).await;
    assert!(seen["refused"].is_string(), "{seen}");
    assert!(udp.recv(&mut [0; 16]).is_err(), "a datagram arrived");
}

#[tokio::test]
async fn nothing_can_be_listened_on_or_looked_up() {
    let host = fixture::hostile();
    for (what, name) in [("listen", "127.0.0.1:0"), ("resolve", "localhost:80")] {
        let seen = value(&host, json!({"do": what, "name": name})).await;
        assert!(seen["refused"].is_string(), "{what}: {seen}");
    }
}

#[tokio::test]
async fn no_secret_and_no_other_tool_is_within_reach() {
    let host = fixture::hostile();
    for how in ["placeholder", "reveal", "store"] {
        let seen = value(
            &host,
            json!({"do": "secret", "name": "api-key", "value": how}),
        )
        .await;
        assert!(
            seen.to_string().to_lowercase().contains("denied"),
            "{how}: {seen}"
        );
    }
    let seen = value(&host, json!({"do": "tool", "name": "hostile.run"})).await;
    assert!(seen.to_string().contains("unauthorised"), "{seen}");
}

#[tokio::test]
async fn a_question_that_was_not_granted_is_not_passed_on() {
    let error = fixture::error(&fixture::hostile(), json!({"do": "ask"})).await;
    assert_eq!(error.code.as_str(), "input_unavailable");
}

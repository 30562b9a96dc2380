//! Names, passwords, tokens and certificates with a real registry.

use std::path::Path;

use toolward_registry::{Failure, Helpers, Login, Reference, RegistryClient, RegistryCredentials};

use crate::sample::{Sample, builder, by_key_one, client};
use crate::server::Server;
use crate::tokens::{Issuer, token_server};

const PASSWORD: &str = "correct horse";
/// bcrypt of the password, cost 4.
const HTPASSWD: &str = "name:$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n";

fn with_htpasswd() -> Option<Server> {
    let config = "auth:\n  htpasswd:\n    realm: tests\n    path: DIR/htpasswd\n";
    Server::with(config, |folder| {
        std::fs::write(folder.join("htpasswd"), HTPASSWD).unwrap();
    })
}

fn login(password: &str) -> Login {
    Login::new("name", password.to_owned().into()).unwrap()
}

fn knowing(registry: &str, password: &str) -> RegistryClient {
    let credentials = RegistryCredentials::none().with(registry, login(password));
    builder().credentials(credentials).build().unwrap()
}

/// Pushes a bundle and pulls it.
async fn round(client: &RegistryClient, target: &Reference) -> Result<(), Failure> {
    let sample = Sample::new(10_000, &[1]);
    client.push(&sample.outgoing(), target, None).await?;
    let downloads = tempfile::tempdir().unwrap();
    let pulled = client
        .pull(target, downloads.path(), None, by_key_one)
        .await?;
    assert_eq!(pulled.accepted, sample.manifest);
    client.tags(target).await?;
    Ok(())
}

#[tokio::test]
async fn name_and_password_open_a_registry_that_wants_them() {
    let Some(server) = with_htpasswd() else {
        return;
    };
    let target = server.reference("a:1");
    round(&knowing(&target.registry(), PASSWORD), &target)
        .await
        .unwrap();

    let failure = round(&client(), &target).await.unwrap_err();
    assert_eq!(failure.code(), "registry-credentials-needed");
    let failure = round(&knowing(&target.registry(), "wrong"), &target)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-credentials-refused");
    assert!(!format!("{failure:?}").contains("wrong"));
    let failure = round(&knowing("other.example", PASSWORD), &target)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-credentials-needed");
}

#[tokio::test]
async fn a_docker_config_and_a_helper_are_read_as_docker_reads_them() {
    let Some(server) = with_htpasswd() else {
        return;
    };
    let target = server.reference("a:1");
    let registry = target.registry();
    let config = format!(r#"{{"auths":{{"{registry}":{{"auth":"bmFtZTpjb3JyZWN0IGhvcnNl"}}}}}}"#);
    let from = |config: &str, helpers| {
        let credentials =
            RegistryCredentials::from_docker_config(config.as_bytes(), helpers).unwrap();
        builder().credentials(credentials).build().unwrap()
    };
    round(&from(&config, Helpers::off()), &target)
        .await
        .unwrap();

    let folder = tempfile::tempdir().unwrap();
    write_helper(folder.path());
    let config = format!(r#"{{"credHelpers":{{"{registry}":"test"}}}}"#);
    let helpers = Helpers::on(
        vec![folder.path().to_owned()],
        std::time::Duration::from_secs(20),
    );
    round(&from(&config, helpers), &target).await.unwrap();
    let failure = round(&from(&config, Helpers::off()), &target)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-credentials-needed");
}

fn write_helper(folder: &Path) {
    let path = folder.join("docker-credential-test");
    let answer = format!("{{\"Username\":\"name\",\"Secret\":\"{PASSWORD}\"}}");
    // Written by another process. Otherwise, a process that another test starts at the same time
    // could inherit the file open for writing, and then the file can't be run.
    let written = std::process::Command::new("sh")
        .args(["-c", "printf %s \"$1\" > \"$0\" && chmod 700 \"$0\""])
        .arg(&path)
        .arg(format!("#!/bin/sh\necho '{answer}'\n"))
        .status();
    assert!(written.unwrap().success());
}

#[tokio::test]
async fn a_token_is_fetched_where_that_is_allowed_and_opens_the_registry() {
    let issuer = Issuer::new();
    let root = tempfile::tempdir().unwrap();
    issuer.write_root(root.path());
    let tokens = token_server(issuer, PASSWORD);
    let config = format!(
        "auth:\n  token:\n    realm: {}/token\n    service: registry\n    issuer: issuer\n    rootcertbundle: {}/root.pem\n",
        tokens.origin(),
        root.path().display()
    );
    let Some(server) = Server::with(&config, |_| {}) else {
        return;
    };
    let target = server.reference("team/a:1");
    let registry = target.registry();
    let credentials = RegistryCredentials::none().with(&registry, login(PASSWORD));

    let careful = builder().credentials(credentials.clone()).build().unwrap();
    let failure = round(&careful, &target).await.unwrap_err();
    assert_eq!(failure.code(), "registry-realm-refused");
    assert!(tokens.asked().is_empty(), "nothing was sent there");

    let allowing = builder()
        .credentials(credentials)
        .allow_realm(&registry, tokens.origin())
        .build()
        .unwrap();
    round(&allowing, &target).await.unwrap();
    assert_eq!(tokens.asked().len(), 2, "one token to push, one to pull");
    assert!(
        tokens.asked()[0]
            .target
            .contains("repository%3Ateam%2Fa%3Apull%2Cpush")
    );

    let unknown = builder()
        .allow_realm(&registry, tokens.origin())
        .build()
        .unwrap();
    let failure = round(&unknown, &target).await.unwrap_err();
    assert_eq!(failure.code(), "registry-credentials-needed");
}

#[tokio::test]
async fn a_certificate_authority_of_ones_own_is_trusted_when_it_is_named() {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::from_params(&parameters, &authority_key);
    let server_key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()])
        .unwrap()
        .signed_by(&server_key, &issuer)
        .unwrap();
    let config =
        "http:\n  addr: 127.0.0.1:0\n  tls:\n    certificate: DIR/cert.pem\n    key: DIR/key.pem\n";
    let server = Server::with(config, |folder| {
        std::fs::write(folder.join("cert.pem"), certificate.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), server_key.serialize_pem()).unwrap();
    });
    let Some(server) = server else { return };
    let target = server.reference("a:1");
    let secure = || builder().plain_http_on_loopback(false);
    let trusting = secure().authorities(authority.pem()).build().unwrap();
    round(&trusting, &target).await.unwrap();

    let failure = round(&secure().build().unwrap(), &target)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-unreachable");
    assert!(failure.to_string().contains("certificate"), "{failure}");
    let failure = round(&client(), &target).await.unwrap_err();
    assert_eq!(
        failure.code(),
        "registry-failed",
        "plain http is not understood there"
    );
}

#[test]
fn settings_that_can_not_work_are_refused_when_the_client_is_made() {
    let refused = [
        builder().authorities("no certificate").build(),
        builder()
            .authorities("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .build(),
        builder()
            .allow_realm("a.example", "http://a.example")
            .build(),
        builder()
            .allow_realm("a.example", "https://a.example/path")
            .build(),
        builder()
            .allow_realm("https://a.example", "https://a.example")
            .build(),
        builder().allow_redirects_to("*").build(),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().code(), "registry-client-invalid");
    }
}

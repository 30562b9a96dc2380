use super::*;

fn read(text: &str) -> Result<Registries, Error> {
    settings(text, Path::new("toolward.toml"), Path::new("/etc/tools"))
}

#[test]
fn every_key_is_read_and_paths_are_relative_to_the_file() {
    assert_eq!(read("[defaults]\n").unwrap(), Registries::default());
    let text = "[[registry]]\nhost = \"registry.example:5000\"\nca_file = \"ca.pem\"\nusername = \"ci\"\n\
                password = { file = \"word\" }\nrealm = \"https://auth.example\"\n\
                redirects_to = [\"https://blobs.example:444\"]\n\
                [[registry]]\nhost = \"127.0.0.1:5000\"\nplain_http = true\nusername = \"ci\"\n\
                password = { env = \"WORD\" }\nredirects_to = [\"http://127.0.0.1:1\"]\n";
    let registries = read(text).unwrap();
    let of = |host: &str| registries.of(&format!("oci://{host}/a").parse().unwrap(), false);
    let one = of("registry.example:5000").unwrap();
    assert_eq!(one.ca_file.as_deref(), Some(Path::new("/etc/tools/ca.pem")));
    let file = PasswordSource::File("/etc/tools/word".into());
    assert_eq!(one.login, Some(("ci".to_owned(), file)));
    assert_eq!(one.realm.as_deref(), Some("https://auth.example"));
    assert_eq!(one.redirects_to, ["https://blobs.example:444"]);
    assert!(!one.plain_http);
    let two = of("127.0.0.1:5000").unwrap();
    assert!(two.plain_http);
    let env = PasswordSource::Env("WORD".to_owned());
    assert_eq!(two.login, Some(("ci".to_owned(), env)));
}

#[test]
fn the_table_of_a_repository_goes_before_that_of_its_registry() {
    let text = "[[registry]]\nhost = \"r.example\"\nrealm = \"https://a.example\"\n\
                [[registry]]\nhost = \"r.example\"\nrepository = \"team/tools\"\n";
    let registries = read(text).unwrap();
    let realm = |reference: &str| {
        let found = registries.of(&reference.parse().unwrap(), false);
        found.map(|found| found.realm.clone())
    };
    assert_eq!(realm("oci://r.example/team/tools:1"), Some(None));
    let own = Some(Some("https://a.example".to_owned()));
    assert_eq!(realm("oci://r.example/team/tools/x:1"), own);
    assert_eq!(realm("oci://r.example/team:1"), own);
    assert_eq!(realm("oci://r.example:444/team:1"), None);
    assert_eq!(realm("oci://x.r.example/team:1"), None);
}

#[test]
fn a_registry_is_one_with_its_default_port_and_without() {
    let of = |registries: &Registries, host: &str, plain| {
        let reference = format!("oci://{host}/team:1").parse().unwrap();
        registries.of(&reference, plain).cloned()
    };
    for host in ["r.example", "r.example:443"] {
        let text = format!(
            "[[registry]]\nhost = \"{host}\"\n[[registry]]\nhost = \"{host}\"\nrepository = \"team\"\n"
        );
        let registries = read(&text).unwrap();
        for asked in ["r.example", "r.example:443"] {
            let other = format!("oci://{asked}/other").parse().unwrap();
            assert!(registries.of(&other, false).is_some(), "{host} {asked}");
            let found = of(&registries, asked, true).unwrap();
            assert_eq!(found.repository.as_deref(), Some("team"), "{host} {asked}");
        }
        assert!(of(&registries, "r.example:4430", false).is_none());
    }
    // On this machine the default port depends on the scheme.
    let table = "[[registry]]\nhost = \"127.0.0.1:443\"\n";
    let secure = read(table).unwrap();
    let plain = read(&format!("{table}plain_http = true\n")).unwrap();
    assert!(of(&secure, "127.0.0.1", false).is_some());
    assert!(of(&secure, "127.0.0.1", true).is_none());
    assert!(of(&plain, "127.0.0.1", false).is_none());
    assert!(of(&plain, "127.0.0.1:443", false).is_some());
    for (url, found) in [
        ("https://127.0.0.1/x", true),
        ("https://127.0.0.1:443/x", true),
        ("http://127.0.0.1:443/x", true),
        ("http://127.0.0.1/x", false),
        ("https://127.0.0.1:444/x", false),
    ] {
        let source = Source::parse(url).unwrap();
        let table = secure.of_source(&source, false);
        assert_eq!(table.is_some(), found, "{url}");
    }
}

#[test]
fn a_login_and_a_realm_are_for_the_registry_as_the_reference_names_it() {
    let text = "[[registry]]\nhost = \"r.example:443\"\nusername = \"ci\"\npassword = { env = \"UNSET\" }\n";
    let registries = read(text).unwrap();
    let settings = registries.of(&"oci://r.example/a".parse().unwrap(), false);
    let settings = settings.unwrap();
    let login = || Login::new("other", "word".to_owned().into()).unwrap();
    let apply = |known: &str, asked: Option<&str>| {
        let mut options = toolward_registry::ClientOptions {
            credentials: toolward_registry::RegistryCredentials::none().with(known, login()),
            ..Default::default()
        };
        let applied = settings.apply(&mut options, &Environment::default(), asked);
        applied.map_err(|failure| failure.code)
    };
    // A login from elsewhere takes precedence over the table's login. The table's password is read
    // only if there is no other login.
    let missing = Err(Code::RegistryPasswordMissing.code().to_owned());
    for one in ["r.example", "r.example:443"] {
        for asked in ["r.example", "r.example:443"] {
            assert_eq!(apply(one, Some(asked)), Ok(()), "{one} {asked}");
            assert_eq!(apply("r.example:444", Some(asked)), missing);
        }
    }
    assert_eq!(apply("r.example:444", None), Ok(()), "a web server");
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_no_password() {
    for (text, place, says) in [
        ("", "1:1:", "expected `host`"),
        (
            "host = \"https://r.example\"\n",
            "2:8:",
            "HOST or HOST:PORT",
        ),
        ("host = \"R.example\"\n", "2:8:", "HOST or HOST:PORT"),
        ("host = \"r.example/team\"\n", "2:8:", "HOST or HOST:PORT"),
        (
            "host = \"r.example\"\nrepository = \"a:1\"\n",
            "3:14:",
            "a repository",
        ),
        (
            "host = \"r.example\"\nplain_http = true\n",
            "3:14:",
            "`plain_http`",
        ),
        ("host = \"r.example\"\nca_file = \"\"\n", "3:11:", "a path"),
        (
            "host = \"r.example\"\nrealm = \"http://a.example\"\n",
            "3:9:",
            "an origin",
        ),
        (
            "host = \"r.example\"\nrealm = \"https://a.example/token\"\n",
            "3:9:",
            "an origin",
        ),
        (
            "host = \"r.example\"\nredirects_to = [\"https://*.b.example\"]\n",
            "3:17:",
            "an origin",
        ),
        (
            "host = \"r.example\"\nredirect_to = []\n",
            "3:1:",
            "expected a key",
        ),
        (
            "host = \"r.example\"\nusername = \"ci\"\n",
            "3:12:",
            "found one of them",
        ),
        (
            "host = \"r.example\"\nusername = \"ci\"\npassword = \"hunter2\"\n",
            "4:12:",
            "where the password is",
        ),
        (
            "host = \"r.example\"\nusername = \"a:b\"\npassword = { env = \"A\" }\n",
            "3:12:",
            "without a colon",
        ),
        (
            "host = \"r.example\"\nusername = \"ci\"\npassword = { env = \"A\", file = \"b\" }\n",
            "4:12:",
            "`env` or `file`",
        ),
        (
            "host = \"r.example\"\n[[registry]]\nhost = \"r.example:443\"\n",
            "3:1:",
            "found two",
        ),
        (
            "host = \"127.0.0.1\"\n[[registry]]\nhost = \"127.0.0.1:443\"\n",
            "3:1:",
            "found two",
        ),
    ] {
        let failure = read(&format!("[[registry]]\n{text}")).expect_err(text);
        assert_eq!(failure.code, Code::RegistrySettingInvalid.code(), "{text}");
        let message = &failure.message;
        assert!(
            message.starts_with(&format!("toolward.toml:{place}")),
            "{message}"
        );
        assert!(message.contains(says), "{message}");
        assert!(!format!("{failure:?}").contains("hunter2"), "{message}");
    }
}

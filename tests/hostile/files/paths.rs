//! Paths that lead out of a workspace, or to something other than a file.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn two_dots_lead_nowhere_above_the_workspace() {
    let disk = Disk::new();
    let (_bundle, host) = disk.writing();
    for path in [
        "..",
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "./.././outside/secret.txt",
        "sub/../../inside/../outside/secret.txt",
        "../../../../../../../../etc/passwd",
        "missing/../../outside/secret.txt",
    ] {
        nothing_works(&disk, &host, all_on(path)).await;
        let (_, reply) = fs(&host, json!({"op": "read", "path": path})).await;
        assert_eq!(reply.metadata.violations[0].kind.as_str(), "path", "{path}");
    }
    // Other spellings of two dots are names of files that do not exist.
    let spellings = [
        "%2e%2e/outside/secret.txt",
        "..\\outside\\secret.txt",
        "..%2foutside",
        "\u{2025}/outside",
    ];
    for path in spellings {
        nothing_works(&disk, &host, reads_on(path)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn absolute_paths_lead_nowhere() {
    let disk = Disk::new();
    let (_bundle, host) = disk.writing();
    let real = disk.outside("secret.txt").display().to_string();
    let own = disk.inside("a.txt").display().to_string();
    for path in [
        real.as_str(),
        own.as_str(),
        "/etc/passwd",
        "/",
        "//etc",
        "/notes/a.txt",
    ] {
        nothing_works(&disk, &host, all_on(path)).await;
    }
    for path in [real.as_str(), own.as_str(), "/etc/passwd", "/etc", "/"] {
        for op in [
            "read",
            "write",
            "list",
            "stat",
            "unlink",
            "mkdir",
            "remove-all",
        ] {
            let got = std_fs(&host, json!({"op": op, "path": path, "text": "mine"})).await;
            assert!(got["err"].is_string(), "{op} {path}: {got}");
        }
    }
    assert_eq!(
        std::fs::read_to_string(disk.outside("secret.txt")).unwrap(),
        OUTSIDE
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernels_files_are_out_of_reach_and_no_workspace() {
    let disk = Disk::new();
    symlink("/proc", disk.inside("proc")).unwrap();
    symlink("/proc/self/environ", disk.inside("environ")).unwrap();
    symlink("/dev/stdin", disk.inside("stdin")).unwrap();
    let (_bundle, host) = disk.writing();
    for path in [
        "proc/self/environ",
        "proc/self/fd/0",
        "environ",
        "stdin",
        "/proc/self/environ",
    ] {
        nothing_works(&disk, &host, all_on(path)).await;
    }
    for directory in ["/proc", "/proc/self", "/sys"] {
        let bundle = Bundle::of(TOOL, Guest::Plain, &declaring(&["/notes"], &[]), "");
        let policy = mapping("/notes", Path::new(directory)) + &granting(&["/notes"], &[]);
        let host = bundle.host(&policy);
        let error = error(&host, TOOL, json!({"do": "fs", "op": "list", "path": "."})).await;
        assert_eq!(
            error.code.as_str(),
            "unauthorised",
            "{directory}: {error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_pipes_and_sockets_are_not_opened_and_hang_no_thread() {
    let disk = Disk::new();
    let make = |name: &str, kind: FileType, device: u64| {
        rustix::fs::mknodat(
            CWD,
            disk.inside(name),
            kind,
            Mode::from_raw_mode(0o666),
            device,
        )
    };
    make("pipe", FileType::Fifo, 0).unwrap();
    make("socket", FileType::Socket, 0).unwrap();
    let mut names = vec!["pipe", "socket"];
    // Creating a device needs a privilege that not every user has.
    for (name, minor) in [("null", 3), ("zero", 5)] {
        if make(
            name,
            FileType::CharacterDevice,
            rustix::fs::makedev(1, minor),
        )
        .is_ok()
        {
            names.push(name);
        }
    }
    let (_bundle, host) = disk.writing();
    let started = Instant::now();
    for name in names {
        nothing_works(&disk, &host, all_on(name)).await;
        let got = std_fs(
            &host,
            json!({"op": "read", "path": format!("/notes/{name}")}),
        )
        .await;
        assert!(got["err"].is_string(), "{name}: {got}");
    }
    // Opening a pipe can wait for its other end, but no call waited.
    assert!(started.elapsed() < Duration::from_secs(20));
    let input =
        json!({"do": "repeat", "times": 200, "step": {"do": "fs", "op": "read", "path": "pipe"}});
    value(&host, TOOL, input).await;
    let (got, _) = fs(&host, json!({"op": "read", "path": "a.txt"})).await;
    assert_eq!(got["ok"]["text"], json!("a"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_forge_a_terminal_or_cut_a_path_short_are_not_made() {
    let disk = Disk::new();
    let (_bundle, host) = disk.writing();
    let long = "x".repeat(256);
    let deep = "d/".repeat(3000);
    for path in [
        "a\u{0}b",
        "a\nb",
        "\u{1b}[2J",
        "a\\b",
        "",
        long.as_str(),
        deep.as_str(),
    ] {
        nothing_works(&disk, &host, changes_on(path)).await;
    }
}

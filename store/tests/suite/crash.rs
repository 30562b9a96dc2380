//! An installer is killed at random points: the old or the new release is installed, and works.

use std::time::{Duration, Instant};

use crate::processes::{command, noise};
use crate::support::{Place, Release, install, now, verifier};

const KILLS: u64 = 200;

#[test]
fn an_installer_killed_anywhere_leaves_the_old_or_the_new_release() {
    let place = Place::new();
    let directory = place.directory.path();
    let payload = noise(300_000);
    for (name, sequence) in [("one", 1), ("two", 2)] {
        let release = Release {
            payload: [&payload[..], &[sequence as u8]].concat(),
            ..Release::new(sequence)
        };
        std::fs::write(directory.join(name), release.archive()).unwrap();
        if sequence == 1 {
            install(&place.open(), &release);
        }
    }
    let ready = directory.join("ready");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut seen = [0_u64; 2];
    let mut left_behind = 0;
    for _ in 0..KILLS {
        let _ = std::fs::remove_file(&ready);
        let mut child = command("alternate", directory).spawn().unwrap();
        let start = Instant::now();
        while !ready.exists() {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the child never began"
            );
            assert!(
                child.try_wait().unwrap().is_none(),
                "the child ended by itself"
            );
            std::thread::sleep(Duration::from_micros(200));
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_micros(random % 40_000));
        assert!(
            child.try_wait().unwrap().is_none(),
            "the child ended by itself"
        );
        child.kill().unwrap();
        child.wait().unwrap();

        left_behind += usize::from(place.files().len() > 1);
        let store = place.open();
        let (installed, bundle) = store.load("demo.greet", &verifier(), now()).unwrap();
        assert_eq!(bundle.manifest.sequence, installed.sequence);
        seen[usize::try_from(installed.sequence).unwrap() - 1] += 1;
        store.gc().unwrap();
        assert_eq!(
            place.files(),
            [format!("objects/{}.toolbundle", installed.digest)]
        );
    }
    // If a count is zero, no kill interrupted an installation.
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    assert!(left_behind > 0);
}

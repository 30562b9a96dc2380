//! Key-value buckets, as far as the SDK itself implements them.

use toolward_guest::keyvalue::Bucket;
use toolward_guest::testing::Grants;

#[test]
fn what_is_written_is_read_again_and_listed() {
    let grants = Grants::new().bucket("b");
    grants.during(|| {
        let bucket = Bucket::open("b").unwrap();
        assert_eq!(bucket.get("k").unwrap(), None);
        for n in 0..5 {
            bucket.set_json(&format!("k{n}"), &n).unwrap();
        }
        assert_eq!(bucket.get_json::<u32>("k3").unwrap(), Some(3));
        bucket.delete("k0").unwrap();
        bucket.delete("k0").unwrap();
        assert!(!bucket.exists("k0").unwrap());
        assert!(bucket.exists("k1").unwrap());
        let mut keys = bucket.keys().collect::<Result<Vec<_>, _>>().unwrap();
        keys.sort();
        assert_eq!(keys, ["k1", "k2", "k3", "k4"]);
    });
    // A later call finds the key.
    grants.during(|| assert!(Bucket::open("b").unwrap().exists("k1").unwrap()));
}

#[test]
fn a_bucket_that_is_not_granted_cannot_be_opened() {
    let open = |name: &str| Bucket::open(name).map(|_| ());
    assert_eq!(open("b").unwrap_err().code(), "unauthorised");
    let error = Grants::new().bucket("b").during(|| open("c")).unwrap_err();
    assert_eq!(error.code(), "unauthorised");
    assert!(error.message().contains("bucket c"), "{}", error.message());
}

#[test]
fn a_bucket_for_reading_takes_no_writes() {
    let grants = Grants::new().read_only_bucket("b", [("k", b"1".as_slice())]);
    grants.during(|| {
        let bucket = Bucket::open("b").unwrap();
        assert_eq!(bucket.get("k").unwrap().as_deref(), Some(b"1".as_slice()));
        let tries = [
            bucket.set("k", b"2"),
            bucket.delete("k"),
            bucket.increment("k", 1).map(|_| ()),
        ];
        for tried in tries {
            assert_eq!(tried.unwrap_err().code(), "unauthorised");
        }
        assert_eq!(bucket.get_json::<u32>("k").unwrap(), Some(1));
    });
}

#[test]
fn counting_starts_at_zero_and_never_overflows() {
    Grants::new().bucket("b").during(|| {
        let bucket = Bucket::open("b").unwrap();
        assert_eq!(bucket.increment("n", 5).unwrap(), 5);
        assert_eq!(bucket.increment("n", 2).unwrap(), 7);
        let error = bucket.increment("n", u64::MAX).unwrap_err();
        assert_eq!(error.code(), "upstream_error");
        assert_eq!(bucket.get("n").unwrap().unwrap(), b"7");
        bucket.set("text", b"many").unwrap();
        assert!(bucket.increment("text", 1).is_err());
    });
}

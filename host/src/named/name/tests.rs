use super::*;
use crate::api::result::ErrorCode;

fn at(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let nanos = u32::try_from(milliseconds % 1000).unwrap() * 1_000_000;
    let time = uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos);
    Uuid::new_v7(time).to_string()
}

/// The current time of these tests, in milliseconds since 1970.
const NOW: u64 = 1_790_000_000_000;
const MINUTE: u64 = 60_000;

fn message(text: &str) -> String {
    let now = UNIX_EPOCH + Duration::from_millis(NOW);
    match read(text, now) {
        Ok(_) => "taken".to_owned(),
        Err(error) => {
            assert_eq!(error.code, ErrorCode::INPUT_INVALID);
            error.message
        }
    }
}

#[test]
fn an_id_is_taken_for_a_day_and_five_minutes_ahead() {
    let day = 24 * 60 * MINUTE;
    for (made, expected) in [
        (NOW, "taken"),
        (NOW - day, "taken"),
        (NOW - day - 1, "the call's id is more than a day old"),
        (NOW + 5 * MINUTE, "taken"),
        (
            NOW + 5 * MINUTE + 1,
            "the call's id is more than 5 minutes ahead",
        ),
        (0, "the call's id is more than a day old"),
        ((1 << 48) - 1, "the call's id is more than 5 minutes ahead"),
    ] {
        assert_eq!(message(&at(made)), expected, "{made}");
    }
    assert_eq!(message(&at(NOW).to_uppercase()), "taken");
}

#[test]
fn only_a_uuid_of_version_7_in_36_characters_is_taken() {
    let good = at(NOW);
    let mut of_4 = good.clone();
    of_4.replace_range(14..15, "4");
    let mut of_other_variant = good.clone();
    of_other_variant.replace_range(19..20, "c");
    for bad in [
        String::new(),
        "1".to_owned(),
        good.replace('-', ""),
        format!("{{{good}}}"),
        format!("urn:uuid:{good}"),
        format!("{good} "),
        of_4,
        of_other_variant,
        good.replace('0', "g"),
    ] {
        assert!(message(&bad).contains("a UUIDv7"), "{bad}");
    }
}

fn name(principal: &str, tool: &str, session: Option<&str>, id: &str) -> CallName {
    let named = Named {
        id: id.to_owned(),
        session: session.map(str::to_owned),
    };
    let input = json!({"n": 1});
    let checked = named.check(principal, tool, (&input, None), None);
    checked.expect("checked")
}

/// The idempotency key of a driver.
fn key(name: &CallName, secret: &[u8; 32], driver: &str) -> String {
    let hash = blake3::keyed_hash(secret, &name.for_driver(driver));
    custom(hash.as_bytes()).to_string()
}

#[test]
fn principal_tool_session_id_and_driver_each_give_another_key() {
    let (one, other) = (Uuid::now_v7().to_string(), Uuid::now_v7().to_string());
    let secret = [7; 32];
    let base = || name("ada", "text.stats@1", None, &one);
    let names = [
        base(),
        name("eve", "text.stats@1", None, &one),
        name("ada", "text.stats@2", None, &one),
        name("ada", "text.stats@1", Some("s"), &one),
        name("ada", "text.stats@1", None, &other),
        // Calls that would have the same key without the lengths or the colon.
        name("adatext", ".stats@1", None, &one),
        name("s:ada", "text.stats@1", None, &one),
    ];
    let keys: std::collections::BTreeSet<_> = names.iter().map(CallName::key).collect();
    assert_eq!(keys.len(), names.len());
    let mut to_drivers: std::collections::BTreeSet<_> = names
        .iter()
        .map(|name| key(name, &secret, "driver"))
        .collect();
    assert_eq!(to_drivers.len(), names.len());
    assert!(to_drivers.insert(key(&base(), &secret, "other")));
    assert!(to_drivers.insert(key(&base(), &[8; 32], "driver")));
    let own = key(&base(), &secret, "driver");
    assert!(!to_drivers.insert(own.clone()), "the same each time");
    assert_eq!(Uuid::parse_str(&own).unwrap().get_version_num(), 8);
    assert!(own != one);
}

#[test]
fn a_tool_whose_name_no_record_takes_has_an_id_in_the_ledger_all_the_same() {
    let id = Uuid::now_v7().to_string();
    let long = format!("{}@1", "x".repeat(200));
    let [one, other] = [long.as_str(), "Upper@1"].map(|tool| {
        let given = name("ada", tool, None, &id).given().unwrap();
        given.tool.to_string()
    });
    assert_ne!(one, other);
}

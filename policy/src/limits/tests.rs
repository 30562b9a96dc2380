use super::*;

fn maximum(maximum: u64) -> LimitSetting {
    LimitSetting {
        default: None,
        maximum: Some(maximum),
    }
}

#[test]
fn values_that_end_every_call_are_refused() {
    let mut settings = LimitSettings::default();
    assert!(settings.set(LimitName::Fuel, maximum(0)).is_err());
    assert!(settings.set(LimitName::HttpRequests, maximum(0)).is_ok());
    let crossed = LimitSetting {
        default: Some(2),
        maximum: Some(1),
    };
    assert!(settings.set(LimitName::Fuel, crossed).is_err());
    assert_eq!(settings.get(LimitName::Fuel), LimitSetting::default());
}

#[test]
fn what_only_an_embedder_or_nobody_sets_is_refused() {
    let mut settings = LimitSettings::default();
    for name in [LimitName::DirectoryEntries, LimitName::Stack] {
        assert!(settings.set(name, maximum(7)).is_err(), "{name}");
    }
    assert_eq!(settings, LimitSettings::default());
}

#[test]
fn names_are_unique_and_those_of_policies_sorted() {
    let names: Vec<_> = LimitName::settable_by_policy().collect();
    assert!(names.is_sorted_by_key(|name| name.as_str()));
    let mut all: Vec<_> = LimitName::ALL.iter().map(|name| name.as_str()).collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(names.len() < all.len());
}

#[test]
fn every_limit_has_a_value() {
    let limits = Limits::default();
    for name in LimitName::ALL {
        assert!(
            limits.get(*name).is_some() != name.own().is_some(),
            "{name}"
        );
    }
}

#[test]
fn every_limit_that_a_policy_can_name_is_set_by_it() {
    for name in LimitName::settable_by_policy() {
        let mut settings = LimitSettings::default();
        let setting = LimitSetting {
            default: Some(7),
            maximum: Some(7),
        };
        settings.set(name, setting).expect("a number it can have");
        let limits = Limits::default().with(&settings);
        assert_eq!(limits.get(name), Some(Limit::fixed(7)), "{name}");
    }
}

#[test]
fn fuel_follows_the_operators_timeout() {
    let fuel = |settings: &[(LimitName, Option<u64>, Option<u64>)]| {
        let mut all = LimitSettings::default();
        for (name, default, maximum) in settings {
            let (default, maximum) = (*default, *maximum);
            let setting = LimitSetting { default, maximum };
            all.set(*name, setting).expect("a number it can have");
        }
        Limits::default().with(&all).fuel.apply(None)
    };
    const G: u64 = 1_000_000_000;
    let timeout = |default, maximum| (LimitName::Timeout, default, maximum);
    assert_eq!(fuel(&[]), 600 * G);
    assert_eq!(fuel(&[timeout(Some(60_000), Some(90_000))]), 1200 * G);
    assert_eq!(fuel(&[timeout(Some(60_000), None)]), 1200 * G);
    assert_eq!(fuel(&[timeout(None, Some(90_000))]), 600 * G);
    assert_eq!(fuel(&[timeout(None, Some(10_000))]), 200 * G);
    // The operator's numbers for fuel itself stay unchanged.
    let own = [
        (LimitName::Fuel, Some(5), None),
        timeout(Some(60_000), None),
    ];
    assert_eq!(fuel(&own), 5);
    let capped = [
        (LimitName::Fuel, None, Some(9)),
        timeout(Some(60_000), None),
    ];
    assert_eq!(fuel(&capped), 9);
}

#[test]
fn a_timeout_without_a_maximum_is_the_most_as_well() {
    let mut settings = LimitSettings::default();
    let setting = LimitSetting {
        default: Some(5000),
        maximum: None,
    };
    settings.set(LimitName::Timeout, setting).unwrap();
    let limits = Limits::default().with(&settings);
    assert_eq!(limits.timeout, Limit::fixed(Duration::from_secs(5)));
}

#[test]
fn a_request_is_capped_by_the_maximum_and_may_be_lower() {
    let limit = Limit {
        default: 5,
        maximum: 10,
    };
    assert_eq!(limit.apply(None), 5);
    assert_eq!(limit.apply(Some(3)), 3);
    assert_eq!(limit.apply(Some(11)), 10);
    let crossed = Limit {
        default: 20,
        maximum: 10,
    };
    assert_eq!(crossed.apply(None), 10);
}

#[test]
fn a_driver_gets_the_fuel_that_it_asks_for_and_no_contract_gets_more_by_its_timeout() {
    const G: u64 = 1_000_000_000;
    let fuel = |asked: Option<u64>| {
        let mut driver = DriverLimits::default();
        driver.fuel = asked;
        let [short, long] = [1, 300].map(|seconds| {
            CallLimits::new(&Limits::default(), Duration::from_secs(seconds), &driver)
        });
        assert_eq!(short.fuel, long.fuel);
        short.fuel
    };
    assert_eq!(fuel(None), 600 * G);
    assert_eq!(fuel(Some(7)), 7);
    assert_eq!(fuel(Some(u64::MAX)), 10_000 * G);
}

#[test]
fn a_driver_asks_for_limits_by_their_names() {
    let mut driver = DriverLimits::default();
    for (key, _) in driver.iter() {
        let is_known = LimitName::ALL.iter().any(|name| *name == key);
        assert!(is_known || key == "memory_mib", "{key}");
    }
    driver.memory_mib = Some(3);
    driver.http_requests = Some(5);
    driver.http_timeout_ms = Some(7);
    driver.output_bytes = Some(11);
    let asked = CallLimits::new(&Limits::default(), Duration::from_millis(13), &driver);
    let expected = CallLimits {
        memory_bytes: 3 << 20,
        http_requests: 5,
        http_timeout: Duration::from_millis(7),
        output_bytes: 11,
        json: json::Limits {
            bytes: 11,
            ..CallLimits::default().json
        },
        timeout: Duration::from_millis(13),
        ..CallLimits::default()
    };
    assert_eq!(asked, expected);
}

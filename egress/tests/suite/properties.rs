//! Properties of texts that are read from guests.

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use toolward_egress::{address, authority, headers, target};

/// Text that looks like an authority, and text that does not.
fn authorities() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9._\\-]{0,40}(:[0-9]{0,6})?",
        "[0-9xa-f.]{1,20}(:[0-9]{1,5})?",
        "\\[[0-9a-fA-F:.%]{0,40}\\](:[0-9]{0,5})?",
        "[a-z@:\\[\\]./\\\\#?% \u{3002}\u{ff0e}\u{ff41}ßÜ\u{200d}]{0,20}",
        "xn--[a-z0-9\\-]{0,12}\\.example\\.?",
    ]
}

proptest! {
    #[test]
    fn an_authority_has_one_normal_form(text in authorities()) {
        if let Ok(parsed) = authority::parse(&text) {
            let normal = parsed.to_string();
            prop_assert_eq!(authority::parse(&normal), Ok(parsed.clone()), "{} of {}", &normal, &text);
            prop_assert!(normal.is_ascii());
            prop_assert!(!normal.contains(['@', '/', '\\', '%', '#', '?', ' ']));
            prop_assert_eq!(normal.to_ascii_lowercase(), normal.clone());
            // The type that carries the text reads it in the same way.
            let carried: http::uri::Authority = normal.parse().expect("an authority");
            prop_assert_eq!(carried.host(), parsed.host.to_string());
            prop_assert_eq!(carried.port_u16(), parsed.port);
        }
    }

    #[test]
    fn a_name_is_no_address_to_anybody(text in "[0-9a-fx.]{1,24}") {
        if let Ok(parsed) = authority::parse(&text)
            && let authority::Host::Name(name) = parsed.host
        {
            let last = name.rsplit('.').next().unwrap_or_default();
            prop_assert!(!last.starts_with("0x"));
            prop_assert!(!last.bytes().all(|b| b.is_ascii_digit()));
        }
    }

    #[test]
    fn a_target_that_passes_is_one_line(text in prop_oneof![any::<String>(), "/[ -~]{0,40}"]) {
        if target::parse(&text).is_ok() {
            prop_assert!(text.starts_with('/') && !text.starts_with("//"));
            prop_assert!(text.bytes().all(|b| b.is_ascii_graphic() && b != b'#'));
            let carried: http::Uri = text.parse().expect("a target");
            prop_assert_eq!(carried.to_string(), text);
        }
    }

    #[test]
    fn a_url_that_passes_is_read_once(text in prop_oneof![any::<String>(), "https?://[ -~]{0,60}"]) {
        if let Ok(uri) = target::uri(&text) {
            prop_assert_eq!(target::uri(&uri.to_string()), Ok(uri));
        }
    }

    #[test]
    fn headers_that_pass_are_plain(
        own in prop::collection::vec(
            ("[a-z_\\-]{1,20}", prop::collection::vec(any::<u8>(), 0..20)), 0..8),
    ) {
        let mut map = HeaderMap::new();
        for (name, value) in &own {
            if let (Ok(name), Ok(value)) =
                (name.parse::<HeaderName>(), HeaderValue::from_bytes(value))
            {
                map.append(name, value);
            }
        }
        if headers::check(&map, 10_000).is_ok() {
            for (name, value) in &map {
                prop_assert!(!headers::is_forbidden(name));
                prop_assert!(value.to_str().is_ok());
            }
        }
    }

    #[test]
    fn an_address_that_passes_is_no_ipv4_in_disguise(bits in any::<u128>(), v4 in any::<u32>()) {
        let embedded = std::net::Ipv4Addr::from(v4);
        for address in [
            std::net::Ipv6Addr::from(bits),
            embedded.to_ipv6_mapped(),
            std::net::Ipv6Addr::from((0x64_ff9b_u128 << 96) | u128::from(v4)),
        ] {
            if let Ok(passed) = address::check(address.into(), &[]) {
                prop_assert!(!passed.is_loopback() && !passed.is_unspecified());
                prop_assert!(!passed.is_multicast());
                if let std::net::IpAddr::V6(passed) = passed {
                    prop_assert_eq!(passed.to_ipv4_mapped(), None);
                    let nat64 = bits >> 32 == 0x64_ff9b_u128 << 64;
                    let global = passed.segments()[0] >> 13 == 1;
                    prop_assert!(global || nat64 || passed.segments()[0] == 0x64);
                }
            }
            let v4_verdict = address::check(embedded.into(), &[]).is_ok();
            let mapped = address::check(embedded.to_ipv6_mapped().into(), &[]).is_ok();
            prop_assert_eq!(v4_verdict, mapped);
        }
    }
}

//! Decides which addresses may be connected to: globally reachable unicast addresses, and further
//! addresses that a rule names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// IPv4 networks that are not globally reachable: IANA's registry of special-purpose addresses (RFC
/// 6890 and later), multicast, and addresses that clouds put on every machine.
const SPECIAL_V4: &[(Ipv4Net, &str)] = &[
    (v4([0, 0, 0, 0], 8), "this network (RFC 791)"),
    (v4([10, 0, 0, 0], 8), "private (RFC 1918)"),
    (v4([100, 64, 0, 0], 10), "carrier-grade NAT (RFC 6598)"),
    (v4([127, 0, 0, 0], 8), "loopback (RFC 1122)"),
    (v4([168, 63, 129, 16], 32), "a cloud's metadata service"),
    (
        v4([169, 254, 0, 0], 16),
        "link-local, metadata services (RFC 3927)",
    ),
    (v4([172, 16, 0, 0], 12), "private (RFC 1918)"),
    (
        v4([192, 0, 0, 0], 24),
        "IETF protocol assignments (RFC 6890)",
    ),
    (v4([192, 0, 2, 0], 24), "documentation (RFC 5737)"),
    (v4([192, 31, 196, 0], 24), "AS112 (RFC 7535)"),
    (v4([192, 52, 193, 0], 24), "AMT relays (RFC 7450)"),
    (v4([192, 88, 99, 0], 24), "6to4 relays (RFC 7526)"),
    (v4([192, 168, 0, 0], 16), "private (RFC 1918)"),
    (v4([192, 175, 48, 0], 24), "AS112 (RFC 7534)"),
    (v4([198, 18, 0, 0], 15), "benchmarks (RFC 2544)"),
    (v4([198, 51, 100, 0], 24), "documentation (RFC 5737)"),
    (v4([203, 0, 113, 0], 24), "documentation (RFC 5737)"),
    (v4([224, 0, 0, 0], 4), "multicast (RFC 1112)"),
    (
        v4([240, 0, 0, 0], 4),
        "reserved, broadcast (RFC 1112, RFC 919)",
    ),
];

/// The only IPv6 network that IANA has assigned as global unicast (RFC 4291 section 2.4). Loopback,
/// mapped, link-local, unique local and multicast addresses are outside.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The special networks within [`GLOBAL_V6`].
const SPECIAL_V6: &[(Ipv6Net, &str)] = &[
    (
        v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
        "IETF protocol assignments, Teredo (RFC 2928, RFC 4380)",
    ),
    (
        v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        "documentation (RFC 3849)",
    ),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "6to4 (RFC 7526)"),
    (
        v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48),
        "AS112 (RFC 7534)",
    ),
    (
        v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        "documentation (RFC 9637)",
    ),
];

/// NAT64 with the well-known prefix (RFC 6052), by which networks with only IPv6 reach IPv4. Such
/// an address stands for the IPv4 address in its last 32 bits.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// NAT64 with a prefix of the local network (RFC 8215).
const NAT64_LOCAL: Ipv6Net = v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48);

/// The networks whose addresses contain an IPv4 address: compatible (RFC 4291 section 2.5.5.1),
/// mapped (2.5.5.2), translated (RFC 2765), NAT64, Teredo and 6to4.
const EMBEDDING: &[Ipv6Net] = &[
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96),
    NAT64,
    NAT64_LOCAL,
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
];

const fn v4(octets: [u8; 4], length: u8) -> Ipv4Net {
    let [a, b, c, d] = octets;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(segments: [u16; 8], length: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

/// Returns the address to connect to, if `address` is globally reachable or within `granted`. An
/// IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) becomes its IPv4 address.
///
/// ```
/// use toolward_egress::address;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert!(address::check("93.184.215.14".parse()?, &[]).is_ok());
/// assert!(address::check("10.0.0.1".parse()?, &[]).is_err());
/// assert!(address::check("10.0.0.1".parse()?, &["10.0.0.0/8".parse()?]).is_ok());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The kind of the refused address.
pub fn check(address: IpAddr, granted: &[IpNet]) -> Result<IpAddr, &'static str> {
    let address = address.to_canonical();
    match special(address) {
        Some(_) if granted.iter().any(|net| net.contains(&address)) => Ok(address),
        Some(kind) => Err(kind),
        None => Ok(address),
    }
}

/// Whether an IPv6 address contains an IPv4 address. `::` and `::1` do not.
pub(crate) fn embeds_v4(address: Ipv6Addr) -> bool {
    let plain = address.is_unspecified() || address.is_loopback();
    let isatap = matches!(address.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _]);
    !plain && (isatap || EMBEDDING.iter().any(|net| net.contains(&address)))
}

fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) if NAT64.contains(&address) => {
            let [.., a, b, c, d] = address.octets();
            special_v4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(address) if address.is_loopback() => Some("loopback (RFC 4291)"),
        IpAddr::V6(address) if embeds_v4(address) => Some("an embedded IPv4 address"),
        IpAddr::V6(address) if !GLOBAL_V6.contains(&address) => {
            Some("not global unicast (RFC 4291)")
        }
        IpAddr::V6(address) => SPECIAL_V6
            .iter()
            .find(|(net, _)| net.contains(&address))
            .map(|(_, kind)| *kind),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    SPECIAL_V4
        .iter()
        .find(|(net, _)| net.contains(&address))
        .map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_globally_reachable_unicast_passes() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:0808:0808::1",
            "2002:7f00:0001::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::200:5efe:10.0.0.1",
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert!(check(address, &[]).is_err(), "{text}");
        }
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::8.8.8.8",
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(check(address, &[]), Ok(address), "{text}");
        }
    }

    #[test]
    fn mapped_addresses_are_checked_and_dialled_as_ipv4() {
        let granted = ["127.0.0.0/8".parse().unwrap()];
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        assert_eq!(check(mapped, &granted), Ok("127.0.0.1".parse().unwrap()));
        let mapped: IpAddr = "::ffff:8.8.8.8".parse().unwrap();
        assert_eq!(check(mapped, &[]), Ok("8.8.8.8".parse().unwrap()));
    }

    #[test]
    fn a_grant_reaches_exactly_its_network() {
        let granted = ["10.0.0.0/24".parse().unwrap(), "::1/128".parse().unwrap()];
        assert!(check("10.0.0.255".parse().unwrap(), &granted).is_ok());
        assert!(check("10.0.1.0".parse().unwrap(), &granted).is_err());
        assert!(check("::1".parse().unwrap(), &granted).is_ok());
        assert!(check("::2".parse().unwrap(), &granted).is_err());
        assert!(check("127.0.0.1".parse().unwrap(), &granted).is_err());
    }
}

//! A component made larger by a core module that is compiled and never run.

use crate::Outcome;

/// Ids of sections, of a component and of a module.
const CORE_MODULE: u8 = 1;
const TYPES: u8 = 1;
const FUNCTIONS: u8 = 3;
const CODE: u8 = 10;

/// Rounds of arithmetic in a function: some 800 bytes.
const ROUNDS: u64 = 40;

/// The component with a module after its other sections, of about `size` bytes together.
pub(super) fn grown(component: &[u8], size: usize) -> Outcome<Vec<u8>> {
    let more = size.checked_sub(component.len());
    let more = more.ok_or_else(|| format!("the component has more than {size} bytes"))?;
    let mut grown = component.to_vec();
    section(&mut grown, CORE_MODULE, &module(more));
    Ok(grown)
}

/// A module with as many functions of two numbers as `size` has room for.
fn module(size: usize) -> Vec<u8> {
    let mut bodies = Vec::new();
    let mut functions = 0;
    while bodies.len() < size {
        let body = body(functions);
        unsigned(&mut bodies, body.len() as u64);
        bodies.extend(body);
        functions += 1;
    }
    let mut code = Vec::new();
    unsigned(&mut code, functions);
    // All are of the first type.
    let mut types = code.clone();
    types.extend((0..functions).map(|_| 0));
    code.extend(bodies);

    let mut module = b"\0asm\x01\0\0\0".to_vec();
    // (i64, i64) -> i64
    section(&mut module, TYPES, &[1, 0x60, 2, 0x7e, 0x7e, 1, 0x7e]);
    section(&mut module, FUNCTIONS, &types);
    section(&mut module, CODE, &code);
    module
}

/// A function that no other one equals: `a = (a * constant) ^ b`, then `b = a + b`, again and again.
fn body(function: u64) -> Vec<u8> {
    let mut body = vec![0];
    for round in 0..ROUNDS {
        let constant = (function + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(round.wrapping_mul(0xd1b5_4a32_d192_ed03));
        body.extend([0x20, 0, 0x42]);
        signed(&mut body, constant.cast_signed());
        body.extend([0x7e, 0x20, 1, 0x85, 0x22, 0, 0x20, 1, 0x7c, 0x21, 1]);
    }
    body.extend([0x20, 0, 0x0b]);
    body
}

fn section(out: &mut Vec<u8>, id: u8, contents: &[u8]) {
    out.push(id);
    unsigned(out, contents.len() as u64);
    out.extend(contents);
}

/// LEB128.
fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(low(value) | 0x80);
        value >>= 7;
    }
    out.push(low(value));
}

/// LEB128, with the sign in the last byte.
fn signed(out: &mut Vec<u8>, mut value: i64) {
    while !(-0x40..0x40).contains(&value) {
        out.push(low(value.cast_unsigned()) | 0x80);
        value >>= 7;
    }
    out.push(low(value.cast_unsigned()));
}

/// The lowest seven bits.
fn low(value: u64) -> u8 {
    (value & 0x7f) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_specification_has_them() {
        let unsigned = |value| {
            let mut out = Vec::new();
            unsigned(&mut out, value);
            out
        };
        assert_eq!(unsigned(0), [0]);
        assert_eq!(unsigned(127), [0x7f]);
        assert_eq!(unsigned(624_485), [0xe5, 0x8e, 0x26]);
        let signed = |value| {
            let mut out = Vec::new();
            signed(&mut out, value);
            out
        };
        assert_eq!(signed(-1), [0x7f]);
        assert_eq!(signed(64), [0xc0, 0]);
        assert_eq!(signed(-123_456), [0xc0, 0xbb, 0x78]);
        assert_eq!(signed(i64::MIN).len(), 10);
    }

    #[test]
    fn a_component_grows_to_about_the_size_that_is_asked_for() {
        let grown = grown(b"component", 100_000).unwrap();
        assert!(grown.starts_with(b"component\x01"));
        assert!((100_000..102_000).contains(&grown.len()), "{}", grown.len());
        super::grown(b"component", 5).unwrap_err();
    }
}

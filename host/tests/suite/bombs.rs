//! Components that are valid or nearly valid, and hard to compile. They are written byte by byte,
//! since no assembler would make them.

/// An unsigned number in WebAssembly's encoding.
fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn section(id: u8, body: &[u8]) -> Vec<u8> {
    [&[id][..], &number(body.len()), body].concat()
}

fn vector(count: usize, item: &[u8]) -> Vec<u8> {
    [number(count), item.repeat(count)].concat()
}

fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [b"\0asm\x01\0\0\0".to_vec(), sections.concat()].concat()
}

/// A component of these sections, each with its id.
fn component(parts: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    for (id, part) in parts {
        bytes.extend(section(*id, part));
    }
    bytes
}

const MODULE: u8 = 1;
const COMPONENT: u8 = 4;

/// A component of this one module.
pub(crate) fn of_module(sections: &[Vec<u8>]) -> Vec<u8> {
    component(&[(MODULE, module(sections))])
}

/// A component with one more module, which is not instantiated but is compiled with the rest.
pub(crate) fn with_module(driver: &[u8], sections: &[Vec<u8>]) -> Vec<u8> {
    [driver.to_vec(), section(MODULE, &module(sections))].concat()
}

/// A module of `count` functions `(i32) -> i32` with this code.
fn functions(count: usize, code: &[u8]) -> [Vec<u8>; 3] {
    let body = [&[0][..], code, &[0x0b]].concat();
    let body = [number(body.len()), body].concat();
    [
        section(1, &[1, 0x60, 1, 0x7f, 1, 0x7f]),
        section(3, &vector(count, &[0])),
        section(10, &vector(count, &body)),
    ]
}

/// `count` functions of seven megabytes each, whose values all stay live to the end.
pub(crate) fn huge_functions(count: usize) -> [Vec<u8>; 3] {
    const VALUES: usize = 1_000_000;
    // local.get 0, local.get 0, i32.mul … then one i32.xor for each.
    let code = [
        [0x20, 0, 0x20, 0, 0x6c].repeat(VALUES),
        [0x73].repeat(VALUES - 1),
    ];
    functions(count, &code.concat())
}

/// Blocks within blocks.
pub(crate) fn deep_blocks(depth: usize) -> Vec<u8> {
    let code = [
        [0x02, 0x40].repeat(depth),
        [0x0b].repeat(depth),
        vec![0x20, 0],
    ];
    of_module(&functions(1, &code.concat()))
}

/// `count` types with 900 parameters each.
pub(crate) fn many_types(count: usize) -> Vec<u8> {
    let kind = [vec![0x60], vector(900, &[0x7f]), vec![0]].concat();
    of_module(&[section(1, &vector(count, &kind))])
}

/// `count` empty functions.
pub(crate) fn many_functions(count: usize) -> Vec<u8> {
    of_module(&[
        section(1, &[1, 0x60, 0, 0]),
        section(3, &vector(count, &[0])),
        section(10, &vector(count, &[2, 0, 0x0b])),
    ])
}

/// Modules with many tables. The only element of each table has the highest index, so that the
/// table is allocated in full.
pub(crate) fn sparse_tables(modules: usize) -> Vec<u8> {
    const LENGTH: usize = 1_000_000;
    const TABLES: usize = 100;
    let table = [vec![0x70, 0], number(LENGTH)].concat();
    let mut elements = number(TABLES);
    for index in 0..TABLES {
        // Active, with a table index: i32.const LENGTH - 1, one function.
        elements.extend([vec![2], number(index), vec![0x41]].concat());
        elements.extend(signed(LENGTH - 1));
        elements.extend([0x0b, 0, 1, 0]);
    }
    let one = module(&[
        section(1, &[1, 0x60, 0, 0]),
        section(3, &[1, 0]),
        section(4, &vector(TABLES, &table)),
        section(9, &elements),
        section(10, &[1, 2, 0, 0x0b]),
    ]);
    component(&vec![(MODULE, one); modules])
}

/// An element segment of `items` items.
pub(crate) fn many_elements(items: usize) -> Vec<u8> {
    let segment = [vec![1, 0], vector(items, &[0])].concat();
    of_module(&[
        section(1, &[1, 0x60, 0, 0]),
        section(3, &[1, 0]),
        section(9, &[number(1), segment].concat()),
        section(10, &[1, 2, 0, 0x0b]),
    ])
}

/// Single bytes of data, spread evenly over a memory of 4 GiB.
pub(crate) fn sparse_data(segments: usize) -> Vec<u8> {
    let step = (4_usize << 30) / segments;
    let mut data = number(segments);
    for index in 0..segments {
        data.extend([0, 0x41]);
        // The offset is a signed number of 32 bits.
        let place = (index * step) as u32;
        data.extend(negative(i64::from(place.cast_signed())));
        data.extend([0x0b, 1, 0x55]);
    }
    of_module(&[
        section(5, &[vec![1, 0], number(65_536)].concat()),
        section(11, &data),
    ])
}

/// Levels of components, each of which instantiates the level below `times` times.
pub(crate) fn instances(levels: usize, times: usize) -> Vec<u8> {
    let mut inner = component(&[]);
    for _ in 0..levels {
        // Instantiate component 0 without arguments.
        let made = vector(times, &[0, 0, 0]);
        inner = component(&[(COMPONENT, inner), (5, made)]);
    }
    inner
}

/// Components within components.
pub(crate) fn nested(levels: usize) -> Vec<u8> {
    let mut inner = component(&[]);
    for _ in 0..levels {
        inner = component(&[(COMPONENT, inner)]);
    }
    inner
}

/// A positive number in WebAssembly's encoding of signed numbers.
fn signed(value: usize) -> Vec<u8> {
    negative(i64::try_from(value).unwrap())
}

fn negative(mut value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        let sign = low & 0x40 != 0;
        if (value == 0 && !sign) || (value == -1 && sign) {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

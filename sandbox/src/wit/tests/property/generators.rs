//! Random types and values.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::Union;
use toolward_bundle::component::Type;
use wasmtime::component::Val;

/// Names in kebab case. They include the words that JSON adds to a value.
const NAMES: [&str; 10] = [
    "a",
    "b-2",
    "err",
    "none",
    "ok",
    "some",
    "tag",
    "val",
    "x-y-z",
    "HTTP-code",
];

/// The most types around the innermost type.
const DEPTH: u32 = 3;

/// The most parts of a type or a list.
const WIDTH: usize = 4;

/// A type with a value of it.
pub(super) fn typed() -> impl Strategy<Value = (Arc<Type>, Val)> {
    types().prop_flat_map(|ty| {
        let values = values(&ty);
        (Just(ty), values)
    })
}

/// Named types, and a value of each.
pub(super) fn fields() -> impl Strategy<Value = (Vec<(String, Arc<Type>)>, Vec<Val>)> {
    named(types().boxed()).prop_flat_map(|fields| {
        let values: Vec<_> = fields.iter().map(|(_, ty)| values(ty)).collect();
        (Just(fields), values)
    })
}

fn names() -> impl Strategy<Value = Vec<String>> {
    subsequence(NAMES.as_slice(), 1..=WIDTH)
        .prop_map(|names| names.into_iter().map(str::to_owned).collect())
}

/// Some names, each with a generated value.
fn named<T: std::fmt::Debug + 'static>(
    each: BoxedStrategy<T>,
) -> impl Strategy<Value = Vec<(String, T)>> {
    names().prop_flat_map(move |names| {
        let count = names.len();
        let each = vec(each.clone(), count);
        each.prop_map(move |each| names.iter().cloned().zip(each).collect())
    })
}

fn types() -> impl Strategy<Value = Arc<Type>> {
    let plain = [
        Type::Bool,
        Type::Float32,
        Type::Float64,
        Type::Char,
        Type::String,
        Type::List(Arc::new(Type::Unsigned(8))),
    ];
    let leaf = prop_oneof![
        2 => select(plain.map(Arc::new).to_vec()),
        1 => select(vec![8, 16, 32, 64]).prop_map(|bits| Arc::new(Type::Unsigned(bits))),
        1 => select(vec![8, 16, 32, 64]).prop_map(|bits| Arc::new(Type::Signed(bits))),
        1 => names().prop_map(|names| Arc::new(Type::Enum(names))),
        1 => names().prop_map(|names| Arc::new(Type::Flags(names))),
    ];
    leaf.prop_recursive(DEPTH, 24, 3, |inner| {
        let perhaps = prop::option::of(inner.clone());
        prop_oneof![
            inner.clone().prop_map(Type::List),
            vec(inner.clone(), 1..=WIDTH).prop_map(Type::Tuple),
            // A type that is used twice is defined once.
            inner
                .clone()
                .prop_map(|ty| Type::Tuple(vec![ty.clone(), ty])),
            named(inner.clone().boxed()).prop_map(Type::Record),
            inner.clone().prop_map(Type::Option),
            inner.prop_map(|ty| Type::Option(Arc::new(Type::Option(ty)))),
            named(perhaps.clone().boxed()).prop_map(Type::Variant),
            (perhaps.clone(), perhaps).prop_map(|(ok, err)| Type::Result { ok, err }),
        ]
        .prop_map(Arc::new)
    })
}

fn values(ty: &Type) -> BoxedStrategy<Val> {
    match ty {
        Type::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        Type::Unsigned(8) => any::<u8>().prop_map(Val::U8).boxed(),
        Type::Unsigned(16) => any::<u16>().prop_map(Val::U16).boxed(),
        Type::Unsigned(32) => any::<u32>().prop_map(Val::U32).boxed(),
        Type::Unsigned(_) => prop_oneof![any::<u64>(), any::<u32>().prop_map(u64::from), edges()]
            .prop_map(Val::U64)
            .boxed(),
        Type::Signed(8) => any::<i8>().prop_map(Val::S8).boxed(),
        Type::Signed(16) => any::<i16>().prop_map(Val::S16).boxed(),
        Type::Signed(32) => any::<i32>().prop_map(Val::S32).boxed(),
        Type::Signed(_) => prop_oneof![
            any::<i64>(),
            any::<i32>().prop_map(i64::from),
            edges().prop_map(u64::cast_signed),
            edges().prop_map(|edge| edge.cast_signed().wrapping_neg()),
        ]
        .prop_map(Val::S64)
        .boxed(),
        Type::Float32 => float32().prop_map(Val::Float32).boxed(),
        Type::Float64 => float64().prop_map(Val::Float64).boxed(),
        Type::Char => any::<char>().prop_map(Val::Char).boxed(),
        Type::String => text().prop_map(Val::String).boxed(),
        bytes if bytes.is_bytes() => {
            let bytes = prop_oneof![vec(any::<u8>(), 0..8), text().prop_map(String::into_bytes)];
            let list = |bytes: Vec<u8>| Val::List(bytes.into_iter().map(Val::U8).collect());
            bytes.prop_map(list).boxed()
        }
        Type::List(element) => vec(values(element), 0..WIDTH).prop_map(Val::List).boxed(),
        Type::Tuple(types) => {
            let each: Vec<_> = types.iter().map(|ty| values(ty)).collect();
            each.prop_map(Val::Tuple).boxed()
        }
        Type::Record(fields) => {
            let each = fields.iter();
            let each: Vec<_> = each
                .map(|(name, ty)| (Just(name.clone()), values(ty)))
                .collect();
            each.prop_map(Val::Record).boxed()
        }
        Type::Option(inner) => prop_oneof![Just(None), boxed(Some(inner))]
            .prop_map(Val::Option)
            .boxed(),
        Type::Enum(cases) => select(cases.clone()).prop_map(Val::Enum).boxed(),
        Type::Flags(names) => subsequence(names.clone(), 0..=names.len())
            .prop_map(Val::Flags)
            .boxed(),
        Type::Variant(cases) => {
            let case = |(name, inner): &(String, Option<Arc<Type>>)| {
                let name = name.clone();
                boxed(inner.as_ref())
                    .prop_map(move |value| Val::Variant(name.clone(), value))
                    .boxed()
            };
            Union::new(cases.iter().map(case)).boxed()
        }
        Type::Result { ok, err } => prop_oneof![
            boxed(ok.as_ref()).prop_map(|value| Val::Result(Ok(value))),
            boxed(err.as_ref()).prop_map(|value| Val::Result(Err(value))),
        ]
        .boxed(),
    }
}

/// The payload of a case.
fn boxed(ty: Option<&Arc<Type>>) -> BoxedStrategy<Option<Box<Val>>> {
    match ty {
        Some(ty) => values(ty).prop_map(|value| Some(Box::new(value))).boxed(),
        None => Just(None).boxed(),
    }
}

/// Integers at the bound where they become text, and at their limits.
fn edges() -> impl Strategy<Value = u64> {
    let safe = (1_u64 << 53) - 1;
    select(vec![
        0,
        safe,
        safe + 1,
        safe + 2,
        1 << 63,
        (1 << 63) - 1,
        u64::MAX,
    ])
}

/// A number with any bits, including NaN. The shortest text of the last edge becomes another number
/// if it is read with 64 bits first.
fn float32() -> impl Strategy<Value = f32> {
    let edges = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::MAX,
        7.038_531e-26,
    ];
    let whole = any::<i16>().prop_map(f32::from);
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits),
        whole,
        select(edges.to_vec())
    ]
}

fn float64() -> impl Strategy<Value = f64> {
    let edges = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f64::MAX,
        9_007_199_254_740_993.0,
    ];
    let whole = any::<i32>().prop_map(f64::from);
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        whole,
        select(edges.to_vec())
    ]
}

fn text() -> impl Strategy<Value = String> {
    let letters = prop_oneof![
        any::<char>(),
        select("\0\"\\\n/\u{7f}\u{2028}".chars().collect::<Vec<_>>())
    ];
    let text = vec(letters, 0..6).prop_map(|letters| letters.into_iter().collect());
    // Words that stand for a number, and a number.
    prop_oneof![4 => text, 1 => select(vec!["NaN", "-Infinity", "12"]).prop_map(str::to_owned)]
}

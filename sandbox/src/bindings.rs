//! The world `toolward:driver/driver@0.1.0` as Rust types, generated from `wit/driver.wit`. The
//! host uses most of them as its own types.

wasmtime::component::bindgen!({
    world: "driver",
    path: "wit",
    imports: {
        default: async | trappable,
        "toolward:driver/log.write": trappable,
        "toolward:driver/progress.report": trappable,
    },
    exports: { default: async },
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
});

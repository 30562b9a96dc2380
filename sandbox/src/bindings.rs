//! The world `toolward:driver/driver@0.1.0` as Rust types, made from `wit/driver.wit`. The host uses most of them as
//! its own.

wasmtime::component::bindgen!({
    world: "driver",
    path: "wit",
    imports: {
        default: trappable,
        "toolward:driver/secrets.placeholder": async | trappable,
        "toolward:driver/secrets.reveal": async | trappable,
        "toolward:driver/secrets.store": async | trappable,
        "toolward:driver/tools.call": async | trappable,
    },
    exports: { default: async },
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
});

//! Rust: one module for each world.

use wit_bindgen_core::WorldGenerator;
use wit_bindgen_rust::Opts;

pub(crate) fn generator() -> Box<dyn WorldGenerator> {
    let options = Opts {
        format: true,
        generate_all: true,
        pub_export_macro: true,
        export_macro_name: Some("export_driver".to_owned()),
        default_bindings_module: Some("$crate::bindings".to_owned()),
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        ..Opts::default()
    };
    Box::new(options.build())
}

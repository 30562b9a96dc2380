//! The tools that the MCP conformance suite calls by name, and those of the tests with
//! the official clients. One component carries out all of them.

mod asking;
mod content;
mod course;
mod rounds;

use serde::Deserialize;
use toolward_guest::driver;

/// The input of a tool that takes none, or whose input does not matter.
#[derive(Deserialize)]
pub(crate) struct Nothing {}

driver! {
    "conformance.simple-text" => content::text,
    "conformance.image" => content::image,
    "conformance.audio" => content::audio,
    "conformance.embedded-resource" => content::embedded,
    "conformance.multiple-content" => content::multiple,
    "conformance.json-schema" => content::contact,
    "conformance.header" => content::region,
    "conformance.sum" => content::sum,
    "conformance.error" => course::fail,
    "conformance.progress" => course::progress,
    "conformance.logging" => course::logging,
    "conformance.streaming-logging" => course::logging,
    "conformance.endless" => course::endless,
    "conformance.sampling" => asking::sample_prompt,
    "conformance.elicitation" => asking::person,
    "conformance.elicitation-defaults" => asking::defaults,
    "conformance.elicitation-enums" => asking::choices,
    "conformance.missing-capability" => asking::sample,
    "conformance.streaming-elicitation" => asking::confirm,
    "conformance.input-elicitation" => asking::name,
    "conformance.input-sampling" => asking::sample,
    "conformance.input-roots" => asking::roots,
    "conformance.input-capabilities" => asking::sample,
    "conformance.input-tampered" => asking::confirm,
    "conformance.input-state" => rounds::state,
    "conformance.input-multiple" => rounds::several,
    "conformance.input-rounds" => rounds::three,
}

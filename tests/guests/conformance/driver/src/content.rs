//! Every kind of content that a result can have.

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::{Block, Call, Error, Reply};

use crate::Nothing;

/// A red pixel.
const PNG: &[u8] = include_bytes!("../../resources/static-binary.png");

type Answer = Result<Reply<Value>, Error>;

/// A reply whose only text is also its value.
pub(crate) fn said(text: impl Into<String>) -> Reply<Value> {
    let text = text.into();
    Reply::new(json!({ "text": text })).text(text)
}

pub(crate) fn text(_: Call<Nothing>) -> Answer {
    Ok(said("This is a simple text response for testing."))
}

pub(crate) fn image(_: Call<Nothing>) -> Answer {
    Ok(Reply::new(json!({ "text": "an image" })).block(Block::image("image/png", PNG)))
}

/// Eight samples of silence.
pub(crate) fn audio(_: Call<Nothing>) -> Answer {
    let samples = [0x80; 8];
    let mut wav = Vec::new();
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&(36 + samples.len() as u32).to_le_bytes());
    wav.extend_from_slice(b"WAVEfmt ");
    wav.extend_from_slice(&16_u32.to_le_bytes());
    // PCM, one channel, 8000 samples and bytes a second, one byte each.
    wav.extend_from_slice(&1_u16.to_le_bytes());
    wav.extend_from_slice(&1_u16.to_le_bytes());
    wav.extend_from_slice(&8000_u32.to_le_bytes());
    wav.extend_from_slice(&8000_u32.to_le_bytes());
    wav.extend_from_slice(&1_u16.to_le_bytes());
    wav.extend_from_slice(&8_u16.to_le_bytes());
    wav.extend_from_slice(b"data");
    wav.extend_from_slice(&(samples.len() as u32).to_le_bytes());
    wav.extend_from_slice(&samples);
    Ok(Reply::new(json!({ "text": "a sound" })).block(Block::audio("audio/wav", wav)))
}

pub(crate) fn embedded(_: Call<Nothing>) -> Answer {
    let resource = Block::embedded_text(
        "test://embedded-resource",
        "This is an embedded resource content.",
    );
    Ok(Reply::new(json!({ "text": "a resource" })).block(resource.mime_type("text/plain")))
}

pub(crate) fn multiple(_: Call<Nothing>) -> Answer {
    let resource = Block::embedded_text(
        "test://mixed-content-resource",
        r#"{"test":"data","value":123}"#,
    );
    Ok(said("Multiple content types test:")
        .block(Block::image("image/png", PNG))
        .block(resource.mime_type("application/json")))
}

#[derive(Deserialize)]
pub(crate) struct Contact {
    name: Option<String>,
}

pub(crate) fn contact(call: Call<Contact>) -> Answer {
    let name = call.input.name.unwrap_or_else(|| "somebody".to_owned());
    Ok(said(format!("Contact of {name}")))
}

#[derive(Deserialize)]
pub(crate) struct Region {
    region: String,
}

pub(crate) fn region(call: Call<Region>) -> Answer {
    Ok(said(format!("Called for {}", call.input.region)))
}

#[derive(Deserialize)]
pub(crate) struct Numbers {
    numbers: Vec<i64>,
}

pub(crate) fn sum(call: Call<Numbers>) -> Answer {
    let numbers = call.input.numbers;
    let sum = numbers.iter().sum::<i64>();
    Ok(Reply::new(json!({ "sum": sum, "count": numbers.len() })))
}

//! DSSE envelopes: a payload, its type, and signatures over both (the DSSE specification, version
//! 1.0). The trust store ([`crate::trust`]) decides who may sign.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{ErrorKind, REFUSED, Refusal, refuse, too_large};
use crate::key::SigningKey;
use crate::text::{bytes as count_bytes, quoted, visible};

/// How large an envelope may be, in bytes: about twice the size of the largest manifest in base64.
pub const MAX_BYTES: usize = 768 * 1024;
/// How many signatures an envelope may have: each may cost a verification per trusted key.
pub const MAX_SIGNATURES: usize = 16;
/// How long a signature or key id may be, in bytes. Ed25519 needs 64; co-signatures of other kinds
/// may be longer, and are ignored.
const MAX_FIELD: usize = 1024;

/// Padding may be left out, as is usual for base64url. Unused bits in the last character must be
/// zero.
const LENIENT_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT_PADDING);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT_PADDING);

/// The bytes to sign: DSSE's pre-authentication encoding of a type and a payload.
///
/// ```
/// let pae = toolward_signing::envelope::pae("http://example.com/HelloWorld", b"hello world");
/// assert_eq!(pae, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
/// ```
#[must_use]
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    [head.as_bytes(), payload].concat()
}

/// One signature of an envelope. Nothing in it is trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The key that the signer claims: a hint that saves work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyid: Option<String>,
    /// The signature's bytes.
    #[serde(deserialize_with = "read_sig", serialize_with = "write_base64")]
    pub sig: Vec<u8>,
}

/// An envelope. Its signatures are not verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    payload_type: String,
    #[serde(deserialize_with = "read_payload", serialize_with = "write_base64")]
    payload: Vec<u8>,
    #[serde(deserialize_with = "objects")]
    signatures: Vec<Signature>,
}

impl Envelope {
    /// An envelope without signatures.
    #[must_use]
    pub fn new(payload_type: impl Into<String>, payload: Vec<u8>) -> Self {
        Self {
            payload_type: payload_type.into(),
            payload,
            signatures: Vec::new(),
        }
    }

    /// Reads an envelope: one JSON object with `payloadType`, `payload` and `signatures`, each
    /// once; base64 in either alphabet, with padding or without. Other fields are ignored, as DSSE
    /// demands: they are not signed and nothing depends on them.
    ///
    /// # Errors
    /// [`ErrorKind::EnvelopeInvalid`], with the line and column of wrong JSON;
    /// [`ErrorKind::TooLarge`] above [`MAX_BYTES`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::parse_up_to(bytes, MAX_BYTES)
    }

    /// [`Envelope::parse`] for a kind of document with another limit.
    pub fn parse_up_to(bytes: &[u8], max_bytes: usize) -> Result<Self, Refusal> {
        if bytes.len() > max_bytes {
            return Err(too_large(max_bytes).found(count_bytes(bytes.len() as u64)));
        }
        let _ = REFUSED.take();
        let Object(mut envelope) =
            serde_json::from_slice::<Object<Self>>(bytes).map_err(|error| {
                REFUSED.take().unwrap_or_else(|| {
                    invalid("a JSON object with `payloadType`, `payload` and `signatures`")
                        .found(visible(&error.to_string()))
                })
            })?;
        if envelope.signatures.is_empty() || envelope.signatures.len() > MAX_SIGNATURES {
            return Err(invalid("1 to 16 signatures").found(envelope.signatures.len().to_string()));
        }
        for Signature { keyid, .. } in &mut envelope.signatures {
            keyid.take_if(|keyid| keyid.is_empty());
            if keyid.as_ref().is_some_and(|keyid| keyid.len() > MAX_FIELD) {
                return Err(invalid("a key id of at most 1024 bytes"));
            }
        }
        Ok(envelope)
    }

    /// The envelope as indented JSON with a final line feed, the same bytes each time.
    ///
    /// # Errors
    /// [`ErrorKind::EnvelopeInvalid`], should the encoder fail.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| Refusal::new(ErrorKind::EnvelopeInvalid).found(error.to_string()))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Adds a signature by `key`, or replaces an earlier one by the same key. Signatures are sorted
    /// by key id, so the bytes do not depend on the order of signing.
    pub fn sign(&mut self, key: &SigningKey) {
        let keyid = key.public().key_id().to_string();
        let sig = key.sign(&self.to_be_signed()).to_vec();
        self.signatures
            .retain(|signature| signature.keyid.as_deref() != Some(&keyid));
        self.signatures.push(Signature {
            keyid: Some(keyid),
            sig,
        });
        self.signatures.sort_by(|a, b| a.keyid.cmp(&b.keyid));
    }

    /// Adds the signatures of `other`, an envelope over the same document with other signers, and
    /// returns how many were new. Signatures are not verified, since the keys may be unknown here.
    ///
    /// # Errors
    /// [`ErrorKind::EnvelopeMismatch`] if the documents differ, [`ErrorKind::EnvelopeInvalid`]
    /// above [`MAX_SIGNATURES`]. In both cases, the envelope stays unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<usize, Refusal> {
        if (&self.payload_type, &self.payload) != (&other.payload_type, &other.payload) {
            let digest = |envelope: &Self| {
                format!(
                    "{} with digest {}",
                    quoted(&envelope.payload_type),
                    crate::Digest::of(&envelope.payload)
                )
            };
            return Err(Refusal::new(ErrorKind::EnvelopeMismatch)
                .expected(digest(self))
                .found(digest(other)));
        }
        let new: Vec<_> = other
            .signatures
            .iter()
            .filter(|theirs| !self.signatures.iter().any(|ours| ours.sig == theirs.sig))
            .cloned()
            .collect();
        let count = new.len();
        let mut signatures = self.signatures.clone();
        signatures.extend(new);
        if signatures.len() > MAX_SIGNATURES {
            return Err(invalid("1 to 16 signatures")
                .found(signatures.len().to_string())
                .hinted("leave out signatures that are not needed"));
        }
        signatures.sort_by(|a, b| a.keyid.cmp(&b.keyid));
        self.signatures = signatures;
        Ok(count)
    }

    /// The bytes that each signature covers.
    #[must_use]
    pub fn to_be_signed(&self) -> Vec<u8> {
        pae(&self.payload_type, &self.payload)
    }

    /// The kind of document: a media type.
    #[must_use]
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// The document, as signed.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The signatures, not verified.
    #[must_use]
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }
}

fn read_payload<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    decode(&String::deserialize(from)?)
        .map_err(|error| refuse(invalid("`payload` in base64").found(error.to_string())))
}

fn read_sig<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let sig = decode(&String::deserialize(from)?).ok();
    sig.filter(|sig| sig.len() <= MAX_FIELD)
        .ok_or_else(|| refuse(invalid("a signature of at most 1024 bytes in base64")))
}

fn decode(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    match text.contains(['-', '_']) {
        true => URL_SAFE.decode(text),
        false => STANDARD.decode(text),
    }
}

fn write_base64<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&BASE64_STANDARD.encode(bytes))
}

fn objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(from)?;
    Ok(objects.into_iter().map(|Object(one)| one).collect())
}

fn invalid(expected: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::new(ErrorKind::EnvelopeInvalid).expected(expected)
}

/// A `T` that must be a JSON object. By default, serde also reads a struct from an array of its
/// fields.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed() -> (Envelope, SigningKey) {
        let key = SigningKey::from_bytes(&[7; 32]);
        let mut envelope = Envelope::new("text/plain", b"hello?>".to_vec());
        envelope.sign(&key);
        (envelope, key)
    }

    #[test]
    fn an_envelope_survives_writing_and_reading() {
        let (envelope, key) = signed();
        let read = Envelope::parse(&envelope.to_bytes().unwrap()).unwrap();
        assert_eq!(read, envelope);
        key.public()
            .verify(&read.to_be_signed(), &read.signatures()[0].sig)
            .unwrap();
    }

    #[test]
    fn both_alphabets_are_read_with_padding_or_without() {
        // "hello?>" encodes to both characters in which the two alphabets differ.
        for payload in ["aGVsbG8/Pg==", "aGVsbG8/Pg", "aGVsbG8_Pg==", "aGVsbG8_Pg"] {
            let json = format!(
                r#"{{"payloadType":"text/plain","payload":"{payload}","signatures":[{{"sig":"AA=="}}]}}"#
            );
            let envelope = Envelope::parse(json.as_bytes()).unwrap();
            assert_eq!(envelope.payload(), b"hello?>");
        }
    }

    #[test]
    fn malformed_envelopes_are_refused() {
        let sig = r#"{"sig":"AA=="}"#;
        let many = vec![sig; 17].join(",");
        let cases = [
            String::new(),
            "null".to_owned(),
            r#"["t","",[]]"#.to_owned(),
            format!(r#"{{"payloadType":"t","payload":"","signatures":[{sig}]}} x"#),
            r#"{"payloadType":"t","payload":"","signatures":[]}"#.to_owned(),
            format!(r#"{{"payloadType":"t","payload":"","signatures":[{many}]}}"#),
            format!(r#"{{"payloadType":"t","payloadType":"t","payload":"","signatures":[{sig}]}}"#),
            format!(r#"{{"payload":"","signatures":[{sig}]}}"#),
            format!(r#"{{"payloadType":"t","payload":null,"signatures":[{sig}]}}"#),
            format!(r#"{{"payloadType":"t","payload":"a","signatures":[{sig}]}}"#),
            format!(r#"{{"payloadType":"t","payload":"AB==","signatures":[{sig}]}}"#),
            format!(r#"{{"payloadType":"t","payload":"+_AA","signatures":[{sig}]}}"#),
            r#"{"payloadType":"t","payload":"","signatures":[{"keyid":"k"}]}"#.to_owned(),
            r#"{"payloadType":"t","payload":"","signatures":[["k","AA=="]]}"#.to_owned(),
        ];
        for case in cases {
            let refusal = Envelope::parse(case.as_bytes()).expect_err(&case);
            assert_eq!(refusal.code(), "envelope-invalid", "{case}");
        }
        let large = vec![b' '; MAX_BYTES + 1];
        assert_eq!(Envelope::parse(&large).unwrap_err().code(), "too-large");
    }

    #[test]
    fn signing_twice_with_a_key_leaves_one_signature() {
        let (mut envelope, key) = signed();
        let before = envelope.clone();
        envelope.sign(&key);
        assert_eq!(envelope, before);
    }

    #[test]
    fn the_order_of_signing_leaves_no_trace() {
        let [one, two] = [1, 2].map(|byte| SigningKey::from_bytes(&[byte; 32]));
        let mut forth = Envelope::new("t", vec![]);
        let mut back = forth.clone();
        forth.sign(&one);
        forth.sign(&two);
        back.sign(&two);
        back.sign(&one);
        assert_eq!(forth, back);
        assert_eq!(forth.signatures().len(), 2);
    }
}

//! What a call returns: results too large, too deep or broken, errors, questions.

use serde_json::{Value, json};
use toolward_guest::bindings::toolward::driver::types::{
    Annotations, Ask, Block, Content, EmbeddedResource, Form, InputRequest, Invocation, Link,
    Media, Outcome, Question, Reply, ResourceBody, Role, ToolError, ToolOutput,
};

use crate::{Ending, Input, did, done, failed};

/// What the host says of the call.
pub(crate) fn call(call: &Invocation) -> Value {
    json!({
        "id": call.id,
        "tool": call.tool,
        "tool_version": call.tool_version,
        "input": call.input,
        "context": call.context,
        "attempt": call.attempt,
        "remaining_ms": call.remaining_ms,
        "idempotency_key": call.idempotency_key,
        "resumed": call.resume.is_some(),
    })
}

pub(crate) fn deep(levels: u64) -> Ending {
    let levels = levels as usize;
    done(format!(
        r#"{{"did": "deep", "value": {}{}}}"#,
        "[".repeat(levels),
        "]".repeat(levels)
    ))
}

/// `mib` MiB of JSON string.
pub(crate) fn huge(mib: u64) -> Ending {
    let text = "h".repeat(mib as usize * 1024 * 1024);
    done(format!(r#"{{"did": "huge-result", "value": "{text}"}}"#))
}

/// A small value beside a block of `n` MiB.
pub(crate) fn huge_content(input: &Input) -> Ending {
    let image = Media {
        data: vec![0; input.n as usize * 1024 * 1024],
        mime_type: "image/png".to_owned(),
    };
    with_blocks(input, vec![block(Content::Image(image))])
}

pub(crate) fn many_blocks(input: &Input) -> Ending {
    let blocks = (0..input.n)
        .map(|n| block(Content::Text(n.to_string())))
        .collect();
    with_blocks(input, blocks)
}

/// A string that is none: the host's lifting has to refuse it.
pub(crate) fn not_utf8() -> Ending {
    // SAFETY: none. The bytes only cross the boundary; nothing here reads them
    // as text.
    done(unsafe { String::from_utf8_unchecked(b"{\"did\": \"\xff\xfe\"}".to_vec()) })
}

/// Characters that could fool whoever reads the result on a terminal.
pub(crate) fn escapes(input: &Input) -> Ending {
    let text = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}txet\u{2066}\u{e0041}\u{9b}31m\r\n";
    with_blocks(input, vec![block(Content::Text(text.to_owned()))])
}

/// One block of each kind.
pub(crate) fn blocks(input: &Input) -> Ending {
    let media = |mime_type: &str| Media {
        data: vec![1, 2, 3],
        mime_type: mime_type.to_owned(),
    };
    let mut text = block(Content::Text("for the person".to_owned()));
    text.annotations = Some(Annotations {
        audience: vec![Role::User],
        priority: Some(7.5),
    });
    with_blocks(
        input,
        vec![
            text,
            block(Content::Image(media("image/png"))),
            block(Content::Audio(media("audio/wav"))),
            block(Content::ResourceLink(Link {
                uri: "https://example.org/a".to_owned(),
                name: "a".to_owned(),
                title: Some("A".to_owned()),
                description: None,
                mime_type: Some("text/plain".to_owned()),
                size: Some(3),
            })),
            block(Content::Embedded(EmbeddedResource {
                uri: "memo:1".to_owned(),
                mime_type: Some("text/plain".to_owned()),
                body: ResourceBody::Text("inside".to_owned()),
            })),
            block(Content::Embedded(EmbeddedResource {
                uri: "memo:2".to_owned(),
                mime_type: None,
                body: ResourceBody::Blob(vec![0, 255]),
            })),
        ],
    )
}

/// A block that is for the user, said `n` times.
pub(crate) fn audience(input: &Input) -> Ending {
    let audience = vec![Role::User; input.n as usize];
    let annotations = Some(Annotations {
        audience,
        priority: None,
    });
    let content = Content::Text(String::new());
    with_blocks(
        input,
        vec![Block {
            content,
            annotations,
        }],
    )
}

fn block(content: Content) -> Block {
    Block {
        content,
        annotations: None,
    }
}

fn with_blocks(input: &Input, content: Vec<Block>) -> Ending {
    let structured = json!({"did": input.what, "value": input.n}).to_string();
    Ok(Outcome::Done(ToolOutput {
        structured,
        content,
    }))
}

/// An error with the code `name`; `value` may hold `message`, `retryable`,
/// `retry_after_ms` and `cause` (sent as it is, JSON or not).
pub(crate) fn error(input: &Input) -> ToolError {
    let text = |key: &str| input.value[key].as_str().map(str::to_owned);
    ToolError {
        retryable: input.value["retryable"].as_bool().unwrap_or(false),
        retry_after_ms: input.value["retry_after_ms"].as_u64(),
        cause: text("cause"),
        ..failed(
            &input.name,
            text("message").unwrap_or_else(|| "as asked".to_owned()),
        )
    }
}

/// Fails in a way that may be retried, until attempt `n`.
pub(crate) fn flaky(call: &Invocation, input: &Input) -> Ending {
    if u64::from(call.attempt) < input.n {
        return Err(ToolError {
            retryable: true,
            ..failed(
                "upstream_error",
                format!("attempt {} of {}", call.attempt, input.n),
            )
        });
    }
    did(
        input,
        json!({"attempt": call.attempt, "idempotency_key": call.idempotency_key}),
    )
}

/// Asks of the kind `name`, and tells what came back.
pub(crate) fn ask(call: &Invocation, input: &Input) -> Ending {
    if let Some(resume) = &call.resume {
        let answers: Vec<Value> = resume
            .answers
            .iter()
            .map(|answer| match &answer.reply {
                Reply::Accepted(json) => json!({"key": answer.key, "accepted": json}),
                Reply::Declined => json!({"key": answer.key, "declined": true}),
                Reply::Cancelled => json!({"key": answer.key, "cancelled": true}),
            })
            .collect();
        let state = String::from_utf8_lossy(&resume.state);
        return did(input, json!({"state": state, "answers": answers}));
    }
    let question = match input.name.as_str() {
        "sample" => Ask::Sample(r#"{"messages": [], "maxTokens": 1}"#.to_owned()),
        "roots" => Ask::Roots,
        _ => form(),
    };
    request(
        vec![Question {
            key: "q".to_owned(),
            ask: question,
        }],
        b"the state".to_vec(),
    )
}

pub(crate) fn ask_nothing() -> Ending {
    request(Vec::new(), Vec::new())
}

pub(crate) fn ask_twice_the_same() -> Ending {
    let question = || Question {
        key: "q".to_owned(),
        ask: form(),
    };
    request(vec![question(), question()], Vec::new())
}

pub(crate) fn ask_huge_state(bytes: u64) -> Ending {
    request(
        vec![Question {
            key: "q".to_owned(),
            ask: form(),
        }],
        vec![0; bytes as usize],
    )
}

fn form() -> Ask {
    Ask::Form(Form {
        message: "May I?".to_owned(),
        schema: json!({"type": "object", "properties": {"ok": {"type": "boolean"}}}).to_string(),
    })
}

fn request(questions: Vec<Question>, state: Vec<u8>) -> Ending {
    Ok(Outcome::NeedsInput(InputRequest { questions, state }))
}

/// Text (`name` is `text`), bytes (`bytes`) or a state (`state`) of `n` bytes that
/// the guest never had: only their length is claimed.
pub(crate) fn forged(input: &Input) -> Ending {
    let start = std::hint::black_box(0xfff0_usize) as *mut u8;
    let length = (input.n as usize).min(isize::MAX as usize);
    // SAFETY: none. Only the host reads it; the instance ends before anything here
    // could free it.
    let forged = unsafe { Vec::from_raw_parts(start, length, length) };
    match input.name.as_str() {
        "bytes" => with_blocks(
            input,
            vec![block(Content::Image(Media {
                data: forged,
                mime_type: "image/png".to_owned(),
            }))],
        ),
        "state" => request(
            vec![Question {
                key: "q".to_owned(),
                ask: form(),
            }],
            forged,
        ),
        // SAFETY: none, as above.
        _ => done(unsafe { String::from_utf8_unchecked(forged) }),
    }
}

/// Asks with the form in `value` (`message`, `schema`), and tells what came back.
pub(crate) fn ask_form(call: &Invocation, input: &Input) -> Ending {
    if call.resume.is_some() {
        return ask(call, input);
    }
    let form = Ask::Form(Form {
        message: input.value["message"]
            .as_str()
            .unwrap_or("May I?")
            .to_owned(),
        schema: input.value["schema"].to_string(),
    });
    request(
        vec![Question {
            key: "q".to_owned(),
            ask: form,
        }],
        input.name.clone().into_bytes(),
    )
}

/// Asks, whatever was answered, for `n` rounds (for ever where it is 0). The state
/// counts them.
pub(crate) fn ask_again(call: &Invocation, input: &Input) -> Ending {
    let rounds = call
        .resume
        .as_ref()
        .and_then(|resume| std::str::from_utf8(&resume.state).ok()?.parse::<u64>().ok())
        .unwrap_or(0);
    if input.n > 0 && rounds >= input.n {
        return did(input, json!(rounds));
    }
    request(
        vec![Question {
            key: "q".to_owned(),
            ask: form(),
        }],
        (rounds + 1).to_string().into_bytes(),
    )
}

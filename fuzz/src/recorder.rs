//! What a recording process says to its recorder.

use toolward_ledger::remote::{AnswerFrame, RequestFrame};

/// Frames, one after the other: each that is read is written as it was, so that nothing is in it
/// that the recorder does not see. The first byte says from which side they are.
pub fn recorder_frames(data: &[u8]) -> bool {
    let Some((side, data)) = data.split_first() else {
        return false;
    };
    let mut left = data;
    let mut written = Vec::new();
    loop {
        let read = match side {
            0 => RequestFrame::read(&mut left).map(|read| {
                read.map(|request| match &request {
                    // Its record says when, in the frame's own words.
                    RequestFrame::Start(_) => None,
                    _ => Some(request.write(&mut written).is_ok()),
                })
            }),
            _ => AnswerFrame::read(&mut left)
                .map(|read| read.map(|answer| Some(answer.write(&mut written).is_ok()))),
        };
        match read {
            Ok(Some(Some(wrote))) => assert!(wrote, "what was read can be written"),
            Ok(Some(None)) => return true,
            Ok(None) => break,
            Err(_) => return false,
        }
        assert_eq!(written, data[..data.len() - left.len()]);
    }
    !data.is_empty()
}

//! The recorder's socket: the rows that a recording process can send through it, and the frames
//! that it can forge.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{
    Abandoned, Call, Closed, Code, Content, Ended, Event, Hex, NOT_DISPATCHED, Number, Tool,
};
use toolward_ledger::remote::{
    AnswerFrame, MAX_NAME_BYTES, RecorderConnection, Remote, RequestFrame, Start,
};
use toolward_ledger::{Durability, Entry, Error, Given, LedgerOptions, Recorder, WrittenRows};

use crate::support::{Place, call, ended, invocation, opened, outcome, read_only, started};

/// A recorder on a thread.
type Served = JoinHandle<Result<(), Error>>;

const LONGEST: Duration = Duration::from_secs(30);

fn recorder() -> (UnixStream, Served) {
    let (socket, theirs) = UnixStream::pair().unwrap();
    let served = std::thread::spawn(|| {
        let connection = RecorderConnection::accept(theirs).unwrap().unwrap();
        connection.serve()
    });
    (socket, served)
}

fn start(options: LedgerOptions) -> Start {
    Start {
        options,
        opened: opened(),
    }
}

fn remote(options: LedgerOptions) -> (Remote, Served) {
    let (socket, served) = recorder();
    (Remote::start(socket, start(options)).unwrap(), served)
}

/// A recorder that has received its start. The test writes all further frames itself.
fn begun(place: &Place) -> (UnixStream, Served) {
    let (mut socket, served) = recorder();
    socket.set_read_timeout(Some(LONGEST)).unwrap();
    let start = Box::new(start(place.options()));
    RequestFrame::Start(start).write(&mut socket).unwrap();
    assert!(matches!(
        AnswerFrame::read(&mut socket),
        Ok(Some(AnswerFrame::Ready))
    ));
    (socket, served)
}

fn bytes(request: &RequestFrame) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.write(&mut bytes).unwrap();
    bytes
}

fn queue(entry: Entry) -> Vec<u8> {
    bytes(&RequestFrame::Queue(Box::new(entry)))
}

/// A frame from a kind and a body.
fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&[kind][..], &length, body].concat()
}

/// The `why` of the last `closed` row.
fn why(place: &Place) -> Option<String> {
    let line = place.lines().pop().unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["kind"], "closed");
    line["body"]["why"].as_str().map(str::to_owned)
}

#[test]
fn calls_are_recorded_through_the_socket_as_by_a_writer() {
    let place = Place::new();
    let (remote, served) = remote(place.options());
    let durable = |entry: Entry| remote.append(entry, Durability::Disk).wait();
    let input = br#"{"text":"hello"}"#.to_vec();
    let call = started(invocation(1)).payload(PayloadKind::Input, input.clone());
    durable(call).unwrap();
    // An answered row is on the disk.
    assert_eq!(place.count("started"), 1);
    durable(ended(invocation(1))).unwrap();
    assert_eq!(place.count("ended"), 1);
    for number in 2..100 {
        let entry = read_only(invocation(number));
        remote.append(entry, Durability::Queued).wait().unwrap();
    }
    remote.flush().wait().unwrap();
    assert_eq!(place.count("ended"), 99);
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
    assert_eq!(why(&place), None);
    assert!(place.findings().is_empty(), "{:?}", place.findings());
    let verified = place.verify();
    assert_eq!(verified.rows, verified.signed);
    let kept: Vec<u8> = place
        .payloads()
        .query_row("SELECT bytes FROM payload", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, input);
    assert!(place.lines().iter().all(|line| !line.contains("alice")));
}

#[test]
fn a_recorder_that_ends_reports_the_rows_of_the_latest_calls() {
    let place = Place::new();
    let (remote, served) = remote(place.options());
    let append = |entry: Entry| remote.append(entry, Durability::Queued).wait().unwrap();
    append(read_only(invocation(1)));
    let by_a_tool = Call {
        parent: Some(invocation(3)),
        ..call(false)
    };
    append(Entry::new(Event::Ended(Box::new(Ended {
        call: Some(by_a_tool),
        invocation: invocation(2),
        outcome: outcome(None),
    }))));
    append(started(invocation(3)));
    append(ended(invocation(3)));
    assert_eq!(remote.written(), None, "before it ends");
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
    let written = remote.written().unwrap();
    let origin = &written.origin;
    assert!(origin.starts_with("toolward.ledger/"), "{origin}");
    // Row 0 is the row of the session.
    assert_eq!(written.of(invocation(1)).collect::<Vec<_>>(), [1]);
    assert_eq!(written.of(invocation(2)).count(), 0, "a tool made it");
    assert_eq!(written.of(invocation(3)).collect::<Vec<_>>(), [3, 4]);

    let (remote, served) = self::remote(place.options());
    for number in 1000..1100 {
        let entry = read_only(invocation(number));
        remote.append(entry, Durability::Queued).wait().unwrap();
    }
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
    let written = remote.written().unwrap();
    assert_eq!(written.rows.len(), 64);
    assert_eq!(written.of(invocation(1099)).count(), 1);
    assert_eq!(written.of(invocation(1000)).count(), 0);
}

#[test]
fn many_appends_are_in_flight_at_once() {
    let place = Place::new();
    let (remote, served) = remote(place.options());
    let remote = Arc::new(remote);
    let threads: Vec<_> = (0..32)
        .map(|thread| {
            let remote = remote.clone();
            std::thread::spawn(move || {
                for number in 0..20 {
                    let id = invocation(thread * 1000 + number);
                    remote.append(started(id), Durability::Disk).wait().unwrap();
                    remote.append(ended(id), Durability::Disk).wait().unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
    assert_eq!((place.count("started"), place.count("ended")), (640, 640));
    assert!(place.verify().holds());
}

#[test]
fn an_id_is_known_once_it_was_given_and_to_its_principal_and_tool_alone() {
    let place = Place::new();
    let (remote, served) = remote(place.options());
    let given = |principal: &str, tool: &str, input: u8| Given {
        principal: principal.into(),
        tool: Tool::parse(tool).unwrap(),
        id: invocation(7),
        input: Hex([input; 32]),
    };
    let ask = |given: Given| match remote.given(given).wait() {
        Err(Error::Given { same_input }) => Some(same_input),
        answer => {
            answer.unwrap();
            None
        }
    };
    assert_eq!(ask(given("alice", "notes.append@1", 1)), None);
    let entry = started(invocation(1)).given(given("alice", "notes.append@1", 1));
    remote.append(entry, Durability::Disk).wait().unwrap();
    assert_eq!(ask(given("alice", "notes.append@1", 1)), Some(true));
    assert_eq!(ask(given("alice", "notes.append@1", 2)), Some(false));
    assert_eq!(ask(given("bob", "notes.append@1", 1)), None);
    assert_eq!(ask(given("alice", "notes.append@2", 1)), None);
    let entry = started(invocation(2)).given(given("alice", "notes.append@1", 1));
    let again = remote.append(entry, Durability::Disk).wait();
    assert!(matches!(again, Err(Error::Given { same_input: true })));
    assert_eq!(place.count("started"), 1);
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
}

#[test]
fn a_full_queue_makes_callers_wait_on_both_sides_and_drops_nothing() {
    let place = Place::new();
    let mut options = place.options();
    options.keep = toolward_ledger::payload::Keep::All;
    let (remote, served) = remote(options);
    remote.flush().wait().unwrap();
    let holder = place.records();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let sent = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let remote = Arc::new(remote);
    let thread = std::thread::spawn({
        let (remote, sent) = (remote.clone(), sent.clone());
        move || {
            for number in 0..1000 {
                let output = vec![0; 60_000];
                let entry = read_only(invocation(number)).payload(PayloadKind::Output, output);
                remote.append(entry, Durability::Queued).wait().unwrap();
                sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    std::thread::sleep(Duration::from_millis(1200));
    // Both queues are full, and the thread of each side has taken some rows, but not all 60 MB were
    // sent.
    let stuck = sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!((200..900).contains(&stuck), "{stuck}");
    holder.execute_batch("COMMIT").unwrap();
    thread.join().unwrap();
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
    assert_eq!((place.count("ended"), place.count("gap")), (1000, 0));
}

#[test]
fn a_recorder_that_hangs_keeps_nobody_waiting_and_a_late_start_is_taken_back() {
    let place = Place::new();
    let (socket, theirs) = UnixStream::pair().unwrap();
    let remote = Remote::start(socket, start(place.options())).unwrap();
    let given = || Given {
        principal: "alice".into(),
        tool: Tool::parse("notes.append@1").unwrap(),
        id: invocation(7),
        input: Hex([1; 32]),
    };
    let begin = |number| {
        let entry = started(invocation(number)).given(given());
        remote.append(entry, Durability::Disk).wait()
    };
    // Nobody reads the other end yet.
    let silent = |ended: Result<(), Error>| matches!(ended, Err(Error::Recorder(_)));
    assert!(silent(begin(1)));
    let row = remote.append(read_only(invocation(2)), Durability::Queued);
    row.wait().unwrap();
    assert!(silent(remote.flush().wait()));
    assert!(remote.given(given()).wait().is_err());
    assert!(remote.problem().is_none(), "it may answer yet");

    let served = std::thread::spawn(|| {
        let connection = RecorderConnection::accept(theirs).unwrap().unwrap();
        connection.serve()
    });
    let until = Instant::now() + LONGEST;
    while remote.flush().wait().is_err() || place.count("abandoned") == 0 {
        assert!(Instant::now() < until, "it answers again");
        std::thread::sleep(Duration::from_millis(20));
    }
    let lines = place.lines();
    let abandoned = lines.iter().find(|line| line.contains("abandoned"));
    assert!(
        abandoned.unwrap().contains(r#""why":"not-dispatched""#),
        "{lines:?}"
    );
    // The id is free again, and the row of the read-only call was not lost.
    begin(3).unwrap();
    remote
        .append(ended(invocation(3)), Durability::Disk)
        .wait()
        .unwrap();
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
    assert_eq!((place.count("started"), place.count("ended")), (2, 2));
    assert_eq!(place.count("abandoned"), 1);
    assert!(place.verify().holds());
    // The next session finds no unfinished calls.
    place.open().close().unwrap();
    assert_eq!(place.count("abandoned"), 1);
}

#[test]
fn starts_that_wait_together_for_a_recorder_that_hangs_have_one_deadline() {
    let place = Place::new();
    let (socket, theirs) = UnixStream::pair().unwrap();
    let mut options = place.options();
    options.keep = toolward_ledger::payload::Keep::All;
    let remote = Remote::start(socket, start(options)).unwrap();
    // These entries do not fit into the socket's buffers.
    let begun = Instant::now();
    let starts: Vec<_> = (0..40)
        .map(|number| {
            let entry = started(invocation(number)).payload(PayloadKind::Input, vec![7; 60_000]);
            remote.append(entry, Durability::Disk)
        })
        .collect();
    for start in starts {
        assert!(start.wait().is_err());
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");

    let served = std::thread::spawn(|| {
        let connection = RecorderConnection::accept(theirs).unwrap().unwrap();
        connection.serve()
    });
    let until = Instant::now() + LONGEST;
    while remote.flush().wait().is_err() {
        assert!(Instant::now() < until, "it answers again");
        std::thread::sleep(Duration::from_millis(20));
    }
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
    let written = place.count("started");
    assert!((1..20).contains(&written), "{written}");
    assert_eq!(place.count("abandoned"), written);
    assert!(place.verify().holds());
}

#[test]
fn a_recorder_that_never_answers_has_failed() {
    let place = Place::new();
    let (socket, _theirs) = UnixStream::pair().unwrap();
    let remote = Remote::start(socket, start(place.options())).unwrap();
    let ended = remote.ended();
    drop(remote.append(started(invocation(1)), Durability::Disk));
    let failed = ended.wait().unwrap_err();
    assert_eq!(failed.code(), "recorder-failed");
    assert!(failed.to_string().contains("has not answered"), "{failed}");
}

#[test]
fn the_end_of_a_call_that_did_not_run_frees_its_own_id_and_no_other() {
    let place = Place::new();
    let (remote, served) = remote(place.options());
    let given = || Given {
        principal: "alice".into(),
        tool: Tool::parse("notes.append@1").unwrap(),
        id: invocation(7),
        input: Hex([1; 32]),
    };
    let append = |entry: Entry| remote.append(entry.given(given()), Durability::Disk).wait();
    append(started(invocation(1))).unwrap();
    // Another process had used the id before.
    append(ended(invocation(2))).unwrap();
    let again = append(started(invocation(3)));
    assert!(matches!(again, Err(Error::Given { .. })));
    append(ended(invocation(1))).unwrap();
    append(started(invocation(4))).unwrap();
    remote.close(LONGEST).unwrap();
    served.join().unwrap().unwrap();
}

#[test]
fn a_recorder_that_is_gone_fails_what_waits_and_all_that_comes() {
    let (socket, theirs) = UnixStream::pair().unwrap();
    let place = Place::new();
    let remote = Remote::start(socket, start(place.options())).unwrap();
    let ended = remote.ended();
    let waiting = remote.append(started(invocation(1)), Durability::Disk);
    let mut theirs = theirs;
    // The row has arrived before the recorder ends.
    assert!(matches!(
        RequestFrame::read(&mut theirs),
        Ok(Some(RequestFrame::Start(_)))
    ));
    let request = RequestFrame::read(&mut theirs).unwrap();
    assert!(matches!(request, Some(RequestFrame::Append { .. })));
    drop(theirs);
    let gone =
        |answer: Result<(), Error>| assert_eq!(answer.unwrap_err().code(), "recorder-failed");
    gone(waiting.wait());
    gone(ended.wait());
    gone(
        remote
            .append(started(invocation(2)), Durability::Disk)
            .wait(),
    );
    gone(remote.flush().wait());
    gone(remote.close(LONGEST));
}

#[test]
fn a_recorder_that_closes_its_ledger_unasked_has_failed() {
    let (socket, mut theirs) = UnixStream::pair().unwrap();
    let place = Place::new();
    let remote = Remote::start(socket, start(place.options())).unwrap();
    let ended = remote.ended();
    let closed = AnswerFrame::Closed {
        outcome: Ok(()),
        written: WrittenRows::default(),
    };
    closed.write(&mut theirs).unwrap();
    assert_eq!(ended.wait().unwrap_err().code(), "recorder-failed");
    assert_eq!(remote.problem().unwrap().code(), "recorder-failed");
}

#[test]
fn a_ledger_that_is_refused_is_reported_with_its_code() {
    let place = Place::new();
    place.open().close().unwrap();
    std::fs::remove_file(place.ledger().join("key.pem")).unwrap();
    let (remote, served) = remote(place.options());
    let refused = remote
        .append(started(invocation(1)), Durability::Disk)
        .wait();
    let refused = refused.unwrap_err();
    assert!(refused.to_string().contains("ledger-key"), "{refused}");
    served.join().unwrap().unwrap_err();
}

#[test]
fn a_process_that_goes_without_a_word_leaves_a_session_that_says_so() {
    let place = Place::new();
    let (mut socket, served) = begun(&place);
    socket.write_all(&queue(started(invocation(1)))).unwrap();
    // The connection ends in the middle of a frame.
    socket.write_all(&[2, 200, 0]).unwrap();
    drop(socket);
    served.join().unwrap().unwrap();
    assert_eq!(why(&place).as_deref(), Some("host-gone"));
    assert!(place.verify().holds());
    place.open().close().unwrap();
    assert_eq!(place.count("abandoned"), 1);
}

#[test]
fn a_row_is_written_though_the_frame_after_it_has_only_begun() {
    let place = Place::new();
    let (mut socket, served) = begun(&place);
    let frames = [queue(started(invocation(1))), vec![2, 200, 0]].concat();
    socket.write_all(&frames).unwrap();
    let begun = Instant::now();
    while place.count("started") == 0 {
        assert!(begun.elapsed() < LONGEST);
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(socket);
    served.join().unwrap().unwrap();
}

/// Entries that a recording process may not state.
fn unstated() -> Vec<(&'static str, Entry)> {
    let event = |change: &dyn Fn(&mut toolward_ledger::record::Call)| {
        let mut call = call(true);
        change(&mut call);
        Entry::new(Event::Started(Box::new(toolward_ledger::record::Started {
            call,
            invocation: invocation(1),
        })))
    };
    let committed = Content {
        commitment: Some(Hex([1; 32])),
        size: Number::from(3),
    };
    let mut late = outcome(None);
    late.late = true;
    let late = toolward_ledger::record::Ended {
        call: None,
        invocation: invocation(1),
        outcome: late,
    };
    let abandoned = Abandoned {
        invocation: invocation(1),
        of: Hex([0; 16]),
        why: None,
    };
    let mut of_another = abandoned.clone();
    of_another.of = Hex([1; 16]);
    of_another.why = Code::parse(NOT_DISPATCHED).ok();
    vec![
        ("closed", Entry::new(Event::Closed(Closed { why: None }))),
        ("abandoned", Entry::new(Event::Abandoned(abandoned))),
        (
            "of another session",
            Entry::new(Event::Abandoned(of_another)),
        ),
        ("a person", event(&|call| call.person = Some(Hex([3; 16])))),
        (
            "a commitment",
            event(&|call| call.input = Some(committed.clone())),
        ),
        ("late", Entry::new(Event::Ended(Box::new(late)))),
    ]
}

/// Frames that end the connection: malformed frames, frames that may not follow a start, and
/// entries that a recording process may not state.
fn forged() -> Vec<(String, Vec<u8>)> {
    let good = queue(started(invocation(1)).payload(PayloadKind::Input, b"{}".to_vec()));
    let body = &good[5..];
    // The flags are before the event and its time; the principal and the payload follow it.
    let end = body.len() - (4 + "alice".len()) - (1 + 4 + "{}".len());
    let changed = |from: &[u8], to: &[u8]| {
        let at = body.windows(from.len()).position(|part| part == from);
        let at = at.unwrap();
        let mut body = body.to_vec();
        body.splice(at..at + from.len(), to.iter().copied());
        frame(3, &body)
    };
    let one = 1_u64.to_le_bytes();
    let rule = b"\x07grant:3";
    let with = |at: usize, bytes: &[u8]| {
        let mut body = body.to_vec();
        body.splice(at..at + bytes.len(), bytes.iter().copied());
        frame(3, &body)
    };
    let mut all = vec![
        ("an unknown kind".to_owned(), frame(9, b"")),
        ("an answer".to_owned(), frame(13, &[0; 9])),
        ("a second start".to_owned(), {
            let place = Place::new();
            bytes(&RequestFrame::Start(Box::new(start(place.options()))))
        }),
        ("an end with a body".to_owned(), frame(6, b"x")),
        ("a flush without its number".to_owned(), frame(4, &[0; 7])),
        ("a flush with more".to_owned(), frame(4, &[0; 9])),
        (
            "a length beyond all".to_owned(),
            [3, 255, 255, 255, 255].to_vec(),
        ),
        ("unknown flags".to_owned(), with(0, &[0x80])),
        (
            "an event of more than 8 KiB".to_owned(),
            changed(
                &[&one[..], rule].concat(),
                &[&1100_u64.to_le_bytes()[..], &rule.repeat(1100)].concat(),
            ),
        ),
        ("an event that is cut".to_owned(), {
            frame(3, &[&body[..end - 1], &body[end..]].concat())
        }),
        ("an event that is longer".to_owned(), {
            frame(3, &[&body[..end], &[0], &body[end..]].concat())
        }),
        ("an event of an unknown kind".to_owned(), with(9, &[13])),
        (
            "a time beyond 2^53".to_owned(),
            with(1, &(1_u64 << 53).to_le_bytes()),
        ),
        (
            "a list that is longer than the body".to_owned(),
            changed(&[&one[..], rule].concat(), &[&[0xff; 8][..], rule].concat()),
        ),
        (
            "a name of another form".to_owned(),
            changed(rule, b"\x07Grant:3"),
        ),
        (
            "a field that is neither set nor left out".to_owned(),
            with(10, &[2]),
        ),
        ("a payload beyond its frame".to_owned(), {
            let mut body = body.to_vec();
            let at = body.len() - 2 - 4;
            body.splice(at..at + 4, 3_u32.to_le_bytes());
            frame(3, &body)
        }),
        ("a payload of another size".to_owned(), {
            let mut body = body.to_vec();
            let at = body.len() - 2 - 4;
            body.splice(at..at + 4, 1_u32.to_le_bytes());
            body.pop();
            frame(3, &body)
        }),
        ("the same payload twice".to_owned(), {
            let twice = [body, &[1, 2, 0, 0, 0], b"{}"].concat();
            frame(3, &twice)
        }),
        ("a payload without its place".to_owned(), {
            frame(3, &[body, &[3, 2, 0, 0, 0], b"{}"].concat())
        }),
        ("an unknown payload".to_owned(), {
            frame(3, &[body, &[7, 2, 0, 0, 0], b"{}"].concat())
        }),
        ("a name that is too long".to_owned(), {
            let long = vec![b'a'; MAX_NAME_BYTES + 1];
            let length = (long.len() as u32).to_le_bytes();
            frame(3, &[&body[..end], &length[..], &long].concat())
        }),
        ("a question with less".to_owned(), frame(5, &[0; 40])),
    ];
    let entries = unstated().into_iter();
    all.extend(entries.map(|(what, entry)| (what.to_owned(), queue(entry))));
    all
}

#[test]
fn a_forged_frame_ends_the_connection_with_a_row_that_says_so_and_changes_nothing_else() {
    for (what, forged) in forged() {
        let place = Place::new();
        let (mut socket, served) = begun(&place);
        socket.write_all(&queue(read_only(invocation(5)))).unwrap();
        // The recorder may have closed the socket before all bytes are written.
        let _ = socket.write_all(&forged);
        let _ = socket.write_all(&queue(read_only(invocation(6))));
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        let served = served.join();
        served
            .unwrap()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(why(&place).as_deref(), Some("frame-invalid"), "{what}");
        assert_eq!(place.count("ended"), 1, "{what}");
        assert_eq!(place.lines().len(), 3, "{what}");
        assert!(place.verify().holds(), "{what}");
    }
}

#[test]
fn what_does_not_begin_with_a_start_begins_nothing() {
    for first in [
        queue(read_only(invocation(1))),
        frame(4, &[0; 8]),
        frame(1, b"{}"),
        frame(1, &vec![b' '; 100_000]),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ] {
        let (mut socket, theirs) = UnixStream::pair().unwrap();
        socket.write_all(&first).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        RecorderConnection::accept(theirs).unwrap_err();
    }
    let (socket, theirs) = UnixStream::pair().unwrap();
    drop(socket);
    assert!(RecorderConnection::accept(theirs).unwrap().is_none());
}

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn a_hundred_thousand_random_frames_are_refused_or_read_as_they_are_written() {
    let good = [
        queue(started(invocation(1)).payload(PayloadKind::Input, b"{}".to_vec())),
        queue(read_only(invocation(2)).payload(PayloadKind::Output, vec![7; 300])),
        bytes(&RequestFrame::Flush { id: 3 }),
        bytes(&RequestFrame::End),
    ];
    let mut numbers = Numbers(0x5eed_1e55_c0de_2026);
    let mut taken = 0;
    for _ in 0..100_000 {
        let mut forged = good[numbers.next(good.len())].clone();
        for _ in 0..=numbers.next(4) {
            let at = numbers.next(forged.len());
            match numbers.next(3) {
                0 => forged[at] = numbers.next(256) as u8,
                1 => forged.truncate(at.max(1)),
                _ => forged.insert(at, numbers.next(256) as u8),
            }
        }
        let mut left = forged.as_slice();
        if let Ok(Some(request)) = RequestFrame::read(&mut left) {
            let read = forged.len() - left.len();
            assert_eq!(bytes(&request), forged[..read]);
            taken += 1;
        }
    }
    // Some changes only affect numbers.
    assert!((100..50_000).contains(&taken), "{taken}");
}

#[test]
fn answers_survive_the_socket_and_nothing_else_is_one() {
    let mut numbers = Numbers(0x0a11_5afe_c0de_2026);
    for _ in 0..20_000 {
        let length = numbers.next(40);
        let random: Vec<u8> = (0..length).map(|_| numbers.next(256) as u8).collect();
        let mut left = random.as_slice();
        if let Ok(Some(answer)) = AnswerFrame::read(&mut left) {
            let mut written = Vec::new();
            answer.write(&mut written).unwrap();
            assert_eq!(written, random[..random.len() - left.len()]);
        }
    }
}

#[test]
fn no_byte_of_a_payload_comes_back() {
    let place = Place::new();
    let (mut socket, served) = begun(&place);
    let marked = b"{\"note\":\"marked-by-the-test\"}".to_vec();
    let entry = started(invocation(1)).payload(PayloadKind::Input, marked);
    let append = RequestFrame::Append {
        id: 1,
        entry: Box::new(entry),
    };
    socket.write_all(&bytes(&append)).unwrap();
    socket
        .write_all(&bytes(&RequestFrame::Flush { id: 2 }))
        .unwrap();
    socket.write_all(&bytes(&RequestFrame::End)).unwrap();
    let mut answers = Vec::new();
    socket.read_to_end(&mut answers).unwrap();
    served.join().unwrap().unwrap();
    let written = AnswerFrame::Closed {
        outcome: Ok(()),
        written: WrittenRows {
            origin: place.reader().verifier().origin().to_owned(),
            rows: [(invocation(1), 1)].into(),
        },
    };
    let outcome = || Ok(());
    let [row, flush] = [1, 2].map(|id| AnswerFrame::To {
        id,
        outcome: outcome(),
    });
    let mut all = Vec::new();
    for answer in [row, flush, written] {
        answer.write(&mut all).unwrap();
    }
    assert_eq!(answers, all);
    assert_eq!(place.count("started"), 1);
}

#[test]
fn a_last_answer_has_at_most_64_rows() {
    let is_read = |count: u64| {
        let closed = AnswerFrame::Closed {
            outcome: Ok(()),
            written: WrittenRows {
                origin: "a ledger".to_owned(),
                rows: (0..count).map(|row| (invocation(1), row)).collect(),
            },
        };
        let mut bytes = Vec::new();
        closed.write(&mut bytes).unwrap();
        AnswerFrame::read(&mut bytes.as_slice()).is_ok()
    };
    assert!(is_read(64));
    assert!(!is_read(65));
}

#[test]
fn options_of_a_recorder_that_are_not_known_are_refused() {
    let read = serde_json::from_value::<LedgerOptions>;
    let options = serde_json::to_value(Place::new().options()).unwrap();
    assert!(read(options.clone()).is_ok());
    for place in ["", "/payloads"] {
        let mut more = options.clone();
        more.pointer_mut(place).unwrap()["max_byte"] = 1.into();
        assert!(read(more).is_err(), "{place}");
    }
}

//! Rows about a person's approval: the question, the answer, and how long the answer holds.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::sync::Notify;
use toolward_host::{
    ApprovalRequest, ApprovalScope, Approver, CallFacts, CallListener, ErrorCode, Host, Remembered,
    Reply, Request, Verdict,
};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::{Answer, Approval, ApprovalEvent, Event};
use toolward_policy::Policy;

use super::{World, call, kinds};
use crate::fixture::Extra;

const MARK: &str = "m4rk\n{\"kind\":\"approval\"}\u{1b}[2K";

/// Gives these verdicts in turn, without reporting that a person is asked.
struct Says(Mutex<Vec<Verdict>>);

impl Approver for Says {
    fn ask<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        let verdict = self.0.lock().unwrap().remove(0);
        Box::pin(async { verdict })
    }
}

/// Reports that an approval has expired and that a person is asked, and then waits.
struct Waits(Remembered, Arc<Notify>);

impl Approver for Waits {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        request.mark_expired(self.0);
        request.mark_asked();
        Box::pin(async {
            self.1.notified().await;
            Verdict::Approved
        })
    }
}

/// A world whose tools need approval: one changes something, and one only reads, but a rule
/// requires its approval.
fn world() -> World {
    let world = World::new(Keep::Asked);
    world.fixture.tool("hostile.asked", "");
    let driver = "asked";
    world
        .fixture
        .driver(driver, "hostile.asked", Extra::default());
    world
}

fn host(world: &World, approver: impl Approver + 'static) -> Host {
    host_with(world, approver, &Arc::new(Answers::default()))
}

fn host_with(world: &World, approver: impl Approver + 'static, heard: &Arc<Answers>) -> Host {
    let publisher = format!("dev:{}", world.fixture.path().display());
    let policy = format!(
        "[[grant]]\npublisher = {publisher:?}\nmutates = [\"database:counters\"]\n\
         [[grant]]\npublisher = {publisher:?}\ntool = \"hostile.asked\"\napproval = \"always\"\n"
    );
    let builder = world.fixture.builder();
    let builder = builder.policy(Policy::from_toml(&policy).unwrap());
    let builder = builder.recorder(world.writer.clone());
    let builder = builder.listener(Arc::clone(heard) as Arc<dyn CallListener>);
    builder.approver(approver).build().unwrap()
}

fn says(world: &World, verdicts: &[Verdict]) -> Host {
    host(world, Says(Mutex::new(verdicts.to_vec())))
}

fn session(until: u64) -> Remembered {
    Remembered {
        scope: ApprovalScope::Session,
        until: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(until)),
    }
}

async fn change(host: &Host) -> Reply {
    call(
        host,
        "hostile.changes",
        json!({"do": "echo", "value": MARK}),
    )
    .await
}

/// The approval rows.
fn approvals(events: &[Event]) -> Vec<Approval> {
    let approvals = events.iter().filter_map(|event| match event {
        Event::Approval(body) => Some(body.clone()),
        _ => None,
    });
    approvals.collect()
}

/// The event, the answer, its scope, and until when it holds (in seconds since 1970).
type Said = (ApprovalEvent, Option<Answer>, Option<String>, Option<u64>);

fn said(events: &[Event]) -> Vec<Said> {
    let rows = approvals(events).into_iter();
    rows.map(|row| {
        let scope = row.scope.map(|scope| scope.as_str().to_owned());
        let until = row.until.map(|until| until.get() / 1_000_000);
        (row.event, row.answer, scope, until)
    })
    .collect()
}

const ASKED: Said = (ApprovalEvent::Asked, None, None, None);

fn yes(scope: &str) -> Said {
    let answer = Some(Answer::Approved);
    (
        ApprovalEvent::Answered,
        answer,
        Some(scope.to_owned()),
        None,
    )
}

#[tokio::test]
async fn a_question_and_a_yes_stand_before_the_start_of_the_call() {
    let world = world();
    let host = says(&world, &[Verdict::Approved]);
    let reply = change(&host).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    let events = world.events();
    assert_eq!(kinds(&events), ["approval", "approval", "started", "ended"]);
    assert_eq!(said(&events), [ASKED, yes("call")]);
    let Event::Started(started) = &events[2] else {
        panic!("{events:#?}");
    };
    for row in approvals(&events) {
        assert_eq!(row.invocation, Some(started.invocation));
        assert!(row.person.is_some());
        assert_eq!(row.person, started.call.person);
        assert_eq!(row.tool.unwrap().as_str(), "hostile.changes@1.0.0");
        assert_eq!(row.rule, None, "the contract asks");
    }
    assert!(world.reader().verify(&[]).unwrap().holds());
}

/// Listens for the answers in the facts of calls.
#[derive(Default)]
struct Answers(Mutex<Vec<Option<bool>>>);

impl CallListener for Answers {
    fn finished(&self, call: &CallFacts) {
        self.0.lock().unwrap().push(call.approval);
    }
}

#[tokio::test]
async fn listeners_hear_what_a_person_said_about_the_call_and_nothing_else() {
    let world = world();
    let verdicts = [
        Verdict::Approved,
        Verdict::ApprovedFor(session(9_000_000_000)),
        Verdict::Remembered(session(9_000_000_000)),
        Verdict::Denied(None),
        Verdict::Unanswered,
        Verdict::Unavailable,
        Verdict::Later,
    ];
    let heard = Arc::new(Answers::default());
    let host = host_with(&world, Says(Mutex::new(verdicts.to_vec())), &heard);
    for _ in &verdicts {
        change(&host).await;
    }
    let answers = heard.0.lock().unwrap().clone();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(answers, [yes, yes, None, no, no, None, None]);
}

#[tokio::test]
async fn a_flood_of_questions_takes_no_more_rows_than_one_of_refusals() {
    let world = world();
    let host = says(&world, &vec![Verdict::Later; 500]);
    for _ in 0..500 {
        change(&host).await;
    }
    world.writer.close().unwrap();
    let events = world.written();
    let asked = approvals(&events).len();
    let counted: u64 = events
        .iter()
        .filter_map(|event| match event {
            Event::RefusedMore(more) => {
                let asked = more
                    .codes
                    .iter()
                    .find(|(code, _)| code.as_str() == "approval-asked");
                Some(asked.map_or(0, |(_, count)| count.get()))
            }
            _ => None,
        })
        .sum();
    assert!(asked < 250, "{asked} rows of 500 questions");
    assert_eq!(asked as u64 + counted, 500);
}

#[tokio::test]
async fn each_way_not_to_be_approved_has_its_rows() {
    let no = (ApprovalEvent::Answered, Some(Answer::Denied), None, None);
    let revoked = (ApprovalEvent::Revoked, None, None, None);
    let expired = (ApprovalEvent::Expired, None, None, None);
    let answered = Verdict::Answered {
        approved: false,
        remembered: None,
    };
    for (verdict, rows) in [
        (
            Verdict::Denied(Some(MARK.to_owned())),
            vec![ASKED, no.clone()],
        ),
        (answered, vec![no]),
        (Verdict::Withdrawn, vec![ASKED, revoked]),
        (Verdict::Unanswered, vec![ASKED, expired]),
        (Verdict::Later, vec![ASKED]),
        (Verdict::Unavailable, vec![]),
    ] {
        let world = world();
        let reply = change(&says(&world, std::slice::from_ref(&verdict))).await;
        let code = reply.result.unwrap_err().code;
        match verdict {
            Verdict::Later => assert_eq!(code, ErrorCode::APPROVAL_PENDING),
            _ => assert_eq!(code, ErrorCode::APPROVAL_DENIED),
        }
        assert_eq!(reply.metadata.attempts, 0);
        let events = world.events();
        assert_eq!(said(&events), rows, "{verdict:?}");
        assert_eq!(*kinds(&events).last().unwrap(), "refused");
        assert_eq!(events.len(), rows.len() + 1);
    }
}

/// An approver with an answer that a person gave earlier. Requests get the second field's verdict
/// instead, so the answer stays unused.
struct Brings(bool, Verdict);

impl Approver for Brings {
    fn ask<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(std::future::ready(self.1.clone()))
    }

    fn unused_answer(&self) -> Option<Verdict> {
        Some(Verdict::Answered {
            approved: self.0,
            remembered: None,
        })
    }
}

#[tokio::test]
async fn an_answer_is_recorded_also_where_its_call_ends_before_it_counts() {
    let no = (ApprovalEvent::Answered, Some(Answer::Denied), None, None);
    for (approved, row) in [(true, yes("call")), (false, no)] {
        let world = world();
        let host = says(&world, &[]);
        for (tool, input) in [("hostile.gone", "{}"), ("hostile.changes", "[")] {
            let brings = Arc::new(Brings(approved, Verdict::Unavailable));
            let request = Request::new(tool, input).approver(brings);
            host.call(request).await.result.unwrap_err();
        }
        let events = world.events();
        assert_eq!(said(&events), [row.clone(), row]);
        assert_eq!(
            kinds(&events),
            ["approval", "refused", "approval", "refused"]
        );
    }
}

#[tokio::test]
async fn an_answer_to_another_question_stands_before_the_new_one() {
    let world = world();
    let brings = Arc::new(Brings(true, Verdict::Later));
    let request = Request::new("hostile.changes", r#"{"do": "echo"}"#).approver(brings);
    let reply = says(&world, &[]).call(request).await;
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::APPROVAL_PENDING);
    assert_eq!(said(&world.events()), [yes("call"), ASKED]);
}

#[tokio::test]
async fn an_answer_to_a_call_that_needs_none_any_more_stands_before_its_start() {
    let world = World::new(Keep::Asked);
    let brings = Arc::new(Brings(true, Verdict::Unavailable));
    let request = Request::new("hostile.changes", r#"{"do": "echo"}"#).approver(brings);
    world.host().call(request).await.result.unwrap();
    assert_eq!(kinds(&world.events()), ["approval", "started", "ended"]);
}

#[tokio::test]
async fn an_approval_that_is_kept_is_recorded_once_and_a_later_call_has_no_row_of_it() {
    let world = world();
    let kept = session(4_000_000_000);
    let host = says(
        &world,
        &[
            Verdict::ApprovedFor(kept),
            Verdict::Remembered(kept),
            Verdict::Later,
            Verdict::Answered {
                approved: true,
                remembered: Some(kept),
            },
        ],
    );
    let remembered = || {
        let scope = Some("session".to_owned());
        (ApprovalEvent::Remembered, None, scope, Some(4_000_000_000))
    };
    change(&host).await.result.unwrap();
    let first = world.events();
    assert_eq!(said(&first), [ASKED, yes("session"), remembered()]);
    change(&host).await.result.unwrap();
    let second = &world.events()[first.len()..];
    assert_eq!(kinds(second), ["started", "ended"]);

    change(&host).await.result.unwrap_err();
    change(&host).await.result.unwrap();
    let rest = &world.events()[first.len() + 2..];
    assert_eq!(said(rest), [ASKED, yes("session"), remembered()]);
    let order = [
        "approval", "refused", "approval", "approval", "started", "ended",
    ];
    assert_eq!(kinds(rest), order);
}

#[tokio::test]
async fn what_the_policy_approves_has_no_row_of_an_approval() {
    let world = World::new(Keep::Asked);
    change(&world.host()).await.result.unwrap();
    assert_eq!(kinds(&world.events()), ["started", "ended"]);
}

#[tokio::test]
async fn inputs_are_kept_of_calls_that_a_person_was_asked_about_and_of_no_others() {
    let remembered = |scope| Verdict::Remembered(Remembered { scope, until: None });
    let answered = Verdict::Answered {
        approved: true,
        remembered: None,
    };
    for (verdict, kept) in [
        (Verdict::Approved, true),
        (Verdict::Denied(None), true),
        (Verdict::Later, true),
        (answered, true),
        // The call resumes, and a person was asked about it before.
        (remembered(ApprovalScope::Call), true),
        (remembered(ApprovalScope::Session), false),
        (Verdict::Unavailable, false),
    ] {
        let world = world();
        let host = says(&world, std::slice::from_ref(&verdict));
        drop(call(&host, "hostile.asked", json!({"do": "echo"})).await);
        let events = world.events();
        let call = events.last().unwrap().call().unwrap();
        let input = call.input.as_ref().unwrap();
        assert_eq!(input.commitment.is_some(), kept, "{verdict:?}");
        assert!(call.mutates.is_empty());
        for row in approvals(&events) {
            assert_eq!(row.rule.unwrap().as_str(), "grant:2");
        }
    }
}

#[tokio::test]
async fn a_question_is_on_record_while_the_person_thinks_and_so_is_that_an_approval_ran_out() {
    let world = world();
    let (earlier, answer) = (session(1_000_000_000), Arc::new(Notify::new()));
    let host = host(&world, Waits(earlier, answer.clone()));
    let calling = tokio::spawn(async move { change(&host).await.result.is_ok() });
    let expired = || {
        let scope = Some("session".to_owned());
        (ApprovalEvent::Expired, None, scope, Some(1_000_000_000))
    };
    while said(&world.events()).len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(said(&world.events()), [expired(), ASKED]);
    answer.notify_one();
    assert!(calling.await.unwrap());
    assert_eq!(said(&world.events()), [expired(), ASKED, yes("call")]);
}

#[tokio::test]
async fn no_row_has_a_word_of_the_question_of_the_answer_or_of_who_was_asked() {
    let world = world();
    let verdicts = [Verdict::Denied(Some(MARK.to_owned())), Verdict::Approved];
    let host = says(&world, &verdicts);
    drop(change(&host).await);
    drop(change(&host).await);
    world.events();
    let reader = world.reader();
    let mut approvals = 0;
    for seq in 0..reader.size().unwrap() {
        let record = reader.row(seq).unwrap().record.unwrap();
        let record = String::from_utf8(record).unwrap();
        approvals += usize::from(record.contains("\"kind\":\"approval\""));
        for word in ["m4rk", "\"ada\"", "Test", "changes database"] {
            assert!(!record.contains(word), "{record}");
        }
    }
    assert_eq!(approvals, 4);
}

//! Tests every implementation of [`Approvals`].

use std::time::{Duration, Instant};

use toolward_state::{
    ApprovalKey, Approvals, Local, MAX_QUESTIONS, MAX_QUESTIONS_PER_TOOL, Opening, PersonsAnswer,
    QuestionId, QuestionWatch, RememberedApproval, settled,
};

use super::{Remote, over_both};

over_both! {
    Local::new(None, None), Remote::new();
    a_question_that_is_opened_again_is_open_once,
    about_one_tool_few_questions_are_open,
    a_principal_has_so_many_questions_open,
    a_denial_backs_the_tool_off_and_withdraws_its_questions,
    a_denial_that_is_repeated_counts_once,
    an_approval_ends_the_backoff,
    an_approval_of_a_question_that_was_withdrawn_does_not_count,
    a_remembered_approval_is_of_its_principal_and_tool,
}

const TOOL: ApprovalKey = [1; 32];
const OTHER: ApprovalKey = [2; 32];
/// A key that is not a tool of these tests.
const NONE: ApprovalKey = [9; 32];

fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn question(principal: &str, tool: ApprovalKey, number: u64) -> QuestionId {
    QuestionId {
        principal: principal.into(),
        tool,
        number,
    }
}

async fn open_with(approvals: &dyn Approvals, question: &QuestionId, also: ApprovalKey) -> Opening {
    let (until, deadline) = (Instant::now() + Duration::from_secs(600), in_time());
    let open = || approvals.open(question.clone(), also, until, deadline);
    settled(deadline, open).await.expect("in time")
}

async fn opening(approvals: &dyn Approvals, question: &QuestionId) -> Opening {
    open_with(approvals, question, NONE).await
}

async fn opened(approvals: &dyn Approvals, question: &QuestionId) -> QuestionWatch {
    match opening(approvals, question).await {
        Opening::Open(watch) => watch,
        other => panic!("{other:?}"),
    }
}

async fn answer(approvals: &dyn Approvals, question: &QuestionId, answer: PersonsAnswer) -> bool {
    let deadline = in_time();
    let answers = || approvals.answer(question.clone(), answer, deadline);
    settled(deadline, answers).await.expect("in time")
}

async fn a_question_that_is_opened_again_is_open_once(approvals: &dyn Approvals) {
    let first = question("alice", TOOL, 1);
    for _ in 0..=MAX_QUESTIONS_PER_TOOL {
        opened(approvals, &first).await;
    }
}

async fn about_one_tool_few_questions_are_open(approvals: &dyn Approvals) {
    for number in 0..MAX_QUESTIONS_PER_TOOL as u64 {
        opened(approvals, &question("alice", TOOL, number)).await;
    }
    let full = opening(approvals, &question("alice", TOOL, 50)).await;
    let Opening::FullForTool(wait) = full else {
        panic!("{full:?}");
    };
    assert!(wait > Duration::from_secs(500) && wait <= Duration::from_secs(600));
    opened(approvals, &question("alice", OTHER, 51)).await;
    opened(approvals, &question("bob", TOOL, 52)).await;
    answer(approvals, &question("alice", TOOL, 0), PersonsAnswer::None).await;
    opened(approvals, &question("alice", TOOL, 53)).await;
}

async fn a_principal_has_so_many_questions_open(approvals: &dyn Approvals) {
    for number in 0..MAX_QUESTIONS {
        let tool = [10 + u8::try_from(number).unwrap(); 32];
        opened(approvals, &question("alice", tool, number as u64)).await;
    }
    let full = opening(approvals, &question("alice", TOOL, 99)).await;
    assert!(matches!(full, Opening::Full(_)), "{full:?}");
    opened(approvals, &question("bob", TOOL, 99)).await;
}

async fn a_denial_backs_the_tool_off_and_withdraws_its_questions(approvals: &dyn Approvals) {
    let first = question("alice", TOOL, 1);
    opened(approvals, &first).await;
    let mut second = opened(approvals, &question("alice", TOOL, 2)).await;
    let other = opened(approvals, &question("alice", OTHER, 3)).await;
    let bobs = opened(approvals, &question("bob", TOOL, 4)).await;
    answer(approvals, &first, PersonsAnswer::Denied).await;
    let withdrawn = tokio::time::timeout(Duration::from_secs(20), second.withdrawn());
    withdrawn.await.expect("it was about the same tool");
    assert!(!other.is_withdrawn() && !bobs.is_withdrawn());

    let paused = opening(approvals, &question("alice", TOOL, 5)).await;
    let Opening::Paused(wait) = paused else {
        panic!("{paused:?}");
    };
    assert!(wait > Duration::from_secs(30) && wait <= Duration::from_secs(60));
    let through = open_with(approvals, &question("alice", [7; 32], 6), TOOL).await;
    assert!(matches!(through, Opening::Paused(_)), "{through:?}");
    opened(approvals, &question("bob", TOOL, 7)).await;
}

async fn a_denial_that_is_repeated_counts_once(approvals: &dyn Approvals) {
    let first = question("alice", TOOL, 1);
    opened(approvals, &first).await;
    for _ in 0..3 {
        answer(approvals, &first, PersonsAnswer::Denied).await;
    }
    let paused = opening(approvals, &question("alice", TOOL, 2)).await;
    let Opening::Paused(wait) = paused else {
        panic!("{paused:?}");
    };
    assert!(wait <= Duration::from_secs(60), "{wait:?}");
}

async fn an_approval_ends_the_backoff(approvals: &dyn Approvals) {
    let [first, second] = [1, 2].map(|number| question("alice", TOOL, number));
    opened(approvals, &first).await;
    answer(approvals, &first, PersonsAnswer::Denied).await;
    // This question was not opened here.
    answer(approvals, &second, PersonsAnswer::Approved).await;
    let paused = opening(approvals, &question("alice", TOOL, 3)).await;
    assert!(matches!(paused, Opening::Paused(_)), "it was not open");
    let other = question("alice", OTHER, 4);
    opened(approvals, &other).await;
    answer(approvals, &other, PersonsAnswer::Approved).await;
    opened(approvals, &question("alice", OTHER, 5)).await;
}

async fn an_approval_of_a_question_that_was_withdrawn_does_not_count(approvals: &dyn Approvals) {
    let [first, second] = [1, 2].map(|number| question("alice", TOOL, number));
    opened(approvals, &first).await;
    opened(approvals, &second).await;
    answer(approvals, &first, PersonsAnswer::Denied).await;
    assert!(!answer(approvals, &second, PersonsAnswer::Approved).await);
    assert!(
        !answer(
            approvals,
            &question("alice", TOOL, 3),
            PersonsAnswer::Approved
        )
        .await
    );
}

async fn a_remembered_approval_is_of_its_principal_and_tool(approvals: &dyn Approvals) {
    let deadline = in_time();
    let remember = || approvals.remember("alice".into(), TOOL, deadline);
    let until = settled(deadline, remember).await.unwrap().expect("a time");
    let known = async |principal: &str, tool| {
        let look_up = || approvals.remembered(principal, tool, deadline);
        settled(deadline, look_up).await.unwrap()
    };
    let valid = RememberedApproval::Valid(until);
    assert_eq!(known("alice", TOOL).await, Some(valid));
    assert_eq!(known("alice", OTHER).await, None);
    assert_eq!(known("bob", TOOL).await, None);
}

#[tokio::test]
async fn what_one_client_is_told_holds_for_another() {
    let asking = Remote::new();
    let other = asking.restarted();
    let first = question("alice", TOOL, 1);
    opened(&asking, &first).await;
    answer(&other, &first, PersonsAnswer::Denied).await;
    let paused = opening(&asking.restarted(), &question("alice", TOOL, 2)).await;
    assert!(matches!(paused, Opening::Paused(_)), "{paused:?}");
}

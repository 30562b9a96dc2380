//! Approvals of the second implementation. A client with an open question asks the server for its
//! state.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;
use toolward_state::{
    ApprovalKey, Approvals, BoxFuture, MAX_QUESTIONS, MAX_QUESTIONS_PER_TOOL, Opening,
    PersonsAnswer, QuestionId, QuestionWatch, RememberedApproval, StateError,
};

use super::Remote;

const PAUSE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The approvals and questions, by principal and tool or question.
#[derive(Default)]
pub(super) struct StoredApprovals {
    open: Vec<(QuestionId, Instant)>,
    withdrawn: Vec<QuestionId>,
    paused: HashMap<(Arc<str>, ApprovalKey), Instant>,
    remembered: HashMap<(Arc<str>, ApprovalKey), SystemTime>,
}

/// The server's reply to a question.
enum Stored {
    Open,
    Paused(Duration),
    FullForTool(Duration),
    Full(Duration),
}

impl Approvals for Remote {
    fn open(
        &self,
        question: QuestionId,
        also: ApprovalKey,
        until: Instant,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Opening, StateError>> {
        Box::pin(async move {
            let own = &question;
            let stored = self.send(deadline, |server| server.approvals.open(own, also, until));
            Ok(match stored.await? {
                Stored::Open => {
                    let (sender, watch) = QuestionWatch::new();
                    tokio::spawn(follow(self.clone(), question, sender));
                    Opening::Open(watch)
                }
                Stored::Paused(wait) => Opening::Paused(wait),
                Stored::FullForTool(wait) => Opening::FullForTool(wait),
                Stored::Full(wait) => Opening::Full(wait),
            })
        })
    }

    fn answer(
        &self,
        question: QuestionId,
        answer: PersonsAnswer,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<bool, StateError>> {
        let own = self.clone();
        Box::pin(async move {
            let answered = own.send(deadline, |server| {
                server.approvals.answer(&question, answer)
            });
            Ok(answered.await?)
        })
    }

    fn remember(
        &self,
        principal: Arc<str>,
        tool: ApprovalKey,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Option<SystemTime>, StateError>> {
        Box::pin(async move {
            let until = SystemTime::now() + Duration::from_secs(3600);
            let kept = self.send(deadline, |server| {
                server.approvals.remembered.insert((principal, tool), until);
                until
            });
            Ok(Some(kept.await?))
        })
    }

    fn remembered<'a>(
        &'a self,
        principal: &'a str,
        tool: ApprovalKey,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Option<RememberedApproval>, StateError>> {
        Box::pin(async move {
            let key = (Arc::from(principal), tool);
            let found = self.send(deadline, |server| {
                server.approvals.remembered.get(&key).copied()
            });
            Ok(found.await?.map(|until| match until > SystemTime::now() {
                true => RememberedApproval::Valid(until),
                false => RememberedApproval::Expired(until),
            }))
        })
    }
}

/// Polls the server until a question is withdrawn, or no one watches the question.
async fn follow(remote: Remote, question: QuestionId, watch: watch::Sender<bool>) {
    while !watch.is_closed() {
        let deadline = Instant::now() + Duration::from_secs(1);
        let withdrawn = remote.send(deadline, |server| {
            server.approvals.withdrawn.contains(&question)
        });
        if matches!(withdrawn.await, Ok(true)) {
            watch.send_replace(true);
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

impl StoredApprovals {
    fn open(&mut self, question: &QuestionId, also: ApprovalKey, until: Instant) -> Stored {
        let now = Instant::now();
        self.open.retain(|(_, until)| *until > now);
        if self.open.iter().any(|(known, _)| known == question) {
            return Stored::Open;
        }
        let pause = [question.tool, also].into_iter().filter_map(|tool| {
            let over = self.paused.get(&(question.principal.clone(), tool))?;
            over.checked_duration_since(now)
        });
        if let Some(pause) = pause.max() {
            return Stored::Paused(pause);
        }
        let own = self.open.iter();
        let own = own.filter(|(known, _)| known.principal == question.principal);
        let waits = |ends: Vec<Instant>| ends.into_iter().min().unwrap_or(now) - now;
        let same = own.clone().filter(|(known, _)| known.tool == question.tool);
        if same.clone().count() >= MAX_QUESTIONS_PER_TOOL {
            return Stored::FullForTool(waits(same.map(|(_, until)| *until).collect()));
        }
        if own.clone().count() >= MAX_QUESTIONS {
            return Stored::Full(waits(own.map(|(_, until)| *until).collect()));
        }
        self.open.push((question.clone(), until));
        Stored::Open
    }

    fn answer(&mut self, question: &QuestionId, answer: PersonsAnswer) -> bool {
        let before = self.open.len();
        self.open.retain(|(known, _)| known != question);
        let was_open = self.open.len() < before;
        let key = (question.principal.clone(), question.tool);
        match answer {
            PersonsAnswer::Denied => {
                self.paused
                    .entry(key)
                    .or_insert_with(|| Instant::now() + PAUSE);
                let same = |known: &QuestionId| {
                    known.principal == question.principal && known.tool == question.tool
                };
                let (gone, stay) = std::mem::take(&mut self.open)
                    .into_iter()
                    .partition(|(known, _)| same(known));
                self.open = stay;
                let gone: Vec<(QuestionId, Instant)> = gone;
                self.withdrawn
                    .extend(gone.into_iter().map(|(known, _)| known));
            }
            PersonsAnswer::Approved if was_open => drop(self.paused.remove(&key)),
            PersonsAnswer::Approved | PersonsAnswer::None => {}
        }
        was_open
    }
}

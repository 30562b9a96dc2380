//! Lists of messages, and the lists of their answers.

use super::*;

/// Opens a session of this revision, as the server would answer.
async fn opened(both: &mut Both, version: &str) {
    let opening = json!({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}});
    let opening: rmcp::model::InitializeResult = serde_json::from_value(opening).unwrap();
    let id = RequestId::Number(100);
    let answer = Outgoing::response(ServerResult::InitializeResult(opening), id);
    both.server.send(answer).await.unwrap();
    assert_eq!(both.told().await["id"], 100);
}

fn answer_to(id: i64) -> Outgoing {
    Outgoing::response(
        ServerResult::EmptyResult(EmptyResult {}),
        RequestId::Number(id),
    )
}

#[tokio::test]
async fn a_list_of_messages_is_answered_with_one_list() {
    let mut both = Both::new();
    opened(&mut both, "2025-03-26").await;
    let ping = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let list =
        json!([ping(1), {"jsonrpc": "2.0", "method": "notifications/initialized"}, 5, ping(2)]);
    both.say(&list.to_string()).await;
    both.takes_request(1).await;
    assert!(matches!(
        both.taken().await,
        JsonRpcMessage::Notification(_)
    ));
    both.takes_request(2).await;
    both.server.send(answer_to(2)).await.unwrap();
    both.server.send(answer_to(1)).await.unwrap();
    let told = both.told().await;
    let ids: Vec<&Value> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, [&Value::Null, &json!(2), &json!(1)], "{told}");
    for (list, number) in [("[]", -32600), ("[1,]", -32700)] {
        both.say(list).await;
        both.takes_nothing().await;
        assert_eq!(both.told().await["error"]["code"], number, "{list}");
    }
}

fn ping(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

/// The ids of the next line, which is a list, each with the code of its error if it is one.
async fn told_list(both: &mut Both) -> Vec<(Value, Value)> {
    let told = both.told().await;
    let all = told.as_array().unwrap_or_else(|| panic!("{told}")).iter();
    all.map(|one| (one["id"].clone(), one["error"]["code"].clone()))
        .collect()
}

#[tokio::test]
async fn of_a_list_with_an_id_twice_each_message_is_answered_once() {
    let mut both = Both::new();
    opened(&mut both, "2025-03-26").await;
    both.say(&json!([ping(1), ping(1), ping(2)]).to_string())
        .await;
    both.takes_request(1).await;
    both.takes_request(2).await;
    both.server.send(answer_to(1)).await.unwrap();
    // An id of an open list, alone and in another list.
    both.ask(2).await;
    both.takes_nothing().await;
    both.is_refused(2, -32600, "id-in-use").await;
    both.say(&json!([ping(2)]).to_string()).await;
    both.takes_nothing().await;
    assert_eq!(told_list(&mut both).await, [(json!(2), json!(-32600))]);
    both.server.send(answer_to(2)).await.unwrap();
    assert_eq!(
        told_list(&mut both).await,
        [
            (json!(1), json!(-32600)),
            (json!(1), Value::Null),
            (json!(2), Value::Null)
        ]
    );
    both.ask(3).await;
    both.takes_request(3).await;
    both.answer(3).await;
}

#[tokio::test]
async fn the_answers_that_wait_for_others_of_their_lists_take_no_more_than_there_is() {
    let mut both = Both::new();
    opened(&mut both, "2025-03-26").await;
    for list in [1..=20, 21..=40] {
        let list: Vec<Value> = list.map(ping).collect();
        both.say(&json!(list).to_string()).await;
    }
    for id in 1..=40 {
        both.takes_request(id).await;
    }
    let text = "x".repeat(1 << 20);
    for id in (2..=20).chain(22..=40) {
        let error = ErrorData::internal_error(text.clone(), None);
        let answer = Outgoing::error(error, Some(RequestId::Number(id)));
        both.server.send(answer).await.unwrap();
    }
    let (mut ids, mut kept) = (Vec::new(), 0);
    for last in [1, 21] {
        drop(both.server.send(answer_to(last)));
        let told = both.told().await;
        for answer in told.as_array().unwrap() {
            ids.push(answer["id"].as_i64().unwrap());
            kept += answer["error"]["message"]
                .as_str()
                .map_or(0, |text| text.len());
        }
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq(1..=40));
    assert!((30 << 20..=32 << 20).contains(&kept), "{kept}");
}

#[tokio::test]
async fn many_lists_whose_answers_are_not_complete_have_so_many_messages_and_no_more() {
    let mut both = Both::new();
    opened(&mut both, "2025-03-26").await;
    let list = |id: i64| {
        let mut list = vec![json!(5); MAX_BATCH_MESSAGES - 1];
        list.insert(0, ping(id));
        json!(list).to_string()
    };
    for id in 1..=8 {
        both.say(&list(id)).await;
        both.takes_request(id).await;
    }
    both.say(&list(9)).await;
    both.takes_nothing().await;
    let refused = told_list(&mut both).await;
    assert_eq!(refused.len(), MAX_BATCH_MESSAGES);
    assert_eq!(refused[0], (json!(9), json!(-32000)));
    // A message alone is not concerned, and a list that was answered makes room.
    both.ask(10).await;
    both.takes_request(10).await;
    both.server.send(answer_to(1)).await.unwrap();
    assert_eq!(told_list(&mut both).await.len(), MAX_BATCH_MESSAGES);
    both.say(&list(11)).await;
    both.takes_request(11).await;
}

#[tokio::test]
async fn what_was_answered_of_a_list_is_sent_when_nothing_more_is_read() {
    let mut both = Both::new();
    opened(&mut both, "2025-03-26").await;
    both.say(&json!([ping(1), ping(2)]).to_string()).await;
    both.takes_request(1).await;
    both.server.server_shutdown.cancel();
    both.takes_nothing().await;
    both.server.send(answer_to(1)).await.unwrap();
    assert_eq!(told_list(&mut both).await, [(json!(1), Value::Null)]);
}

#[tokio::test]
async fn a_call_that_does_not_end_before_the_connection_does_holds_up_no_answer() {
    let mut both = Both::new();
    opened(&mut both, "2025-03-26").await;
    both.say(&json!([ping(1), ping(2)]).to_string()).await;
    both.takes_request(1).await;
    both.takes_request(2).await;
    both.server.send(answer_to(1)).await.unwrap();
    both.server.close().await.unwrap();
    assert_eq!(told_list(&mut both).await, [(json!(1), Value::Null)]);
}

#[tokio::test]
async fn a_list_is_refused_in_a_session_of_another_revision() {
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut both = Both::new();
        opened(&mut both, version).await;
        both.say(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)
            .await;
        both.takes_nothing().await;
        assert_eq!(both.told().await["error"]["code"], -32600, "{version}");
    }
}

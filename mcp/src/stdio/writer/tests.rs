//! The order of lines, the writes that they take, and what happens to them at the end.

use futures_util::FutureExt as _;
use tokio::io::AsyncReadExt as _;

use super::*;

/// An output that records each write.
#[derive(Clone, Debug, Default)]
struct Recorded {
    writes: Arc<Mutex<Vec<Vec<u8>>>>,
    broken: bool,
}

impl Recorded {
    fn writes(&self) -> usize {
        self.writes.lock().unwrap().len()
    }

    fn text(&self) -> Vec<u8> {
        self.writes.lock().unwrap().concat()
    }
}

impl AsyncWrite for Recorded {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        text: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.broken {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.writes.lock().unwrap().push(text.to_vec());
        Poll::Ready(Ok(text.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn numbered(number: usize) -> Vec<u8> {
    format!("{number}\n").into_bytes()
}

fn all_numbered(count: usize) -> Vec<u8> {
    (0..count).flat_map(numbered).collect()
}

#[tokio::test]
async fn lines_are_written_in_order_and_the_last_one_before_the_end() {
    let (output, mut input) = tokio::io::duplex(16);
    let mut writer = LineWriter::to(output);
    let first = writer.write(b"one\n".to_vec(), false);
    let all = tokio::spawn(async move {
        let mut text = String::new();
        input.read_to_string(&mut text).await.map(|_| text)
    });
    for number in 0..100 {
        let _ = writer.write(format!("{number}\n").into_bytes(), false);
    }
    first.done().await.unwrap();
    writer.end().await;
    let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
    assert_eq!(all.await.unwrap().unwrap(), "one\n".to_owned() + &expected);
    assert!(writer.write(b"late".to_vec(), false).done().await.is_err());
}

#[tokio::test]
async fn a_client_that_takes_nothing_gets_no_more_than_there_is_room_for() {
    let (output, mut input) = tokio::io::duplex(4 << 10);
    let writer = LineWriter::to(output);
    let _large = writer.write(vec![b'x'; BACKPRESSURE_BYTES], false);
    let waits = tokio::time::timeout(Duration::from_millis(100), writer.below_backpressure());
    assert!(waits.await.is_err());
    assert!(writer.has_room(1 << 20) && !writer.has_room(MAX_QUEUED_BYTES));
    let reading = tokio::spawn(async move {
        let mut bytes = vec![0; BACKPRESSURE_BYTES];
        input.read_exact(&mut bytes).await.map(|_| input)
    });
    tokio::time::timeout(Duration::from_secs(20), writer.below_backpressure())
        .await
        .unwrap();
    let input = reading.await.unwrap().unwrap();
    // A single message is written, however large.
    while !writer.has_room(MAX_QUEUED_BYTES) {
        tokio::task::yield_now().await;
    }
    drop(input);
    assert!(writer.write(b"more".to_vec(), false).done().await.is_err());
    tokio::time::timeout(Duration::from_secs(20), writer.below_backpressure())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_line_that_may_not_wait_is_written_at_once() {
    let output = Recorded::default();
    let writer = LineWriter::to(output.clone());
    for number in 0..10 {
        // The task has not run.
        assert!(matches!(
            writer.write(numbered(number), false),
            Written::Now
        ));
        assert_eq!(output.writes(), number + 1);
    }
    assert_eq!(output.text(), all_numbered(10));
}

#[tokio::test]
async fn many_small_lines_take_few_writes() {
    const LINES: usize = 400;
    let output = Recorded::default();
    let mut writer = LineWriter::to(output.clone());
    let written: Vec<_> = (0..LINES)
        .map(|number| writer.write(numbered(number), true))
        .collect();
    for line in written {
        line.done().await.unwrap();
    }
    writer.end().await;
    assert!(output.text() == all_numbered(LINES));
    // A busy machine may interrupt this thread, which takes further writes.
    assert!(output.writes() < LINES / 4, "{}", output.writes());
    assert_eq!(writer.queued_bytes(), 0);
}

#[tokio::test]
async fn a_line_waits_for_the_tasks_that_are_ready_and_for_nothing_else() {
    let output = Recorded::default();
    let writer = LineWriter::to(output.clone());
    tokio::task::yield_now().await;
    let written = writer.write(numbered(0), true);
    assert_eq!(output.writes(), 0);
    // This task is ready again after the writer's.
    tokio::task::yield_now().await;
    assert_eq!(output.text(), all_numbered(1));
    assert!(written.done().now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn after_a_long_poll_the_next_line_or_message_takes_the_waiting_lines_along() {
    let output = Recorded::default();
    let writer = LineWriter::to(output.clone());
    let mut expected = Vec::<u8>::new();
    for may_wait in [true, false] {
        let waiting = writer.write(b"waiting\n".to_vec(), true);
        // As long as the thread computes, no task runs on it.
        std::thread::sleep(LONGEST_WAIT);
        assert!(matches!(
            writer.write(b"next\n".to_vec(), may_wait),
            Written::Now
        ));
        expected.extend(b"waiting\nnext\n");
        assert_eq!(output.text(), expected);
        assert!(waiting.done().now_or_never().unwrap().is_ok());
    }
    let _waiting = writer.write(b"waiting\n".to_vec(), true);
    std::thread::sleep(LONGEST_WAIT);
    writer.below_backpressure().now_or_never().unwrap();
    expected.extend(b"waiting\n");
    assert_eq!(output.text(), expected);
}

#[tokio::test]
async fn joined_lines_are_whole_and_in_order_for_a_client_that_reads_odd_pieces() {
    let (output, mut input) = tokio::io::duplex(7);
    let mut writer = LineWriter::to(output);
    let reading = tokio::spawn(async move {
        let (mut text, mut piece) = (Vec::<u8>::new(), [0; 5]);
        loop {
            match input.read(&mut piece).await.unwrap() {
                0 => return text,
                read => text.extend(&piece[..read]),
            }
            tokio::task::yield_now().await;
        }
    });
    let mut expected = Vec::<u8>::new();
    let mut written = Vec::new();
    for number in 0..300 {
        let line = match number % 100 {
            99 => vec![b'x'; JOINED_BYTES],
            _ => numbered(number),
        };
        expected.extend(&line);
        written.push(writer.write(line, number % 3 > 0));
        if number % 10 == 0 {
            tokio::task::yield_now().await;
        }
    }
    for line in written {
        line.done().await.unwrap();
    }
    assert_eq!(writer.queued_bytes(), 0);
    writer.end().await;
    assert!(reading.await.unwrap() == expected);
}

#[tokio::test]
async fn lines_that_wait_at_the_end_are_written() {
    let output = Recorded::default();
    let mut writer = LineWriter::to(output.clone());
    let waiting = writer.write(numbered(0), true);
    let _ = writer.write(numbered(1), true);
    assert_eq!(output.writes(), 0);
    writer.end().await;
    assert_eq!(output.text(), all_numbered(2));
    waiting.done().await.unwrap();
}

#[tokio::test]
async fn when_the_client_is_gone_later_lines_fail() {
    let output = Recorded {
        broken: true,
        ..Recorded::default()
    };
    let writer = LineWriter::to(output);
    assert!(matches!(writer.write(numbered(0), false), Written::Never));
    for number in [1, 2] {
        let _ = writer.write(numbered(number), true);
    }
    while writer.queued_bytes() > 0 {
        tokio::task::yield_now().await;
    }
    for may_wait in [false, true] {
        assert!(matches!(
            writer.write(numbered(3), may_wait),
            Written::Never
        ));
    }
}

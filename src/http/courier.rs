//! A thread that fetches, so that the one that waits can be told to stop meanwhile.
//!
//! One request is under way at a time. A caller that stops waiting leaves the thread behind; it holds nothing but a socket, ends by
//! the transport's own limits on time, and never outlives the process. The next page may be asked for while the last is being
//! stored.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::text::escape_outside_text;
use super::{Request, Response, Transport, TransportError};
use crate::signal::{Stop, Stopped};

const SLICE: Duration = Duration::from_millis(50);
const DETAIL_CHARS_MAX: usize = 200;

type Answer = Result<Response, TransportError>;

/// Sends requests from a thread of its own.
#[derive(Debug)]
pub struct Courier {
    requests: SyncSender<Request>,
    answers: Receiver<Answer>,
    under_way: UnderWay,
}

#[derive(Debug)]
enum UnderWay {
    Nothing,
    Request,
    /// Its answer is here and was not taken yet.
    Arrived(Answer),
    Misuse(&'static str),
}

impl Courier {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no further thread.
    pub fn new(mut transport: Box<dyn Transport + Send>) -> io::Result<Self> {
        let (requests, to_send) = sync_channel::<Request>(1);
        let (to_receive, answers) = sync_channel::<Answer>(1);
        std::thread::Builder::new().name("courier".to_owned()).spawn(move || {
            while let Ok(request) = to_send.recv() {
                let answer = catch_unwind(AssertUnwindSafe(|| transport.send(&request)));
                let died = answer.is_err();
                let answer = answer.unwrap_or_else(|panic| Err(TransportError::Fault(panic_text(panic.as_ref()))));
                // After a panic the transport's state is unknown, so nothing more is sent through it.
                if to_receive.send(answer).is_err() || died {
                    return;
                }
            }
        })?;
        Ok(Self { requests, answers, under_way: UnderWay::Nothing })
    }

    /// Starts a request and returns at once. What is wrong is told by [`Courier::receive`].
    pub fn send(&mut self, request: Request) {
        self.under_way = match self.under_way {
            UnderWay::Nothing if self.requests.try_send(request).is_ok() => UnderWay::Request,
            UnderWay::Nothing => UnderWay::Misuse("the fetching thread is gone"),
            UnderWay::Request | UnderWay::Arrived(_) | UnderWay::Misuse(_) => {
                UnderWay::Misuse("a request was sent while another was under way")
            }
        };
    }

    /// The answer to the request under way, if it comes within that time: a look that takes nothing.
    pub fn arrived(&mut self, within: Duration) -> Option<&Answer> {
        if matches!(self.under_way, UnderWay::Request) {
            self.under_way = self.answers.recv_timeout(within).map_or(UnderWay::Request, UnderWay::Arrived);
        }
        match &self.under_way {
            UnderWay::Arrived(answer) => Some(answer),
            _ => None,
        }
    }

    /// Waits for the answer to the request under way.
    ///
    /// # Errors
    /// The outer one when a stop is requested first; the request is then still under way and may be waited for again. The inner one
    /// is the transport's, or [`TransportError::Fault`] when the thread panicked or no request was sent.
    pub fn receive(&mut self, stop: &Stop) -> Result<Answer, Stopped> {
        match std::mem::replace(&mut self.under_way, UnderWay::Nothing) {
            UnderWay::Request => self.under_way = UnderWay::Request,
            UnderWay::Arrived(answer) => return Ok(answer),
            UnderWay::Nothing => return Ok(Err(TransportError::Fault("an answer was waited for without a request".to_owned()))),
            UnderWay::Misuse(what) => {
                self.under_way = UnderWay::Misuse(what);
                return Ok(Err(TransportError::Fault(what.to_owned())));
            }
        }
        // Bounded by the transport's limits on time: it always answers, if only with a timeout.
        loop {
            let answer = match self.answers.recv_timeout(SLICE) {
                Ok(answer) => answer,
                Err(RecvTimeoutError::Timeout) => {
                    stop.check()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => Err(TransportError::Fault("the fetching thread is gone".to_owned())),
            };
            self.under_way = UnderWay::Nothing;
            return Ok(answer);
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the fetching thread panicked: {}", escape_outside_text(text.unwrap_or("no text"), DETAIL_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Method;
    use crate::signal::Reason;
    use std::sync::mpsc::{Sender, channel};

    /// Does what the url says.
    struct Scripted {
        release: Receiver<()>,
    }

    impl Transport for Scripted {
        fn send(&mut self, request: &Request) -> Answer {
            match request.url.as_str() {
                "panic" => panic!("on purpose"),
                "hang" => {
                    let _ = self.release.recv();
                }
                "fail" => return Err(TransportError::Cut("x".to_owned())),
                _ => (),
            }
            Ok(Response { status: 200, url: request.url.clone(), ..Response::default() })
        }
    }

    fn courier() -> (Courier, Sender<()>) {
        let (sender, release) = channel();
        (Courier::new(Box::new(Scripted { release })).unwrap(), sender)
    }

    fn request(url: &str) -> Request {
        Request { method: Method::Get, url: url.to_owned(), body: String::new(), gzip: false }
    }

    fn fault(answer: Result<Answer, Stopped>) -> String {
        match answer {
            Ok(Err(TransportError::Fault(text))) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_and_errors_are_brought_back_one_after_the_other() {
        let (mut courier, _release) = courier();
        for url in ["a", "b"] {
            courier.send(request(url));
            assert_eq!(courier.receive(&Stop::new()).unwrap().unwrap().url, url);
        }
        courier.send(request("fail"));
        assert_eq!(courier.receive(&Stop::new()), Ok(Err(TransportError::Cut("x".to_owned()))));
    }

    #[test]
    fn an_answer_that_is_here_can_be_looked_at_before_it_is_taken() {
        let (mut courier, release) = courier();
        let long = Duration::from_secs(60);
        assert_eq!(courier.arrived(long), None);
        courier.send(request("hang"));
        assert_eq!(courier.arrived(Duration::ZERO), None);
        release.send(()).unwrap();
        for _ in 0..2 {
            assert_eq!(courier.arrived(long).unwrap().as_ref().unwrap().url, "hang");
        }
        let stop = Stop::new();
        stop.ask();
        assert_eq!(courier.receive(&stop).unwrap().unwrap().url, "hang");
        assert_eq!(courier.arrived(long), None);
        courier.send(request("a"));
        assert_eq!(courier.receive(&Stop::new()).unwrap().unwrap().url, "a");
    }

    #[test]
    fn a_stop_ends_the_waiting_and_the_answer_can_still_be_had() {
        let (mut courier, release) = courier();
        courier.send(request("hang"));
        let stop = Stop::new();
        stop.ask();
        assert_eq!(courier.receive(&stop), Err(Stopped(Reason::Signal("SIGTERM"))));
        release.send(()).unwrap();
        assert!(courier.receive(&Stop::new()).unwrap().is_ok());
    }

    #[test]
    fn a_panic_is_an_error_and_so_is_all_that_follows() {
        let (mut courier, _release) = courier();
        courier.send(request("panic"));
        assert_eq!(fault(courier.receive(&Stop::new())), "the fetching thread panicked: on purpose");
        courier.send(request("a"));
        assert_eq!(fault(courier.receive(&Stop::new())), "the fetching thread is gone");
    }

    #[test]
    fn misuse_is_an_error_and_not_a_hang() {
        let (mut courier, release) = courier();
        assert!(fault(courier.receive(&Stop::new())).contains("without a request"));
        courier.send(request("hang"));
        courier.send(request("a"));
        assert!(fault(courier.receive(&Stop::new())).contains("another was under way"));
        release.send(()).unwrap();
    }

    #[test]
    fn a_courier_that_is_dropped_does_not_wait() {
        let (mut courier, _release) = courier();
        courier.send(request("hang"));
        drop(courier);
    }
}

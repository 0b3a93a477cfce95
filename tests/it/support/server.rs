//! An HTTP/1.1 server on the loopback around a model catalogue or a script.
//!
//! std only; ends when it is dropped. This is what tests hold in hand; the threads are in `serving`. What a catalogue says is
//! `model`'s, what goes wrong on the way is in `faults`.

#[path = "serving.rs"]
mod serving;

use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::canned::Canned;
use super::faults::{Fault, Scheduled, When};
use super::journal::{Entry, Journal, lock};
use super::model::{Catalogue, ModelRequest};
use super::quirks::Quirks;
use super::xml::{CapabilitiesFace, Rendering, ReportFace};
use serving::accept;

/// Where the Date header comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateHeader {
    /// The catalogue's own clock.
    Model,
    Real,
    Absent,
}

/// What may be set at a server, at any time.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) rendering: Rendering,
    pub(crate) capabilities: CapabilitiesFace,
    pub(crate) report_face: ReportFace,
    pub(crate) date: DateHeader,
    /// Content-Type of XML answers.
    pub(crate) media_type: String,
    /// Name and password without which everything is 401.
    pub(crate) basic: Option<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            rendering: Rendering::default(),
            capabilities: CapabilitiesFace::Right,
            report_face: ReportFace::Ows,
            date: DateHeader::Model,
            media_type: "application/xml; charset=utf-8".to_owned(),
            basic: None,
        }
    }
}

type Hook = Box<dyn FnMut(&mut Catalogue, &Entry) + Send>;

struct Shared {
    address: SocketAddr,
    stopped: AtomicBool,
    catalogue: Arc<Mutex<Catalogue>>,
    script: Mutex<Option<Canned>>,
    settings: Mutex<Settings>,
    faults: Mutex<Vec<Scheduled>>,
    hook: Mutex<Option<Hook>>,
    /// Held while one request is settled, so that numbers and faults are one's own.
    settling: Mutex<()>,
    journal: Arc<Journal>,
    stall: Mutex<Stall>,
    stall_changed: Condvar,
    streams: Mutex<HashMap<u64, TcpStream>>,
}

#[derive(Default)]
struct Stall {
    waiting: usize,
    released: bool,
}

/// A running server; it ends when this is dropped.
pub(crate) struct Server {
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a model.
    pub(crate) fn start(catalogue: Catalogue) -> Self {
        Self::launch(catalogue, None)
    }

    /// Serves a script; its capabilities name no queryables.
    pub(crate) fn canned(script: Canned) -> Self {
        let quirks = Quirks { queryables: Vec::new(), ..Quirks::default() };
        Self::launch(Catalogue::new(super::stamps::day(2025, 6, 1), quirks), Some(script))
    }

    fn launch(catalogue: Catalogue, script: Option<Canned>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on the loopback");
        let shared = Arc::new(Shared {
            address: listener.local_addr().expect("the address that was bound"),
            stopped: AtomicBool::new(false),
            catalogue: Arc::new(Mutex::new(catalogue)),
            script: Mutex::new(script),
            settings: Mutex::default(),
            faults: Mutex::default(),
            hook: Mutex::default(),
            settling: Mutex::default(),
            journal: Arc::default(),
            stall: Mutex::default(),
            stall_changed: Condvar::new(),
            streams: Mutex::default(),
        });
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || accept(&listener, &shared))
        };
        Server { shared, acceptor: Some(acceptor) }
    }

    /// `http://127.0.0.1:PORT/csw`.
    pub(crate) fn url(&self) -> String {
        self.url_at("/csw")
    }

    pub(crate) fn url_at(&self, target: &str) -> String {
        format!("http://{}{target}", self.shared.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The catalogue, locked: no request is answered while this is held.
    pub(crate) fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        lock(&self.shared.catalogue)
    }

    /// Other settings from the next request on.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut lock(&self.shared.settings));
    }

    pub(crate) fn fault_at(&self, number: usize, fault: Fault) {
        lock(&self.shared.faults).push(Scheduled { when: When::Number(number), fault });
    }

    /// At each of the next so many requests.
    pub(crate) fn fault_next(&self, times: usize, fault: Fault) {
        self.fault_times(times, |_| true, fault);
    }

    /// At every request that the predicate takes.
    pub(crate) fn fault_when(&self, predicate: impl FnMut(&Entry) -> bool + Send + 'static, fault: Fault) {
        self.fault_times(usize::MAX, predicate, fault);
    }

    /// At the next so many requests that the predicate takes.
    pub(crate) fn fault_times(&self, times: usize, predicate: impl FnMut(&Entry) -> bool + Send + 'static, fault: Fault) {
        let when = When::Matching { times, predicate: Box::new(predicate) };
        lock(&self.shared.faults).push(Scheduled { when, fault });
    }

    pub(crate) fn clear_faults(&self) {
        lock(&self.shared.faults).clear();
    }

    /// Called after each answer was settled and before it is sent, so that the next request sees what it did to the catalogue.
    pub(crate) fn after_request(&self, hook: impl FnMut(&mut Catalogue, &Entry) + Send + 'static) {
        *lock(&self.shared.hook) = Some(Box::new(hook));
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Entry> {
        lock(&self.shared.journal.entries).clone()
    }

    /// The GetRecords so far, counts included.
    pub(crate) fn get_records(&self) -> Vec<ModelRequest> {
        lock(&self.shared.journal.entries).iter().filter_map(|entry| entry.get_records().cloned()).collect()
    }

    /// How many requests came.
    pub(crate) fn asked(&self) -> usize {
        lock(&self.shared.journal.entries).len()
    }

    pub(crate) fn journal(&self) -> Arc<Journal> {
        Arc::clone(&self.shared.journal)
    }

    /// Starts the count of requests anew.
    pub(crate) fn forget_journal(&self) {
        lock(&self.shared.journal.entries).clear();
    }

    /// Waits until so many requests came; false when they did not.
    pub(crate) fn wait_for_requests(&self, count: usize, most: Duration) -> bool {
        let entries = lock(&self.shared.journal.entries);
        let few = |entries: &mut Vec<Entry>| entries.len() < count;
        let (entries, _) = self.shared.journal.grown.wait_timeout_while(entries, most, few).unwrap_or_else(PoisonError::into_inner);
        entries.len() >= count
    }

    /// Waits until a request stalls; false when none did.
    pub(crate) fn wait_for_stall(&self, most: Duration) -> bool {
        let stall = lock(&self.shared.stall);
        let none = |stall: &mut Stall| stall.waiting == 0;
        let (stall, _) = self.shared.stall_changed.wait_timeout_while(stall, most, none).unwrap_or_else(PoisonError::into_inner);
        stall.waiting > 0
    }

    /// Lets those that stall, and those that would, go on.
    pub(crate) fn release(&self) {
        lock(&self.shared.stall).released = true;
        self.shared.stall_changed.notify_all();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        {
            // With the lock in hand, so that none that looks at the flag misses the call.
            let _stall = lock(&self.shared.stall);
            self.shared.stall_changed.notify_all();
        }
        for stream in lock(&self.shared.streams).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the acceptor, which looks at the flag first.
        let _ = TcpStream::connect(self.shared.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

//! Proxies from the environment: CONNECT with a password, 407, and what the log keeps quiet about.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::{expect_hidden, harness, server};

/// base64 of `me:hunter2@:`.
const BASIC: &str = "bWU6aHVudGVyMkA6";

/// Tunnels for whoever brings the right Proxy-Authorization; ends when it is dropped.
struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    stopped: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (heads, stopped) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicBool>::default());
        let (seen, ends) = (Arc::clone(&heads), Arc::clone(&stopped));
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let seen = Arc::clone(&seen);
                // Each tunnel ends with its client, which is a process that the test waits for.
                std::thread::spawn(move || stream.map(|stream| serve(stream, &seen)));
            }
        });
        Proxy { address, heads, stopped, acceptor: Some(acceptor) }
    }

    fn url(&self, userinfo: &str) -> String {
        format!("http://{userinfo}{}", self.address)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn serve(mut client: TcpStream, seen: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 10_000 {
        match client.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    seen.lock().unwrap().push(head.clone());
    if !head.contains(&format!("Proxy-Authorization: Basic {BASIC}\r\n")) {
        let refusal =
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n";
        let _ = client.write_all(refusal.as_bytes());
        return;
    }
    let target = head.split(' ').nth(1).unwrap();
    let server = TcpStream::connect(target).unwrap();
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
    let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let upward = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let (mut from_server, mut to_client) = (server, client);
    let _ = std::io::copy(&mut from_server, &mut to_client);
    let _ = to_client.shutdown(Shutdown::Both);
    let _ = upward.join();
}

#[test]
fn a_proxy_gets_its_password_and_nothing_of_the_catalogues() {
    let (server, proxy) = (server(), Proxy::start());
    let mut harness = harness(&server);
    harness.set_env("HTTP_PROXY", &proxy.url("me:hunter2%40%3A@"));

    let outcome = harness
        .harvest(&server.url(), &["--header", "X-Key: key-hunter2", "--json"])
        .expect_code(0)
        .expect_json("new", "12")
        .expect_json("retries", "0");

    let heads = proxy.heads();
    assert!(!heads.is_empty());
    assert!(heads.iter().all(|head| head.starts_with(&format!("CONNECT {} ", server.address()))), "{heads:?}");
    assert!(heads.iter().all(|head| !head.contains("key-hunter2")), "{heads:?}");
    assert!(server.requests().iter().all(|entry| entry.header("proxy-authorization").is_none()));
    expect_hidden(&outcome, &harness, &["hunter2", BASIC]);
}

#[test]
fn a_proxy_that_wants_another_password_is_77_after_one_attempt() {
    for userinfo in ["", "me:wrong-word@"] {
        let (server, proxy) = (server(), Proxy::start());
        let mut harness = harness(&server);
        harness.set_env("http_proxy", &proxy.url(userinfo));

        let outcome = harness.harvest(&server.url(), &["--json"]).expect_code(77).expect_stderr("407").expect_stderr("proxy");

        assert_eq!((proxy.heads().len(), server.asked()), (1, 0));
        expect_hidden(&outcome, &harness, &["wrong-word", "bWU6d3Jvbmctd29yZA"]);
    }
}

#[test]
fn hosts_of_no_proxy_are_asked_directly() {
    let (server, proxy) = (server(), Proxy::start());
    let mut harness = harness(&server);
    harness.set_env("HTTP_PROXY", &proxy.url("me:hunter2%40%3A@"));
    harness.set_env("NO_PROXY", "127.0.0.0/8");

    harness.harvest(&server.url(), &["--json"]).expect_code(0).expect_json("new", "12");

    assert!(proxy.heads().is_empty());
}

#[test]
fn a_proxy_that_cannot_be_used_is_told_before_anything_is_touched() {
    let server = server();
    let mut harness = harness(&server);
    harness.set_env("ALL_PROXY", "socks5://me:hunter2@127.0.0.1:1");

    let outcome = harness.harvest(&server.url(), &[]).expect_code(78).expect_stderr("proxy");

    assert_eq!(server.asked(), 0);
    assert_eq!(std::fs::read_dir(harness.folder()).unwrap().count(), 0);
    expect_hidden(&outcome, &harness, &["hunter2"]);
}

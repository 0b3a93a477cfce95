//! The bytes of HTTP/1.1 on one connection: reading a request, sending an answer in steps.
//!
//! The last byte of a request is left in the socket until it is settled how the connection goes on: a socket that is closed with
//! something unread sends a reset, and std has no other way to bring one about.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::super::super::faults::Delivery;

const HEAD_BYTES_MAX: usize = 64 * 1_024;
const BODY_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// How long a wait goes on before the server's end is looked for.
const POLL: Duration = Duration::from_millis(20);

/// One request as it came.
pub(super) struct Incoming {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Incoming {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }
}

/// The next request but for its last byte; None when the client or the server has gone, or what came is no HTTP.
pub(super) fn read_request(stream: &TcpStream, stopped: &impl Fn() -> bool) -> Option<Incoming> {
    stream.set_read_timeout(Some(POLL)).ok()?;
    let head_bytes = peek_head(stream, stopped)?;
    let mut head = vec![0; head_bytes];
    // The head's last byte is the request's last when there is no body.
    read_exact(stream, &mut head[..head_bytes - 1], stopped)?;
    head[head_bytes - 1] = b'\n';
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let pair = |line: &str| line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    let headers: Vec<(String, String)> = lines.filter_map(pair).collect();
    let mut incoming = Incoming { method, target, headers, body: String::new() };
    let length: usize = incoming.header("content-length").map_or(Some(0), |value| value.parse().ok())?;
    if length == 0 {
        return Some(incoming);
    }
    if length > BODY_BYTES_MAX {
        return None;
    }
    let mut body = vec![0; length];
    read_exact(stream, &mut [0], stopped)?;
    read_exact(stream, &mut body[..length - 1], stopped)?;
    body[length - 1] = peek_byte(stream, stopped)?;
    incoming.body = String::from_utf8_lossy(&body).into_owned();
    Some(incoming)
}

/// Takes what [`read_request`] left.
pub(super) fn take_last_byte(mut stream: &TcpStream) -> io::Result<()> {
    stream.read_exact(&mut [0])
}

// How many bytes the head has, its blank line included.
fn peek_head(stream: &TcpStream, stopped: &impl Fn() -> bool) -> Option<usize> {
    let mut buffer = vec![0; HEAD_BYTES_MAX];
    let mut seen = 0;
    while !stopped() {
        let count = match stream.peek(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => count,
            Err(error) if is_wait(&error) => continue,
            Err(_) => return None,
        };
        if let Some(at) = buffer[..count].windows(4).position(|window| window == b"\r\n\r\n") {
            return Some(at + 4);
        }
        if count == HEAD_BYTES_MAX {
            return None;
        }
        // peek does not wait for more than is there.
        if count == seen {
            std::thread::sleep(Duration::from_millis(1));
        }
        seen = count;
    }
    None
}

fn peek_byte(stream: &TcpStream, stopped: &impl Fn() -> bool) -> Option<u8> {
    let mut byte = [0];
    while !stopped() {
        match stream.peek(&mut byte) {
            Ok(0) => return None,
            Ok(_) => return Some(byte[0]),
            Err(error) if is_wait(&error) => {}
            Err(_) => return None,
        }
    }
    None
}

fn read_exact(mut stream: &TcpStream, buffer: &mut [u8], stopped: &impl Fn() -> bool) -> Option<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        if stopped() {
            return None;
        }
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return None,
            Ok(count) => filled += count,
            Err(error) if is_wait(&error) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Sends the bytes, the dripping part in its steps, for at most `most`.
pub(super) fn send(mut stream: &TcpStream, delivery: &Delivery, most: Duration, stopped: &impl Fn() -> bool) -> io::Result<()> {
    let Some((from, step, wait)) = delivery.drip else {
        return stream.write_all(&delivery.bytes);
    };
    let start = Instant::now();
    stream.write_all(&delivery.bytes[..from])?;
    for part in delivery.bytes[from..].chunks(step.max(1)) {
        if stopped() || start.elapsed() >= most {
            return Err(io::Error::from(ErrorKind::TimedOut));
        }
        stream.write_all(part)?;
        pause(wait, stopped);
    }
    Ok(())
}

/// Waits, but no longer than the server lives.
pub(super) fn pause(wait: Duration, stopped: &impl Fn() -> bool) {
    let start = Instant::now();
    while !stopped() {
        let left = wait.saturating_sub(start.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(POLL));
    }
}

/// One line of at most 200 characters.
pub(super) fn shortened(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

/// The value of an Authorization header (RFC 7617).
pub(super) fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", base64(format!("{name}:{password}").as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for digit in 0..4 {
            let sextet = (number >> (18 - 6 * digit)) & 63;
            out.push(if digit <= chunk.len() { DIGITS[sextet as usize] as char } else { '=' });
        }
    }
    out
}

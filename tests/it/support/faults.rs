//! Ways in which an answer fails on its way, and when.
//!
//! A fault either takes the place of the right answer or is done to it. What comes out is bytes and how they are sent; sending them is
//! for `server`.

use std::io::Write as _;
use std::time::Duration;

use super::canned::Reply;
use super::journal::Entry;
use super::model::Report;
use super::xml::html;

/// One kind of failure.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// In place of the answer: any status, body and headers (`Retry-After`).
    Reply(Reply),
    /// In place of the answer: 200 and a page for people with this title.
    Html(&'static str),
    /// 200, application/xml, bytes that are neither.
    Garbage,
    /// 200 and a JSON object.
    Json,
    /// 200 and no body.
    Empty,
    /// An exception report.
    Exception(Report),
    /// 3xx; the location as it shall stand there.
    Redirect(u16, String),
    /// The connection ends before a status line.
    CloseBeforeHeaders,
    /// The connection is reset before a status line.
    Reset,
    /// Half of the body, then a reset.
    ResetInBody,
    /// Content-Length of the whole, half of the body, end of the connection.
    ShortContentLength,
    /// Chunked, half of the body, end of the connection without a last chunk.
    MissingLastChunk,
    /// The body ends in its middle, and HTTP says that it is complete.
    UnfinishedXml,
    /// So many bytes of the body, then the pause; given up after 60 seconds.
    Slow(usize, Duration),
    /// The whole answer after a while, as a busy server does.
    Late(Duration),
    /// Nothing until the server is released or dropped, then the right answer.
    Stall,
    /// A right gzip body, if the client takes gzip.
    Gzip,
    /// gzip with the Content-Length of something longer (pycsw before 3.0), if the client takes gzip.
    GzipWrongLength,
    /// Content-Encoding gzip over a plain body, if the client takes gzip.
    GzipMislabelled,
    /// gzip without saying so, asked for or not.
    GzipUnlabelled,
    /// The right answer in ISO-8859-1, declared in the XML declaration, no charset in the header.
    Latin1,
    /// The right answer under another Content-Type.
    ContentType(&'static str),
    /// The right answer after a byte order mark.
    ByteOrderMark,
}

impl Fault {
    /// One of each kind that a further attempt may mend.
    pub(crate) fn of_passing_kinds() -> [Self; 8] {
        [
            Fault::status(500),
            Fault::retry_after(503, "0"),
            Fault::Html("Please wait"),
            Fault::ShortContentLength,
            Fault::UnfinishedXml,
            Fault::CloseBeforeHeaders,
            Fault::Reset,
            Fault::Empty,
        ]
    }

    /// Any status without a body.
    pub(crate) fn status(status: u16) -> Self {
        Fault::Reply(Reply::of(status, "text/plain", ""))
    }

    /// A status that says when to come again: seconds or an HTTP date.
    pub(crate) fn retry_after(status: u16, value: &str) -> Self {
        Fault::Reply(Reply::of(status, "text/plain", "busy").with_header("Retry-After", value))
    }

    /// An exception report with a status.
    pub(crate) fn exception(status: u16, code: &str, locator: &str, text: &str) -> Self {
        Fault::Exception(Report { code: code.to_owned(), locator: locator.to_owned(), text: text.to_owned(), status })
    }

    /// The answer in whose place this stands; None when it is done to the right one.
    pub(crate) fn in_place(&self) -> Option<Reply> {
        match self {
            Fault::Reply(reply) => Some(reply.clone()),
            Fault::Html(title) => Some(Reply::of(200, "text/html; charset=utf-8", html(title))),
            Fault::Garbage => {
                let bytes: Vec<u8> = (0..512_u32).map(|number| (number * 37 % 251) as u8).collect();
                Some(Reply::xml(bytes))
            }
            Fault::Json => Some(Reply::of(200, "application/json", "{\"status\":\"ok\",\"records\":[]}")),
            Fault::Empty => Some(Reply::xml("")),
            Fault::Exception(report) => Some(Reply::report(report)),
            Fault::Redirect(status, location) => {
                Some(Reply::of(*status, "text/html", html("Moved")).with_header("Location", location))
            }
            Fault::CloseBeforeHeaders | Fault::Reset => Some(Reply::of(200, "text/plain", "")),
            _ => None,
        }
    }
}

/// When a fault strikes.
pub(crate) enum When {
    /// At the request of that number, counted from 1.
    Number(usize),
    /// At the next so many requests that the predicate takes.
    Matching { times: usize, predicate: Box<dyn FnMut(&Entry) -> bool + Send> },
}

/// One fault and when it strikes.
pub(crate) struct Scheduled {
    pub(crate) when: When,
    pub(crate) fault: Fault,
}

/// The fault for one request: the first that strikes; it is used up by one.
pub(crate) fn strike(faults: &mut Vec<Scheduled>, entry: &Entry) -> Option<Fault> {
    let at = faults.iter_mut().position(|scheduled| match &mut scheduled.when {
        When::Number(number) => *number == entry.number,
        When::Matching { predicate, .. } => predicate(entry),
    })?;
    let fault = faults[at].fault.clone();
    let used_up = match &mut faults[at].when {
        When::Number(_) => true,
        When::Matching { times, .. } => {
            *times = times.saturating_sub(1);
            *times == 0
        }
    };
    if used_up {
        faults.remove(at);
    }
    Some(fault)
}

/// What becomes of the connection after the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Keep,
    Close,
    /// Closed with something unread, which makes the kernel send a reset.
    Reset,
}

/// How an answer goes onto the wire.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) bytes: Vec<u8>,
    /// From there on in steps of so many bytes, with a pause after each.
    pub(crate) drip: Option<(usize, usize, Duration)>,
    pub(crate) after: After,
}

/// What the client said about how it wants the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    pub(crate) gzip: bool,
    pub(crate) keep_alive: bool,
}

/// Puts an answer into bytes, with the fault done to it.
pub(crate) fn deliver(reply: Reply, fault: Option<&Fault>, date: Option<&str>, wishes: Wishes) -> Delivery {
    let mut reply = reply;
    if let Some(date) = date {
        reply = reply.with_header("Date", date);
    }
    let ending = if wishes.keep_alive { After::Keep } else { After::Close };
    let plain = |reply: &Reply, after| Delivery { bytes: whole(reply, reply.body.len(), after), drip: None, after };
    let half = reply.body.len() / 2;
    match fault {
        Some(Fault::CloseBeforeHeaders) => Delivery { bytes: Vec::new(), drip: None, after: After::Close },
        Some(Fault::Reset) => Delivery { bytes: Vec::new(), drip: None, after: After::Reset },
        Some(fault @ (Fault::ShortContentLength | Fault::ResetInBody)) => {
            let announced = reply.body.len();
            reply.body.truncate(half);
            let after = if matches!(fault, Fault::ResetInBody) { After::Reset } else { After::Close };
            Delivery { bytes: whole(&reply, announced, after), drip: None, after }
        }
        Some(Fault::MissingLastChunk) => {
            let mut bytes = head(&reply, After::Close);
            let _ = write!(bytes, "Transfer-Encoding: chunked\r\n\r\n{half:x}\r\n");
            bytes.extend_from_slice(&reply.body[..half]);
            bytes.extend_from_slice(b"\r\n");
            Delivery { bytes, drip: None, after: After::Close }
        }
        Some(Fault::UnfinishedXml) => {
            reply.body.truncate(half);
            plain(&reply, ending)
        }
        Some(Fault::Slow(step, pause)) => {
            let mut delivery = plain(&reply, ending);
            delivery.drip = Some((delivery.bytes.len() - reply.body.len(), *step, *pause));
            delivery
        }
        Some(Fault::GzipWrongLength) if wishes.gzip => {
            reply = reply.with_header("Content-Encoding", "gzip");
            reply.body = gzip(&reply.body);
            let announced = reply.body.len() + 818;
            Delivery { bytes: whole(&reply, announced, After::Close), drip: None, after: After::Close }
        }
        Some(fault) => {
            change(&mut reply, fault, wishes);
            plain(&reply, ending)
        }
        None => plain(&reply, ending),
    }
}

// Faults that leave a complete HTTP answer.
fn change(reply: &mut Reply, fault: &Fault, wishes: Wishes) {
    let set = |reply: &mut Reply, name: &str, value: &str| *reply = reply.clone().with_header(name, value);
    match fault {
        Fault::Gzip if wishes.gzip => {
            set(reply, "Content-Encoding", "gzip");
            reply.body = gzip(&reply.body);
        }
        Fault::GzipMislabelled if wishes.gzip => set(reply, "Content-Encoding", "gzip"),
        Fault::GzipUnlabelled => reply.body = gzip(&reply.body),
        Fault::Latin1 => {
            set(reply, "Content-Type", "application/xml");
            reply.body = latin1(&String::from_utf8_lossy(&reply.body));
        }
        Fault::ContentType(media_type) => set(reply, "Content-Type", media_type),
        Fault::ByteOrderMark => drop(reply.body.splice(0..0, [0xef, 0xbb, 0xbf])),
        _ => {}
    }
}

fn head(reply: &Reply, after: After) -> Vec<u8> {
    let connection = if after == After::Keep { "keep-alive" } else { "close" };
    let mut bytes = format!("HTTP/1.1 {} {}\r\nConnection: {connection}\r\n", reply.status, reason(reply.status)).into_bytes();
    for (name, value) in &reply.headers {
        let _ = write!(bytes, "{name}: {value}\r\n");
    }
    bytes
}

fn whole(reply: &Reply, announced: usize, after: After) -> Vec<u8> {
    let mut bytes = head(reply, after);
    let _ = write!(bytes, "Content-Length: {announced}\r\n\r\n");
    bytes.extend_from_slice(&reply.body);
    bytes
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Whatever",
    }
}

// Characters beyond Latin-1 become references, which XML allows wherever text stands.
fn latin1(text: &str) -> Vec<u8> {
    let text = text.replacen("encoding=\"UTF-8\"", "encoding=\"ISO-8859-1\"", 1);
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(u32::from(character)) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(format!("&#{};", u32::from(character)).as_bytes()),
        }
    }
    bytes
}

/// A gzip file of stored blocks (RFC 1951, 3.2.4; RFC 1952): valid and not smaller, which is all that is needed here.
pub(crate) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = plain.chunks(65_535).peekable();
    if blocks.peek().is_none() {
        out.extend_from_slice(&[1, 0, 0, 255, 255]);
    }
    while let Some(block) = blocks.next() {
        out.push(u8::from(blocks.peek().is_none()));
        let length = block.len() as u16;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend_from_slice(&crc32(plain).to_le_bytes());
    out.extend_from_slice(&(plain.len() as u32).to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let low = crc & 1;
            crc = (crc >> 1) ^ (0xedb8_8320 * low);
        }
    }
    !crc
}

//! The transport over ureq: requests with their headers, redirects by our own rules, bodies within their limits.
//!
//! Redirects (RFC 9110, 15.4): 301, 302, 307 and 308 repeat the request as it was, body included, since a catalogue's POST is a
//! question and changes nothing; 303 asks by GET. At most a few, never from https to http, and off the catalogue's own origin
//! without credentials and without the user's headers, from there on for good. ureq itself would turn a POST into a GET, or refuse.

use std::io::Read;
use std::time::{Duration, Instant};

use time::OffsetDateTime;
use ureq::config::Config;
use ureq::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::address::{Address, Scheme};
use super::date::{http_date, retry_after_s};
use super::failure::{self, Limits, Stage};
use super::settings::{HttpSettings, Roots, SettingsError, certificates, check_settings, private_headers, usable_proxy};
use super::{Method, Proxies, Request, Response, Transport, TransportError, escape_outside_text, without_credentials};

const TOTAL_PER_TIMEOUT: u32 = 10;
/// ureq adds limits to instants, which overflows far beyond this.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const ERROR_BODY_BYTES_MAX: u64 = 1 << 20;
const RESERVE_BYTES_MAX: u64 = 16 << 20;
const TEXT_CHARS_MAX: usize = 200;
/// The transport that a run uses. Connections are kept and used again; nothing of TLS is loaded before the first https url.
pub struct UreqTransport {
    limits: Limits,
    redirects_max: u8,
    user_agent: String,
    // The user's headers and Authorization: what must not reach another host.
    private: HeaderMap,
    proxies: Proxies,
    given_roots: Option<Vec<Certificate<'static>>>,
    trust: Trust,
    agents: Vec<Kept>,
}

/// ureq trusts either the system or a list of ours: to trust both, a handshake that fails by the one is made by the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    System,
    Given,
}

/// An agent for each proxy and trust in use: ureq knows one proxy an agent, and loads the system's certificates once an agent.
struct Kept {
    proxy: Option<String>,
    trust: Trust,
    agent: Agent,
    // Whether a connection may be in the agent's pool.
    answered: bool,
}

/// One step on the way to the answer.
struct Hop {
    method: Method,
    address: Address,
    private: bool,
}

impl UreqTransport {
    /// Checks everything that can be checked without a connection.
    ///
    /// # Errors
    /// See [`SettingsError`].
    pub fn new(settings: HttpSettings) -> Result<Self, SettingsError> {
        check_settings(&settings)?;
        let given_roots = match &settings.roots {
            Roots::System => None,
            Roots::SystemAnd(texts) => Some(certificates(texts)?),
        };
        let timeout = settings.timeout.min(TIMEOUT_MAX);
        Ok(Self {
            limits: Limits { timeout, total: timeout.saturating_mul(TOTAL_PER_TIMEOUT), body_bytes_max: settings.body_bytes_max },
            redirects_max: settings.redirects_max,
            private: private_headers(&settings)?,
            user_agent: settings.user_agent,
            proxies: settings.proxies,
            trust: if given_roots.is_some() { Trust::Given } else { Trust::System },
            given_roots,
            agents: Vec::new(),
        })
    }

    /// The answer's header, from whichever roots the server's certificate is trusted by.
    fn open(&mut self, hop: &Hop, request: &Request) -> Result<ureq::http::Response<Body>, TransportError> {
        let first = match self.open_trusting(self.trust, hop, request) {
            Err(TransportError::Tls(detail)) if self.given_roots.is_some() => detail,
            end => return end,
        };
        let other = if self.trust == Trust::Given { Trust::System } else { Trust::Given };
        match self.open_trusting(other, hop, request) {
            Err(TransportError::Tls(second)) => Err(TransportError::Tls(failure::both_reasons(first, second))),
            Ok(answer) => {
                self.trust = other;
                Ok(answer)
            }
            end => end,
        }
    }

    fn open_trusting(&mut self, trust: Trust, hop: &Hop, request: &Request) -> Result<ureq::http::Response<Body>, TransportError> {
        let limits = self.limits;
        let headers = self.headers(hop, request);
        let kept = self.agent(trust, &hop.address)?;
        let mut end = run(&kept.agent, hop, request, &headers);
        // A kept connection that the server has closed meanwhile is no failure: the request goes out once more, on a new one.
        if kept.answered && end.as_ref().is_err_and(failure::lost_connection) {
            end = run(&kept.agent, hop, request, &headers);
        }
        kept.answered = end.is_ok();
        end.map_err(|error| failure::meaning(&error, Stage::Header, &limits))
    }

    fn agent(&mut self, trust: Trust, address: &Address) -> Result<&mut Kept, TransportError> {
        let proxy = self.proxies.choose(address);
        let found = self.agents.iter().position(|kept| kept.trust == trust && kept.proxy.as_deref() == proxy);
        let at = match found {
            Some(at) => at,
            None => {
                let agent = self.new_agent(trust, proxy)?;
                self.agents.push(Kept { proxy: proxy.map(str::to_owned), trust, agent, answered: false });
                self.agents.len() - 1
            }
        };
        self.agents.get_mut(at).ok_or_else(|| TransportError::Fault("an agent is missing".to_owned()))
    }

    fn new_agent(&self, trust: Trust, proxy: Option<&str>) -> Result<Agent, TransportError> {
        let proxy = proxy
            .map(usable_proxy)
            .transpose()
            .map_err(|error| TransportError::Proxy { status: None, detail: error.to_string() })?;
        let roots = match (trust, &self.given_roots) {
            (Trust::Given, Some(certificates)) => RootCerts::new_with_certs(certificates),
            _ => RootCerts::PlatformVerifier,
        };
        let one = Some(self.limits.timeout);
        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(proxy)
            .user_agent(self.user_agent.as_str())
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .timeout_resolve(one)
            .timeout_connect(one)
            .timeout_send_request(one)
            .timeout_send_body(one)
            .timeout_recv_response(one)
            .timeout_per_read(one)
            .timeout_per_write(one)
            .timeout_global(Some(self.limits.total))
            .build();
        Ok(config.new_agent())
    }

    fn headers(&self, hop: &Hop, request: &Request) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/xml, text/xml;q=0.9, */*;q=0.1"));
        if hop.method != Method::Get {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml; charset=UTF-8"));
        }
        if hop.private {
            for name in self.private.keys() {
                headers.remove(name);
            }
            for (name, value) in &self.private {
                headers.append(name, value.clone());
            }
        }
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(if request.gzip { "gzip" } else { "identity" }));
        headers
    }

    /// The whole answer, once its header is there.
    fn receive(&self, hop: &Hop, mut answer: ureq::http::Response<Body>) -> Result<Response, TransportError> {
        let status = answer.status().as_u16();
        let body = if status < 400 {
            read_whole(&mut answer, &self.limits)?
        } else {
            read_what_comes(&mut answer, self.limits.body_bytes_max.min(ERROR_BODY_BYTES_MAX))
        };
        let text = |name: HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let date = text(header::DATE).and_then(http_date);
        // The server's own clock says best how far off the server's own date is.
        let now = date.unwrap_or_else(OffsetDateTime::now_utc);
        Ok(Response {
            status,
            url: hop.address.to_string(),
            location: text(header::LOCATION).map(str::to_owned),
            charset: text(header::CONTENT_TYPE).and_then(charset_of),
            date,
            retry_after_s: text(header::RETRY_AFTER).and_then(|value| retry_after_s(value, now)),
            body,
        })
    }
}

impl Transport for UreqTransport {
    fn send(&mut self, request: &Request) -> Result<Response, TransportError> {
        let unusable = |what: &str| TransportError::Url(format!("{what}: {}", shown(&request.url)));
        let address = Address::parse(&request.url).map_err(unusable)?;
        let started = Instant::now();
        let mut hop = Hop { method: request.method, address, private: true };
        for _ in 0..=self.redirects_max {
            let mut answer = self.open(&hop, request).map_err(|error| match error {
                TransportError::Url(what) => unusable(&what),
                other => other,
            })?;
            let Some(next) = next_hop(&hop, &answer)? else {
                return self.receive(&hop, answer);
            };
            // Only so that the connection can be used again.
            read_what_comes(&mut answer, ERROR_BODY_BYTES_MAX);
            if (next.method, &next.address) == (hop.method, &hop.address) {
                return Err(TransportError::Redirect(format!("{} leads to itself", shown(&hop.address.to_string()))));
            }
            if started.elapsed() >= self.limits.total {
                return Err(TransportError::Timeout(format!("redirects for {} s", self.limits.total.as_secs_f64())));
            }
            hop = next;
        }
        Err(TransportError::Redirect(format!(
            "more than {}, the last one to {}",
            self.redirects_max,
            shown(&hop.address.to_string())
        )))
    }
}

fn shown(url: &str) -> String {
    escape_outside_text(&without_credentials(url), TEXT_CHARS_MAX)
}

fn run(agent: &Agent, hop: &Hop, request: &Request, headers: &HeaderMap) -> Result<ureq::http::Response<Body>, ureq::Error> {
    let mut builder = ureq::http::Request::builder().uri(hop.address.to_string());
    if let Some(ours) = builder.headers_mut() {
        ours.clone_from(headers);
    }
    match hop.method {
        Method::Get => agent.run(builder.method("GET").body(())?),
        Method::Post => agent.run(builder.method("POST").body(request.body.as_bytes())?),
        Method::Put => agent.run(builder.method("PUT").body(request.body.as_bytes())?),
    }
}

/// Where the answer redirects to, none when it is the last one.
fn next_hop(hop: &Hop, answer: &ureq::http::Response<Body>) -> Result<Option<Hop>, TransportError> {
    let method = match answer.status().as_u16() {
        301 | 302 | 307 | 308 => hop.method,
        303 => Method::Get,
        _ => return Ok(None),
    };
    let from = || shown(&hop.address.to_string());
    let location = answer.headers().get(header::LOCATION).map(HeaderValue::as_bytes);
    let location = location.ok_or_else(|| TransportError::Redirect(format!("{} does not say where to", from())))?;
    let address = hop.address.resolve(location).map_err(|what| {
        TransportError::Redirect(format!("from {} to {}: {what}", from(), shown(&String::from_utf8_lossy(location))))
    })?;
    if hop.address.scheme == Scheme::Https && address.scheme == Scheme::Http {
        return Err(TransportError::Redirect(format!(
            "from {} to {}, which is not encrypted",
            from(),
            shown(&address.to_string())
        )));
    }
    let private = hop.private && hop.address.shares_secrets_with(&address);
    Ok(Some(Hop { method, address, private }))
}

/// The body of a success, or an error: it is whole as far as HTTP can tell.
fn read_whole(answer: &mut ureq::http::Response<Body>, limits: &Limits) -> Result<Vec<u8>, TransportError> {
    let too_large = TransportError::TooLarge { body_bytes_max: limits.body_bytes_max };
    // ureq has taken this header away where it decompresses.
    if let Some(coding) = foreign_coding(answer.headers()) {
        return Err(TransportError::Decompress(format!("Content-Encoding {coding} was not asked for")));
    }
    let length = answer.body().content_length().unwrap_or(0);
    if length > limits.body_bytes_max {
        return Err(too_large);
    }
    let reserve = usize::try_from(length.min(RESERVE_BYTES_MAX)).unwrap_or(0);
    let mut body = Vec::with_capacity(reserve);
    let mut reader = answer.body_mut().with_config().limit(limits.body_bytes_max).reader();
    reader.read_to_end(&mut body).map_err(|error| failure::meaning(&ureq::Error::from(error), Stage::Body, limits))?;
    if body.starts_with(&[0x1f, 0x8b]) {
        return Err(TransportError::Decompress("the body is gzip, but not marked so".to_owned()));
    }
    Ok(body)
}

/// What can be had of a body that matters little; a failure to read it is no failure of the exchange.
fn read_what_comes(answer: &mut ureq::http::Response<Body>, bytes_max: u64) -> Vec<u8> {
    let mut body = Vec::new();
    let decodable = foreign_coding(answer.headers()).is_none();
    let end = answer.body_mut().with_config().limit(bytes_max).reader().read_to_end(&mut body);
    if let Err(error) = end {
        log::debug!("an answer with status {} has a body that was not read to its end: {error}", answer.status().as_u16());
    }
    if !decodable || body.starts_with(&[0x1f, 0x8b]) {
        body.clear();
    }
    body
}

fn foreign_coding(headers: &HeaderMap) -> Option<String> {
    let coding = String::from_utf8_lossy(headers.get(header::CONTENT_ENCODING)?.as_bytes()).trim().to_ascii_lowercase();
    (!matches!(coding.as_str(), "" | "identity")).then(|| escape_outside_text(&coding, TEXT_CHARS_MAX))
}

/// The `charset` parameter of a media type (RFC 9110, 8.3.1), without quotes.
fn charset_of(content_type: &str) -> Option<String> {
    let (_, value) = content_type
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    let value = value.trim().trim_matches(['"', '\'']).trim();
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Credentials;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};

    /// What the server does with one request.
    enum Reply {
        /// Writes these bytes.
        Bytes(Vec<u8>),
        /// Writes a header, and then a body byte by byte until the client has gone.
        Drip,
        /// Says nothing until the client has gone.
        Silence,
        /// Closes without having read the request, which resets the connection.
        Reset,
    }

    /// A server on 127.0.0.1 that follows a script: a list of connections, each a list of replies, after which it is closed.
    struct Server {
        port: u16,
        requests: Arc<Mutex<Vec<String>>>,
    }

    impl Server {
        fn new(script: Vec<Vec<Reply>>) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let requests = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&requests);
            std::thread::spawn(move || {
                for replies in script {
                    let (stream, _) = listener.accept().unwrap();
                    converse(stream, replies, &seen);
                }
            });
            Self { port, requests }
        }

        fn url(&self, path: &str) -> String {
            format!("http://127.0.0.1:{}{path}", self.port)
        }

        fn requests(&self) -> Vec<String> {
            self.requests.lock().unwrap().clone()
        }
    }

    fn converse(mut stream: TcpStream, replies: Vec<Reply>, seen: &Mutex<Vec<String>>) {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        for reply in replies {
            if matches!(reply, Reply::Reset) {
                let _ = stream.peek(&mut [0]);
                return;
            }
            let Some(request) = read_request(&mut stream) else { return };
            seen.lock().unwrap().push(request);
            match reply {
                Reply::Bytes(bytes) => stream.write_all(&bytes).unwrap(),
                Reply::Drip => {
                    let _ = stream.write_all(
                        b"HTTP/1.1 200 OK

",
                    );
                    for _ in 0..9_000 {
                        if stream.write_all(b"x").is_err() {
                            return;
                        }
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
                Reply::Silence | Reply::Reset => {
                    let _ = stream.read(&mut [0]);
                }
            }
        }
    }

    fn read_request(stream: &mut TcpStream) -> Option<String> {
        let mut text = Vec::new();
        let mut byte = [0];
        let mut length = None;
        loop {
            if length.is_some_and(|length| text.len() >= length) {
                return Some(String::from_utf8(text).unwrap());
            }
            stream.read_exact(&mut byte).ok()?;
            text.push(byte[0]);
            if length.is_none() && text.ends_with(b"\r\n\r\n") {
                let header = String::from_utf8_lossy(&text).to_ascii_lowercase();
                let body = header.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                length = Some(text.len() + body.unwrap_or(0));
            }
        }
    }

    fn http(status: &str, headers: &[&str], body: &[u8]) -> Reply {
        let mut bytes = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len()).into_bytes();
        for header in headers {
            bytes.extend(format!("{header}\r\n").bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(body);
        Reply::Bytes(bytes)
    }

    fn ok(body: &str) -> Reply {
        http("200 OK", &[], body.as_bytes())
    }

    fn to(status: u16, location: &str) -> Reply {
        http(&format!("{status} Moved"), &[&format!("Location: {location}")], b"moved")
    }

    fn raw(text: &str) -> Reply {
        Reply::Bytes(text.as_bytes().to_vec())
    }

    /// gzip with one stored block (RFC 1951, 3.2.4; RFC 1952).
    fn gzip(body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap();
        let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
        packed.extend(length.to_le_bytes());
        packed.extend((!length).to_le_bytes());
        packed.extend(body);
        let crc = body.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
        });
        packed.extend((!crc).to_le_bytes());
        packed.extend(u32::from(length).to_le_bytes());
        packed
    }

    fn settings() -> HttpSettings {
        HttpSettings { timeout: Duration::from_secs(10), body_bytes_max: 10_000, ..HttpSettings::default() }
    }

    fn transport(settings: HttpSettings) -> UreqTransport {
        UreqTransport::new(settings).map_err(|error| error.to_string()).unwrap()
    }

    fn post(url: String) -> Request {
        Request { method: Method::Post, url, body: "<q/>".to_owned(), gzip: true }
    }

    fn get(url: String) -> Request {
        Request { method: Method::Get, url, body: String::new(), gzip: false }
    }

    fn once(reply: Reply) -> Result<Response, TransportError> {
        let server = Server::new(vec![vec![reply]]);
        transport(settings()).send(&post(server.url("/csw")))
    }

    fn basic() -> HttpSettings {
        let credentials = Credentials::Basic { user: "me".to_owned(), password: "hunter2".to_owned() };
        HttpSettings { credentials: Some(credentials), headers: vec![("X-Tenant".to_owned(), "7".to_owned())], ..settings() }
    }

    #[test]
    fn a_post_carries_its_body_and_headers() {
        let server = Server::new(vec![vec![ok("<a/>")]]);
        let response = transport(basic()).send(&post(server.url("/csw?x=1#f"))).unwrap();
        assert_eq!((response.status, response.body.as_slice()), (200, b"<a/>".as_slice()));
        assert_eq!(response.url, server.url("/csw?x=1"));
        let sent = server.requests()[0].to_ascii_lowercase();
        for line in [
            "post /csw?x=1 http/1.1\r\n",
            &format!("\r\nhost: 127.0.0.1:{}\r\n", server.port),
            "\r\ncontent-type: application/xml; charset=utf-8\r\n",
            "\r\naccept: application/xml, text/xml;q=0.9, */*;q=0.1\r\n",
            "\r\naccept-encoding: gzip\r\n",
            "\r\ncontent-length: 4\r\n",
            "\r\nauthorization: basic bwu6ahvudgvymg==\r\n",
            "\r\nx-tenant: 7\r\n",
            &format!("\r\nuser-agent: csw-harvester/{}\r\n", env!("CARGO_PKG_VERSION")),
            "\r\n\r\n<q/>",
        ] {
            assert!(sent.contains(line), "{line} is not in {sent}");
        }
    }

    #[test]
    fn a_get_has_no_body_and_may_ask_for_identity() {
        let server = Server::new(vec![vec![ok("x")]]);
        transport(settings()).send(&get(server.url("/csw?service=CSW"))).unwrap();
        let sent = server.requests()[0].to_ascii_lowercase();
        assert!(sent.starts_with("get /csw?service=csw http/1.1\r\n") && sent.ends_with("\r\n\r\n"), "{sent}");
        assert!(sent.contains("\r\naccept-encoding: identity\r\n") && !sent.contains("content-"), "{sent}");
    }

    #[test]
    fn a_header_of_the_user_replaces_ours() {
        let server = Server::new(vec![vec![ok("x")]]);
        let headers = vec![("content-type".to_owned(), "text/xml".to_owned()), ("User-Agent".to_owned(), "mine".to_owned())];
        transport(HttpSettings { headers, ..settings() }).send(&post(server.url("/"))).unwrap();
        let sent = server.requests()[0].to_ascii_lowercase();
        assert_eq!(sent.matches("content-type:").count(), 1);
        assert_eq!(sent.matches("user-agent:").count(), 1);
        assert!(sent.contains("content-type: text/xml\r\n") && sent.contains("user-agent: mine\r\n"), "{sent}");
    }

    #[test]
    fn the_header_of_the_answer_is_read() {
        let headers = [
            "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            "Retry-After: Sun, 06 Nov 1994 08:50:07 GMT",
            "Content-Type: text/xml; Charset=\"ISO-8859-1\"",
        ];
        let response = once(http("503 Unavailable", &headers, b"<busy/>")).unwrap();
        assert_eq!((response.status, response.retry_after_s), (503, Some(30)));
        assert_eq!(response.charset.as_deref(), Some("ISO-8859-1"));
        assert_eq!(response.date.unwrap().unix_timestamp(), 784_111_777);
        assert_eq!(response.body, b"<busy/>");
        let seconds = once(http("429 Slow down", &["Retry-After: 7"], b"")).unwrap();
        assert_eq!((seconds.status, seconds.retry_after_s, seconds.date), (429, Some(7), None));
    }

    #[test]
    fn a_refusal_is_a_response_with_its_body() {
        let response = once(http("401 Unauthorized", &["WWW-Authenticate: Basic"], b"who are you")).unwrap();
        assert_eq!((response.status, response.body.as_slice()), (401, b"who are you".as_slice()));
    }

    #[test]
    fn a_refusal_stays_one_when_its_body_is_cut_too_large_or_undecodable() {
        let cut = once(raw("HTTP/1.1 403 No\r\nContent-Length: 99\r\n\r\nno")).unwrap();
        assert_eq!((cut.status, cut.body.as_slice()), (403, b"no".as_slice()));
        let large = once(http("500 Oops", &[], &[b'x'; 20_000])).unwrap();
        assert_eq!((large.status, large.body.len()), (500, 10_000));
        let strange = once(http("502 Bad", &["Content-Encoding: br"], b"\x01\x02")).unwrap();
        assert_eq!((strange.status, strange.body.len()), (502, 0));
    }

    #[test]
    fn one_connection_serves_many_requests_refusals_included() {
        let replies =
            vec![ok("a"), http("404 No", &[], b"no"), http("200 OK", &["Content-Encoding: gzip"], &gzip(b"zip")), ok("d")];
        let server = Server::new(vec![replies]);
        let mut transport = transport(settings());
        let statuses: Vec<u16> = (0..4).map(|_| transport.send(&post(server.url("/"))).unwrap().status).collect();
        assert_eq!(statuses, [200, 404, 200, 200]);
    }

    #[test]
    fn a_kept_connection_that_is_closed_or_reset_is_made_anew_at_once() {
        let server = Server::new(vec![vec![ok("a"), Reply::Reset], vec![ok("b"), raw("")], vec![ok("c")]]);
        let mut transport = transport(settings());
        let bodies: Vec<Vec<u8>> = (0..3).map(|_| transport.send(&post(server.url("/"))).unwrap().body).collect();
        assert_eq!(bodies, [b"a", b"b", b"c"]);
    }

    #[test]
    fn a_new_connection_that_is_closed_is_an_error_at_once() {
        let server = Server::new(vec![vec![raw("")], vec![ok("not asked for")]]);
        let end = transport(settings()).send(&post(server.url("/")));
        assert!(matches!(end, Err(TransportError::Cut(_))), "{end:?}");
        assert_eq!(server.requests().len(), 1);
    }

    #[test]
    fn a_connection_that_is_lost_twice_is_an_error() {
        let server = Server::new(vec![vec![ok("a"), raw("")], vec![raw("")], vec![ok("not asked for")]]);
        let mut transport = transport(settings());
        transport.send(&post(server.url("/"))).unwrap();
        let end = transport.send(&post(server.url("/")));
        assert!(matches!(end, Err(TransportError::Cut(_))), "{end:?}");
        assert_eq!(server.requests().len(), 3);
    }

    #[test]
    fn a_body_that_is_cut_is_an_error() {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n<a>",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<a>bc\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<a>",
            "HTTP/1.1 200 OK\r\nContent-Le",
        ] {
            let end = once(raw(answer));
            assert!(matches!(end, Err(TransportError::Cut(_))), "{answer}: {end:?}");
        }
    }

    #[test]
    fn chunks_are_joined_and_a_body_may_end_with_the_connection() {
        let chunked = once(raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n<a>\r\n4\r\n</a>\r\n0\r\n\r\n")).unwrap();
        assert_eq!(chunked.body, b"<a></a>");
        assert_eq!(once(raw("HTTP/1.0 200 OK\r\n\r\n<a/>")).unwrap().body, b"<a/>");
    }

    #[test]
    fn what_is_not_http_is_an_error_that_may_pass() {
        for answer in ["SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"] {
            let end = once(raw(answer));
            assert!(matches!(&end, Err(TransportError::Protocol(_))), "{answer}: {end:?}");
        }
    }

    #[test]
    fn gzip_is_undone() {
        let response = once(http("200 OK", &["Content-Encoding: gzip", "Content-Type: text/xml"], &gzip(b"<a/>"))).unwrap();
        assert_eq!((response.body.as_slice(), response.charset), (b"<a/>".as_slice(), None));
    }

    #[test]
    fn gzip_that_is_broken_mislabelled_or_unlabelled_asks_for_identity() {
        let whole = gzip(b"<a/>");
        let mut wrong = whole.clone();
        wrong[20] ^= 1;
        let cut = &whole[..whole.len() - 6];
        for (coding, body) in [
            ("Content-Encoding: gzip", wrong.as_slice()),
            ("Content-Encoding: gzip", cut),
            ("Content-Encoding: gzip", b"<a/>".as_slice()),
            ("Content-Encoding: GZip", whole.as_slice()),
            ("Content-Encoding: deflate", b"x".as_slice()),
            ("Content-Encoding: br", b"x".as_slice()),
            ("X-Nothing: said", whole.as_slice()),
        ] {
            let end = once(http("200 OK", &[coding], body));
            assert!(matches!(&end, Err(error @ TransportError::Decompress(_)) if error.transient()), "{coding}: {end:?}");
        }
        assert_eq!(once(http("200 OK", &["Content-Encoding: identity"], b"<a/>")).unwrap().body, b"<a/>");
    }

    #[test]
    fn a_body_over_the_limit_is_refused_however_it_comes() {
        let too_large = Err(TransportError::TooLarge { body_bytes_max: 10_000 });
        let body = vec![b'x'; 10_001];
        assert_eq!(once(http("200 OK", &[], &body)), too_large);
        assert_eq!(once(http("200 OK", &["Content-Encoding: gzip"], &gzip(&body))), too_large);
        let mut endless = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        endless.extend(&body);
        assert_eq!(once(Reply::Bytes(endless)), too_large);
        assert_eq!(once(http("200 OK", &[], &body[..10_000])).unwrap().body.len(), 10_000);
    }

    #[test]
    fn silence_and_a_slow_drip_end_by_the_limits_on_time() {
        for reply in [Reply::Silence, Reply::Drip] {
            let server = Server::new(vec![vec![reply]]);
            let short = HttpSettings { timeout: Duration::from_millis(100), ..settings() };
            let end = transport(short).send(&post(server.url("/")));
            assert!(matches!(end, Err(TransportError::Timeout(_))), "{end:?}");
        }
    }

    #[test]
    fn a_limit_on_time_beyond_all_clocks_is_no_trouble() {
        let server = Server::new(vec![vec![ok("<a/>")]]);
        let endless = HttpSettings { timeout: Duration::MAX, ..settings() };
        assert!(transport(endless).send(&post(server.url("/"))).is_ok());
    }

    #[test]
    fn a_post_is_repeated_where_it_is_sent_to() {
        for status in [301, 302, 307, 308] {
            let server = Server::new(vec![vec![to(status, "/new?a"), ok("<a/>")]]);
            let response = transport(basic()).send(&post(server.url("/old"))).unwrap();
            assert_eq!(response.body, b"<a/>");
            assert_eq!(response.url, server.url("/new?a"));
            let second = server.requests()[1].to_ascii_lowercase();
            assert!(second.starts_with("post /new?a ") && second.ends_with("<q/>"), "{second}");
            assert!(second.contains("authorization:") && second.contains("content-type: application/xml"), "{second}");
        }
    }

    #[test]
    fn see_other_means_get() {
        let server = Server::new(vec![vec![to(303, "result"), ok("<a/>")]]);
        transport(settings()).send(&post(server.url("/csw/ask"))).unwrap();
        let second = server.requests()[1].to_ascii_lowercase();
        assert!(second.starts_with("get /csw/result ") && !second.contains("<q/>") && !second.contains("content-"), "{second}");
    }

    #[test]
    fn secrets_do_not_follow_to_another_origin_nor_come_back_from_it() {
        let home = Server::new(vec![vec![ok("<a/>")]]);
        let back = to(307, &home.url("/back"));
        let away = Server::new(vec![vec![back]]);
        let start = Server::new(vec![vec![to(308, &format!("http://me:pw@localhost:{}/away", away.port))]]);
        let response = transport(basic()).send(&post(start.url("/"))).unwrap();
        assert_eq!(response.body, b"<a/>");
        assert!(start.requests()[0].to_ascii_lowercase().contains("authorization:"));
        for sent in [&away.requests()[0], &home.requests()[0]].map(|sent| sent.to_ascii_lowercase()) {
            assert!(sent.starts_with("post /") && sent.ends_with("<q/>"), "{sent}");
            assert!(!sent.contains("authorization") && !sent.contains("x-tenant"), "{sent}");
        }
    }

    #[test]
    fn redirects_that_lead_nowhere_are_final() {
        let many = || (0..6).map(|n| to(302, &format!("/{n}"))).collect();
        let none = || vec![http("302 Found", &[], b"")];
        for (replies, text) in [
            (many(), "more than 5"),
            (vec![to(301, "/csw")], "leads to itself"),
            (none(), "does not say where to"),
            (vec![to(302, "ftp://example.org/")], "neither http nor https"),
            (vec![to(302, "http:///x")], "no host name"),
        ] {
            let server = Server::new(vec![replies]);
            match transport(settings()).send(&post(server.url("/csw"))) {
                Err(error @ TransportError::Redirect(_)) => {
                    assert!(error.to_string().contains(text) && !error.transient(), "{error}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn five_redirects_are_followed() {
        let mut replies: Vec<Reply> = (0..5).map(|n| to(302, &format!("/{n}"))).collect();
        replies.push(ok("<a/>"));
        let server = Server::new(vec![replies]);
        assert_eq!(transport(settings()).send(&post(server.url("/"))).unwrap().body, b"<a/>");
    }

    #[test]
    fn https_never_becomes_http() {
        let hop = Hop { method: Method::Post, address: Address::parse("https://a/").unwrap(), private: true };
        let answer =
            ureq::http::Response::builder().status(308).header("Location", "http://a/").body(Body::builder().data("")).unwrap();
        let end = next_hop(&hop, &answer).map(|_| ());
        assert!(matches!(&end, Err(TransportError::Redirect(text)) if text.contains("not encrypted")), "{end:?}");
        let upgrade = Hop { address: Address::parse("http://a/").unwrap(), ..hop };
        let answer =
            ureq::http::Response::builder().status(308).header("Location", "https://a/").body(Body::builder().data("")).unwrap();
        assert!(next_hop(&upgrade, &answer).unwrap().unwrap().private);
    }

    #[test]
    fn a_3xx_that_is_not_a_redirect_is_a_response() {
        let response = once(http("300 Choose", &["Location: /a"], b"a or b")).unwrap();
        assert_eq!((response.status, response.location.as_deref()), (300, Some("/a")));
    }

    #[test]
    fn nobody_listening_and_no_such_host_are_told_apart() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let refused = transport(settings()).send(&get(format!("http://127.0.0.1:{port}/")));
        assert!(matches!(refused, Err(TransportError::Connect(_))), "{refused:?}");
        // Two dots in a row: no name server has to be asked to know that it is no name.
        let unknown = transport(settings()).send(&get("http://no..name/".to_owned()));
        assert!(matches!(unknown, Err(TransportError::Resolve(_))), "{unknown:?}");
    }

    #[test]
    fn a_server_that_does_not_speak_tls_is_final() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(2) {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            }
        });
        let end = transport(settings()).send(&get(format!("https://127.0.0.1:{port}/")));
        assert!(matches!(&end, Err(error @ TransportError::Tls(_)) if !error.transient()), "{end:?}");
    }

    #[test]
    fn a_url_that_cannot_be_used_is_final_and_shown_without_its_password() {
        for url in ["csw", "ftp://a/", "http://me:hunter2@a/", &format!("http://a/{}", "x".repeat(70_000))] {
            match transport(settings()).send(&get(url.to_owned())) {
                Err(error @ TransportError::Url(_)) => {
                    assert!(
                        !error.transient() && !error.to_string().contains("hunter2") && error.to_string().len() < 500,
                        "{error}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn through(proxy: &Server, no_proxy: &'static str) -> UreqTransport {
        let url = format!("http://us%40er:pw@127.0.0.1:{}", proxy.port);
        let proxies = Proxies::from_lookup(|name| match name {
            "http_proxy" => Some(url.clone()),
            "no_proxy" => Some(no_proxy.to_owned()),
            _ => None,
        });
        transport(HttpSettings { proxies, ..basic() })
    }

    #[test]
    fn a_proxy_is_asked_to_connect_and_sees_no_credentials_of_the_catalogue() {
        let proxy = Server::new(vec![vec![raw("HTTP/1.1 200 OK\r\n\r\n"), ok("<a/>")]]);
        let response = through(&proxy, "").send(&post("http://example.test/csw".to_owned())).unwrap();
        assert_eq!(response.body, b"<a/>");
        let sent = proxy.requests();
        assert!(sent[0].starts_with("CONNECT example.test:80 HTTP/1.1\r\n"), "{}", sent[0]);
        assert!(sent[0].contains("Proxy-Authorization: Basic dXNAZXI6cHc=\r\n"), "{}", sent[0]);
        assert!(!sent[0].to_ascii_lowercase().contains("\r\nauthorization"), "{}", sent[0]);
        assert!(sent[1].starts_with("POST /csw HTTP/1.1\r\n"), "{}", sent[1]);
    }

    #[test]
    fn a_host_in_no_proxy_is_reached_directly() {
        let proxy = Server::new(vec![vec![ok("wrong way")]]);
        let server = Server::new(vec![vec![ok("<a/>")]]);
        assert_eq!(through(&proxy, "127.0.0.0/8").send(&post(server.url("/"))).unwrap().body, b"<a/>");
        assert!(proxy.requests().is_empty());
    }

    #[test]
    fn a_proxy_that_refuses_says_so() {
        for (line, denied) in [("407 Proxy Authentication Required", true), ("502 Bad Gateway", false)] {
            let proxy = Server::new(vec![vec![raw(&format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n"))]]);
            match through(&proxy, "").send(&post("http://example.test/csw".to_owned())) {
                Err(error @ TransportError::Proxy { .. }) => {
                    assert_eq!((error.denied(), error.transient()), (denied, !denied), "{error}")
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

//! Who may ask and what is asked for, through the real binary: credentials, headers, proxies, and the user's own filter.
//!
//! Secrets reach the catalogue's own host and nothing else: no other host, no log at any level, no error, no store, no summary. TLS is left
//! to the checks against real servers.

mod filter;
mod proxy;

use std::path::Path;

use crate::support::faults::Fault;
use crate::support::harness::{Harness, Outcome};
use crate::support::model::Catalogue;
use crate::support::quirks::Quirks;
use crate::support::server::Server;
use crate::support::stamps::{HOUR, day};

const SECRET: &str = "hunter2-\u{e4}";
const TOKEN: &str = "tok-hunter2";
/// Every level, and by the names of single modules, which overrule that of their crate.
const ALL_LOGS: &str =
    "trace,ureq=trace,ureq::run=trace,ureq::unversioned=trace,ureq_proto=trace,ureq_proto::client=trace,rustls=trace";

fn server() -> Server {
    let mut catalogue = Catalogue::new(day(2025, 6, 1), Quirks::default());
    catalogue.fill("record", 12, |number| day(2025, 1, 1) + number as i64 * HOUR);
    Server::start(catalogue)
}

fn server_with_basic() -> Server {
    let server = server();
    server.set(|settings| settings.basic = Some(("me".to_owned(), SECRET.to_owned())));
    server
}

/// A harness that logs all that it can.
fn harness(server: &Server) -> Harness {
    let mut harness = Harness::against(server);
    harness.set_env("RUST_LOG", ALL_LOGS);
    harness
}

fn with_userinfo(server: &Server, userinfo: &str) -> String {
    server.url().replace("http://", &format!("http://{userinfo}@"))
}

/// Whether any of these texts came out of a run, or stands in any file of its folder but those that the test wrote.
#[track_caller]
fn expect_hidden(outcome: &Outcome, harness: &Harness, secrets: &[&str]) {
    let mut files: Vec<_> = std::fs::read_dir(harness.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_none_or(|extension| extension != "given"));
    for secret in secrets {
        let shown = outcome.stdout.contains(secret) || outcome.stderr.contains(secret);
        let kept = files.iter().find(|path| holds(path, secret));
        if shown || kept.is_some() {
            outcome.fail(&format!("{secret} is shown, or kept in {kept:?}"));
        }
    }
}

fn holds(path: &Path, text: &str) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// base64 of `me:hunter2-\u{e4}`.
const BASIC: &str = "bWU6aHVudGVyMi3DpA==";

#[test]
fn a_user_and_a_password_from_a_file_are_sent_at_once() {
    let server = server_with_basic();
    let harness = harness(&server);
    let password = harness.write("password.given", format!("{SECRET}\n"));

    let outcome = harness
        .harvest(&server.url(), &["--user", "me", "--password-file", password.to_str().unwrap(), "--json"])
        .expect_code(0)
        .expect_json("new", "12")
        .expect("nothing of the crates that see the password", |outcome| !outcome.stderr.contains("TcpStream"));

    let wanted = format!("Basic {BASIC}");
    assert!(server.requests().iter().all(|entry| entry.header("authorization") == Some(wanted.as_str())));
    expect_hidden(&outcome, &harness, &[SECRET, "hunter2", BASIC]);
}

#[test]
fn a_user_and_a_password_may_stand_in_the_url() {
    let server = server_with_basic();
    let harness = harness(&server);

    let outcome = harness
        .harvest(&with_userinfo(&server, "me:hunter2-%C3%A4"), &["--json"])
        .expect_code(0)
        .expect_json("new", "12")
        .expect_json("source", &format!("\"{}\"", server.url()));

    expect_hidden(&outcome, &harness, &[SECRET, "hunter2", BASIC]);
}

#[test]
fn a_wrong_password_is_77_after_one_request() {
    let server = server_with_basic();
    let harness = harness(&server);

    let outcome = harness
        .harvest(&with_userinfo(&server, "me:wrong-word"), &["--json"])
        .expect_code(77)
        .expect_json("exit_code", "77")
        .expect_json("requests", "1")
        .expect_stderr("401");

    assert_eq!(server.asked(), 1);
    expect_hidden(&outcome, &harness, &["wrong-word", "bWU6d3Jvbmctd29yZA"]);
}

#[test]
fn access_that_is_forbidden_is_77_after_one_request() {
    for status in [401, 403, 407] {
        let server = server();
        server.fault_when(|_| true, Fault::status(status));
        let harness = harness(&server);

        harness.harvest(&server.url(), &[]).expect_code(77).expect_stderr(&status.to_string());

        assert_eq!(server.asked(), 1, "{status}");
    }
}

#[test]
fn a_token_and_headers_go_with_every_request_and_are_shown_nowhere() {
    let server = server();
    let harness = harness(&server);
    let token = harness.write("token.given", format!("{TOKEN}\r\n"));

    let options = ["--token-file", token.to_str().unwrap(), "--header", "X-Key: k-hunter2", "--header=X-Other:a=b", "--json"];
    let outcome = harness.harvest(&server.url(), &options).expect_code(0).expect_json("new", "12");

    let entries = server.requests();
    assert!(!entries.is_empty());
    for entry in entries {
        assert_eq!(entry.header("authorization"), Some("Bearer tok-hunter2"));
        assert_eq!((entry.header("x-key"), entry.header("x-other")), (Some("k-hunter2"), Some("a=b")));
    }
    expect_hidden(&outcome, &harness, &["hunter2"]);
}

#[test]
fn credentials_and_headers_do_not_follow_a_redirect_to_another_host() {
    let other = server();
    let server = server();
    let (address, target) = (server.address(), other.url());
    server.fault_when(|_| true, Fault::Redirect(307, target));
    let harness = harness(&server);
    let password = harness.write("password.given", SECRET);

    let options = ["--user", "me", "--password-file", password.to_str().unwrap(), "--header", "X-Key: hunter2", "--json"];
    let outcome = harness.harvest(&format!("http://{address}/csw"), &options).expect_code(0).expect_json("new", "12");

    assert!(server.requests().iter().all(|entry| entry.header("authorization").is_some() && entry.header("x-key").is_some()));
    let followed = other.requests();
    assert!(followed.len() > 1 && followed.iter().any(|entry| entry.method == "POST" && !entry.body.is_empty()));
    assert!(followed.iter().all(|entry| entry.header("authorization").is_none() && entry.header("x-key").is_none()));
    expect_hidden(&outcome, &harness, &["hunter2", BASIC]);
}

#[test]
fn credentials_do_not_follow_to_another_name_of_the_same_port_either() {
    let server = server();
    let by_name = format!("http://localhost:{}/csw", server.address().port());
    server.fault_when(|entry| entry.header("host").is_some_and(|host| host.starts_with("127.")), Fault::Redirect(302, by_name));
    let harness = harness(&server);

    harness.harvest(&with_userinfo(&server, "me:hunter2"), &["--json"]).expect_code(0).expect_json("new", "12");

    let (named, numbered): (Vec<_>, Vec<_>) =
        server.requests().into_iter().partition(|entry| entry.header("host").is_some_and(|host| host.starts_with("localhost")));
    assert!(!named.is_empty() && named.iter().all(|entry| entry.header("authorization").is_none()));
    assert!(!numbered.is_empty() && numbered.iter().all(|entry| entry.header("authorization").is_some()));
}

#[test]
fn secrets_are_in_no_message_of_a_run_that_fails() {
    let faults = [
        Fault::Redirect(302, "http://me:hunter2@127.0.0.1:1/csw?token=hunter2".to_owned()),
        Fault::exception(200, "NoApplicableCode", "", "no"),
        Fault::Html("Sign in"),
        Fault::Reset,
    ];
    for fault in faults {
        let server = server();
        let told = format!("{fault:?}");
        server.fault_when(|_| true, fault);
        let harness = harness(&server);
        let url = format!("{}?token=hunter2", with_userinfo(&server, "me:hunter2"));

        let options = ["--header", "X-Key: hunter2", "--retry-max-wait", "0", "--source", "s", "--json"];
        let outcome = harness.harvest(&url, &options);

        assert!(matches!(outcome.code(), Some(69 | 76)), "{told}: {:?}", outcome.code());
        if outcome.stdout.contains("hunter2") || outcome.stderr.contains("hunter2") {
            outcome.fail(&format!("{told}: a secret is shown"));
        }
    }
}

#[test]
fn what_cannot_be_used_is_refused_before_anything_is_touched() {
    let server = server();
    let harness = harness(&server);
    let given = |name: &str, content: &str| harness.write(name, content).to_str().unwrap().to_owned();
    let (password, empty, text) = (given("p.given", "hunter2"), given("e.given", ""), given("t.given", "hunter2 hunter2"));
    let in_url = with_userinfo(&server, "me:hunter2");
    let plain = server.url();
    let cases: [(i32, Vec<&str>); 13] = [
        (64, vec![&in_url, "--user", "me", "--password-file", &password]),
        (64, vec![&in_url, "--token-file", &password]),
        (64, vec![&plain, "--user", "me"]),
        (64, vec![&plain, "--password-file", &password]),
        (64, vec![&plain, "--header", "hunter2"]),
        (64, vec![&plain, "--header", "Host: hunter2"]),
        (64, vec![&plain, "--cql", "a = 1", "--filter-file", &text]),
        (64, vec![&plain, "--cql", "a = 1) OR (hunter2 = 2"]),
        (78, vec![&plain, "--user", "me", "--password-file", "/no/such/file"]),
        (78, vec![&plain, "--user", "me", "--password-file", &empty]),
        (78, vec![&plain, "--token-file", &text]),
        (78, vec![&plain, "--ca-file", &text]),
        (78, vec![&plain, "--filter-file", &text]),
    ];
    for (code, arguments) in cases {
        let outcome = harness.run(&[&["harvest"], arguments.as_slice()].concat()).expect_code(code);
        if outcome.stderr.contains("hunter2") || !outcome.stderr.contains("--") || outcome.stderr.lines().count() != 1 {
            outcome.fail("expected one line that names the option and no secret");
        }
    }
    assert_eq!(server.asked(), 0);
    assert_eq!(std::fs::read_dir(harness.folder()).unwrap().count(), 3, "only the files that were given");
}

#[test]
fn what_a_catalogue_quotes_of_a_request_shows_no_secret() {
    let quoted = format!("your request: Authorization: Basic {BASIC}, {SECRET}, X-Key: {TOKEN}");
    for fault in [Fault::exception(400, "NoApplicableCode", "", &quoted), Fault::Html(quoted.clone().leak())] {
        let server = server_with_basic();
        server.fault_when(|_| true, fault);
        let harness = harness(&server);
        let key = format!("X-Key: {TOKEN}");
        let options = ["--header", &key, "--retries", "0", "--json"];
        let outcome = harness.harvest(&with_userinfo(&server, "me:hunter2-%C3%A4"), &options);
        assert_eq!(outcome.code(), Some(76));
        assert!(outcome.stderr.contains("your request"), "{}", outcome.stderr);
        expect_hidden(&outcome, &harness, &[SECRET, BASIC, TOKEN]);
    }
}

#[test]
fn a_token_in_the_url_is_not_kept_where_the_source_has_a_name() {
    let server = server();
    let harness = harness(&server);
    let url = server.url_at("/csw?token=hunter2");
    for _ in 0..2 {
        let outcome = harness.harvest(&url, &["--source", "named", "--json"]).expect_code(0);
        expect_hidden(&outcome, &harness, &["hunter2"]);
    }
    assert!(server.requests().iter().all(|entry| entry.target.contains("token=hunter2")), "{}", server.journal().told());
    // Another token is no other harvest.
    let renewed = harness.harvest(&server.url_at("/csw?token=other"), &["--source", "named"]).expect_code(0);
    assert!(!renewed.stderr.contains("everything is read again"), "{}", renewed.stderr);
}

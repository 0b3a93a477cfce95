//! The Pushgateway: one request with the metrics, over the same HTTP as the catalogue's, with credentials of its own.
//!
//! It waits for seconds, not minutes: the run is over, and a scheduler waits for the exit code. No redirect is followed, since the
//! credentials in the url are for this gateway alone.

use std::time::{Duration, Instant};

use crate::cli::Gateway;
use crate::http::{
    Courier, HttpSettings, Method, Proxies, Request, UreqTransport, base64_url, escape_outside_text, without_credentials,
};
use crate::signal::Stop;

/// Connecting, and waiting for the first byte.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Both attempts together; after that it is given up whatever is under way.
const WAIT_MAX: Duration = Duration::from_secs(8);
/// The first attempt and one more.
const ATTEMPTS: u32 = 2;
/// A Pushgateway answers with nothing, or with a line.
const BODY_BYTES_MAX: u64 = 64 << 10;
const TEXT_CHARS_MAX: usize = 200;
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The job, unless the url names one.
const JOB: &str = "csw_harvester";

/// Sends the text in the group of this source. With `keeping`, metrics of other names stay in the group as they are.
///
/// # Errors
/// Why it did not arrive, without credentials.
pub(super) fn send(gateway: &Gateway, proxies: Proxies, keeping: bool, source: &str, text: String) -> Result<(), String> {
    let url = group_url(&gateway.url, source);
    let shown = escape_outside_text(&without_credentials(&url), TEXT_CHARS_MAX);
    let settings = HttpSettings {
        timeout: TIMEOUT,
        body_bytes_max: BODY_BYTES_MAX,
        redirects_max: 0,
        credentials: gateway.credentials.clone(),
        headers: vec![("Content-Type".to_owned(), TEXT_FORMAT.to_owned())],
        roots: gateway.roots.clone(),
        proxies,
        ..HttpSettings::default()
    };
    let transport = UreqTransport::new(settings).map_err(|error| format!("{shown}: {error}"))?;
    let mut courier = Courier::new(Box::new(transport)).map_err(|error| format!("no thread to send with: {error}"))?;
    let stop = Stop::new().with_deadline(Instant::now() + WAIT_MAX);
    let request = Request { method: if keeping { Method::Post } else { Method::Put }, url, body: text, gzip: false };
    let mut why = String::new();
    for _ in 0..ATTEMPTS {
        courier.send(request.clone());
        let Ok(answer) = courier.receive(&stop) else {
            return Err(format!("{shown}: no answer within {} s", WAIT_MAX.as_secs()));
        };
        let passes = match answer {
            Ok(response) if (200..300).contains(&response.status) => return Ok(()),
            Ok(response) => {
                let said = escape_outside_text(String::from_utf8_lossy(&response.body).trim(), TEXT_CHARS_MAX);
                why = format!("{shown}: HTTP {} {said}", response.status);
                response.status >= 500 || response.status == 429
            }
            Err(error) => {
                why = format!("{shown}: {error}");
                error.transient()
            }
        };
        if !passes {
            break;
        }
    }
    Err(why.trim_end().to_owned())
}

/// Where the group of a source is. A url without a group of its own gets job and source; one that names a job gets the source, unless it
/// names that too. The source is written in base64, since a slash in it would end it.
fn group_url(url: &str, source: &str) -> String {
    let base = url.trim_end_matches('/');
    let labels = ["/metrics/job/", "/metrics/job@base64/"].into_iter().find_map(|start| Some(base.split_once(start)?.1));
    let named =
        labels.is_some_and(|labels| labels.split('/').skip(1).step_by(2).any(|name| name == "source" || name == "source@base64"));
    if named {
        return base.to_owned();
    }
    let source = format!("source@base64/{}", base64_url(source));
    match labels {
        Some(_) => format!("{base}/{source}"),
        None => format!("{}/metrics/job/{JOB}/{source}", base.strip_suffix("/metrics").unwrap_or(base)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_made_of_job_and_source_unless_the_url_names_them() {
        for (url, expected) in [
            ("http://g:9091", "http://g:9091/metrics/job/csw_harvester/source@base64/YS9i"),
            ("http://g:9091/", "http://g:9091/metrics/job/csw_harvester/source@base64/YS9i"),
            ("http://g/push/metrics/", "http://g/push/metrics/job/csw_harvester/source@base64/YS9i"),
            ("http://g/metrics/job/geo", "http://g/metrics/job/geo/source@base64/YS9i"),
            ("http://g/metrics/job@base64/YQ/", "http://g/metrics/job@base64/YQ/source@base64/YS9i"),
            ("http://g/metrics/job/geo/team/x", "http://g/metrics/job/geo/team/x/source@base64/YS9i"),
            ("http://g/metrics/job/source/team/source", "http://g/metrics/job/source/team/source/source@base64/YS9i"),
            ("http://g/metrics/job/geo/source/x", "http://g/metrics/job/geo/source/x"),
            ("http://g/metrics/job/geo/team/x/source@base64/eA", "http://g/metrics/job/geo/team/x/source@base64/eA"),
        ] {
            assert_eq!(group_url(url, "a/b"), expected, "{url}");
        }
    }

    #[test]
    fn a_source_is_base64_for_urls() {
        assert!(group_url("http://g", "~~~").ends_with("/source@base64/fn5-"));
        assert!(group_url("http://g", "").ends_with("/source@base64/="));
    }
}

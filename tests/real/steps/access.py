"""pycsw behind nginx and tinyproxy: TLS with an authority of our own, HTTP Basic, a redirect to https, proxies with a password.

Needs nginx, tinyproxy and openssl: they are installed by apt where they are missing, and where that cannot be done this step fails.
"""

import os
import pathlib
import time

import checks
import daemons
import expect
import records
from catalogue import Catalogue
from checks import check, check_equal
from harvester import tick

RECORDS = 120
PASSWORD = "hunter2 with blanks"
PROXY_PASSWORD = "proxyhunter2"
_DAY_SECONDS = 86_400

_NGINX = """daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  log_format told '$server_port $request_method $status';
  access_log {folder}/access.log told;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{basic};
    auth_basic catalogue;
    auth_basic_user_file {folder}/users;
    location / {{ proxy_pass {behind}; }}
  }}
  server {{
    listen 127.0.0.1:{redirect};
    return 301 https://127.0.0.1:{good}$request_uri;
  }}
{secure}}}
"""
_NGINX_SECURE = """  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    location / {{ proxy_pass {behind}; }}
  }}
"""
_TINYPROXY = """Port {port}
Listen 127.0.0.1
Timeout 60
Allow 127.0.0.1
BasicAuth me {password}
LogFile "{folder}/tinyproxy.log"
PidFile "{folder}/tinyproxy.pid"
LogLevel Connect
"""


class Nginx(daemons.Daemon):
    """In front of the catalogue at `behind` (scheme, host and port)."""

    NAMES = ("basic", "redirect", "good", "expired", "foreign")

    def __init__(self, folder, behind, authority):
        super().__init__(folder, len(self.NAMES), self._command)
        self._behind = behind
        now = time.time()
        past, future = (time.strftime("%y%m%d%H%M%SZ", time.gmtime(now + days * _DAY_SECONDS)) for days in (-2, 20))
        yesterday = time.strftime("%y%m%d%H%M%SZ", time.gmtime(now - _DAY_SECONDS))
        self._certificates = {
            "good": authority.certificate("good", "IP:127.0.0.1", past, future),
            "expired": authority.certificate("expired", "IP:127.0.0.1", past, yesterday),
            "foreign": authority.certificate("foreign", "DNS:other.example", past, future),
        }
        (self.folder / "users").write_text(f"me:{daemons.password_hash(PASSWORD)}\n", encoding="utf-8")

    def _command(self, ports):
        at = dict(zip(self.NAMES, ports))
        secure = "".join(
            _NGINX_SECURE.format(port=at[name], certificate=certificate, key=key, behind=self._behind)
            for name, (certificate, key) in self._certificates.items()
        )
        config = self.folder / "nginx.conf"
        config.write_text(_NGINX.format(folder=self.folder, behind=self._behind, secure=secure, **at), encoding="utf-8")
        return [daemons.program("nginx"), "-p", self.folder, "-e", self.folder / "error.log", "-c", config]

    def url(self, name):
        """Of one of its servers."""
        scheme = "http" if name in ("basic", "redirect") else "https"
        return f"{scheme}://127.0.0.1:{self.ports[self.NAMES.index(name)]}/csw"

    def served(self, name):
        """Method and status of each request to one of its servers."""
        port = str(self.ports[self.NAMES.index(name)])
        lines = (self.folder / "access.log").read_text(encoding="utf-8").splitlines()
        return [tuple(line.split()[1:]) for line in lines if line.split()[0] == port]


def tinyproxy(folder):
    """A proxy that wants a password."""
    def command(ports):
        config = pathlib.Path(folder) / "tinyproxy.conf"
        config.write_text(_TINYPROXY.format(port=ports[0], password=PROXY_PASSWORD, folder=folder), encoding="utf-8")
        return [daemons.program("tinyproxy"), "-d", "-c", config]

    return daemons.Daemon(folder, 1, command)


class Step:
    """One run after the other, each into a store of its own."""

    def __init__(self, folder, newest):
        self.folder = folder
        self.newest = newest

    def tick(self, name, url, *options, **environment):
        place = self.folder / name.replace(" ", "-").replace(",", "")
        return tick(url, "--db", place / "store.db", "--source", "access", *options, folder=place, environment=environment)

    def complete(self, name, url, *options, **environment):
        done = self.tick(name, url, *options, **environment)
        expect.complete(name, done, RECORDS, 0, self.newest)
        hidden(name, done)

    def refused(self, name, code, words, url, *options, **environment):
        done = self.tick(name, url, *options, **environment)
        check_equal(f"{name}: exit {code}", done.exit_code, code, done.report())
        last = done.complete_line()
        check(f"{name}: the last log line says {' and '.join(words)}", all(word in last for word in words), done.report())
        check_equal(f"{name}: the summary says the same", done.summary.get("exit_code"), code, done.report())
        check(f"{name}: not tried again", done.summary.get("retries") == 0, done.report())
        hidden(name, done)


def hidden(name, done):
    """No password in what the run said."""
    check(f"{name}: no secret is shown", "hunter2" not in done.stdout + done.stderr, done.report())


def secure(step, nginx, authority):
    """Certificates."""
    trusting = ("--ca-file", authority.path)
    step.complete("TLS with --ca-file", nginx.url("good"), *trusting)
    step.refused("TLS without --ca-file", 69, ("certificate", "UnknownIssuer"), nginx.url("good"))
    step.refused("TLS, an expired certificate", 69, ("certificate", "expired"), nginx.url("expired"), *trusting)
    step.refused("TLS, a certificate for another host", 69, ("certificate", "not valid for"), nginx.url("foreign"), *trusting)
    check_equal("TLS: nothing was asked where the certificate was refused", nginx.served("expired") + nginx.served("foreign"), [])

    step.complete("301 to https", nginx.url("redirect"), *trusting)
    posts = [status for method, status in nginx.served("redirect") if method == "POST"]
    check("301 to https: each POST was redirected", posts and set(posts) == {"301"}, posts)
    asked = [status for method, status in nginx.served("good") if method == "POST"]
    check("301 to https: and repeated as a POST", len(asked) >= len(posts) and set(asked) == {"200"}, asked)


def basic(step, nginx):
    """HTTP Basic."""
    right, wrong = step.folder / "password", step.folder / "wrong"
    right.write_text(PASSWORD + "\n", encoding="utf-8")
    wrong.write_text("hunter22\n", encoding="utf-8")
    step.complete("Basic", nginx.url("basic"), "--user", "me", "--password-file", right)
    check_equal("Basic: sent at once", {status for _, status in nginx.served("basic")}, {"200"})
    before = len(nginx.served("basic"))
    step.refused("Basic, a wrong password", 77, ("401",), nginx.url("basic"), "--user", "me", "--password-file", wrong)
    step.refused("Basic, none", 77, ("401",), nginx.url("basic"))
    check_equal("Basic: a refusal is one request", [status for _, status in nginx.served("basic")[before:]], ["401", "401"])


def proxied(step, nginx, authority, behind):
    """Proxies from the environment."""
    trusting = ("--ca-file", authority.path)
    with tinyproxy(step.folder / "tinyproxy") as proxy:
        at = f"127.0.0.1:{proxy.ports[0]}"
        password = f"http://me:{PROXY_PASSWORD}@{at}"
        step.complete("HTTP_PROXY", behind, HTTP_PROXY=password)
        step.complete("HTTPS_PROXY", nginx.url("good"), *trusting, HTTPS_PROXY=password)
        log = (step.folder / "tinyproxy" / "tinyproxy.log").read_text(encoding="utf-8", errors="replace")
        check("HTTP_PROXY, HTTPS_PROXY: the proxy was asked", log.count("CONNECT") >= 2, log[-1000:])
        step.refused("HTTP_PROXY, no password", 77, ("proxy", "407"), behind, HTTP_PROXY=f"http://{at}")
        # tinyproxy's answer to a password that is wrong, where others say 407.
        step.refused("HTTPS_PROXY, a wrong password", 77, ("proxy", "401"), nginx.url("good"), *trusting,
                     HTTPS_PROXY=f"http://me:hunter22@{at}")


def main():
    wrong = daemons.install("nginx", "tinyproxy", "openssl")
    if not check("access: nginx, tinyproxy and openssl are there", not wrong, wrong):
        return
    folder = pathlib.Path(os.environ["REAL_DIR"])
    with Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60)) as catalogue:
        step = Step(folder, max(catalogue.stamps().values()))
        authority = daemons.Authority(folder / "authority")
        with Nginx(folder / "nginx", catalogue.url.removesuffix("/csw"), authority) as nginx:
            secure(step, nginx, authority)
            basic(step, nginx)
            proxied(step, nginx, authority, catalogue.url)


checks.run(main)

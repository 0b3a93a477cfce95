"""Daemons of the distribution and certificates of an authority of our own, for the steps that need them. Everything is on 127.0.0.1.

A daemon runs in the foreground as one process for the length of a `with` block and is ended by its own pid. Left to the steps: what
is configured, and what the harvester makes of it.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import time

START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 10
STARTS_MAX = 3
INSTALL_SECONDS_MAX = 300
COMMAND_SECONDS_MAX = 60

_PACKAGES = {
    "nginx": "nginx-light", "tinyproxy": "tinyproxy", "openssl": "openssl", "promtool": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter", "prometheus-pushgateway": "prometheus-pushgateway",
    "systemd-nspawn": "systemd-container", "debootstrap": "debootstrap",
    "buildah": "buildah", "podman": "podman", "crun": "crun", "catatonit": "catatonit",
}

_AUTHORITY = """[ca]
default_ca=own
[own]
database={folder}/index.txt
new_certs_dir={folder}
rand_serial=yes
unique_subject=no
default_md=sha256
policy=named
certificate={folder}/authority.pem
private_key={folder}/authority.key
[named]
commonName=supplied
"""


def program(name):
    """The path of a program, also where PATH lacks the folders of the system's daemons; None when there is none."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def install(*names):
    """Installs programs that are missing by apt, without starting services; returns what went wrong, an empty text if all are there."""
    packages = [_PACKAGES[name] for name in names if program(name) is None]
    if not packages:
        return ""
    # RUNLEVEL=1 keeps packages from starting what they install, where init scripts are asked at all.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    said = []
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]):
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=INSTALL_SECONDS_MAX)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{' '.join(command)}: {error}"
        said.append(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    missing = [name for name in names if program(name) is None]
    return f"{', '.join(missing)} cannot be had\n" + "\n".join(said) if missing else ""


class Daemon:
    """`write(ports)` returns the command for free ports of that number; they are in `ports` once it runs."""

    def __init__(self, folder, ports, write):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ports = []
        self._count = ports
        self._write = write
        self._process = None

    def __enter__(self):
        # Another process may take a port between the look and the bind: then others are tried.
        for _ in range(STARTS_MAX):
            self.ports = _free_ports(self._count)
            with open(self.folder / "daemon.log", "ab") as log:
                self._process = subprocess.Popen(self._write(self.ports), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self._pid_file = pathlib.Path(os.environ["REAL_PIDS"]) / str(self._process.pid)
            self._pid_file.touch()
            if self._listens():
                return self
            self.__exit__()
        log = (self.folder / "daemon.log").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"{self.folder.name} did not start: {log[-2000:]}")

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS_MAX)
        self._pid_file.unlink(missing_ok=True)

    def _listens(self):
        end = time.monotonic() + START_SECONDS_MAX
        waiting = list(self.ports)
        while waiting and time.monotonic() < end and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", waiting[-1])) == 0:
                    waiting.pop()
                    continue
            time.sleep(0.05)
        return not waiting and self._process.poll() is None


def _free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _openssl(*arguments):
    command = [program("openssl"), *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """A certificate authority in a folder; `path` is its certificate in PEM."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.path = self.folder / "authority.pem"
        (self.folder / "index.txt").touch()
        (self.folder / "openssl.cnf").write_text(_AUTHORITY.format(folder=self.folder), encoding="utf-8")
        _openssl("req", "-x509", *_KEY, "-subj", "/CN=An authority of our own", "-days", 30,
                 "-addext", "keyUsage=critical,keyCertSign", "-keyout", self.folder / "authority.key", "-out", self.path)

    def certificate(self, name, holder, start, end):
        """Paths of a certificate and its key for `holder` (`IP:...` or `DNS:...`), valid between two times YYMMDDHHMMSSZ."""
        key, request, made = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={holder}\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n",
                              encoding="utf-8")
        _openssl("req", "-new", *_KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        _openssl("ca", "-batch", "-notext", "-config", self.folder / "openssl.cnf", "-in", request, "-out", made,
                 "-startdate", start, "-enddate", end, "-extfile", extensions)
        return made, key


def password_hash(password):
    """As nginx reads it from a password file."""
    return _openssl("passwd", "-apr1", password).strip()

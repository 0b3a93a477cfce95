"""A catalogue as one on the internet is met: by a name that a name server knows, over TLS, behind HTTP Basic.

For steps that run the harvester where files, names and roots are not this machine's own. Everything is on loopback addresses. Left to the
steps: how the name server, the authority and the password reach the harvester.
"""

import contextlib
import pathlib
import socket
import threading
import time

import daemons

HOST = "catalogue.test"
PASSWORD = "hunter2 with blanks"
# A loopback address of its own, so that a name server of this machine is not in the way.
NAME_SERVER = "127.0.0.153"

_NGINX = """daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    auth_basic catalogue;
    auth_basic_user_file {folder}/users;
    location / {{ proxy_pass {behind}; proxy_set_header Host $http_host; }}
  }}
}}
"""


class NameServer:
    """Answers each question for an IPv4 address with 127.0.0.1, any other with nothing (RFC 1035, 4.1)."""

    def __init__(self):
        self.asked = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self):
        self._socket.bind((NAME_SERVER, 53))
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._socket.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                question, sender = self._socket.recvfrom(512)
                self._socket.sendto(self._answer(question), sender)

    def _answer(self, question):
        end, labels = 12, []
        while question[end]:
            labels.append(question[end + 1:end + 1 + question[end]].decode("ascii", "replace"))
            end += 1 + question[end]
        self.asked.append(".".join(labels))
        wants_address = question[end + 1:end + 3] == b"\0\1"
        body = question[12:end + 5]
        found = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1" if wants_address else b""
        return question[:2] + b"\x81\x80\0\1" + (b"\0\1" if found else b"\0\0") + b"\0\0\0\0" + body + found


def front(folder, catalogue, authority):
    """nginx before a catalogue: TLS for HOST by that authority, and HTTP Basic for user `me` and PASSWORD."""
    folder = pathlib.Path(folder)
    behind = catalogue.url.removesuffix("/csw")
    now = time.time()
    start, end = (time.strftime("%y%m%d%H%M%SZ", time.gmtime(now + days * 86_400)) for days in (-2, 20))
    certificate, key = authority.certificate("catalogue", f"DNS:{HOST}", start, end)

    def command(ports):
        config = folder / "nginx.conf"
        config.write_text(_NGINX.format(folder=folder, behind=behind, port=ports[0], certificate=certificate, key=key),
                          encoding="utf-8")
        return [daemons.program("nginx"), "-p", folder, "-e", folder / "error.log", "-c", config]

    folder.mkdir(parents=True)
    (folder / "users").write_text(f"me:{daemons.password_hash(PASSWORD)}\n", encoding="utf-8")
    return daemons.Daemon(folder, 1, command)

"""A real catalogue on loopback: pycsw 2.6.2 over SQLite, in a folder of its own, for the length of a `with` block.

Fills the catalogue's table directly while it is down, changes it through CSW-T (OGC 07-006r1, 10.13) while it is up and
counts the requests that it served. Left to others: what the harvester does with it. Never listens beyond 127.0.0.1, and
never ends a process but the one it started.
"""

import collections
import os
import pathlib
import re
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape

from records import CSW, identifier_of

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10
REQUEST_SECONDS_MAX = 60

CONTACT = (
    "name position address city stateorprovince postalcode country phone fax email url hours instructions role"
).split()

_CONFIG = """[server]
home={home}
url={url}
mimetype=application/xml; charset=UTF-8
encoding=UTF-8
language=en-US
maxrecords={page_cap}
loglevel=ERROR
logfile={folder}/pycsw.log
profiles=apiso

[manager]
transactions=true
allowed_ips=127.0.0.1

[metadata:main]
identification_title=catalogue
identification_abstract=catalogue
identification_keywords=catalogue
identification_keywords_type=theme
identification_fees=None
identification_accessconstraints=None
provider_name=provider
provider_url={url}
{contact}

[repository]
database=sqlite:///{folder}/catalogue.db
table=records
"""

# No proxy of the environment may come between: everything here is on loopback.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

_SHOWN_RECORDS = 500


class Refused(Exception):
    """The catalogue answered a transaction with something else than the one change that was asked for."""


class Catalogue:
    """`url` is what the harvester is given, `database` the path of the catalogue's own SQLite file."""

    def __init__(self, folder, records, page_cap=1000):
        self._python = self.python()
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.database = self.folder / "catalogue.db"
        self._requests = self.folder / "requests.log"
        self._config = self.folder / "pycsw.cfg"
        self._process = None
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/csw"
        self._create(page_cap)
        self._fill(records)

    @staticmethod
    def python():
        """The Python that has pycsw."""
        return os.environ["REAL_PYTHON"]

    def row(self, record):
        """The columns of a record that is loaded while the catalogue is down."""
        return record.row()

    def _create(self, page_cap):
        home = subprocess.run(
            [self._python, "-c", "import pycsw; print(list(pycsw.__path__)[0])"],
            check=True, capture_output=True, text=True, timeout=START_SECONDS_MAX,
        ).stdout.strip()
        self._config.write_text(
            _CONFIG.format(
                home=home, url=self.url, page_cap=page_cap, folder=self.folder,
                contact="\n".join(f"contact_{name}=x" for name in CONTACT),
            ),
            encoding="utf-8",
        )
        self._admin("-c", "setup_db", "-f", self._config)

    def _admin(self, *arguments):
        admin = pathlib.Path(self._python).parent / "pycsw-admin.py"
        made = subprocess.run(
            [self._python, "-W", "ignore", admin, *arguments],
            capture_output=True, text=True, timeout=START_SECONDS_MAX,
        )
        if not self.database.exists():
            raise RuntimeError(f"pycsw made no database: {made.stdout}{made.stderr}")

    def _fill(self, records):
        with sqlite3.connect(self.database) as connection:
            for record in records:
                row = self.row(record)
                names = ", ".join(row)
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO records ({names}) VALUES ({marks})", list(row.values()))
        connection.close()

    def __enter__(self):
        descriptor = self._socket.fileno()
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [self._python, "-W", "ignore", HERE / "serve_pycsw.py",
                 str(descriptor), self._config, self._requests],
                pass_fds=[descriptor], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        self._pid_file = pathlib.Path(os.environ["REAL_PIDS"]) / str(self._process.pid)
        self._pid_file.touch()
        try:
            self._await()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_):
        self._stop()

    def _await(self):
        query = "?service=CSW&version=2.0.2&request=GetCapabilities"
        with _open(self.url + query, timeout=START_SECONDS_MAX) as answer:
            body = answer.read()
        if b"Capabilities" not in body:
            raise RuntimeError(f"pycsw did not start: {body[:2000]!r}; see {self.folder}/server.log")

    def _stop(self):
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS_MAX)
        self._pid_file.unlink(missing_ok=True)
        self._socket.close()

    def requests_served(self):
        """How many requests were answered since the start."""
        return len(self._requests.read_text(encoding="utf-8").splitlines())

    def methods(self):
        """HTTP method -> how many requests of it were answered since the start."""
        lines = self._requests.read_text(encoding="utf-8").splitlines()
        return dict(collections.Counter(line.split()[0] for line in lines))

    def stamps(self):
        """Identifier -> modified date, read from the catalogue's own database."""
        with sqlite3.connect(self.database, timeout=30) as connection:
            rows = connection.execute("SELECT identifier, date_modified FROM records").fetchall()
        connection.close()
        return dict(rows)

    def insert(self, record):
        """Adds a record."""
        self._transact("Inserted", f"<csw:Insert>{record.xml()}</csw:Insert>")

    def update(self, record):
        """Replaces the record of that identifier as a whole."""
        self._transact("Updated", f"<csw:Update>{record.xml()}</csw:Update>")

    def update_property(self, identifier, name, value):
        """Changes one property and leaves the rest, the modified date too."""
        self._transact(
            "Updated",
            f"<csw:Update><csw:RecordProperty><csw:Name>{name}</csw:Name><csw:Value>{escape(value)}</csw:Value>"
            f"</csw:RecordProperty>{_named(identifier)}</csw:Update>",
        )

    def delete(self, identifier):
        """Takes a record away."""
        self._transact("Deleted", f"<csw:Delete>{_named(identifier)}</csw:Delete>")

    def change(self, statement, *values):
        """Changes the database behind the catalogue's back; how many rows."""
        with sqlite3.connect(self.database, timeout=30) as connection:
            rows = connection.execute(statement, values).rowcount
        connection.close()
        return rows

    def documents(self, schema):
        """Identifier -> its whole element, as the catalogue, at rest, shows it in this output schema (CSW 2.0.2)."""
        found, position = {}, 1
        while position:
            answer = ElementTree.fromstring(self.post(
                f'<csw:GetRecords xmlns:csw="{CSW}" service="CSW" version="2.0.2" resultType="results" '
                f'outputSchema="{schema}" startPosition="{position}" maxRecords="{_SHOWN_RECORDS}">'
                '<csw:Query typeNames="csw:Record"><csw:ElementSetName>full</csw:ElementSetName></csw:Query>'
                "</csw:GetRecords>"
            ))
            results = answer.find(f"{{{CSW}}}SearchResults")
            found.update((identifier_of(element), element) for element in results)
            # Past the end it says 1, and within it the next position.
            following = int(results.get("nextRecord"))
            position = following if following > position else 0
        return found

    def post(self, body):
        """Sends an XML request and returns the bytes of the answer, whatever its status."""
        request = urllib.request.Request(self.url, body.encode(), {"Content-Type": "application/xml"})
        try:
            with _open(request, timeout=REQUEST_SECONDS_MAX) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            return error.read()

    def _transact(self, done, change):
        answer = self.post(
            f'<csw:Transaction xmlns:csw="{CSW}" xmlns:ogc="http://www.opengis.net/ogc" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/" service="CSW" version="2.0.2">'
            f"{change}</csw:Transaction>"
        )
        total = re.search(rf"total{done}>(\d+)<".encode(), answer)
        if total is None or total[1] != b"1":
            raise Refused(f"{change[:300]} was answered with {answer[:2000]!r}")


def _named(identifier):
    return (
        '<csw:Constraint version="1.1.0"><ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>dc:identifier'
        f"</ogc:PropertyName><ogc:Literal>{identifier}</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter></csw:Constraint>"
    )


def now():
    """The present second, as catalogues write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

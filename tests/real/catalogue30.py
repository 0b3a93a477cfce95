"""A real catalogue on loopback as catalogue.py has it, but pycsw 3.0, in a virtual environment of its own.

Installed on first use under tests/real/.work, beside that of pycsw 2.6.2, which stays as it is. Only what differs from
2.6.2 is here: the configuration, the command that makes the database, two columns more.
"""

import fcntl
import json
import pathlib
import subprocess
import sys

from catalogue import CONTACT, HERE, Catalogue

INSTALL_SECONDS_MAX = 500
_REQUIREMENTS = HERE / "requirements-3.0.txt"
_VENV = HERE / ".work" / "venv-3.0"


class Catalogue30(Catalogue):
    """The same to those that use it."""

    @staticmethod
    def python():
        """The Python that has pycsw 3.0."""
        return _installed()

    def row(self, record):
        """With the two columns that are new."""
        row = record.row()
        return row | {"metadata": row["xml"], "metadata_type": "application/xml"}

    def _create(self, page_cap):
        # A JSON document is a YAML one.
        self._config.write_text(json.dumps({
            "server": {"url": self.url, "mimetype": "application/xml; charset=UTF-8", "encoding": "UTF-8",
                       "language": "en-US", "maxrecords": page_cap},
            "logging": {"level": "ERROR", "logfile": f"{self.folder}/pycsw.log"},
            "profiles": ["apiso"],
            "manager": {"transactions": True, "allowed_ips": ["127.0.0.1"]},
            "metadata": {
                "identification": {"title": "catalogue", "description": "catalogue", "keywords": ["theme"],
                                   "keywords_type": "theme", "fees": "None", "accessconstraints": "None"},
                "provider": {"name": "provider", "url": self.url},
                "inspire": {"enabled": False},
                "contact": {name: "x" for name in CONTACT},
            },
            "repository": {"database": f"sqlite:///{self.folder}/catalogue.db", "table": "records"},
        }), encoding="utf-8")
        self._admin("setup-repository", "-c", self._config)


def _installed():
    want = _REQUIREMENTS.read_text(encoding="utf-8")
    stamp, python = _VENV / "installed", _VENV / "bin" / "python"
    _VENV.parent.mkdir(exist_ok=True)
    with open(_VENV.parent / "venv-3.0.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The stamp is written last, so that an installation cut short is made again.
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != want:
            _run(sys.executable, "-m", "venv", "--clear", _VENV)
            _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
                 "--requirement", _REQUIREMENTS)
            stamp.write_text(want, encoding="utf-8")
    return str(pathlib.Path(python))


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"pycsw 3.0 could not be installed: {command}: {done.stderr[-2000:]}")

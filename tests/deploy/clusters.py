#!/usr/bin/env python3
"""deploy/compose.yaml and deploy/kubernetes, started for real: every container as its manifest says, out of namespaces
and what deploy/Dockerfile puts into the image. Called by containers_test.sh, within namespaces.

usage: clusters.py LAMELLA WRITE_TINY_MODEL SOURCE
"""
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import yaml

import image as images
import kustomize
from checks import Checks
from manifests import Tree, container, labels, pod, selects
from pods import HOME, Container, Network, until

ROOT = Path("/run/image")
MODELS = Path("/run/models")
SECRETS = Path("/run/made")
MODEL = "SmolLM2-135M-Instruct.Q4_1"  # the default one's name; what it has is a tiny one
START = 120  # seconds; a busy machine needs some


def ready_when(everybody, condition):
    """Waits for that, while all of them run."""
    def asked():
        for x in everybody:
            assert x.running(), f"{x.name} has ended: {x.tail()}"
        return condition()
    return until(lambda: "\n".join(f"{x.name}: {x.tail()}" for x in everybody), START, asked)


def http(url, key=None, body=None):
    """Status and text."""
    request = urllib.request.Request(url, body and json.dumps(body).encode(), {"content-type": "application/json"})
    if key:
        request.add_header("authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except OSError as trouble:
        return 0, str(trouble)


def answer(api, key):
    """Tokens that depend on everything. A machine that stands still for a second makes the service take a worker for
    dead, and refuse until it is back."""
    status, text = until(lambda: f"{api} refuses", START, lambda: (lambda got: got[0] != 503 and got)(
        http(f"{api}/v1/completions", key, {
            "model": MODEL, "prompt": "Once upon a time there was a cluster", "max_tokens": 64, "ignore_eos": True,
            "temperature": 0.8, "seed": 7, "logprobs": 1})))
    assert status == 200, f"{status} {text}"
    return json.loads(text)["choices"]


def failovers(admin):
    """Shards whose part others had to take over."""
    page = http(f"{admin}/metrics")[1]
    return sum(map(int, re.findall(r'^lamella_failovers_total\{.*role="attention".*\} (\d+)$', page, re.M)))


def processes(status):
    """The workers of a status that are processes: prompts run on replicas here, in seats of the service's own."""
    return [w for w in json.loads(status)["workers"] if w["role"] != "prefill"]


class Suite:
    def __init__(self, lamella, write_tiny_model, source):
        self.check, self.source = Checks(), source
        self.dockerfile = images.Dockerfile(source / "deploy/Dockerfile")
        ROOT.mkdir()
        images.make_root(ROOT, lamella, self.dockerfile.packages("cpu"))
        (ROOT / "models").mkdir()
        self.environment = self.dockerfile.environment("cpu")
        self.entrypoint = json.loads(self.dockerfile.one("cpu", "ENTRYPOINT"))
        self.user = int(self.dockerfile.one("cpu", "USER").split(":")[0])
        # Where `lamella model fetch` puts the default model.
        place = MODELS / f"lamella/models/{MODEL}.gguf"
        place.parent.mkdir(parents=True)
        subprocess.run([write_tiny_model, place, "4096"], check=True)
        os.chmod(place, 0o644)
        subprocess.run([source / "deploy/make-secrets", "--owner", "10001", SECRETS], check=True, capture_output=True)
        self.key = (SECRETS / "api_keys").read_text().strip()
        self.admin_key = (SECRETS / "admin_keys").read_text().strip()
        self.golden = None

    def container(self, name, networks, words, environment, mounts):
        return Container(name, networks, ROOT, self.entrypoint + words, {**self.environment, **environment}, mounts,
                         self.user)

    # What holds for every container.

    def restricted(self, x):
        rights = x.rights()
        assert set(rights["Uid"].split()) == {"10001"} == set(rights["Gid"].split()), rights["Uid"]
        assert rights["Groups"].strip() in ("", "10001"), rights["Groups"]
        assert int(rights["CapEff"], 16) == 0 and rights["NoNewPrivs"] == "1", rights["CapEff"]
        assert rights["NSpid"].split()[-1] == "1"
        writable = [line.split()[1] for line in Path(f"/proc/{x.pid}/mounts").read_text().splitlines()
                    if line.split()[3].split(",")[0] == "rw" and line.split()[2] not in ("proc",)
                    and not line.split()[1].startswith("/dev")]
        assert writable in ([], ["/tmp"]), f"{x.name} may write {writable}"

    def ends(self, everybody, service, grace):
        """As a runtime ends them: the service first, its workers wait for it; then they are told, too."""
        code = service.end(grace)
        assert code == 0, f"{service.name} ends with {code}: {service.tail()}"
        workers = [x for x in everybody if x is not service]
        for x in workers:
            assert x.running(), f"{x.name} has ended with its service: {x.tail()}"
            x.signal(signal.SIGTERM)
        for x in workers:
            code = x.process.wait(30)
            assert code == 0, f"{x.name} ends with {code}: {x.tail()}"

    # deploy/compose.yaml.

    def compose(self, profile, networks):
        """The containers of a profile, by the name of their service."""
        file = self.source / "deploy/compose.yaml"
        told = yaml.safe_load(file.read_text())
        made = {}
        for name, x in told["services"].items():
            if profile not in x.get("profiles", []) or name == "fetch":
                continue
            mounts = []
            for line in x.get("volumes", []):
                source, path, *options = line.split(":")
                source = MODELS if source in told["volumes"] else (file.parent / source).resolve()
                assert options == ["ro"] and source.exists(), line
                mounts.append((path, source, "ro"))
            for secret in x.get("secrets", []):
                made_by = SECRETS / Path(told["secrets"][secret]["file"]).name
                mounts.append((f"/run/secrets/{secret}", made_by, "ro"))
            for line in x["tmpfs"]:
                path, options = line.split(":")
                mounts.append((path, None, options))
            words = x.get("command", json.loads(self.dockerfile.one("cpu", "CMD")))
            joined = x.get("networks", ["default"])
            made[name] = [self.container(f"{name}-{i}", [networks[y] for y in joined], words,
                                         x.get("environment", {}), mounts)
                          for i in range(x.get("deploy", {}).get("replicas", 1))]
        for x in (y for group in made.values() for y in group):  # one of a service at a time, as its DNS has it
            x.names = {name: group[0].addresses[network] for name, group in made.items()
                       for network in group[0].addresses if network in x.addresses}
        return made

    def healthy(self, x):
        """The HEALTHCHECK of the image."""
        words = json.loads(self.dockerfile.one("cpu", "HEALTHCHECK").partition(" CMD ")[2])
        return x.run(*words).returncode == 0

    def single(self, networks):
        x, = self.compose("single", networks)["lamella"]
        api = f"http://{x.address}:8000"
        x.start()
        ready_when([x], lambda: http(f"{api}/ready")[0] == 200)
        self.check("compose, one process: it has no rights, and writes at most /tmp", self.restricted, x)

        def asked():
            self.golden = answer(api, self.key)
            assert self.healthy(x)
            assert http(f"{api}/v1/models")[0] == 401
            assert "lamella_ready 1" in http(f"{api}/metrics")[1]
            assert http(f"http://{x.address}:8001/live")[0] == 0  # on loopback, for `docker compose exec`
        self.check("compose, one process: it answers whoever has a key", asked)

        self.check("compose, one process: SIGTERM ends it", self.ends, [x], x, 60)

    def disaggregated(self, networks):
        made = self.compose("disaggregated", networks)
        everybody = [x for group in made.values() for x in group]
        gateway, = made["gateway"]
        api = f"http://{gateway.address}:8000"
        for x in sorted(everybody, key=lambda x: x is gateway):  # workers wait for it
            x.start()
        ready_when(everybody, lambda: http(f"{api}/ready")[0] == 200)

        def asked():
            assert answer(api, self.key) == self.golden
            assert self.healthy(gateway) and not self.healthy(made["model"][0])  # which has no service to ask
            workers = processes(gateway.run("lamella", "status", "--json").stdout)
            assert len(workers) == len(everybody) - 1 and all(w["state"] == "live" for w in workers), workers
            links = {p["transport"] for w in workers for p in w["peers"]}
            assert links == {"tcp"}, links  # no container reaches another one's memory
        self.check("compose, disaggregated: it gives the tokens of one process", asked)
        for x in everybody:
            self.check(f"compose, {x.name}: it has no rights, and writes at most /tmp", self.restricted, x)
        self.check("compose, disaggregated: SIGTERM ends the service, and then the workers", self.ends, everybody,
                   gateway, 60)

    # deploy/kubernetes.

    def volume(self, folder, files, group):
        """What the kubelet makes of a ConfigMap or a Secret: files behind links, changed all at once."""
        version = folder / f"..{len(list(folder.glob('..[0-9]*')))}"
        for name, (text, mode) in files.items():
            file = version / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            os.chown(file, 0, group)
            file.chmod(mode | 0o440)  # as of fsGroup
        new = folder / "..data_tmp"
        new.symlink_to(version.name)
        new.rename(folder / "..data")
        for name in {Path(x).parts[0] for x in files}:
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(f"..data/{name}")

    def pods(self, tree, secrets, network):
        """The pods of all workloads, by the name of the workload."""
        made = {}
        for workload in tree.workloads:
            if workload["kind"] == "Job":
                continue
            name, spec = workload["metadata"]["name"], pod(workload)
            for i in range(workload["spec"]["replicas"]):
                own = f"{name}-{i}" if workload["kind"] == "StatefulSet" else f"{name}-5d4f8c7b9d-{i}xk2p"
                mounts, volumes = [], {x["name"]: x for x in spec["volumes"]}
                for mount in container(workload)["volumeMounts"]:
                    of, folder = volumes[mount["name"]], HOME / "volumes" / own / mount["name"]
                    if "emptyDir" in of:
                        size = of["emptyDir"]["sizeLimit"].lower().removesuffix("i")
                        mounts.append((mount["mountPath"], None, f"mode=1777,size={size}"))
                        continue
                    files = {}
                    if "persistentVolumeClaim" in of:
                        folder = MODELS
                    elif "secret" in of:
                        files = {k: (v, of["secret"]["defaultMode"])
                                 for k, v in secrets[of["secret"]["secretName"]].items()}
                    else:
                        for source in of["projected"]["sources"]:
                            data = tree.one("ConfigMap", source["configMap"]["name"])["data"]
                            files.update({x["path"]: (data[x["key"]], 0o644) for x in source["configMap"]["items"]})
                    if files:
                        folder.mkdir(parents=True)
                        self.volume(folder, files, spec["securityContext"]["fsGroup"])
                    mounts.append((mount["mountPath"], folder, "ro"))
                told = {x["name"]: own for x in container(workload).get("env", [])
                        if x["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"}
                words = [re.sub(r"\$\((\w+)\)", lambda x: told[x[1]], y) for y in container(workload)["args"]]
                x = self.container(own, [network], words, told, mounts)
                x.workload = workload
                made.setdefault(name, []).append(x)
        for x in (y for group in made.values() for y in group):
            for name, service in tree.of("Service").items():
                fits = [y for group in made.values() for y in group
                        if selects({"matchLabels": service["spec"]["selector"]}, labels(y.workload))]
                x.names[name] = fits[0].address
        return made

    def probe(self, x, name):
        """As the kubelet asks, from the node."""
        told = container(x.workload)
        ports = {y["name"]: y["containerPort"] for y in told["ports"]}
        asked = told[name]
        if "tcpSocket" in asked:
            return x.listens(ports[asked["tcpSocket"]["port"]])
        return http(f"http://{x.address}:{ports[asked['httpGet']['port']]}{asked['httpGet']['path']}")[0] == 200

    def kubernetes_cpu(self, network):
        tree = Tree("overlays/cpu", kustomize.render(self.source / "deploy/kubernetes/overlays/cpu"))
        secrets = {x["metadata"]["name"]: x["data"] for x in kustomize.render(SECRETS)}
        made = self.pods(tree, secrets, network)
        service, = made["lamella"]
        shards = made["lamella-attention"]
        workers = made["lamella-model"] + shards
        everybody = [service] + workers
        api, admin = f"http://{service.address}:8000", f"http://{service.address}:8001"
        all_ready = lambda: all(self.probe(x, "readinessProbe") for x in everybody)

        def alone():
            """In any order, and the service without its workers: alive, and not ready."""
            for x in workers[1:]:
                x.start()
            service.start()
            others = [x for x in everybody if x is not workers[0]]
            ready_when(others, lambda: self.probe(service, "startupProbe"))
            assert not self.probe(service, "readinessProbe") and self.probe(service, "livenessProbe")
            ready_when(others, lambda: "waiting for workers: model/" in http(f"{admin}/ready")[1])
            workers[0].start()
            ready_when(everybody, all_ready)
        self.check("kubernetes: pods start in any order, and are ready when all are there", alone)
        for x in everybody:
            self.check(f"kubernetes, {x.name}: it has no rights, and writes at most /tmp", self.restricted, x)

        def asked():
            assert answer(api, self.key) == self.golden
            assert http(f"{api}/v1/models")[0] == 401 and http(f"{api}/metrics", self.key)[0] == 404
            assert http(f"{admin}/admin/status")[0] == 401
            status, page = http(f"{admin}/metrics")
            assert status == 200 and "lamella_ready 1" in page
            seats = processes(http(f"{admin}/admin/status", self.admin_key)[1])
            assert {w["name"] for w in seats} == {x.name for x in workers}, seats
            got = service.run("lamella", "status", "--api-key-file", "/etc/lamella-keys/admin_keys")
            assert got.returncode == 0 and workers[0].name in got.stdout, f"{got.returncode} {got.stdout} {got.stderr}"
        self.check("kubernetes: the service gives the tokens of one process, and asks for keys", asked)

        def silent():
            for x in workers:
                assert "link refused" not in x.log.read_text(), x.tail()
        self.check("kubernetes: probes of workers leave no line in their logs", silent)

        def reload():
            folder = next(s for path, s, _ in service.mounts if path == "/etc/lamella")
            files = {str(x.relative_to(folder / "..data")): (x.read_text(), 0o644)
                     for x in (folder / "..data").rglob("*.yaml")}
            text = files["conf.d/live.yaml"][0]
            files["conf.d/live.yaml"] = text.replace("level: info", "level: warn"), 0o644
            self.volume(folder, files, 10001)
            service.signal(signal.SIGHUP)
            ready_when([service], lambda: 'lamella_config_reload_total{result="ok"} 1' in http(f"{admin}/metrics")[1])
        self.check("kubernetes: a changed ConfigMap is taken by a reload", reload)

        def lost():
            seats = processes(http(f"{admin}/admin/status", self.admin_key)[1])
            name = next(w["name"] for w in seats if w["part"] == "shard 1")
            shard, = [x for x in shards if x.name == name]
            before = failovers(admin)
            shard.kill()
            ready_when([service], lambda: failovers(admin) > before)
            shard.start()  # the kubelet starts the container again
            ready_when(everybody, all_ready)
            assert answer(api, self.key) == self.golden
        self.check("kubernetes: a shard that is killed comes back", lost)

        def replaced():
            seconds = pod(service.workload)["terminationGracePeriodSeconds"]
            code = service.end(seconds)
            assert code == 0, f"{code}: {service.tail()}"
            ready_when(workers, lambda: not any(self.probe(x, "readinessProbe") for x in workers))
            service.start()
            ready_when(everybody, all_ready)
            assert answer(api, self.key) == self.golden
        self.check("kubernetes: workers wait for a service that is replaced, and join it", replaced)
        self.check("kubernetes: SIGTERM ends the service, and then the workers", self.ends, everybody, service, 60)

    def run(self, program):
        packages = self.dockerfile.packages("cpu")
        looked_for = {"ibverbs-providers", "libibverbs1"}  # when the program starts, not by its linker

        def listed():
            base = {"libc6", "libgcc-s1"}  # of any Debian
            owners = images.needed(program)
            missing = {k: v for k, v in owners.items() if v not in packages and v not in base}
            assert not missing, f"deploy/Dockerfile does not install {missing}"
            spare = set(packages) - set(owners.values()) - looked_for
            assert not spare, f"nothing needs {spare}"
        self.check("deploy/Dockerfile installs the packages of the program's libraries, and no others", listed)

        def doctor():
            got = subprocess.run(["chroot", ROOT, "/usr/local/bin/lamella", "version"], capture_output=True, text=True)
            assert got.returncode == 0, got.stderr
        self.check("the image has all that the program needs to start", doctor)
        networks = {"default": Network("default", "10.78.0"), "links": Network("links", "10.78.1")}
        self.single(networks)
        self.disaggregated(networks)
        self.kubernetes_cpu(Network("pods", "10.78.2"))
        self.check.finish()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    HOME.mkdir()
    Suite(Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3]).resolve()).run(sys.argv[1])

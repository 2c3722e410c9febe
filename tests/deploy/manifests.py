#!/usr/bin/env python3
"""The manifests of deploy/kubernetes, rendered: whether the API takes them, whether their parts fit each other, and
whether what they tell the program is what it knows.

usage: manifests.py LAMELLA WRITE_TINY_MODEL SOURCE
       manifests.py --write-rules     makes components/monitoring/rules.yaml of deploy/alerts.yml
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

import kustomize
from checks import Checks, Program, bytes_of

WORKLOADS = {"Deployment", "StatefulSet", "Job"}
# Of operators: there is no schema of the API for them.
CUSTOM = {"monitoring.coreos.com/v1": {"ServiceMonitor", "PrometheusRule"},
          "cert-manager.io/v1": {"Issuer", "Certificate"},
          "keda.sh/v1alpha1": {"ScaledObject"}}
VERSIONS = ("1.30", "1.99")  # the first with the sleep of preStop, and the newest that is known


def rules_of(source):
    """The PrometheusRule that has the alerts of deploy/alerts.yml."""
    groups = (source / "deploy/alerts.yml").read_text()
    groups = groups[groups.index("groups:\n"):]
    labels = "".join(f"    app.kubernetes.io/{x}: lamella\n" for x in ("name", "part-of"))
    return ("# The alerts of deploy/alerts.yml, which a test compares with these: change them there, and then\n"
            "#   tests/deploy/manifests.py --write-rules\n"
            "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: lamella\n"
            f"  namespace: lamella\n  labels:\n{labels}spec:\n"
            + "".join(f"  {line}\n" if line else "\n" for line in groups.splitlines()))


class Tree:
    """What a folder renders to."""

    def __init__(self, name, objects):
        self.name = name
        self.objects = objects
        self.workloads = [x for x in objects if x["kind"] in WORKLOADS]

    def of(self, kind):
        return {x["metadata"]["name"]: x for x in self.objects if x["kind"] == kind}

    def one(self, kind, name):
        found = [x for x in self.objects if x["kind"] == kind and x["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} times {kind} {name}"
        return found[0]


def pod(workload):
    return workload["spec"]["template"]["spec"]


def container(workload):
    assert len(pod(workload)["containers"]) == 1
    return pod(workload)["containers"][0]


def labels(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def selects(selector, of):
    """Whether a label selector fits these labels."""
    assert set(selector) <= {"matchLabels", "matchExpressions"} and selector
    return all(of.get(k) == v for k, v in selector.get("matchLabels", {}).items()) and all(
        x["operator"] == "In" and of.get(x["key"]) in x["values"] for x in selector.get("matchExpressions", []))


def port_names(workload):
    return {x["name"]: x["containerPort"] for x in container(workload).get("ports", [])}


def flags_of(workload):
    """--name=value of a container's words."""
    return dict(x.split("=", 1) for x in container(workload)["args"] if x.startswith("--"))


def files_in(tree, workload, secrets):
    """Every file that the volumes bring, by its path; None for what a claim or an empty folder may hold."""
    found = {}
    volumes = {x["name"]: x for x in pod(workload).get("volumes", [])}
    for mount in container(workload).get("volumeMounts", []):
        volume, at = volumes[mount["name"]], mount["mountPath"]
        sources = volume.get("projected", {}).get("sources", [volume])
        for source in sources:
            if "configMap" in source:
                data = tree.one("ConfigMap", source["configMap"]["name"])["data"]
                items = source["configMap"].get("items") or [{"key": k, "path": k} for k in data]
                for item in items:
                    found[f"{at}/{item['path']}"] = data[item["key"]]
            elif "secret" in source:
                for key in secrets[source["secret"]["secretName"]]:
                    found[f"{at}/{key}"] = "secret"
            elif "persistentVolumeClaim" in source:
                tree.one("PersistentVolumeClaim", source["persistentVolumeClaim"]["claimName"])
                found[f"{at}/"] = None
            else:
                assert "emptyDir" in source, f"{volume['name']}: a volume that the test does not know"
                found[f"{at}/"] = None
    return found


class Suite:
    def __init__(self, lamella, write_tiny_model, source, scratch):
        self.check = Checks()
        self.program = Program(lamella)
        self.source, self.scratch = source, scratch
        self.kubernetes = source / "deploy/kubernetes"
        self.tiny = {}
        for heads in (3, 4):
            self.tiny[heads] = scratch / f"tiny{heads}.gguf"
            words = [] if heads == 3 else ["halves", str(heads)]
            subprocess.run([write_tiny_model, self.tiny[heads], "4096", *words], check=True)
        subprocess.run([source / "deploy/make-secrets", scratch / "secrets"], check=True, capture_output=True)
        made = kustomize.render(scratch / "secrets")
        self.secrets = {x["metadata"]["name"]: x["data"] for x in made}

    def composed(self, *components):
        """The cpu overlay with components, as an overlay of somebody's own would have them."""
        folder = self.scratch / "own"
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(yaml.safe_dump({
            "resources": [os.path.relpath(self.kubernetes / "overlays/cpu", folder)],
            "components": [os.path.relpath(self.kubernetes / "components" / x, folder) for x in components]}))
        return folder

    # What the API and Kustomize say.

    def accepted(self, tree):
        import kubernetes_validate
        for x in tree.objects:
            if x["kind"] in CUSTOM.get(x["apiVersion"], ()):
                continue
            for version in VERSIONS:
                try:
                    kubernetes_validate.validate(x, kubernetes_validate.latest_version() if version == "1.99"
                                                 else version, strict=True)
                except Exception as trouble:
                    raise AssertionError(f"{x['kind']} {x['metadata']['name']}: "
                                         f"{getattr(trouble, 'message', trouble)} at "
                                         f"{'/'.join(map(str, getattr(trouble, 'path', [])))}") from None

    def same_as_kubectl(self, tree, folder):
        got = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, timeout=60)
        assert got.returncode == 0, got.stderr
        plain = lambda objects: sorted(re.sub(r"(lamella-config)-[a-z0-9]{10}", r"\1", json.dumps(x, sort_keys=True))
                                       for x in objects)
        theirs = plain(x for x in yaml.safe_load_all(got.stdout) if x)
        assert plain(tree.objects) == theirs, "another result"

    # Whether the parts fit each other.

    def names(self, tree):
        seen = set()
        for x in tree.objects:
            key = x["kind"], x["metadata"]["name"]
            assert key not in seen, f"{key} is there twice"
            seen.add(key)
            if x["kind"] != "Namespace":
                assert x["metadata"].get("namespace") == "lamella", f"{key} is in no namespace"

    def selectors(self, tree):
        pods = [labels(x) for x in tree.workloads]
        for x in tree.workloads:
            if x["kind"] == "Job":
                continue
            selector = x["spec"]["selector"]["matchLabels"]
            fits = [y for y in pods if selects({"matchLabels": selector}, y)]
            assert fits == [labels(x)], f"{x['metadata']['name']} selects {len(fits)} kinds of pods"
        for name, service in tree.of("Service").items():
            fits = [x for x in tree.workloads if selects({"matchLabels": service["spec"]["selector"]}, labels(x))]
            assert len(fits) == 1, f"service {name} has {len(fits)} kinds of pods"
            for port in service["spec"]["ports"]:
                assert port_names(fits[0])[port["targetPort"]] == port["port"], f"service {name}: another port"
        for name, budget in tree.of("PodDisruptionBudget").items():
            fits = [x for x in pods if selects(budget["spec"]["selector"], x)]
            assert len(fits) == 1 and budget["spec"]["maxUnavailable"] == 1, f"budget {name}"
        for name, policy in tree.of("NetworkPolicy").items():
            fits = [x for x in tree.workloads if selects(policy["spec"]["podSelector"], labels(x))]
            assert fits, f"policy {name} is about nobody"
            for rule in policy["spec"]["ingress"]:
                for port in rule["ports"]:
                    assert all(port["port"] in port_names(x) for x in fits), f"policy {name}: {port}"
                for peer in rule.get("from", []):
                    if "podSelector" in peer:
                        assert any(selects(peer["podSelector"], x) for x in pods), f"policy {name}: from nobody"
        for name, monitor in tree.of("ServiceMonitor").items():
            fits = [x for x in tree.of("Service").values()
                    if selects(monitor["spec"]["selector"], x["metadata"]["labels"])]
            assert len(fits) == 1, f"monitor {name} has {len(fits)} services"
            ports = {x["name"] for x in fits[0]["spec"]["ports"]}
            assert {x["port"] for x in monitor["spec"]["endpoints"]} <= ports, f"monitor {name}: no such port"
            job = fits[0]["metadata"]["labels"][monitor["spec"]["jobLabel"]]
            assert f'up{{job="{job}"}}' in (self.source / "deploy/alerts.yml").read_text(), f"job {job}"

    def every_port_is_guarded(self, tree):
        """Every port of every pod of a service is behind a policy that lets somebody in, or nobody."""
        for x in tree.workloads:
            if not port_names(x):
                continue
            guards = [y for y in tree.of("NetworkPolicy").values() if selects(y["spec"]["podSelector"], labels(x))]
            assert guards, f"{x['metadata']['name']} takes connections of everybody"

    def mounts(self, tree):
        for x in tree.workloads:
            volumes = [v["name"] for v in pod(x).get("volumes", [])]
            mounted = [m["name"] for m in container(x).get("volumeMounts", [])]
            assert sorted(volumes) == sorted(mounted), f"{x['metadata']['name']}: {volumes} and {mounted}"
            files_in(tree, x, self.secrets)

    def secure(self, tree):
        """What the Pod Security Standard `restricted` asks for, and some more."""
        assert tree.one("Namespace", "lamella")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] \
            == "restricted"
        for x in tree.workloads:
            of_pod, of_container = pod(x)["securityContext"], container(x)["securityContext"]
            assert of_pod["runAsNonRoot"] is True and of_pod["runAsUser"] == 10001 == of_pod["runAsGroup"]
            assert of_pod["fsGroup"] == of_pod["runAsGroup"] and of_pod["seccompProfile"]["type"] == "RuntimeDefault"
            assert of_container == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                    "capabilities": {"drop": ["ALL"]}}
            assert pod(x)["automountServiceAccountToken"] is False and pod(x)["enableServiceLinks"] is False
            for volume in pod(x).get("volumes", []):
                kinds = set(volume) - {"name"}
                assert kinds <= {"configMap", "secret", "projected", "emptyDir", "persistentVolumeClaim"}
                if "secret" in volume:
                    assert volume["secret"]["defaultMode"] == 0o400
                if "emptyDir" in volume:
                    assert "sizeLimit" in volume["emptyDir"]
            for mount in container(x).get("volumeMounts", []):
                writable = mount["name"] == "tmp" or x["kind"] == "Job"
                assert writable or mount["readOnly"] is True, f"{x['metadata']['name']}: {mount}"
            assert ":" in container(x)["image"] and not container(x)["image"].endswith(":latest")
            of = container(x)["resources"]
            assert bytes_of(of["limits"]["memory"]) >= bytes_of(of["requests"]["memory"])

    # Whether the program knows what it is told.

    def arguments(self, tree):
        for x in tree.workloads:
            words = container(x)["args"]
            command = [w for w in words if not w.startswith("--")]
            unknown = {w.split("=")[0] for w in words if w.startswith("--")} - self.program.flags(*command)
            assert not unknown, f"{x['metadata']['name']}: lamella {' '.join(command)} does not know {unknown}"
            files = files_in(tree, x, self.secrets)
            for flag, value in flags_of(x).items():
                if value.startswith("/"):
                    assert value in files, f"{x['metadata']['name']}: {flag}: {value} is not mounted"
                for name in re.findall(r"\$\((\w+)\)", value):
                    assert name in {e["name"] for e in container(x).get("env", [])}, f"{flag}: {value}"

    def configuration(self, tree):
        """The files of the service in a folder of their own, as `lamella config` takes them. Returns its words."""
        files = files_in(tree, tree.one("Deployment", "lamella"), self.secrets)
        root = Path(tempfile.mkdtemp(dir=self.scratch))
        for path, text in files.items():
            if text is None:
                continue
            file = root / path[1:]
            file.parent.mkdir(parents=True, exist_ok=True)
            if text == "secret":
                secret = {"/etc/lamella-keys": "lamella-keys", "/etc/lamella-join": "lamella-join",
                          "/etc/lamella-tls": "lamella-service-tls"}[str(Path(path).parent)]
                file.write_text(self.secrets[secret][file.name])
                file.chmod(0o400)
            else:
                file.write_text(text.replace("/etc/lamella-", f"{root}/etc/lamella-"))
        heads = 4 if "cuda" in tree.name else 3
        return ["--config", str(root / "etc/lamella/lamella.yaml"), "--set", f"model.path={self.tiny[heads]}",
                "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"]

    def config_check(self, tree):
        self.program.out("config", "check", *self.configuration(tree))

    def live_keys(self, tree):
        live = yaml.safe_load(tree.one("ConfigMap", "lamella-live")["data"]["live.yaml"])
        when = {k: v["reload"] for k, v in self.program.options(*self.configuration(tree)).items()}
        for section, keys in live.items():
            if section != "version":
                for key in keys:
                    assert when[f"{section}.{key}"] == "live", f"{section}.{key} needs a restart"

    def ports(self, tree):
        service = tree.one("Deployment", "lamella")
        text = tree.one("ConfigMap", next(x for x in tree.of("ConfigMap") if x.startswith("lamella-config")))
        told = yaml.safe_load(text["data"]["lamella.yaml"])
        listens = {"api": told["http"]["listen"], "admin": told["admin"]["listen"], "control": told["control"]["listen"]}
        assert port_names(service) == {k: int(v.rpartition(":")[2]) for k, v in listens.items()}
        assert all(v.startswith("0.0.0.0:") for v in listens.values())
        probed = "api" if told["http"].get("probes", True) else "admin"
        for probe, path in (("startupProbe", "/live"), ("livenessProbe", "/live"), ("readinessProbe", "/ready")):
            asked = container(service)[probe]["httpGet"]
            assert asked["path"] == path and asked["port"] in ("admin", probed), probe
        for x in tree.workloads:
            flags = flags_of(x)
            if "--join" in flags:
                host, _, port = flags["--join"].partition(":")
                control = tree.one("Service", host)["spec"]
                # It is not ready before they have joined, and they must reach its pod, not one of several.
                assert control["clusterIP"] == "None" and control["publishNotReadyAddresses"] is True
                assert {p["port"] for p in control["ports"]} == {int(port)} == {port_names(service)["control"]}
                assert port_names(x) == {"data": int(flags["--listen"].rpartition(":")[2])}
                assert container(x)["readinessProbe"]["tcpSocket"]["port"] == "data"
                assert "livenessProbe" not in container(x)

    def sizes(self, tree):
        options = {k: v["value"] for k, v in self.program.options(*self.configuration(tree)).items()}
        service, model = tree.one("Deployment", "lamella"), tree.one("Deployment", "lamella-model")
        attention = tree.one("StatefulSet", "lamella-attention")
        assert service["spec"]["replicas"] == 1 and service["spec"]["strategy"]["type"] == "Recreate"
        seats = options["pools.model.members"] + options["pools.model.spares"]
        assert model["spec"].get("replicas") == (None if tree.of("ScaledObject") else seats)  # it is KEDA's
        assert model["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
        shards = options["pools.attention.members"] + options["pools.attention.spares"]
        shards += 1 if options["pools.attention.parity"] else 0
        assert attention["spec"]["replicas"] == shards
        assert attention["spec"]["podManagementPolicy"] == "Parallel" and attention["spec"]["minReadySeconds"] >= 10
        assert tree.one("Service", attention["spec"]["serviceName"])["spec"]["clusterIP"] == "None"
        assert options["pools.prefill.placement"] == "in_process"
        # What both sides must agree on.
        for x in (model, attention):
            assert float(flags_of(x).get("--dead-seconds", 1)) == options["control.dead_seconds"]
            assert float(flags_of(x).get("--heartbeat-seconds", 0.1)) == options["control.heartbeat_seconds"]
            limit, request = (container(x)["resources"][k]["memory"] for k in ("limits", "requests"))
            if "one-node" not in tree.name:
                assert limit == request, f"{x['metadata']['name']}: memory that it is not promised"
        if options["pools.attention.device"].startswith("cuda"):
            for x in (model, attention):
                assert container(x)["resources"]["limits"]["nvidia.com/gpu"] == 1
        else:
            memory = bytes_of(container(attention)["resources"]["limits"]["memory"])
            assert memory >= options["pools.attention.kv_bytes"] + bytes_of("512Mi")

    def times(self, tree):
        options = {k: v["value"] for k, v in self.program.options(*self.configuration(tree)).items()}
        service = tree.one("Deployment", "lamella")
        sleep = container(service)["lifecycle"]["preStop"]["sleep"]["seconds"]
        grace = pod(service)["terminationGracePeriodSeconds"]
        assert grace > sleep + options["shutdown.drain_seconds"] + 15, f"{grace} s are too few"
        for x in tree.workloads:
            if "--join" in flags_of(x):
                drain = float(flags_of(x).get("--drain-seconds", 60))
                assert pod(x)["terminationGracePeriodSeconds"] >= drain + 10, f"{x['metadata']['name']}: too few"
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = container(service)[name]
            assert probe["timeoutSeconds"] <= probe["periodSeconds"], name
        assert container(service)["startupProbe"]["failureThreshold"] * 10 >= 3600  # weights may be large

    def spread(self, tree):
        attention = tree.one("StatefulSet", "lamella-attention")
        rule, = pod(attention)["topologySpreadConstraints"]
        assert rule["whenUnsatisfiable"] == "DoNotSchedule" and rule["topologyKey"] == "kubernetes.io/hostname"
        # As many nodes as pods, at most one more on one than on another: one on each.
        assert rule["maxSkew"] == 1 and rule["minDomains"] == attention["spec"]["replicas"]
        assert selects(rule["labelSelector"], labels(attention))

    def alerts(self, tree):
        file = self.kubernetes / "components/monitoring/rules.yaml"
        assert file.read_text() == rules_of(self.source), "not those of deploy/alerts.yml: manifests.py --write-rules"
        assert tree.one("PrometheusRule", "lamella")["spec"] == yaml.safe_load(
            (self.source / "deploy/alerts.yml").read_text())

    def dashboards(self, tree):
        made = tree.one("ConfigMap", "lamella-dashboards")
        assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert set(made["data"]) == {x.name for x in (self.source / "deploy/grafana").glob("*.json")}
        assert sum(map(len, made["data"].values())) < 900_000  # a ConfigMap holds one MiB

    def certificates(self, tree):
        made = {x["spec"]["secretName"]: x["spec"] for x in tree.of("Certificate").values()}
        wanted = {x for x in self.secrets if x.endswith("-tls")}
        assert wanted | {"lamella-ca"} == set(made)
        issuers = tree.of("Issuer")
        for spec in made.values():
            assert spec["issuerRef"]["name"] in issuers
        assert issuers["lamella-ca"]["spec"]["ca"]["secretName"] == "lamella-ca" and made["lamella-ca"]["isCA"]

    def autoscaling(self, tree):
        """It asks for what is published, of a pool of its target, and has that drained in time."""
        scaled = tree.one("ScaledObject", "lamella-model")["spec"]
        target = tree.one(scaled["scaleTargetRef"]["kind"], scaled["scaleTargetRef"]["name"])
        assert "replicas" not in target["spec"]  # applied again, it would set the number back
        assert scaled["minReplicaCount"] <= scaled["maxReplicaCount"]
        trigger, = scaled["triggers"]
        assert trigger["metricType"] == "AverageValue" and trigger["metadata"]["threshold"] == "1"
        name, pool = re.search(r'(lamella_\w+)\{.*pool="(\w+)"', trigger["metadata"]["query"]).groups()
        assert f'"{name}"' in (self.source / "net/metrics/metrics_impl.hpp").read_text()
        assert flags_of(target)["--role"] == pool
        down = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
        rule, = down["policies"]
        assert rule["value"] == 1 and rule["periodSeconds"] >= pod(target)["terminationGracePeriodSeconds"]

    # All of deploy/.

    def known_files(self):
        """Every YAML file is a configuration of ours, a manifest, or one of those that other programs read."""
        others = {"deploy/compose.yaml"}
        for file in sorted((self.source / "deploy").rglob("*.yaml")):
            name = str(file.relative_to(self.source))
            first = kustomize.load(file)[0]
            ours = first.get("version") == 1
            manifest = "apiVersion" in first and ("kind" in first or "provisioning" in name)
            assert ours + manifest + (name in others) == 1, f"{name} is none of them, or more than one"

    def page(self):
        page = (self.source / "deploy/README.md").read_text()
        for kind in ("overlays", "components"):
            for folder in sorted((self.kubernetes / kind).iterdir()):
                assert f"{kind}/{folder.name}" in page, f"deploy/README.md does not tell of {kind}/{folder.name}"

    def run(self):
        check = self.check
        validates = True
        try:
            import kubernetes_validate  # noqa: F401
        except ImportError:
            validates = False
            print("kubernetes-validate is not here: no manifest was compared with the schemas of the API")
        kubectl = shutil.which("kubectl")
        folders = [("overlays/cpu", self.kubernetes / "overlays/cpu"), ("overlays/cuda", self.kubernetes / "overlays/cuda"),
                   ("overlays/cpu with monitoring, cert-manager, autoscaling and one-node",
                    self.composed("monitoring", "cert-manager", "autoscaling", "one-node"))]
        for name, folder in folders:
            tree = Tree(name, kustomize.render(folder))
            if validates:
                check(f"{name}: the schemas of the API take it", self.accepted, tree)
            if kubectl:
                check(f"{name}: kubectl kustomize renders the same", self.same_as_kubectl, tree, folder)
            check(f"{name}: every object has a name of its own", self.names, tree)
            check(f"{name}: selectors find pods, services and ports", self.selectors, tree)
            check(f"{name}: no port is open to everybody by mistake", self.every_port_is_guarded, tree)
            check(f"{name}: what is mounted exists", self.mounts, tree)
            check(f"{name}: pods are restricted", self.secure, tree)
            check(f"{name}: the program knows its words, and finds the files they name", self.arguments, tree)
            check(f"{name}: config check takes the configuration", self.config_check, tree)
            check(f"{name}: live.yaml has what a reload takes", self.live_keys, tree)
            check(f"{name}: ports, probes and configuration agree", self.ports, tree)
            check(f"{name}: pods, seats and memory agree", self.sizes, tree)
            check(f"{name}: the grace period is longer than preStop and drain", self.times, tree)
            if "one-node" not in name:
                check(f"{name}: no two shards share a node", self.spread, tree)
            else:
                check("monitoring: the alerts are those of deploy/alerts.yml", self.alerts, tree)
                check("monitoring: the dashboards are those of deploy/grafana", self.dashboards, tree)
                check("autoscaling: replicas follow the wish, and are drained", self.autoscaling, tree)
                check("cert-manager: it makes the secrets of make-secrets", self.certificates, tree)
        if not kubectl:
            print("kubectl is not here: the renderer of this test was not compared with it")
        check("every YAML file of deploy/ is of a kind that is known", self.known_files)
        check("deploy/README.md tells of every overlay and component", self.page)
        check.finish()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write-rules"]:
        root = Path(__file__).resolve().parents[2]
        (root / "deploy/kubernetes/components/monitoring/rules.yaml").write_text(rules_of(root))
        sys.exit(0)
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        Suite(sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve(), Path(scratch).resolve()).run()

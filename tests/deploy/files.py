#!/usr/bin/env python3
"""deploy/Dockerfile, .dockerignore and deploy/compose.yaml against the sources and the program.

usage: files.py LAMELLA SOURCE
"""
import fnmatch
import json
import re
import sys
import tempfile
from pathlib import Path

import yaml

import image as images
from checks import Checks, Program

OURS = {"lamella", "gateway", "model", "attention"}  # services of the compose file that are the program


class Suite:
    def __init__(self, lamella, source):
        self.check, self.program, self.source = Checks(), Program(lamella), source
        self.dockerfile = images.Dockerfile(source / "deploy/Dockerfile")
        self.compose = yaml.safe_load((source / "deploy/compose.yaml").read_text())

    # The image.

    def sent(self):
        """The files that .dockerignore lets through; the last pattern that fits decides."""
        patterns = [x for x in (self.source / ".dockerignore").read_text().splitlines() if x and x[0] != "#"]
        found = set()
        for file in self.source.rglob("*"):
            name = str(file.relative_to(self.source))
            if name.startswith((".git", "build/")) or not file.is_file():
                continue
            kept = True
            for pattern in patterns:
                bare = pattern.lstrip("!")
                parts = name.split("/")
                if any(fnmatch.fnmatchcase("/".join(parts[:i + 1]), bare) and bare.count("/") == i
                       for i in range(len(parts))):
                    kept = pattern.startswith("!")
            if kept:
                found.add(name)
        return found

    def context(self):
        """What the build needs is sent: each source with what it includes, what CMake reads, what the file copies."""
        sent = self.sent()
        for folder in ("actors", "cli", "cmake", "config", "gpu", "model", "net", "scheduler"):
            for file in (self.source / folder).rglob("*"):
                name = str(file.relative_to(self.source))
                assert not file.is_file() or name in sent, f"{name} is not sent"
                if file.suffix in (".cpp", ".hpp", ".cu"):
                    for other in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
                        assert other in sent, f"{name} includes {other}, which is not sent"
        cmake = (self.source / "CMakeLists.txt").read_text()
        for name in re.findall(r"\$\{LAMELLA_DATA\}/(\w+\.csv)", cmake):
            assert f"deploy/reproduction/data/{name}" in sent, name
        for stage in self.dockerfile.stages:
            for rest in self.dockerfile.all(stage, "COPY"):
                *names, _ = [x for x in rest.split() if not x.startswith("--")]
                if "--from=" not in rest and names != ["."]:
                    assert set(names) <= sent, rest
        assert not [x for x in sent if x.startswith(("tests/", "deploy/kubernetes", "deploy/secrets"))]

    def stages(self):
        """What every final stage is."""
        file, cpu = self.dockerfile, self.dockerfile.stages["cpu"]
        assert file.bases[""] == "${DEVICE}" and file.bases["cuda"] == "cpu" == file.bases["fetch"]
        for stage in ("cpu", "cuda", "fetch"):
            assert file.all(stage, "USER")[-1] == "10001:10001", stage
        assert file.one("cpu", "STOPSIGNAL") == "SIGTERM"
        words = [json.loads(file.one("cpu", x)) for x in ("ENTRYPOINT", "CMD")]
        assert words == [["lamella"], ["serve"]], words  # the program itself is process 1
        version = re.search(r"project\(lamella VERSION (\S+)", (self.source / "CMakeLists.txt").read_text())[1]
        assert f'image.version="{version}"' in dict(cpu)["LABEL"]
        for license in ("LICENSE", "NOTICE"):
            assert any(license in x for x in file.all("cpu", "COPY"))

    def health(self):
        words = json.loads(self.dockerfile.one("cpu", "HEALTHCHECK").partition(" CMD ")[2])
        assert words[0] == "lamella"
        assert set(words[2:]) <= self.program.flags(words[1]), words

    def exposed(self):
        ports = set(map(int, self.dockerfile.one("cpu", "EXPOSE").split()))
        used = {8000, 8001}
        told = yaml.safe_load((self.source / "deploy/compose/disaggregated.yaml").read_text())
        used.add(int(told["control"]["listen"].rpartition(":")[2]))
        for name in ("model", "attention"):
            listen = next(x for x in self.compose["services"][name]["command"] if x.startswith("--listen="))
            used.add(int(listen.rpartition(":")[2]))
        assert ports == used, f"{ports} and {used}"

    # The compose file.

    def services(self):
        for name in OURS:
            x = self.compose["services"][name]
            assert x["user"] == "10001:10001" and x["read_only"] is True and x["cap_drop"] == ["ALL"], name
            assert x["security_opt"] == ["no-new-privileges:true"], name
            assert [y.split(":")[0] for y in x["tmpfs"]] == ["/tmp"], name
            assert all(y.endswith(":ro") for y in x.get("volumes", [])), name
            assert all(y.startswith("127.0.0.1:") for y in x.get("ports", [])), name
            assert x["profiles"] in (["single"], ["disaggregated"]), name
            for other in x.get("depends_on", {}):
                assert set(x["profiles"]) <= set(self.compose["services"][other]["profiles"]), f"{name}: {other}"
        profiles = {y for x in self.compose["services"].values() for y in x["profiles"]}
        assert profiles == {"single", "disaggregated", "monitoring"}
        assert self.compose["networks"]["links"]["internal"] is True
        for name in ("model", "attention"):
            assert self.compose["services"][name]["networks"] == ["links"]

    def files(self):
        """Each file that is mounted is there, or is one that make-secrets makes."""
        makes = (self.source / "deploy/make-secrets").read_text()
        for secret, x in self.compose["secrets"].items():
            folder, name = x["file"].split("/")
            assert folder == "secrets" and re.search(rf"\b{name.split('.')[0]}\b", makes), secret
        used = {y for x in self.compose["services"].values() for y in x.get("secrets", [])}
        assert used == set(self.compose["secrets"])
        volumes = set(self.compose["volumes"])
        for name, x in self.compose["services"].items():
            for line in x.get("volumes", []):
                source = line.split(":")[0]
                assert source in volumes or (self.source / "deploy" / source).exists(), f"{name}: {line}"

    def words(self):
        """The program knows what it is told, and finds the secrets where they are."""
        for name in OURS:
            x = self.compose["services"][name]
            words = x.get("command", ["serve"])
            command = [y for y in words if not y.startswith("--")]
            unknown = {y.split("=")[0] for y in words if y.startswith("--")} - self.program.flags(*command)
            assert not unknown, f"{name}: {unknown}"
            texts = words + list(x.get("environment", {}).values())
            if name == "gateway":
                texts.append((self.source / "deploy/compose/disaggregated.yaml").read_text())
            asked = {y for text in texts for y in re.findall(r"/run/secrets/([\w.]+)", text)}
            assert asked == set(x["secrets"]), f"{name}: {asked} and {x['secrets']}"
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as nothing:
                print("version: 1", file=nothing, flush=True)
                shown = self.program.options("--config", nothing.name, environment=x.get("environment"))
            for key, value in x.get("environment", {}).items():
                option = key.removeprefix("LAMELLA_").replace("__", ".").lower()
                assert shown[option]["value"] == value, key

    def sizes(self):
        file = self.source / "deploy/compose/disaggregated.yaml"
        shown = {k: v["value"] for k, v in self.program.options("--config", str(file)).items()}
        replicas = {x: self.compose["services"][x]["deploy"]["replicas"] for x in ("model", "attention")}
        assert replicas["model"] == shown["pools.model.members"] + shown["pools.model.spares"]
        assert replicas["attention"] == (shown["pools.attention.members"] + shown["pools.attention.spares"]
                                         + shown["pools.attention.parity"])
        gateway = self.compose["services"]["gateway"]
        assert int(gateway["stop_grace_period"].removesuffix("s")) >= shown["shutdown.drain_seconds"] + 15
        for name in ("model", "attention"):
            worker = self.compose["services"][name]
            assert int(worker["stop_grace_period"].removesuffix("s")) >= 60 + 15, name  # --drain-seconds
            assert name in gateway["depends_on"], name  # so that the service ends first
        join = next(x for x in self.compose["services"]["model"]["command"] if x.startswith("--join="))
        assert join == f"--join=gateway:{shown['control.listen'].rpartition(':')[2]}"

    def metrics(self):
        """Prometheus finds the service under a name that both profiles have, and the alerts find its job."""
        told = yaml.safe_load((self.source / "deploy/compose/prometheus.yml").read_text())
        alone = yaml.safe_load((self.source / "deploy/prometheus.yml").read_text())
        assert told["rule_files"] == alone["rule_files"] and told["global"] == alone["global"]
        job, = told["scrape_configs"]
        assert job["job_name"] == alone["scrape_configs"][0]["job_name"]
        target, = job["static_configs"][0]["targets"]
        names = {"lamella", *self.compose["services"]["gateway"]["networks"]["default"]["aliases"]}
        assert names == {target.split(":")[0]} and target.endswith(":8000")
        mounted = self.compose["services"]["grafana"]["volumes"]
        boards = yaml.safe_load((self.source / "deploy/grafana/provisioning/dashboards/lamella.yaml").read_text())
        assert any(x == f"./grafana:{boards['providers'][0]['options']['path']}:ro" for x in mounted)

    def run(self):
        self.check("the image is built of files that are sent, and of no others", self.context)
        self.check("every image runs the program as a user of its own", self.stages)
        self.check("the health check asks what the program knows", self.health)
        self.check("the image tells the ports that are used", self.exposed)
        self.check("containers have no rights, and listen on this machine alone", self.services)
        self.check("what containers mount is there", self.files)
        self.check("containers tell the program what it knows", self.words)
        self.check("containers, seats and times agree", self.sizes)
        self.check("Prometheus and Grafana find what they look for", self.metrics)
        self.check.finish()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Suite(sys.argv[1], Path(sys.argv[2]).resolve()).run()

"""What `kubectl kustomize` makes of the folders of deploy/kubernetes, for machines without it: the parts of Kustomize
that they use, and an error for any other. manifests_test.sh compares the two where there is a kubectl.

Names of generated ConfigMaps get a suffix here, too, but not the same one."""
import copy
import hashlib
import json
from pathlib import Path

import yaml

KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "images", "configMapGenerator",
         "secretGenerator", "generatorOptions", "patches"}


class Manifests:
    """Objects, in the order in which they came, and the generated ones by name until all is merged."""

    def __init__(self):
        self.objects = []
        self.generated = {}  # (kind, name) -> (object, whether its name gets a suffix)


def load(path):
    return [x for x in yaml.safe_load_all(path.read_text()) if x is not None]


def generate(into, folder, kustomization):
    for kind, key in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
        for entry in kustomization.get(key, []):
            assert set(entry) <= {"name", "files", "options", "behavior"}, f"{folder}: {entry}"
            options = {**kustomization.get("generatorOptions", {}), **entry.get("options", {})}
            assert set(options) <= {"disableNameSuffixHash", "labels"}, f"{folder}: {options}"
            known = (kind, entry["name"]) in into.generated
            assert known == (entry.get("behavior") == "replace"), f"{folder}: {entry['name']} is there twice, or not"
            data = {}
            for file in entry["files"]:
                name, _, path = file.rpartition("=")
                data[name or Path(path).name] = (folder / path).read_text()
            made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": entry["name"]}, "data": data}
            if "labels" in options:
                made["metadata"]["labels"] = options["labels"]
            into.generated[kind, entry["name"]] = (made, not options.get("disableNameSuffixHash", False))


def patch(thing, operations):
    """JSON patch (RFC 6902): add, replace and remove."""
    for operation in operations:
        *way, last = [x.replace("~1", "/").replace("~0", "~") for x in operation["path"].strip("/").split("/")]
        at = thing
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at[step]
        index = int(last) if isinstance(at, list) and last != "-" else last
        if operation["op"] == "remove":
            del at[index]
        elif operation["op"] == "replace":
            at[index]  # must be there
            at[index] = operation["value"]
        else:
            assert operation["op"] == "add", operation
            if isinstance(at, list):
                at.insert(len(at) if index == "-" else index, operation["value"])
            else:
                at[index] = operation["value"]


def each_image(x):
    """Every object that names an image."""
    if isinstance(x, dict):
        if isinstance(x.get("image"), str):
            yield x
        for value in x.values():
            yield from each_image(value)
    elif isinstance(x, list):
        for value in x:
            yield from each_image(value)


def apply(into, folder):
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    unknown = set(kustomization) - KNOWN
    assert not unknown, f"{folder}: {unknown} is not among what this test knows of Kustomize"
    for name in kustomization.get("resources", []):
        if (folder / name).is_dir():
            of_folder = Manifests()
            apply(of_folder, (folder / name).resolve())
            into.objects += of_folder.objects
            into.generated.update(of_folder.generated)
        else:
            into.objects += load(folder / name)
    generate(into, folder, kustomization)
    for name in kustomization.get("components", []):
        apply(into, (folder / name).resolve())
    for entry in kustomization.get("patches", []):
        target = entry["target"]
        assert set(target) == {"kind", "name"} and set(entry) == {"target", "patch"}, f"{folder}: {entry}"
        found = [x for x in into.objects if x["kind"] == target["kind"] and x["metadata"]["name"] == target["name"]]
        assert len(found) == 1, f"{folder}: no {target['kind']} {target['name']} to patch"
        patch(found[0], yaml.safe_load(entry["patch"]))
    for entry in kustomization.get("images", []):
        for x in each_image(into.objects):
            if x["image"].split(":")[0] == entry["name"]:
                x["image"] = entry.get("newName", entry["name"]) + ":" + entry["newTag"]
    if "namespace" in kustomization:
        for x in into.objects + [made for made, _ in into.generated.values()]:
            if x["kind"] == "Namespace":
                x["metadata"]["name"] = kustomization["namespace"]
            else:
                x["metadata"]["namespace"] = kustomization["namespace"]


def renamed(x, names):
    """The same with the new names of ConfigMaps and Secrets, wherever volumes and environments name them."""
    if isinstance(x, list):
        return [renamed(y, names) for y in x]
    if not isinstance(x, dict):
        return x
    result = {key: renamed(value, names) for key, value in x.items()}
    for key in ("configMap", "configMapRef", "configMapKeyRef"):
        if isinstance(result.get(key), dict) and "name" in result[key]:
            result[key]["name"] = names.get(("ConfigMap", result[key]["name"]), result[key]["name"])
    if isinstance(result.get("secret"), dict):
        for name in ("secretName", "name"):
            if name in result["secret"]:
                result["secret"][name] = names.get(("Secret", result["secret"][name]), result["secret"][name])
    return result


def render(folder):
    """All objects of a folder with a kustomization.yaml."""
    into = Manifests()
    apply(into, Path(folder).resolve())
    objects = copy.deepcopy(into.objects)  # patches may share what they put in
    names = {}
    for (kind, name), (made, suffixed) in into.generated.items():
        if suffixed:
            digest = hashlib.sha256(json.dumps(made["data"], sort_keys=True).encode()).hexdigest()[:10]
            names[kind, name] = made["metadata"]["name"] = f"{name}-{digest}"
        objects.append(made)
    return renamed(objects, names)

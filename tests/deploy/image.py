"""What deploy/Dockerfile puts into an image, made without Docker: the program, and of the packages that its last stage
installs, with what they depend on, the shared libraries as this machine has them. Nothing else: no shell."""
import re
import shutil
import subprocess
from pathlib import Path


class Dockerfile:
    """The stages of a Dockerfile: for each name its instructions, as (word, rest) with lines joined."""

    def __init__(self, path):
        text = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.M))
        self.stages, self.bases, stage = {}, {}, None
        for line in filter(None, map(str.strip, text.splitlines())):
            word, rest = line.split(None, 1)
            if word == "FROM":
                base, _, name = rest.partition(" AS ")
                stage = self.stages.setdefault(name or "", [])
                self.bases[name or ""] = base
            elif stage is not None:
                stage.append((word, rest))

    def all(self, stage, word):
        return [rest for x, rest in self.stages[stage] if x == word]

    def one(self, stage, word):
        found = self.all(stage, word)
        assert len(found) == 1, f"{stage}: {len(found)} times {word}"
        return found[0]

    def packages(self, stage):
        """What its RUN lines install."""
        names = []
        for rest in self.all(stage, "RUN"):
            for words in re.findall(r"apt-get install ([^&;|]*)", rest):
                names += [x for x in words.split() if not x.startswith("-")]
        return names

    def environment(self, stage):
        return dict(x.split("=", 1) for rest in self.all(stage, "ENV") for x in rest.split())


class Packages:
    """The Debian packages of this machine."""

    def __init__(self):
        shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n"],
                               capture_output=True, text=True, check=True).stdout
        self.needs, self.provided_by = {}, {}
        for line in shown.splitlines():
            name, provides, needs = line.split("\t")
            self.needs[name] = [[self.name_of(y) for y in x.split("|")] for x in needs.split(",") if x.strip()]
            for other in filter(None, map(self.name_of, provides.split(","))):
                self.provided_by.setdefault(other, name)

    @staticmethod
    def name_of(text):
        return re.split(r"[ :(]", text.strip())[0]

    def with_dependencies(self, names):
        found, open_ = set(), list(names)
        while open_:
            name = open_.pop()
            name = name if name in self.needs else self.provided_by.get(name, name)
            if name in found:
                continue
            assert name in self.needs, f"the package {name} is not installed here"
            found.add(name)
            for either in self.needs[name]:
                there = [x for x in either if x in self.needs or x in self.provided_by]
                open_ += there[:1]
        return found

    def files(self, names):
        return subprocess.run(["dpkg-query", "-L", *sorted(names)], capture_output=True, text=True,
                              check=True).stdout.split("\n")


def owners(libraries):
    """The packages that libraries on this machine are of."""
    names = {}  # dpkg knows one of these
    for library in libraries:
        real = str(Path(library).resolve())
        for path in (library, real, real.removeprefix("/usr"), library.removeprefix("/usr")):
            names.setdefault(path, set()).add(library)
    said = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True).stdout
    found = {}
    for line in said.splitlines():
        package, _, path = line.rpartition(": ")
        for library in names.get(path, ()):
            found[library] = re.split(r"[:,]", package)[0]
    return found


def needed(program):
    """The libraries that the program itself names, with the packages that they are of."""
    dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    paths = dict(re.findall(r"(\S+) => (\S+)", subprocess.run(["ldd", program], capture_output=True, text=True,
                                                               check=True).stdout))
    names = [x for x in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) if x in paths]
    of = owners([paths[x] for x in names])
    return {x: of.get(paths[x], "no package") for x in names}


def make_root(root, program, packages):
    """The files of an image. `root` is an empty folder."""
    for folder in ("usr/lib64", "usr/local/bin", "etc", "proc", "dev", "tmp", "run"):
        (root / folder).mkdir(parents=True)
    for name in ("lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    known = Packages()
    for file in known.files(known.with_dependencies(packages)):
        if not re.search(r"/lib(64)?/.*\.so(\.[0-9.]+)?$", file) or Path(file).is_dir():
            continue
        inside = file if file.startswith("/usr/") else "/usr" + file
        to = root / inside[1:]
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.exists() and not to.is_symlink():
            shutil.copy2(file, to, follow_symlinks=False)
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    (root / "etc/hosts").touch()
    shutil.copy2(program, root / "usr/local/bin/lamella")

"""What is injured when: in turn, or drawn from a seed. A schedule is a list of JSON objects, and the same
file can be played again."""
import random

ATTENTION = (1, 3)  # sizes of that pool: a smaller one, and that of the start
PROXY_KINDS = ("delay", "dribble", "coalesce", "truncate", "flip", "reset", "half_close", "stall")


def step(kind, *targets, seconds=0.0, way="up", gap=0.0, seed=0):
    """`gap`: seconds until the next one begins, or 0: when all is well again."""
    return {"kind": kind, "targets": list(targets), "seconds": seconds, "way": way, "gap": gap, "seed": seed}


def scale(pool, members, gap=0.0):
    """Another size of a pool; the harness starts and ends its hosts' workers."""
    return step("scale", pool, gap=gap) | {"members": members}


def scaling(seed, attention=ATTENTION, shards=5):
    """Sizes of pools, drained workers, workers that are killed and frames that are lost or damaged while KV moves to
    others. In the end all pools are as at the start."""
    chance = random.Random(seed)
    soon = lambda: round(0.005 * 60 ** chance.random(), 3)  # 5 to 300 ms: at any step of a change
    shard, replica = (lambda: f"attention-{chance.randrange(shards)}"), (lambda: f"model-{chance.randrange(2)}")
    plan = [*(scale("attention", x) for x in attention), scale("model", 3), scale("model", 2),
            scale("prefill", 2), scale("prefill", 1), scale("model", 1), scale("model", 2),
            step("drain", replica()), step("drain", shard()), step("drain", shard())]
    for members in attention * 5:
        plan += [scale("attention", members, gap=soon()), step("kill", chance.choice((shard, shard, replica))())]
    for members, (kind, seconds) in zip(attention * 3, (("flip_data", 2.0), ("mute_data", 1.0), ("cut_data", 1.0)) * 2):
        frames = {"count": 6} if kind == "flip_data" else {}
        plan += [scale("attention", members, gap=soon()),
                 step(kind, shard(), seconds=seconds, seed=chance.randrange(1 << 30)) | frames]
    plan += [scale("model", 3, gap=soon()), step("kill", shard()), scale("model", 2, gap=soon()), step("kill", replica()),
             scale("prefill", 2, gap=soon()), step("kill", "prefill-0"), scale("prefill", 1)]
    return plan


def cells(main, far=None, gap=0.0):
    """Cells of the attention pool that a reload finds in the file: sizes of one and, where it is there, the other."""
    there = {"main": {"members": main, "parity": True, "spares": 1}}
    return step("cells", "attention", gap=gap) | {"cells": there | ({"far": far} if far else {})}


# What the cell that comes and goes is: with all heads and a parity, or by requests. Its threads give it workers of its own.
FAR = ({"members": 1, "threads": 2, "parity": True}, {"members": 2, "threads": 2, "partition": "requests"})


def cells_that_come_and_go(seed, sizes=ATTENTION):
    """A cell comes, is another one the next time, and goes; workers are killed and frames are lost or damaged meanwhile.
    In the end all cells are as at the start."""
    chance = random.Random(seed)
    soon = lambda: round(0.005 * 60 ** chance.random(), 3)
    shard, far, replica = (lambda: f"attention-{chance.randrange(5)}"), (lambda: f"far-{chance.randrange(2)}"), \
        (lambda: f"model-{chance.randrange(2)}")
    plan = [cells(sizes[1], FAR[0]), step("drain", shard()), cells(sizes[0], FAR[0]), cells(sizes[1]),
            cells(sizes[1], FAR[1]), step("drain", far()), cells(sizes[1])]
    for i, hit in enumerate((shard, far, replica, far) * 2):
        plan += [cells(sizes[i % 2], FAR[i % 2], gap=soon()), step("kill", hit()),
                 cells(sizes[1], gap=soon()), step("kill", chance.choice((shard, shard, far))())]
    for kind, seconds in (("flip_data", 2.0), ("mute_data", 1.0), ("cut_data", 1.0)):
        frames = {"count": 6} if kind == "flip_data" else {}
        plan += [cells(sizes[1], chance.choice(FAR), gap=soon()),
                 step(kind, chance.choice((shard, far))(), seconds=seconds, seed=chance.randrange(1 << 30)) | frames,
                 cells(sizes[1])]
    return plan


def gray(seed, guarded=True):
    """Control is healthy, the data plane is not: for a minute each, with what streams may stand still meanwhile.
    `guarded`: the pool has a spare and parity."""
    chance = random.Random(seed)
    shard = lambda: f"attention-{chance.randrange(3)}"
    replica = lambda: f"model-{chance.randrange(2)}"
    data = lambda: chance.randrange(1 << 30)
    plan = [step("cut_data", shard(), seconds=60), step("mute_data", replica(), seconds=45),
            step("mute_data", shard(), seconds=60), step("cut_data", replica(), seconds=60),
            step("isolate", shard(), seconds=20), step("isolate", replica(), seconds=20),
            step("flip_data", shard(), seconds=30, seed=data()) | {"count": 36},
            step("flip_data", replica(), seconds=30, seed=data()) | {"count": 36},
            *(step("dribble", name, seconds=30, way=way) | {"stays": True} for name in ("model-1", "attention-2")
              for way in ("up", "down"))]
    return [x | {"pause_ms": 2000 if guarded else 4000} for x in plan]


def targeted(seed, through_proxy, attention=ATTENTION):
    """Each kind in turn, all well in between where it matters: about half a minute."""
    chance = random.Random(seed)
    proxied = [x for x in through_proxy if x != "attention-4"]  # who may be a spare, which nothing tells from
    one = lambda: chance.choice(proxied)
    data = lambda: chance.randrange(1 << 30)
    return [
        step("kill", "model-0"),
        step("kill", f"attention-{chance.randrange(3)}"),
        step("kill", "prefill-0", gap=0.3),
        step("kill", "model-1", f"attention-{chance.randrange(5)}"),
        step("pause", f"attention-{chance.randrange(4)}", seconds=0.05, gap=0.3),
        step("pause", "model-0", seconds=round(chance.uniform(0.3, 1.0), 2), gap=0.2),
        step("flip", "model-1", way="up", seed=data()),
        step("flip", "prefill-0", way="down", seed=data()),
        step("dribble", one(), seconds=0.5, gap=0.7),
        step("delay", one(), way="down", seconds=0.7, gap=0.8),
        step("coalesce", one(), seconds=0.5, gap=0.6),
        step("stall", one(), way="down", seconds=0.6, gap=0.8),
        step("truncate", "prefill-0", way="down"),
        step("reset", "model-1", gap=0.5),
        step("half_close", "attention-2"),
        step("slow_join", one()),
        step("http", "http", way="down", gap=2.0, seed=data()),
        step("mute_data", f"attention-{chance.randrange(3)}", seconds=1.0),
        step("cut_data", f"model-{chance.randrange(2)}", seconds=1.0),
        step("cut", f"attention-{chance.randrange(4)}", seconds=3.6),
        step("stop", f"model-{chance.randrange(2)}"),
        scale("attention", attention[0]),
        scale("attention", attention[1], gap=round(chance.uniform(0.01, 0.3), 3)),
        step("kill", f"attention-{chance.randrange(5)}"),
        step("drain", f"model-{chance.randrange(2)}"),
    ]


def drawn(seed, seconds, workers, through_proxy, mean=5.0, attention=ATTENTION):
    """Random ones, Poisson with that mean between them, overlapping."""
    chance = random.Random(seed)
    made, left = [], seconds
    while left > 0:
        gap = min(max(chance.expovariate(1 / mean), 0.05), 4 * mean)
        left -= gap
        who = chance.choice(sorted(workers))
        kind = chance.choice(("kill", "kill", "kill", "pair", "slow_join", "pause", "pause", "stop", "cut", "cut_control", "cut_data",
                              "mute_control", "mute_data", "proxy", "proxy", "http", "corrupt", "drop", "slow", "isolate", "scale", "scale_kill",
                              "drain"))
        data = chance.randrange(1 << 30)
        way = chance.choice(("up", "down"))
        if kind == "slow_join":
            made.append(step(kind, chance.choice(through_proxy), gap=gap))
        elif kind in ("scale", "scale_kill"):
            pool, sizes = chance.choice((("attention", attention), ("model", (1, 2, 3)), ("prefill", (1, 2))))
            made.append(scale(pool, chance.choice(sizes), gap=gap))
            if kind == "scale_kill":  # at any step of the change
                made[-1]["gap"] = round(chance.uniform(0.005, 0.5), 3)
                made.append(step("kill", who, gap=gap))
        elif kind == "pair":
            made.append(step("kill", *chance.sample(sorted(workers), 2), gap=gap))
        elif kind == "proxy":
            made.append(step(chance.choice(PROXY_KINDS), chance.choice(through_proxy), way=way, gap=gap, seed=data,
                             seconds=round(chance.uniform(0.2, 4), 2)))
        elif kind == "http":
            made.append(step("http", "http", way=way, gap=gap, seed=data))
        elif kind == "pause":
            made.append(step(kind, who, seconds=round(0.05 * 60 ** chance.random(), 3), gap=gap))
        elif kind in ("kill", "stop", "drain"):
            made.append(step(kind, who, gap=gap))
        else:
            made.append(step(kind, who, seconds=round(chance.uniform(0.2, 6), 2), gap=gap))
    return made

"""The programs that `downpour compare` starts, without any training: `downpour run`, mpirun, downpour-worker. Each leaves the files of
a training whose numbers are drawn by its directory, so that no two runs, and no two fields of a run, have a number in common.

DP_FAKE_RUNS names a JSON file of exceptions, by the run's directory ("runs/sync/seed-2"):
    settings, root    fields of the report that differ from those that were asked for
    exit              the exit code; the run leaves why in failure.json
    refused           it failed before it trained, and would again
    report            false: it leaves none
    samples           how the samples end: "diverged" (null), "short" (before any target), "high" (accuracy is near 1)
    end               seconds of the last sample
"""
import json, os, random, re, sys


def exceptions(run_dir):
    path = os.environ.get("DP_FAKE_RUNS")
    key = "/".join(run_dir.split("/")[-3:])
    return json.load(open(path)).get(key, {}) if path else {}


def draw_samples(rng, how):
    """Accuracy rises, loss falls, both with a step back at the end; the first sample is of no training."""
    count = 5 if how == "short" else rng.randint(8, 11)
    samples, seconds, examples = [], 0.0, 0
    for i in range(count):
        share = i / 10
        samples.append({"seconds": seconds, "examples": examples, "pushes": 3 * i, "at": 1.7e9 + i, "by": rng.choice(("time", "examples")),
                        "loss": 40 * 0.4 ** (9 * share) + rng.uniform(0, 0.02), "logloss": rng.uniform(1, 2),
                        "accuracy": 0.1 + 0.8 * share + rng.uniform(0, 0.05)})
        seconds += rng.uniform(0.4, 0.7)
        examples += rng.randint(300, 450)
    if how != "short":
        samples[-1]["accuracy"] -= 0.11
        samples[-1]["loss"] += 0.05
    for i, sample in enumerate(samples if how == "high" else []):
        sample["accuracy"] = 1 - 0.8 * 0.6 ** i + rng.uniform(0, 0.005)
    if how == "diverged":
        samples[-1].update(accuracy=None, loss=None)
    return samples


def draw_histogram(rng, upper):
    counts = [rng.randint(5, 400) for _ in upper]
    return {"upper": upper, "counts": counts}


def draw_staleness(rng, buckets):
    """The greatest is far from the mean, as in a run whose stragglers are few."""
    spread = lambda: {"mean": rng.uniform(1, 3), "p50": rng.randint(1, 9), "p90": rng.randint(10, 99), "p99": rng.randint(1000, 9999)}
    return {**spread(), "examples": spread(), "own": {"mean": rng.uniform(0, 1), "max": 1}, "max": rng.randint(20, 60), "pushes": rng.randint(100, 900), "repeated": 0,
            "histogram": [rng.randint(3, 500) for _ in range(buckets)] + [0],
            "clock_gap": {"mean": rng.uniform(0, 2), "max": 4, "histogram": draw_histogram(rng, [0, 1, 2, 4, None])},
            "changed": rng.uniform(0, 1), "changed_histogram": draw_histogram(rng, [0.0, 0.1, 0.5, 1.0])}


def draw_times(rng, most):
    kinds = ("read", "pull", "compute", "injected", "push", "waiting_pull", "waiting_rule", "waiting_push",
             "waiting_device", "other", "device_copy_in", "device_compute", "waiting", "of_a_later_version")
    return {kind: rng.uniform(0.05 * most, most) for kind in kinds}


def draw_set(rng):
    return {"examples": rng.randint(100, 999), "loss": rng.uniform(0.2, 1), "accuracy": rng.uniform(0.5, 1),
            "auc": rng.uniform(0.5, 1), "rmse": rng.uniform(0.1, 2), "hr10": rng.uniform(0, 1),
            "ndcg10": rng.uniform(0, 1),
            "all_items": {"items": 500, "users": 40, "recall@20": rng.uniform(0, 1), "ndcg@20": rng.uniform(0, 1)}}


def draw_epochs(rng, count):
    epochs = []
    for e in range(count):
        seconds = rng.uniform(0.5, 3)
        epochs.append({"epoch": e + 1, "train_loss": 50 / (e + 1) ** 2 + rng.uniform(0, 0.1),
                       "examples": rng.randint(1000, 2000), "seconds": seconds,
                       "examples_per_s": rng.uniform(20000, 90000), "validation": draw_set(rng), "test": draw_set(rng)})
    return epochs


def draw_report(rng, asked, workers, epochs):
    """asked: settings; the rest is drawn."""
    times = [draw_times(rng, 9) for _ in range(workers)]
    return {"finished": True, "model": "mlp:64-16-10", "run": 1,
            "data": {"train": "train.txt", "examples": 1437, "scale": 0.1, "normalize": False},
            "settings": {"servers": 1, "batch": rng.choice([16, 24, 40]), "epochs": epochs, **asked,
                         "optimizer": {"kind": "adam", "beta1": 0.9}},
            "epochs": draw_epochs(rng, epochs), "final": {"validation": draw_set(rng), "test": draw_set(rng)},
            "constant": {**draw_set(rng), "accuracy": rng.uniform(0.05, 0.15), "set": "test"}, "kept_epoch": epochs,
            "throughput": {"examples_per_s": rng.uniform(3000, 9000), "seconds": rng.uniform(8, 15)},
            "dropped": {"pushes": rng.randint(10, 40), "examples": rng.randint(500, 3000), "late": rng.randint(100, 400),
                        "not_computed": rng.randint(30, 90)},
            "applied": {"examples": rng.randint(3000, 4300), "planned": 4311},
            "staleness": draw_staleness(rng, rng.randint(3, 6)), "spent_s": draw_times(rng, 9 * workers),
            "workers": [{"worker": w, "examples": rng.randint(1000, 9000), "seconds": rng.uniform(5, 20),
                         "examples_per_s": rng.uniform(500, 4000), "pushes": rng.randint(100, 900), "device": "cpu",
                         "staleness": draw_staleness(rng, 4), "spent_s": times[w]} for w in range(workers)]}


def leave_report(path, run_dir, asked, reduced):
    but = exceptions(run_dir)
    report = draw_report(random.Random("/".join(run_dir.split("/")[-3:]) + " report"), asked, 2, 3)
    if reduced:
        report["reduced_by"] = "MPI_Alltoall"
    report["settings"].update(but.get("settings", {}))
    report.update(but.get("root", {}))
    if but.get("report", True):
        json.dump(report, open(path, "w"))
    return but.get("exit", 0)


def leave_samples(path, run_dir):
    but = exceptions(run_dir)
    samples = draw_samples(random.Random("/".join(run_dir.split("/")[-3:])), but.get("samples", ""))
    samples[-1]["seconds"] = but.get("end", samples[-1]["seconds"])
    json.dump({"samples": samples, "set": "test", "examples": 360}, open(path, "w"))


def leave_failure(where, but):
    refused = but.get("refused", False)
    json.dump({"error": "line 13: index 64" if refused else "training has diverged in epoch 2", "trained": not refused,
               "diverged": not refused, "refused": refused}, open(where + "/failure.json", "w"))


def flag(words, name, otherwise=None):
    return words[words.index(name) + 1] if name in words else otherwise


def run(words):
    where = flag(words, "--dir")
    asked = {"seed": int(flag(words, "--seed")), "workers": int(flag(words, "--workers")),
             "threads": int(flag(words, "--threads")), "consistency": flag(words, "--consistency"),
             "work": flag(words, "--work"), "rate": float(flag(words, "--rate", "0.001")),
             "overlap": "--no-overlap" not in words, "rate_by_staleness": "--rate-by-staleness" in words}
    if "--batch" in words:
        asked["batch"] = int(flag(words, "--batch"))
    json.dump(words, open(where + "/words.json", "w"))
    if exceptions(where).get("exit"):
        leave_failure(where, exceptions(where))
    for name in ("pace", "jitter", "straggler"):
        given = [word for word in words if word.startswith(name + "=")]
        if given:
            asked[name] = given[0].split("=", 1)[1]
    leave_samples(where + "/samples.json", where)
    return leave_report(where + "/report.json", where, asked, False)


def ranks(words):
    conf = flag(words, "--cluster")
    text = open(conf).read().split("training = {")[1]
    found = dict(re.findall(r"\n    (\w+) = \"?([^\";{]*)\"?;", text))
    asked = {"seed": int(found["seed"]), "workers": int(flag(words, "-n")), "threads": int(found["threads"]),
             "consistency": found["consistency"], "work": found["work"], "rate": float(found["rate"]),
             "overlap": found["overlap"] == "true"}
    asked.update({name: found[name] for name in ("pace", "jitter", "straggler") if found[name] not in ("", "none")})
    return leave_report(found["report"], os.path.dirname(conf), asked, True)


def worker(words):
    if "--out" in words:
        leave_samples(flag(words, "--out"), os.path.dirname(flag(words, "--out")))
    return 0


if __name__ == "__main__":
    name, words = sys.argv[1], sys.argv[2:]
    code = {"downpour": run, "mpirun": ranks, "downpour-worker": worker}[name](words)
    if code:
        print("downpour: worker 1: training has diverged in epoch 2", file=sys.stderr)
        print("downpour: run 1 is not finished: epoch 2 of 3. To finish it: downpour run --resume", file=sys.stderr)
    sys.exit(code)

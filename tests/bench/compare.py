#!/usr/bin/python3
"""Training throughput of one server and one worker beside PyTorch in one process with one thread, interleaved: PyTorch,
Downpour, PyTorch, Downpour, ... Prints each side's examples/s (median, least, most) and the ratios of the medians and of
the bests (the latter says more where other work disturbs).

    DOWNPOUR_DATA=DIR tests/bench/compare.py --bin build/bin [--repeats 5] [--only mlp|imdb|mf|dlrm] [--shards N]
                                             [--json FILE]

Both sides count the seconds of the epochs alone: shuffling, minibatches, the steps, and for Downpour the wait until
every push is answered. Both sides run one epoch more, the first, which warms up and is not counted. Reading files,
starting processes and evaluation are outside on both sides, and so is PyTorch's sampling of negatives (Downpour's is inside). dlrm is for a GPU: it is left out by name where PyTorch sees none. It makes
its own data: the other tasks are left out by name where DOWNPOUR_DATA does not say where theirs are. The
column 'CPU us' is the least processor time of an example: PyTorch's of the epochs, Downpour's of all its processes from
start to end, reading and evaluation too. Exits with 77, and says why, where PyTorch is not there or no task is left; with 1
where a ratio is under its floor and --check is given."""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
WARM_UP = 1  # epochs, on both sides, in front of those that count

DLRM = "dlrm:64,bottom=512-256,top=512-256,tables=fields"
DEFAULTS = "Downpour, 1 server and 1 worker"
TASKS = {
    "mlp": {"title": "MNIST, MLP 784-256-128-10, batch 128, Adam", "epochs": 3, "floor": 1.0, "quality": "accuracy",
            "files": {"--train": "mnist.train-images-idx3-ubyte.gz", "--test": "mnist.t10k-images-idx3-ubyte.gz"},
            "flags": ("--model", "mlp:784-256-128-10", "--batch", "128", "--rate", "0.001")},
    "imdb": {"title": "imdb_bow, logistic regression, batch 64, Adam", "epochs": 3, "floor": 3.0, "quality": "accuracy",
             "files": {"--train": "imdb_bow.train.libsvm.zst", "--test": "imdb_bow.test.libsvm.zst"},
             "flags": ("--model", "logistic", "--batch", "64", "--rate", "0.001")},
    "mf": {"title": "gowalla.ncf, matrix factorisation of 16 factors, 4 negatives a pair, batch 1,024, Adam", "epochs": 3,
           "floor": 2.0, "quality": "hr10",
           "files": {"--train": "gowalla.ncf.train.pairs.zst", "--test": "gowalla.ncf.test.rating.zst",
                     "--test negatives": "gowalla.ncf.test.negative.zst"},
           # SparseAdam takes one step count for a whole table, so rows that come seldom move further at its rate of 0.002.
           "flags": ("--model", "mf:16", "--batch", "1024", "--rate", "0.005")},
    "dlrm": {"title": "generated clicks, DLRM of 26 tables, dim 64, batch 8,192, Adam", "epochs": 3, "floor": None,
             "quality": "", "gpu": True, "files": {}, "flags": ("--model", DLRM, "--batch", "8192", "--rate", "0.001")},
}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def prepare(name, data, folder, steps):
    """The arrays for PyTorch, and the files for Downpour by their flags."""
    sys.path.insert(0, str(HERE))
    import arrays
    out = folder / f"{name}.npz"
    if name == "dlrm":
        arrays.clicks(folder, out, 8192 * steps)
        return out, ("--train", str(folder / "clicks.tsv"), "--format", "criteo")
    {"mlp": arrays.mnist, "imdb": arrays.imdb, "mf": arrays.gowalla}[name](data, out)
    return out, [word for flag, file in TASKS[name]["files"].items() for word in (flag, str(data / file))]


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_pytorch(name, npz, epochs, core, flags):
    env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    env.pop("OPENBLAS_CORETYPE", None)
    if core:
        env["OPENBLAS_CORETYPE"] = core
    out = subprocess.run([sys.executable, str(HERE / "pytorch_train.py"), name, str(npz), str(epochs), *flags], env=env,
                         stdout=subprocess.PIPE, check=True, timeout=1200)
    got = json.loads(out.stdout)
    return {"speed": got["examples"] * epochs / sum(got["seconds"]), "quality": got["quality"],
            "cpu_us": 1e6 * got["cpu"] / (got["examples"] * epochs),
            "compute": got["compute"] / epochs if got["compute"] else None}


def run_downpour(task, program, files, epochs, folder, extra, one_core=False):
    report = folder / "report.json"
    command = [str(program), "run", "--dir", str(folder / "run"), "--fresh", "--servers", "1", "--workers", "1",
               *files, *task["flags"], "--optimizer", "adam", "--epochs", str(WARM_UP + epochs), "--report", str(report), *extra]
    if one_core:
        command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
    before = cpu_seconds()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=1200)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nfailed: {done.stderr.decode(errors='replace')[-2000:]}")
    got = json.loads(report.read_text())
    seconds = sum(epoch["seconds"] for epoch in got["epochs"][WARM_UP:])
    spent, all_epochs = got.get("spent_s", {}), WARM_UP + epochs
    compute = spent.get("device_compute") or spent.get("compute")
    return {"speed": got["data"]["examples"] * epochs / seconds, "spent": spent,
            "hidden": hidden(spent), "cpu_us": 1e6 * (cpu_seconds() - before) / (got["data"]["examples"] * all_epochs),
            "quality": got.get("final", {}).get("test", {}).get(task.get("quality"), float("nan")),
            "compute": compute / all_epochs if compute else None}


def sides_of(name, options, data, folder):
    """What is measured in turns, by name: PyTorch first, then Downpour with its defaults, then other ways."""
    task, (npz, files) = TASKS[name], prepare(name, data, folder, options.steps)
    program = pathlib.Path(options.bin).resolve() / "downpour"
    gpu = ("--device", options.device) if task.get("gpu") else ()
    flags = (*gpu, "--tf32") if gpu and options.precision == "tf32" else gpu
    own = [*(("--device", options.device, "--precision", options.precision) if gpu and options.device != "cpu" else ()),
           *options.extra]

    def pytorch(core):
        return lambda: run_pytorch(name, npz, task["epochs"], core, flags)

    def downpour(*extra, one_core=False):
        return lambda: run_downpour(task, program, files, task["epochs"], folder, [*own, *extra], one_core)

    sides = {f"PyTorch, OPENBLAS_CORETYPE={options.core}": pytorch(options.core)}
    if name == "mlp":
        sides["PyTorch, OpenBLAS's own choice"] = pytorch(None)
    sides[DEFAULTS] = downpour()
    if name == "mf":
        sides["Downpour, both on one core"] = downpour(one_core=True)
        sides["Downpour, durability none"] = downpour("--durability", "none")
    return sides


def hidden(spent):
    """Of a device's computing and the transfers around it, how much of the lesser passed while the other was done: README.md.
    None: nothing was computed on a device, or nothing was transferred."""
    compute = spent.get("device_compute", 0)
    transfers = max(spent.get("pull", 0) + spent.get("waiting_pull", 0), spent.get("device_copy_in", 0),
                    spent.get("device_copy_out", 0))
    if not compute or not transfers:
        return None
    whole = sum(v for k, v in spent.items() if k != "waiting" and not k.startswith("device_"))
    bare = spent.get("waiting_device", 0) / compute if transfers >= compute else (whole - compute) / transfers
    return min(1, max(0, 1 - bare))


def show_split(run):
    parts = {k: v for k, v in run["spent"].items() if k != "waiting" and v}
    whole = sum(v for k, v in parts.items() if not k.startswith("device_"))
    if whole:
        print("  a step of Downpour's last run, of the worker's time: "
              + ", ".join(f"{k.replace('_', ' ')} {100 * v / whole:.0f}%" for k, v in parts.items()))
    share = hidden(run["spent"])
    if share is not None:
        print(f"  hidden, of the lesser of computing and of copies and pulls: at least {share:.2f}")


def compare(name, options, data, folder):
    task = TASKS[name]
    sides = sides_of(name, options, data, folder)
    figures = {side: [] for side in sides}
    for _ in range(options.repeats):
        for side, run in sides.items():
            figures[side].append(run())
    first = next(iter(figures.values()))
    middle = statistics.median(r["speed"] for r in first)
    best = max(r["speed"] for r in first)
    print(f"\n{task['title']}: {task['epochs']} epochs a run, {options.repeats} runs of each, interleaved"
          + (f"; Downpour with {' '.join(options.extra)}" if options.extra else ""))
    print(f"{'':40} {'examples/s':>10} {'least':>9} {'most':>9} {'of PyTorch':>10} {'of bests':>9} {'CPU us':>7} {task['quality']:>9}")
    rows = []
    for side, runs in figures.items():
        speeds = [r["speed"] for r in runs]
        ratio = statistics.median(speeds) / middle
        rows.append({"task": name, "side": side, "median": statistics.median(speeds), "runs": runs, "ratio": ratio,
                     "ratio_of_bests": max(speeds) / best})
        print(f"{side:40} {statistics.median(speeds):10,.0f} {min(speeds):9,.0f} {max(speeds):9,.0f} {ratio:9.2f}x "
              f"{max(speeds) / best:8.2f}x {min(r['cpu_us'] for r in runs):7.2f} {runs[-1]['quality']:9.4f}", flush=True)
    show_split(figures[DEFAULTS][-1])
    if first[-1]["compute"]:
        print("  forward and backward, ms a step: " + ", ".join(
            f"{side} {1000 * statistics.median(r['compute'] for r in runs) / options.steps:.2f}" for side, runs in figures.items()))
    reached = next(r["ratio"] for r in rows if r["side"] == DEFAULTS)
    return rows, task["floor"] is None or reached >= task["floor"]


def missing(name, torch, device, data):
    """Why a task is left out; None: it is not."""
    if TASKS[name].get("gpu") and device != "cpu" and not torch.cuda.is_available():
        return "this PyTorch sees no GPU (--device cpu runs it on the processor)"
    files = TASKS[name]["files"].values()
    if files and not data:
        return "DOWNPOUR_DATA does not name the folder with the data sets"
    return next((f"no {file} in {data}" for file in files if not (data / file).exists()), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/bin", help="folder of the programs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=sorted(TASKS))
    parser.add_argument("--core", default="SkylakeX", help="OPENBLAS_CORETYPE for PyTorch")
    parser.add_argument("--device", default="cuda", help="of dlrm, both sides: cuda or cpu")
    parser.add_argument("--precision", default="f32", choices=("f32", "tf32"), help="of dlrm's products on a GPU")
    parser.add_argument("--steps", type=int, default=50, help="minibatches in an epoch of dlrm")
    parser.add_argument("--json", help="write all figures there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a ratio is under its floor")
    parser.add_argument("--shards", type=int, default=1, help="of Downpour's server")
    parser.add_argument("--downpour", default="", help="further flags of 'downpour run'")
    options = parser.parse_args()
    options.extra = [*(("--shards", str(options.shards)) if options.shards > 1 else ()), *options.downpour.split()]
    try:
        import torch
    except ImportError as error:
        skip(f"this python ({sys.executable}) has no PyTorch ({error}); Debian: apt-get install python3-torch")
    data = pathlib.Path(os.environ["DOWNPOUR_DATA"]) if os.environ.get("DOWNPOUR_DATA") else None
    names = []
    for name in [options.only] if options.only else TASKS:
        lacks = missing(name, torch, options.device, data)
        if lacks:
            print(f"left out: {name}: {lacks}", flush=True)
        else:
            names.append(name)
    if not names:
        skip("no task is left")
    rows, good = [], True
    print(f"PyTorch {torch.__version__}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="downpour-bench-") as folder:
        for name in names:
            got, reached = compare(name, options, data, pathlib.Path(folder))
            rows, good = rows + got, good and reached
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if good or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Training throughput of one server and one worker beside PyTorch in one process with one thread, interleaved: PyTorch,
Downpour, PyTorch, Downpour, ... Prints each side's examples/s (median, least, most) and the ratios of the medians and of
the bests (the latter says more where other work disturbs).

    DOWNPOUR_DATA=DIR tests/bench/compare.py --bin build/bin [--repeats 5] [--only mlp|imdb|mf|dlrm] [--json FILE]

Both sides count the seconds of the epochs alone: shuffling, minibatches, the steps, and for Downpour the wait until
every push is answered. Reading files, starting processes and evaluation are outside on both sides, and so is PyTorch's
sampling of negatives (Downpour's is inside). dlrm is for a GPU: it is left out by name where PyTorch sees none. Exits
with 77, and says why, where PyTorch or the data are not there; with 1 where a ratio is under its floor and --check is
given."""

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

DLRM = "dlrm:64,bottom=512-256,top=512-256,tables=fields"
TASKS = {
    "mlp": {"title": "MNIST, MLP 784-256-128-10, batch 128, Adam", "epochs": 3, "floor": 1.0, "quality": "accuracy",
            "files": {"--train": "mnist.train-images-idx3-ubyte.gz", "--test": "mnist.t10k-images-idx3-ubyte.gz"},
            "flags": ("--model", "mlp:784-256-128-10", "--batch", "128")},
    "imdb": {"title": "imdb_bow, logistic regression, batch 64, Adam", "epochs": 3, "floor": 3.0, "quality": "accuracy",
             "files": {"--train": "imdb_bow.train.libsvm.zst", "--test": "imdb_bow.test.libsvm.zst"},
             "flags": ("--model", "logistic", "--batch", "64")},
    "mf": {"title": "gowalla.ncf, matrix factorisation of 16 factors, 4 negatives a pair, batch 1,024, Adam", "epochs": 3,
           "floor": 2.0, "quality": "hr_at_10",
           "files": {"--train": "gowalla.ncf.train.pairs.zst", "--test": "gowalla.ncf.test.rating.zst",
                     "--test-negatives": "gowalla.ncf.test.negative.zst"},
           "flags": ("--model", "mf:16", "--batch", "1024", "--rate", "0.002"),
           "ways": {"no journal, answered at once": ("--durability", "none")}},
    "dlrm": {"title": "generated clicks, DLRM of 26 tables, dim 64, batch 8,192, Adam", "epochs": 3, "floor": None,
             "gpu": True, "files": {}, "flags": ("--model", DLRM, "--batch", "8192")},
}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def prepare(name, data, folder):
    """The arrays for PyTorch, and the files for Downpour by their flags."""
    sys.path.insert(0, str(HERE))
    import arrays
    out = folder / f"{name}.npz"
    if name == "dlrm":
        arrays.clicks(folder, out)
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
            "sampling": got["sampling"], "compute": got["compute"]}


def run_downpour(task, program, files, epochs, folder, extra, core):
    report = folder / "report.json"
    command = [str(program), "run", "--dir", str(folder / "run"), "--fresh", "--servers", "1", "--workers", "1",
               *files, "--optimizer", "adam", "--rate", "0.001", "--epochs", str(epochs), "--report", str(report)]
    for flag, value in zip(task["flags"][::2], task["flags"][1::2]):
        if flag in command:
            command[command.index(flag) + 1] = value
        else:
            command += [flag, value]
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    before = cpu_seconds()
    done = subprocess.run([*command, *extra], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=1200)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nfailed: {done.stderr.decode(errors='replace')[-2000:]}")
    got = json.loads(report.read_text())
    seconds = sum(epoch["seconds"] for epoch in got["epochs"])
    spent = got.get("spent_s", {})
    return {"speed": got["data"]["examples"] * epochs / seconds, "cpu": cpu_seconds() - before, "spent": spent,
            "quality": got.get("final", {}).get("test", {}).get(task.get("quality"), float("nan")),
            "compute": spent.get("device_compute") or spent.get("compute")}


def compare(name, options, data, folder):
    task, npz = TASKS[name], prepare(name, data, folder)
    program = pathlib.Path(options.bin).resolve() / "downpour"
    sides = {f"PyTorch, OPENBLAS_CORETYPE={options.core}": lambda: run_pytorch(name, npz, task["epochs"], options.core)}
    if name == "mlp":
        sides["PyTorch, OpenBLAS's own choice"] = lambda: run_pytorch(name, npz, task["epochs"], None)
    sides["Downpour, 1 server and 1 worker"] = lambda: run_downpour(task, program, data, task["epochs"], folder,
                                                                    options.extra)
    figures = {side: [] for side in sides}
    for _ in range(options.repeats):
        for side, run in sides.items():
            figures[side].append(run())
    own = [f[0] for f in figures["Downpour, 1 server and 1 worker"]]
    ours, best = statistics.median(own), max(own)
    print(f"\n{task['title']}: {task['epochs']} epochs a run, {options.repeats} runs of each, interleaved")
    print(f"{'':44} {'examples/s':>10} {'least':>8} {'most':>8} {'Downpour is':>12} {'of bests':>9} {'accuracy':>9}")
    rows = []
    for side, runs in figures.items():
        speeds = [r[0] for r in runs]
        middle = statistics.median(speeds)
        rows.append({"task": name, "side": side, "median": middle, "runs": speeds, "ratio": ours / middle,
                     "ratio_of_bests": best / max(speeds),
                     "accuracy": runs[-1][1]})
        print(f"{side:44} {middle:10,.0f} {min(speeds):8,.0f} {max(speeds):8,.0f} {ours / middle:11.2f}x "
              f"{best / max(speeds):8.2f}x {runs[-1][1]:9.4f}", flush=True)
    return rows, rows[0]["ratio"] >= task["floor"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/bin", help="folder of the programs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=sorted(TASKS))
    parser.add_argument("--core", default="SkylakeX", help="OPENBLAS_CORETYPE for PyTorch")
    parser.add_argument("--json", help="write all figures there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a ratio is under its floor")
    parser.add_argument("--downpour", default="", help="further flags of 'downpour run'")
    options = parser.parse_args()
    options.extra = options.downpour.split()
    data = os.environ.get("DOWNPOUR_DATA")
    if not data:
        skip("DOWNPOUR_DATA does not name the folder with the data sets")
    try:
        import torch
    except ImportError as error:
        skip(f"this python ({sys.executable}) has no PyTorch ({error}); Debian: apt-get install python3-torch")
    names = [options.only] if options.only else ["mlp", "imdb"]
    data = pathlib.Path(data)
    for name in names:
        for file in TASKS[name]["files"]:
            if not (data / file).exists():
                skip(f"no {file} in {data}")
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

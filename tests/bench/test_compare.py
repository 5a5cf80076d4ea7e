#!/usr/bin/python3
"""compare.py without PyTorch, which a stand-in takes the place of: its hidden share against cases that are known beforehand, those of
test_bench_train_hidden.c; which tasks are left out; what is run and what of it counts; what PyTorch's side times, in which order."""

import contextlib
import io
import json
import os
import pathlib
import sys
import types
from unittest import mock

import compare

KINDS = ("whole", "waiting_pull", "device_copy_in", "device_compute", "device_copy_out", "waiting_device")
CASES = (
    ((10, 2, 4, 10, 3, 9), 1), ((11, 2, 4, 10, 3, 9), 0.75), ((13, 2, 4, 10, 3, 9), 0.25), ((20, 2, 4, 10, 3, 9), 0),
    ((20, 12, 4, 10, 3, 0), 1), ((20, 12, 4, 10, 3, 1), 0.9), ((20, 12, 4, 10, 3, 15), 0), ((30, 1, 2, 10, 20, 4), 0.6),
    ((30, 1, 20, 10, 2, 4), 0.6), ((10, 2, 0, 0, 0, 0), None), ((10, 0, 0, 9, 0, 9), None),
)


def spent_of(case):
    """As a report has it: all that the thread did adds up to the whole."""
    spent = dict(zip(KINDS, case))
    whole = spent.pop("whole")
    pull = spent["waiting_pull"] / 2
    return spent | {"pull": pull, "waiting_pull": pull, "other": whole - 2 * pull - spent["waiting_device"],
                    "waiting": pull + spent["waiting_device"]}


def test_hidden():
    for case, want in CASES:
        got = compare.hidden(spent_of(case))
        assert got == want or (got is not None and want is not None and abs(got - want) < 1e-12), f"{case}: {got}, not {want}"


def torch_with(gpu):
    return types.SimpleNamespace(__version__="0", cuda=types.SimpleNamespace(is_available=lambda: gpu))


class Runs:
    """In place of subprocess.run: notes each command; 'downpour' leaves a report whose first epoch is slow."""

    def __init__(self):
        self.commands = []

    def __call__(self, command, **_):
        command = list(map(str, command))
        self.commands.append(command)
        if command[0].endswith("downpour"):
            epochs = int(command[command.index("--epochs") + 1])
            report = {"epochs": [{"seconds": 100.0 if e == 0 else 2.0} for e in range(epochs)],
                      "data": {"examples": 1000}, "spent_s": {"device_compute": 8.0, "pull": 1.0, "other": 1.0}}
            pathlib.Path(command[command.index("--report") + 1]).write_text(json.dumps(report))
            return types.SimpleNamespace(returncode=0)
        out = {"examples": 1000, "seconds": [4.0] * 3, "cpu": 1.0, "quality": 0.0, "compute": 6.0}
        return types.SimpleNamespace(returncode=0, stdout=json.dumps(out).encode())


def compared(*flags, gpu=True, data=None):
    """The exit code, what was printed, and the commands that were run."""
    out, runs, env = io.StringIO(), Runs(), {k: v for k, v in os.environ.items() if k != "DOWNPOUR_DATA"}
    with mock.patch.dict(sys.modules, torch=torch_with(gpu)), mock.patch.object(sys, "argv", ["compare.py", *flags]), \
            mock.patch.dict(os.environ, env | ({"DOWNPOUR_DATA": data} if data else {}), clear=True), \
            mock.patch.object(compare.subprocess, "run", runs), contextlib.redirect_stdout(out), \
            mock.patch.object(compare, "prepare", lambda *_: ("x.npz", ("--train", "x.tsv"))):
        try:
            code = compare.main()
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), runs.commands


def test_tasks_without_data_are_left_out():
    code, out, commands = compared("--repeats", "1")
    assert code == 0 and len(commands) == 2, (code, out, commands)
    for name in ("mlp", "imdb", "mf"):
        assert f"left out: {name}: DOWNPOUR_DATA does not name" in out, out
    assert "left out: dlrm" not in out and compare.TASKS["dlrm"]["title"] in out, out
    code, out, commands = compared("--only", "mlp", data="/no/such/folder")
    assert code == compare.SKIP and not commands and "left out: mlp: no mnist." in out, (code, out)
    code, out, commands = compared(gpu=False)
    assert code == compare.SKIP and not commands and "left out: dlrm: this PyTorch sees no GPU" in out, (code, out)


def test_both_sides_warm_up():
    """1,000 examples: PyTorch 4 s an epoch, Downpour 2 s without its first one, in which a step's computing is 8 s of 4 epochs."""
    code, out, commands = compared("--only", "dlrm", "--repeats", "1", "--steps", "10")
    pytorch, downpour = commands
    assert code == 0 and pytorch[4] == "3" and downpour[downpour.index("--epochs") + 1] == "4", commands
    assert "2.00x" in out, out
    assert "Downpour, 1 server and 1 worker 200.00" in out and "SkylakeX 200.00" in out, out


def test_shards():
    for flags in (("--shards", "8"), ("--downpour=--shards 8",), ("--downpour", " --shards 8")):
        _, out, commands = compared("--only", "dlrm", "--repeats", "1", *flags)
        downpour = commands[1]
        assert downpour[downpour.index("--shards") + 1] == "8", commands
        assert downpour.count("--shards") == 1 and "Downpour with --shards 8" in out, (commands, out)


def pytorch_side():
    """pytorch_train with stand-ins for what it imports."""
    nn = types.SimpleNamespace()
    with mock.patch.dict(sys.modules, numpy=types.SimpleNamespace(), torch=types.SimpleNamespace(nn=nn)):
        import pytorch_train
    return pytorch_train


class Task:
    """Notes what is called, in order; each epoch has two steps, and each step computes for a second."""

    def __init__(self):
        self.calls, self.optimizers, self.computes = [], [self], 0

    def epoch(self):
        self.calls.append("epoch")
        yield self
        yield self

    def zero_grad(self, set_to_none):
        self.calls.append("zero")

    def backward(self):
        self.calls.append("backward")

    def computed(self):
        self.calls.append("computed")
        self.computes += 1

    def step(self):
        self.calls.append("step")

    def compute_seconds(self):
        return float(self.computes)


def test_first_epoch_is_not_counted():
    task = Task()
    seconds, _, compute = pytorch_side().train(task, 3, lambda: task.calls.append("synchronize"))
    assert len(seconds) == 3 and compute == 6.0, (seconds, compute)
    assert task.calls == 4 * ["epoch", *2 * ["zero", "backward", "computed", "step"], "synchronize"], task.calls


def test_gradients_are_coalesced_in_the_timed_span():
    calls = []

    class Gradient:
        def coalesce(self):
            calls.append("coalesce")
            return "coalesced"

    task = object.__new__(pytorch_side().Dlrm)
    task.device = "cuda"
    task.tables = [types.SimpleNamespace(weight=types.SimpleNamespace(grad=Gradient())) for _ in range(2)]
    task.spans = [[None, types.SimpleNamespace(record=lambda: calls.append("end"))]]
    task.computed()
    assert calls == ["coalesce", "coalesce", "end"], calls
    assert all(table.weight.grad == "coalesced" for table in task.tables)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print("ok", name)

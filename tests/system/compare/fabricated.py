"""Reports of comparisons whose truth is known, and the first paragraphs of the pages that `downpour report` makes of them.

A mode is a function of the seed: run(seed) -> a run (learning, failed, ...). Trainings learn along a curve that crosses the target at a given
time; the observer samples it every so often."""
import json, math, os, subprocess
from page_reader import Page

BASELINE, TARGET = 0.1, 0.8


def learning(end=0.9, seconds=2.0, examples_per_s=1000.0, every=0.05, length=2.5, scored=360, change=None):
    """Reaches the target after so many seconds, ends at `end`, `length` times as long after its begin. change: of the last sample."""
    slope = -math.log(1 - (TARGET - BASELINE) / (end - BASELINE)) / seconds if end > TARGET else 1 / seconds
    samples, count = [], int(length * seconds / every)
    for i in range(count + 1):
        accuracy = BASELINE + (end - BASELINE) * (1 - math.exp(-slope * i * every))
        accuracy = round(accuracy * scored) / scored if scored else accuracy
        samples.append({"seconds": i * every, "examples": int(i * every * examples_per_s), "pushes": i, "loss": 1.0,
                        "accuracy": accuracy})
    samples[-1]["accuracy"] = round(end * scored) / scored if scored else end
    samples[-1].update(change or {})
    return {"status": "ok", "error": "", "scored_examples": scored, "samples": samples,
            "report": {"constant": {"accuracy": BASELINE, "set": "training"}, "settings": {"batch": 10},
                       "throughput": {"examples_per_s": examples_per_s, "seconds": count * every}}}


def failed(error, **more):
    return {"status": "failed", "error": error, "samples": [], **more}


def report_of(modes, seeds, rates=(), target=TARGET):
    """modes: name -> run(seed)"""
    runs = [{"mode": name, "seed": seed, "dir": f"runs/{name}/seed-{seed}", **run(seed)}
            for seed in range(1, seeds + 1) for name, run in modes.items()]
    return {"kind": "comparison", "format": 1, "finished": True, "began": "today",
            "settings": {"model": "mlp:64-16-10", "workers": 4, "servers": 1, "seeds": list(range(1, seeds + 1)), "rates": list(rates),
                         "metric": "accuracy", "higher_is_better": True, "sample_every_s": 0.05,
                         "target": {"metric": "accuracy", "value": target, "chosen": "given"}},
            "modes": [{"name": name, "consistency": "async", "work": "fixed", "threads": 1, "workers": 4, "grid": []} for name in modes],
            "runs": [{key: value for key, value in run.items() if value is not None} for run in runs]}


class Pages:
    def __init__(self, downpour, where):
        self.downpour, self.where = downpour, where

    def paragraphs(self, modes, seeds, **more):
        """Those with the found and the warnings: the answer is the first, or behind what went wrong."""
        with open(os.path.join(self.where, "report.json"), "w") as file:
            json.dump(report_of(modes, seeds, **more), file)
        done = subprocess.run([self.downpour, "report", self.where], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return Page(os.path.join(self.where, "report.html")).paragraphs[1:]

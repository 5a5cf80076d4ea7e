#!/usr/bin/env python3
"""Goal    the least time of a run is that of a training in which nothing but its injected delays takes time, in each mode; its efficiency
        is that by its own seconds; the command and the page say it, and warn where it is low.
Method  reports of programs that train nothing (fake_programs.py); the delays are drawn here by the formula in
        common/config/injection.h, and each mode is played event by event.
usage: test_efficiency.py PATH/TO/downpour"""
import heapq, json, math, re, sys
from fake_bed import Bed

MASK, GOLDEN = 2**64 - 1, 0x9e3779b97f4a7c15
WORKERS, EXAMPLES, PACE = 4, 1437, 0.007
TIMES, LONGER = {1: 3.5}, {2: 0.005}


def mix(v):
    v &= MASK
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9 & MASK
    v = (v ^ v >> 27) * 0x94d049bb133111eb & MASK
    return v ^ v >> 31


class Job:
    """What is trained: batches an epoch, and how long each takes on a worker."""

    def __init__(self, settings):
        self.s, self.workers, self.every = settings, settings["workers"], settings.get("push_every", 1)
        self.batches = math.ceil(EXAMPLES / settings["batch"])
        self.rounds = math.ceil(math.ceil(self.batches / self.workers) / self.every)
        self.steps = self.rounds * settings["epochs"]

    def takes(self, worker, epoch, number):
        h = mix(GOLDEN + number + mix(GOLDEN + epoch + mix(GOLDEN + self.s["seed"])))
        d = -math.log((h // 2048 + 0.5) / 2**53)
        slow = "straggler" in self.s
        return PACE * d * (TIMES.get(worker, 1) if slow else 1) + (LONGER.get(worker, 0) if slow else 0)

    def group(self, share, r):
        """The minibatches of a worker's step in an epoch."""
        numbers = [share + self.workers * (r * self.every + i) for i in range(self.every)]
        return [n for n in numbers if n < self.batches]

    def step(self, worker, t):
        epoch, r = divmod(t, self.rounds)
        return sum(self.takes(worker, epoch, n) for n in self.group(worker, r))


def bounded(job, slack):
    """No worker begins step t before all have ended step t - slack - 1."""
    ended, busy, events, now = [0] * job.workers, [False] * job.workers, [], 0.0
    while True:
        for w in range(job.workers):
            if not busy[w] and ended[w] < job.steps and min(ended) >= ended[w] - slack:
                heapq.heappush(events, (now + job.step(w, ended[w]), w))
                busy[w] = True
        if not events:
            return now
        now, w = heapq.heappop(events)
        busy[w] = False
        ended[w] += 1


def backups(job, slack):
    """A step ends when all but `slack` have pushed it. With overlap the others give it up, if they have another in the epoch."""
    now, step, events, doing = 0.0, 0, [], {}
    def begin(w):
        doing[w] = (now + job.step(w, step), step)
        heapq.heappush(events, (doing[w][0], w, step))
    def gives_up(w):
        return job.s["overlap"] and bool(job.group(w, doing[w][1] % job.rounds + 1)) and doing[w][1] % job.rounds + 1 < job.rounds
    for w in range(job.workers):
        begin(w)
    pushed = set()
    while events:
        at, w, s = heapq.heappop(events)
        if doing.get(w) != (at, s): # given up
            continue
        now = at
        del doing[w]
        if s < step:
            if step < job.steps:
                begin(w)
            continue
        pushed.add(w)
        if len(pushed) < job.workers - slack:
            continue
        pushed, step = set(), step + 1
        for x in range(job.workers):
            if step < job.steps and (x not in doing or (doing[x][1] == step - 1 or job.s["overlap"]) and gives_up(x)):
                begin(x)
    return now


def leased(job):
    free, begun = [0.0] * job.workers, 0.0
    for epoch in range(job.s["epochs"]):
        takes = lambda w, p: sum(job.takes(w, epoch, n) for n in job.group(p % job.workers, p // job.workers))
        free, done = [max(f, begun) for f in free], {}
        portions = [p for p in range(job.workers * job.rounds) if job.group(p % job.workers, p // job.workers)]
        for p in portions:
            w = min(range(job.workers), key=lambda w: free[w])
            done[p] = free[w] = free[w] + takes(w, p)
        while True:
            last = max(done, key=done.get)
            end, w = min((free[w] + takes(w, last), w) for w in range(job.workers))
            if end >= done[last]:
                break
            done[last] = free[w] = end
        begun = max(done.values())
    return max(free)


def threads(job):
    now = 0.0
    for t in range(job.steps):
        free = [now] * job.s["threads"]
        for n in job.group(0, t % job.rounds):
            heapq.heapreplace(free, free[0] + job.takes(0, t // job.rounds, n))
        now = max(free)
    return now


PLAYED = {"async": lambda job: bounded(job, 10**9), "ssp:2": lambda job: bounded(job, 2), "sync": lambda job: bounded(job, 0),
          "sync:1": lambda job: backups(job, 1), "sync:2": lambda job: backups(job, 2), "async:leased": leased,
          "hogwild@3": threads, "allreduce": lambda job: bounded(job, 0)}
FLAGS = ["--lr-grid", "none", "--workers", str(WORKERS), "--inject", "pace=7ms,jitter=exp,straggler=1:3.5x,2:5ms"]


def each_least_time_is_that_of_the_events(bed):
    # Seed 1: as the paper has it; seed 2: three minibatches a push.
    compare_all(bed, "least", {1: {"push_every": 1}, 2: {"push_every": 3}}, PLAYED)
    compare_all(bed, "ahead", {1: {"push_every": 1}}, {f"{m}+prefetch": play for m, play in PLAYED.items() if m != "allreduce"})


def compare_all(bed, name, settings, played):
    but = {}
    for mode in played:
        for seed, one in settings.items():
            one = {**one, "fetch_every": one["push_every"], "accumulate": 1}
            if mode.startswith("hogwild@3"):
                one.update(push_every=16, fetch_every=16)
            but[f"runs/{mode.replace(':', '-')}/seed-{seed}"] = {"settings": one}
    where, report, said = bed.compare(name, ["--modes", ",".join(played), *FLAGS, "--seeds", str(len(settings))], but)
    for run in report["runs"]:
        name = f"{run['mode']}, seed {run['seed']}"
        bed.check(f"{name}: status", (run["status"], run["error"]), ("ok", ""))
        least = played[run["mode"]](Job(run["report"]["settings"]))
        if abs(run.get("least_seconds", 0) - least) > 1e-6 * least:
            bed.fail(f"{name}: least time {run.get('least_seconds')}, not {least}")
        took = run["report"]["throughput"]["seconds"]
        if abs(run.get("efficiency", 0) - least / took) > 1e-6:
            bed.fail(f"{name}: efficiency {run.get('efficiency')}, not {least / took}")
    check_words(bed, where, report, said, played)


def check_words(bed, where, report, said, played):
    said = re.sub(r"\s+", " ", said)
    page = open(where + "/report.html").read()
    means = {m: [r["efficiency"] for r in report["runs"] if r["mode"] == m] for m in played}
    shares = ", ".join(f"{m} {100 * min(1, sum(e) / len(e)):.0f}%" for m, e in means.items())
    words = f"Of the speed that the injected delays allow, runs reached: {shares}."
    worst = min(report["runs"], key=lambda r: r["efficiency"])
    low = sum(r["efficiency"] < 0.9 for r in report["runs"])
    warning = (f"{low} of {len(report['runs'])} runs came to less than 90% of the speed that their delays allow{'; the worst' if low > 1 else ''}: {worst['mode']} with "
               f"seed {worst['seed']} took {1 / worst['efficiency']:.2f} times its least time.")
    for text in (words, warning):
        bed.check(f"'{text}' is said, and on the page", (text in said, text in page), (True, True))


def without_delays_nothing_is_said(bed):
    but = {f"runs/{m}/seed-1": {"settings": {"push_every": 1, "fetch_every": 1, "accumulate": 1, "overlap": False}}
           for m in ("async", "sync")}
    where, report, said = bed.compare("none", ["--modes", "async,sync", "--workers", "999", "--seeds", "1"], but)
    for run in report["runs"]:
        bed.check(f"{run['mode']} without delays", ("least_seconds" in run, "efficiency" in run), (False, False))
        bed.check(f"{run['mode']}: the machine's load is kept", run["machine"]["load"] >= 0, True)
    bed.check("efficiency without delays is said", "injected delays allow" in said, False)
    crowded = "More workers than this machine has processors: async, sync."
    bed.check("that workers outnumber processors is said", crowded in re.sub(r"\s+", " ", said), True)


def busy_machines_are_named(bed):
    where, report, _ = bed.compare("busy", ["--modes", "async,sync", "--seeds", "2", "--lr-grid", "none"])
    for tries, machines, words in (
            [[], [(0.4, 0.01), (3, 0.02), (3, 0), (3, 0)], ""], # a load behind the first run is that of the comparison
            [[1001], [(2.5, 0), (3, 0), (3, 0), (3, 0)], ""], # and one behind the tries of rates, too
            [[], [(2.5, 0), (3, 0.021), (3, 0.07), (3, 0.03)],
             "The machine was busy when the comparison began (load 2.5). Its host gave up to 7% of its processor time to others "
             f"({report['runs'][2]['mode']} with seed {report['runs'][2]['seed']})."]):
        report["settings"]["grid_seeds"] = tries
        for run, (load, steal) in zip(report["runs"], machines):
            run["machine"] = {"load": load, "steal_share": steal}
        json.dump(report, open(where + "/report.json", "w"))
        bed.check("exit code of report", bed.call(["report", where]).returncode, 0)
        page = open(where + "/report.html").read()
        bed.check(f"'{words}' is on the page", (words in page, "The machine was" in page), (True, words != ""))


def main():
    with Bed(sys.argv[1]) as bed:
        each_least_time_is_that_of_the_events(bed)
        without_delays_nothing_is_said(bed)
        busy_machines_are_named(bed)
    sys.exit(bed.failures > 0)


if __name__ == "__main__":
    main()

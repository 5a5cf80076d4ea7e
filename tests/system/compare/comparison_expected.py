"""What the report and the page of a comparison must say, worked out from the reports and samples of its runs alone."""
import json, math
from page_numbers import is_number

KINDS = [("computing", ["compute"]), ("waiting for the device", ["waiting_device"]), ("reading data", ["read"]),
         ("preparing requests", ["pull", "push"]), ("waiting for rows", ["waiting_pull"]),
         ("waiting for answers to pushes", ["waiting_push"]), ("waiting for other workers", ["waiting_rule"]),
         ("injected delays", ["injected"]), ("other", None)]
NOT_KINDS = ("waiting", "device_copy_in", "device_compute", "device_copy_out")
QUANTITIES = ("metric", "loss", "seconds_to_target", "examples_to_target", "examples_per_s", "minibatches_per_s", "seconds")
GRID = 200 # points of a curve


def shares(spent):
    """Seconds of each kind; a kind that is not known is in the last."""
    known = {key for _, keys in KINDS for key in keys or ()}
    return [sum(spent.get(key, 0) for key in keys) if keys else
            sum(s for key, s in spent.items() if key not in known and key not in NOT_KINDS) for _, keys in KINDS]


def student(freedom):
    """The 97.5% quantile, by bisection over the integral of the density."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    density = lambda t: scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
    def below(t, n=4000):
        h = t / n
        return 0.5 + h / 3 * sum((1 if i in (0, n) else 4 if i % 2 else 2) * density(i * h) for i in range(n + 1))
    low, high = 1.0, 20.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < 0.975 else (low, middle)
    return low


def interval(values):
    """Of the mean of those that are there."""
    values = [v for v in values if is_number(v)]
    n = len(values)
    if n < 2:
        return {"n": n, "mean": values[0] if n else None, "sd": None, "low": None, "high": None}
    mean = math.fsum(values) / n
    sd = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = student(n - 1) * sd / math.sqrt(n)
    return {"n": n, "mean": mean, "sd": sd, "low": mean - half, "high": mean + half}


def load(path):
    """With the ten digits of a number that the comparison's report keeps."""
    return json.load(open(path), parse_float=lambda text: float(f"{float(text):.10g}"))


class Run:
    """Of runs/MODE/seed-N."""

    def __init__(self, where, mode, seed):
        self.seed = seed
        self.dir = f"runs/{mode.replace(':', '-')}/seed-{seed}"
        self.report = load(f"{where}/{self.dir}/report.json")
        self.samples = load(f"{where}/{self.dir}/samples.json")["samples"]
        self.good = self.report["finished"] is True

    def value(self, quantity, metric, target):
        if not self.good:
            return None
        reached = next((s for s in self.samples if is_number(s[metric]) and s[metric] >= target), {})
        throughput = self.report["throughput"]
        return {"metric": self.samples[-1][metric], "loss": self.samples[-1]["loss"],
                "seconds_to_target": reached.get("seconds"), "examples_to_target": reached.get("examples"),
                "examples_per_s": throughput["examples_per_s"],
                "minibatches_per_s": throughput["examples_per_s"] / self.report["settings"]["batch"],
                "seconds": throughput["seconds"]}[quantity]

    def at(self, key, over, x):
        """What was known last at x."""
        before = [s for s in self.samples if s[over] <= x]
        return before[-1][key] if before else None


class Comparison:
    def __init__(self, where, modes, seeds, metric, target):
        self.modes, self.metric, self.target = modes, metric, target
        self.runs = {mode: [Run(where, mode, seed) for seed in seeds] for mode in modes}
        if target is None: # the median run of the worst mode: of two in the middle the worse
            ends = {m: sorted(r.samples[-1][metric] for r in self.good(m) if is_number(r.samples[-1][metric])) for m in modes}
            self.target = min(e[(len(e) - 1) // 2] for e in ends.values() if e)

    def good(self, mode):
        return [run for run in self.runs[mode] if run.good]

    def values(self, mode, quantity):
        return [run.value(quantity, self.metric, self.target) for run in self.runs[mode]]

    def own(self, mode, quantity):
        out = interval(self.values(mode, quantity))
        if is_number(out["low"]) and out["low"] < 0 <= out["mean"]:
            out["low"] = 0.0
        return out

    def pairs(self, mode, quantity):
        first, other = self.values(self.modes[0], quantity), self.values(mode, quantity)
        return [(a, b) for a, b in zip(other, first) if is_number(a) and is_number(b)]

    def difference(self, mode, quantity):
        return interval([a - b for a, b in self.pairs(mode, quantity)])

    def ratio(self, mode, quantity):
        pairs = self.pairs(mode, quantity)
        if any(a <= 0 or b <= 0 for a, b in pairs):
            return interval([])
        out = interval([math.log(a / b) for a, b in pairs])
        return {**out, **{key: math.exp(out[key]) for key in ("mean", "low", "high") if out[key] is not None}}

    # ---- plots

    def curves(self, key, over):
        """mode -> [(x, mean, least, greatest)] up to the end of the mode's last run."""
        ends = {m: max((r.samples[-1][over] for r in self.good(m)), default=0) for m in self.modes}
        end = max(ends.values())
        grid = [end * i / (GRID - 1) for i in range(GRID - 1)] + [end]
        out = {}
        for mode in self.modes:
            points = []
            for x in grid:
                values = [v for v in (run.at(key, over, x) for run in self.good(mode)) if is_number(v)]
                points.append((x, math.fsum(values) / len(values), min(values), max(values)) if values else (x, None, None, None))
                if x >= ends[mode]:
                    break
            if sum(is_number(p[1]) for p in points) > 1:
                out[mode] = points
        return out

    def staleness(self, gap):
        """mode -> % of its pushes in each bucket; buckets above the last that has something say nothing."""
        sums = {}
        for mode in self.modes:
            for run in self.good(mode):
                one = run.report["staleness"]
                counts = one["clock_gap"]["histogram"]["counts"] if gap else one["histogram"]
                for b, count in enumerate(counts):
                    sums.setdefault(mode, {})[b] = sums.get(mode, {}).get(b, 0) + count
        buckets = 1 + max(b for one in sums.values() for b, count in one.items() if count)
        return {mode: [100 * one.get(b, 0) / sum(one.values()) for b in range(buckets)] for mode, one in sums.items()}

    def shares(self, mode):
        """% of all workers' time in all good runs, by kind; None: there is none."""
        sums = [math.fsum(s) for s in zip(*(shares(run.report["spent_s"]) for run in self.good(mode)))]
        return [100 * s / math.fsum(sums) for s in sums] if sums else None

    def work(self, mode, part, key):
        """% of the examples of all epochs"""
        runs = [run.report for run in self.good(mode)]
        planned = sum(report["applied"]["planned"] for report in runs)
        return f"{100 * sum(report[part][key] for report in runs) / planned:.0f}%" if runs else "-"

    def dropped(self, mode):
        """% of the examples that were computed"""
        lost = sum(run.report["dropped"]["examples"] for run in self.good(mode))
        used = sum(run.report["throughput"]["examples_per_s"] * run.report["throughput"]["seconds"] for run in self.good(mode))
        return 100 * lost / (lost + used) if self.good(mode) else 0

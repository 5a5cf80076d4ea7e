"""What the report and the page of a comparison must say, worked out from the reports and samples of its runs alone."""
import functools, json, math
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


class Distributions:
    """Two-sided, by arithmetic alone; recompute.py has those of SciPy."""

    @staticmethod
    def t_p(t, freedom, n=4000):
        """By the substitution t = sqrt(v) tan(a) the integrand has no tails."""
        end, power = math.atan(abs(t) / math.sqrt(freedom)), freedom - 1
        f = lambda a: math.cos(a) ** power
        def area(a, b):
            h = (b - a) / n
            return h / 3 * math.fsum((1 if i in (0, n) else 4 if i % 2 else 2) * f(a + i * h) for i in range(n + 1))
        return area(end, math.pi / 2) / area(0, math.pi / 2)

    @classmethod
    @functools.cache
    def t_quantile(cls, p, freedom):
        return _bisect(lambda t: cls.t_p(t, freedom, 400) > p)

    @staticmethod
    def z_p(z):
        return math.erfc(abs(z) / math.sqrt(2))

    @classmethod
    @functools.cache
    def z_quantile(cls, p):
        return _bisect(lambda z: cls.z_p(z) > p)

    @staticmethod
    def fisher(a, of_a, b, of_b):
        chance = lambda k: math.comb(of_a, k) * math.comb(of_b, a + b - k) / math.comb(of_a + of_b, a + b)
        tables = [chance(k) for k in range(max(0, a + b - of_b), min(of_a, a + b) + 1)]
        return min(1, sum(c for c in tables if c <= chance(a) * (1 + 1e-7)))


def _bisect(is_below):
    low, high = 0.0, 1.0
    while is_below(high):
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return high


def load(path):
    """With the ten digits of a number that the comparison's report keeps."""
    return json.load(open(path), parse_float=lambda text: float(f"{float(text):.10g}"))


class Run:
    """One of a comparison. metric, target: what is compared; is_good: it was trained to its end."""

    def __init__(self, seed, dir, report, samples, is_good, says_diverged=False):
        self.seed, self.dir, self.report, self.samples, self.good = seed, dir, report, samples, is_good
        self.says_diverged = says_diverged

    def outcome(self, metric, higher):
        """good, diverged or failed"""
        if not self.good or not self.samples:
            return "diverged" if self.says_diverged else "failed"
        end, first = self.samples[-1].get(metric), self.samples[0].get(metric)
        if not is_number(end) or self.samples[-1].get("loss", 0) is None:
            return "diverged"
        constant = self.report.get("constant", {})
        worse = lambda than, by: than is not None and (end < than - by * abs(than) if higher else end > than + by * abs(than))
        is_worse_than_baseline = worse(constant.get(metric), 0 if constant.get("set") == "test" else 0.05)
        is_worse_than_begin = len(self.samples) > 1 and worse(first, 0 if self.samples[0]["examples"] == 0 else 0.05)
        return "diverged" if is_worse_than_baseline or is_worse_than_begin or self.says_diverged else "good"

    def span(self, quantity, metric, target, higher):
        """What was measured lies in between: (low, at, high), or None."""
        if not self.good:
            return None
        if quantity.endswith("_to_target"):
            return self.crossing(quantity.split("_")[0], metric, target, higher)
        throughput = self.report["throughput"]
        value = {"metric": self.samples[-1].get(metric) if self.samples else None,
                 "loss": self.samples[-1]["loss"] if self.samples else None,
                 "examples_per_s": throughput["examples_per_s"],
                 "minibatches_per_s": throughput["examples_per_s"] / self.report["settings"]["batch"],
                 "seconds": throughput["seconds"]}[quantity]
        return (value, value, value) if is_number(value) else None

    def crossing(self, key, metric, target, higher):
        before = (0.0, None)
        for sample in self.course("examples"):
            value = sample.get(metric)
            if not is_number(value):
                continue
            if value >= target if higher else value <= target:
                low, below = before
                share = 1 if below is None else (target - below) / (value - below)
                return low, low + share * (sample[key] - low), sample[key]
            before = (sample[key], value)
        return None

    def value(self, quantity, metric, target, higher=True):
        span = self.span(quantity, metric, target, higher)
        return span[1] if span else None

    def course(self, over):
        """The samples of its curve: over examples those by examples alone, where there are any."""
        if over == "seconds" or not any(s.get("by") == "examples" for s in self.samples):
            return self.samples
        return [s for i, s in enumerate(self.samples) if i in (0, len(self.samples) - 1) or s.get("by") != "time"]

    def at(self, key, over, x):
        """Straight between two samples; after the last one its value."""
        before = [s for s in self.course(over) if s[over] <= x]
        after = [s for s in self.course(over) if s[over] > x]
        if not before or not after or not all(is_number(s[key]) for s in (before[-1], after[0])):
            return before[-1][key] if before and not after else None
        a, b = before[-1], after[0]
        return a[key] + (b[key] - a[key]) * (x - a[over]) / (b[over] - a[over])


def run_of_files(where, mode, seed):
    """Of runs/MODE/seed-N."""
    dir = f"runs/{mode.replace(':', '-')}/seed-{seed}"
    report = load(f"{where}/{dir}/report.json")
    return Run(seed, dir, report, load(f"{where}/{dir}/samples.json")["samples"], report["finished"] is True)


class Scale:
    def __init__(self, quantity, metric, examples):
        self.logit = quantity == "metric" and metric.split("@")[0] in ("accuracy", "auc", "hr", "ndcg", "recall")
        self.name = "logit" if self.logit else "log"
        self.examples = examples if self.logit and metric == "accuracy" else None

    def inside(self, share):
        edge = 0.5 / self.examples if self.examples else 1e-6
        return min(max(share, edge), 1 - edge)

    def to(self, value):
        share = self.inside(value) if self.logit else None
        return math.log(share / (1 - share)) if self.logit else math.log(max(value, 1e-9))

    def back(self, x):
        return 1 / (1 + math.exp(-x)) if self.logit else math.exp(x)

    def error(self, x):
        share = self.inside(self.back(x)) if self.examples else 0
        return 1 / math.sqrt(self.examples * share * (1 - share)) if self.examples else 0.0


def spread(values):
    """mean and sample standard deviation"""
    mean = math.fsum(values) / len(values) if values else None
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else None


class Comparison:
    """runs: mode -> its runs, in the order of the seeds. target None: the automatic one."""

    def __init__(self, modes, runs, metric, target, examples, higher=True, distributions=Distributions):
        self.modes, self.runs, self.metric, self.higher, self.examples = modes, runs, metric, higher, examples
        self.distributions = distributions
        self.target = self.automatic() if target is None else target

    def ended(self, mode, outcome="good"):
        return [run for run in self.runs[mode] if run.outcome(self.metric, self.higher) == outcome]

    def status(self, run):
        """In tables."""
        outcome = run.outcome(self.metric, self.higher)
        return "ok" if outcome == "good" else outcome

    def good(self, mode):
        """Trained to their ends."""
        return [run for run in self.runs[mode] if run.good]

    def is_whole(self, mode):
        return bool(self.runs[mode]) and len(self.ended(mode)) == len(self.runs[mode])

    def automatic(self):
        """95% of the way from the baseline to what the median seed of the best mode keeps over its last tenth of samples."""
        worst, best = (min, max) if self.higher else (max, min)
        kept = {}
        for mode in self.modes:
            own = sorted(worst(s[self.metric] for s in run.samples[-math.ceil(len(run.samples) / 10):] if is_number(s[self.metric]))
                         for run in self.ended(mode))
            if own:
                kept[mode] = own[(len(own) - 1) // 2 if self.higher else len(own) // 2]
        whole = [m for m in kept if self.is_whole(m)]
        first = best(kept[m] for m in whole)
        baseline = self.ended(next(m for m in whole if kept[m] == first))[-1].report["constant"][self.metric]
        return baseline + 0.95 * (first - baseline)

    def scale(self, quantity):
        return Scale(quantity, self.metric, self.examples)

    def span(self, run, quantity):
        return run.span(quantity, self.metric, self.target, self.higher) if run.outcome(self.metric, self.higher) == "good" else None

    def reached(self, mode, quantity="seconds_to_target"):
        return sum(self.span(run, quantity) is not None for run in self.runs[mode])

    def own(self, mode, quantity):
        return self.interval(self.scale(quantity), [self.span(run, quantity) for run in self.runs[mode]])

    def interval(self, scale, spans):
        """Of the mean of those that are there."""
        d, spans = self.distributions, [s for s in spans if s]
        n = len(spans)
        low, at, high = [[scale.to(s[k]) for s in spans] for k in range(3)]
        mean, sd = spread(at)
        if n < 2:
            return {"n": n, "mean": scale.back(mean) if n else None, "sd": None, "low": None, "high": None}
        floor = d.z_quantile(0.05) * scale.error(mean)
        t = d.t_quantile(0.05, n - 1) / math.sqrt(n)
        bound = lambda values, sign: spread(values)[0] + sign * t * spread(values)[1]
        return {"n": n, "mean": scale.back(mean), "sd": sd, "low": scale.back(min(bound(low, -1), mean - floor)),
                "high": scale.back(max(bound(high, 1), mean + floor))}

    # ---- claims

    def evidence(self, quantity, mode, beside):
        """{n, p, ...} of mode beside another one, all but its level."""
        d, scale = self.distributions, self.scale(quantity)
        out = {"quantity": quantity, "mode": mode, "beside": beside, "scale": scale, "test": "t", "n": 0, "p": 1.0, "judged": False}
        if not self.is_whole(mode) or not self.is_whole(beside):
            return out
        counts = [(self.reached(m, quantity), len(self.runs[m])) for m in (mode, beside)]
        if quantity.endswith("_to_target") and any(a < b for a, b in counts):
            if quantity == "seconds_to_target":
                out.update(test="fisher", p=d.fisher(*counts[0], *counts[1]))
            return out
        pairs = [(self.span(a, quantity), self.span(b, quantity)) for a, b in zip(self.runs[mode], self.runs[beside])]
        pairs = [([scale.to(v) for v in a], [scale.to(v) for v in b]) for a, b in pairs if a and b]
        at, low, high = ([a[i] - b[2 - i] for a, b in pairs] for i in (1, 0, 2))
        out.update(n=len(pairs), at=spread(at), low=spread(low), high=spread(high),
                   middle=spread([(a[1] + b[1]) / 2 for a, b in pairs])[0])
        out["error"] = scale.error(out["middle"]) if pairs else 0
        out["judged"] = (len(pairs) >= 3 and out["high"][0] - out["low"][0] <= 7 and
                         not (scale.logit and not out["error"] and out["at"][1] < 1e-12))
        if out["judged"]:
            out["p"] = self._p(out)
        return out

    def _p(self, e):
        d = self.distributions
        def p_of(mean, sd):
            return float(abs(mean) < 1e-12) if sd < 1e-12 else d.t_p(mean / sd * math.sqrt(e["n"]), e["n"] - 1)
        p = p_of(*e["low"]) if e["low"][0] > 0 else p_of(*e["high"]) if e["high"][0] < 0 else 1.0
        return max(p, d.z_p(e["at"][0] / e["error"])) if e["error"] else p

    def with_level(self, e, alpha):
        """Its intervals: of the difference, and of the ratio where the scale is a logarithm."""
        d, scale = self.distributions, e["scale"]
        out = {**e, "level": 1 - alpha, "difference": {"n": e["n"]}, "ratio": {"n": 0}}
        if e["n"] == 0:
            return out
        low = high = None
        if e["judged"]:
            t, floor = d.t_quantile(alpha, e["n"] - 1) / math.sqrt(e["n"]), d.z_quantile(alpha) * e["error"]
            low = min(e["low"][0] - t * e["low"][1], e["at"][0] - floor)
            high = max(e["high"][0] + t * e["high"][1], e["at"][0] + floor)
        apart = lambda by: None if by is None else scale.back(e["middle"] + by / 2) - scale.back(e["middle"] - by / 2)
        ratio = lambda by: None if by is None else math.exp(by)
        for key, f in (("difference", apart), ("ratio", ratio)):
            if key == "difference" or not scale.logit:
                out[key] = {"n": e["n"], "mean": f(e["at"][0]), "sd": e["at"][1], "low": f(low), "high": f(high)}
        return out

    def claims(self):
        """All that a page may claim, with Holm's levels."""
        pairs = [("seconds_to_target", m, b) for i, m in enumerate(self.modes) for b in self.modes[:i]]
        pairs += [(q, m, self.modes[0]) for q in ("examples_to_target", "metric", "examples_per_s") for m in self.modes[1:]]
        family = [self.evidence(*pair) for pair in pairs]
        holds, alpha, out = True, None, {}
        for k, e in enumerate(sorted(family, key=lambda e: e["p"])):
            alpha = 0.05 / (len(family) - k) if holds else alpha
            holds = holds and e["p"] <= alpha
            out[e["quantity"], e["mode"], e["beside"]] = {**self.with_level(e, alpha), "shown": holds}
        return out

    # ---- plots

    def curves(self, key, over):
        """mode -> [(x, mean, low, high)] of the good runs, up to the end of the mode's last one."""
        ends = {m: max((r.samples[-1][over] for r in self.ended(m)), default=0) for m in self.modes}
        end, scale = max(ends.values()), Scale("metric", key, self.examples)
        grid = [end * i / (GRID - 1) for i in range(GRID - 1)] + [end]
        out = {}
        for mode in self.modes:
            points, past = [], False
            for x in grid:
                values = [] if past else [run.at(key, over, x) for run in self.ended(mode)]
                one = self.interval(scale, [(v, v, v) for v in values if is_number(v)])
                points.append((x, one["mean"], one["low"], one["high"]))
                past = past or x >= ends[mode]
            if sum(is_number(p[1]) for p in points) > 1:
                out[mode] = points
        return out

    def seconds_to_losses(self):
        """mode -> [(loss, mean, low, high)], where all its good runs reached it after their second sample."""
        means = [[p[1] for p in points if is_number(p[1])] for points in self.curves("loss", "seconds").values()]
        least, first, out = min(map(min, means)), min(m[0] for m in means), {}
        for mode in self.modes:
            points = []
            for loss in (least * (first / least) ** (i / GRID) for i in range(GRID)):
                spans = [run.crossing("seconds", "loss", loss, False) for run in self.ended(mode)]
                one = self.interval(Scale("loss", "", None), spans if all(s and s[0] > 0 for s in spans) else [])
                points.append((loss, one["mean"], one["low"], one["high"]))
            if sum(is_number(p[1]) for p in points) > 1:
                out[mode] = points
        return out

    def ends_high(self):
        """Accuracies are drawn as 1 - accuracy."""
        last = [[p[1] for p in points if is_number(p[1])][-1] for points in self.curves("accuracy", "seconds").values()]
        return max(last) > 0.9

    def plain(self, values):
        """Of a mean that has no scale."""
        mean, sd = spread(values)
        half = self.distributions.t_quantile(0.05, len(values) - 1) * sd / math.sqrt(len(values)) if len(values) > 1 else None
        return {"n": len(values), "mean": mean, "low": mean - half if half is not None else None, "high": mean + half if half is not None else None}

    def staleness(self, gap):
        """mode -> the interval of the % of a run's pushes in each bucket; buckets above the last that has something say nothing."""
        runs = {}
        for mode in self.modes:
            for run in self.good(mode):
                one = run.report["staleness"]
                runs.setdefault(mode, []).append(one["clock_gap"]["histogram"]["counts"] if gap else one["histogram"])
        buckets = 1 + max(b for counts in runs.values() for one in counts for b, count in enumerate(one) if count)
        out = {}
        for mode, counts in runs.items():
            percent = [[100 * (one[b] if b < len(one) else 0) / sum(one) for one in counts] for b in range(buckets)]
            out[mode] = [self.plain(values) for values in percent]
        return out

    def shares(self, mode):
        """% of all workers' time in all good runs, by kind; None: there is none."""
        sums = [math.fsum(s) for s in zip(*(shares(run.report["spent_s"]) for run in self.good(mode)))]
        return [100 * s / math.fsum(sums) for s in sums] if sums else None

    def share(self, mode, part, key):
        """Of the examples of all epochs; None: it has no runs."""
        runs = [run.report for run in self.good(mode)]
        return sum(report.get(part, {}).get(key, 0) for report in runs) / sum(report["applied"]["planned"] for report in runs) if runs else None

    def work(self, mode, part, key):
        share = self.share(mode, part, key)
        return "-" if share is None else f"{100 * share:.0f}%"

#!/usr/bin/env python3
"""Works out all statistics that a comparison prints, from the runs in its report.json alone, with the distributions of SciPy, and holds
them against its report and its page.
usage: recompute.py DIR                 of a comparison that has a page
       recompute.py --of PATH/TO/downpour      of comparisons made for it (fake_bed.py)
Without SciPy it is skipped (exit code 77)."""
import json, os, sys
try:
    from scipy import stats
except ImportError:
    print("skipped: SciPy is not installed (Debian: apt-get install python3-scipy)")
    sys.exit(77)
from comparison_expected import Comparison, Run
from fake_bed import Bed
from page_reader import Page
from test_pages import check_results, check_statistics, check_words


class SciPy:
    @staticmethod
    def t_p(t, freedom):
        return 2 * stats.t.sf(abs(t), freedom)

    @staticmethod
    def t_quantile(p, freedom):
        return stats.t.isf(p / 2, freedom)

    @staticmethod
    def z_p(z):
        return 2 * stats.norm.sf(abs(z))

    @staticmethod
    def z_quantile(p):
        return stats.norm.isf(p / 2)

    @staticmethod
    def fisher(a, of_a, b, of_b):
        return stats.fisher_exact([[a, of_a - a], [b, of_b - b]])[1]


class Found:
    """What test_pages.py needs of a bed."""
    failures = 0

    def fail(self, text):
        self.failures += 1
        print("FAILED:", text)

    def check(self, what, got, right):
        if got != right:
            self.fail(f"{what} is {got!r}, not {right!r}")


def comparison_of(root):
    settings, modes, by_mode = root["settings"], [mode["name"] for mode in root["modes"]], {}
    for run in sorted(root["runs"], key=lambda run: settings["seeds"].index(run["seed"])):
        by_mode.setdefault(run["mode"], []).append(Run(run["seed"], run["dir"], run.get("report", {}), run.get("samples", []),
                                                       run["status"] == "ok", run.get("diverged", False)))
    scored = [run["scored_examples"] for run in root["runs"] if "scored_examples" in run]
    return Comparison(modes, {mode: by_mode.get(mode, []) for mode in modes}, settings["metric"], settings["target"]["value"],
                      scored[0] if scored else None, settings["higher_is_better"], SciPy)


def recompute(found, where):
    root = json.load(open(os.path.join(where, "report.json")))
    right = comparison_of(root)
    page = Page(os.path.join(where, "report.html"))
    check_statistics(found, where, root, right)
    check_results(found, page, root, right)
    check_words(found, page, root, right)
    print(f"{where}: {len(root['claims'])} claims and {7 * len(right.modes)} intervals recomputed")


def of_fakes(found, downpour):
    with Bed(downpour) as bed:
        where, _, _ = bed.compare("drawn", ["--modes", "sync,async,ssp:4,hogwild", "--workers", "2", "--target", "accuracy:0.6",
                                            "--seeds", "5", "--sample-every", "50ms"], {"runs/hogwild/seed-2": {"samples": "short"}})
        recompute(found, where)
        where, _, _ = bed.compare("one", ["--modes", "async,sync", "--workers", "2", "--seeds", "2", "--sample-every", "50ms"])
        recompute(found, where)
        found.failures += bed.failures


if __name__ == "__main__":
    found = Found()
    if len(sys.argv) == 3 and sys.argv[1] == "--of":
        of_fakes(found, sys.argv[2])
    elif len(sys.argv) == 2:
        recompute(found, sys.argv[1])
    else:
        sys.exit(__doc__)
    sys.exit(found.failures > 0)

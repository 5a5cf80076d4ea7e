#!/usr/bin/env python3
"""Checks the form of the tree (README.md next to this file says how to read and mend the findings).

    tests/tree/check.py [--build DIR]      DIR: a finished build, whose objects say which file calls which

Each finding is one line `rule subject ...`. allowed.txt lists known findings, some with a number. A finding that is not
listed fails, and so does a line there without a finding: the list only shrinks. totals.txt has the sizes of the tree."""
import argparse
import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
PRODUCT = ("common", "server", "worker", "deploy", "proto")
FUNCTION_LINES_MAX = 70
COMMENT_COLUMNS = 110  # of a line of code or comment, as .clang-format and .editorconfig have it
PROSE_COLUMNS = 120  # of a line of a manual; tables, code and links may be wider
USERS_MAX = 8  # files of a header's own room that include it
CODE = (".c", ".h", ".cu", ".cuh")


class Tree:
    """The files, their text, and their text without comments, strings and directives (line numbers kept)."""

    def __init__(self, root):
        self.root = root
        self.files = []
        for top in PRODUCT + ("tests",):
            for folder, folders, names in os.walk(os.path.join(root, top)):
                folders[:] = sorted(f for f in folders if not f.startswith(("build", ".", "__")))
                self.files += [os.path.relpath(os.path.join(folder, n), root) for n in sorted(names)]
        self.files.append("README.md")
        self.manuals = [f for f in self.files if f.endswith(".md")]
        self.code = [f for f in self.files if f.endswith(CODE)]
        self.product = [f for f in self.code if f.startswith(PRODUCT)]
        self.text = {f: read(os.path.join(root, f)) for f in self.code + self.manuals}
        self.bare = {f: strip(self.text[f]) for f in self.code}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def uncomment(text):
    return TOKEN.sub(lambda m: "\n" * m.group(0).count("\n") if m.group(0)[0] == "/" else m.group(0), text)


def strip(text):
    def blank(match):
        token = match.group(0)
        return "\n" * token.count("\n") if token[0] == "/" else token[0] * 2

    text = TOKEN.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.M)


def circles(edges):
    """The strongly connected components of more than one node (Tarjan 1972, without recursion)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for start in sorted(edges):
        if start in index:
            continue
        work = [(start, iter(sorted(edges.get(start, ()))))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on.add(target)
                    work.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in on:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on.discard(part[-1])
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def includes(tree):
    """file -> the files of the tree that it includes"""
    known = set(tree.code)
    edges = {}
    for file in tree.code:
        edges[file] = set()
        for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', tree.text[file], re.M):
            beside = os.path.join(os.path.dirname(file), name)
            for path in (name, os.path.normpath(beside)):
                if path in known and path != file:
                    edges[file].add(path)
                    break
    return edges


def objects(tree, build):
    """source -> its object in the build, for the product's files; and the sources that have none"""
    found = {}
    for entry in json.loads(read(os.path.join(build, "compile_commands.json"))):
        source = os.path.relpath(os.path.realpath(entry["file"]), os.path.realpath(tree.root))
        output = entry.get("output") or re.search(r" -o (\S+)", entry["command"]).group(1)
        path = os.path.join(entry["directory"], output)
        if not source.startswith(PRODUCT) or not os.path.exists(path):
            continue
        if source not in found or not output.startswith("tests/"):
            found[source] = path
    missing = [f for f in tree.product if f.endswith(".c") and f not in found]
    return found, missing


def calls(found):
    """file -> {file that it calls or reads from: the symbols}, from the objects' symbol tables"""
    source_of = {path: source for source, path in found.items()}
    defined, wanted = {}, collections.defaultdict(set)
    listing = subprocess.run(["nm", "-A", "-g"] + sorted(source_of), capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        path, rest = line.rsplit(":", 1)
        *_, kind, symbol = rest.split()
        if kind == "U":
            wanted[source_of[path]].add(symbol)
        elif symbol != "main":
            defined[symbol] = source_of[path]
    edges = {source: collections.defaultdict(set) for source in found}
    for source, symbols in wanted.items():
        for symbol in symbols:
            target = defined.get(symbol)
            if target and target != source:
                edges[source][target].add(symbol)
    return edges, defined


def room_of(file):
    return os.path.dirname(file)


def read_ranks():
    """folder, or file with a line of its own -> its line; folders of one line are one room"""
    rows = [line.split("#")[0].split() for line in read(os.path.join(HERE, "rooms.txt")).splitlines()]
    return {place: rank for rank, row in enumerate(rows) for place in row}


def functions(bare):
    """(name, first line, lines) of each function: a block at depth 0 after a closing parenthesis"""
    depth, start, head, at = 0, 0, None, 0
    for match in re.finditer(r"[{};]", bare):
        kind, at = match.group(0), match.start()
        before = bare[start:at].strip()
        if kind == "{":
            if depth == 0 and re.fullmatch(r'extern\s*""', before):
                start = at + 1  # its block is the file's
                continue
            if depth == 0 and before.endswith(")") and "=" not in before:
                head = (bare.count("\n", 0, start + len(bare[start:at]) - len(bare[start:at].lstrip())) + 1, before)
            depth += 1
        elif kind == "}" and depth > 0:
            depth -= 1
            if depth == 0:
                if head:
                    name = re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head[1], flags=re.S))
                    yield (name.group(1) if name else head[1]), head[0], bare.count("\n", 0, at) + 2 - head[0]
                head = None
        if depth == 0:
            start = at + 1


class Findings:
    def __init__(self):
        self.all = []

    def add(self, rule, subject, text="", number=0):
        self.all.append((rule, subject, text, number))


def find_include_circles(edges, out):
    for part in circles(edges):
        for file in part:
            out.add("include-circle", file, "with " + " ".join(f for f in part if f in edges[file]))


def find_call_circles(edges, out):
    for part in circles({f: set(t) for f, t in edges.items()}):
        for file in part:
            near = [t for t in part if t in edges[file]]
            out.add("call-circle", file, "; ".join(f"{t}: {' '.join(sorted(edges[file][t])[:4])}" for t in near))


def find_room_edges(tree, included, called, out):
    """A file may use its own room and those above it in rooms.txt; server and worker never each other."""
    rank = read_ranks()
    room_of = lambda file: file if file in rank else os.path.dirname(file)
    for room in sorted({room_of(f) for f in tree.product} - set(rank)):
        out.add("room-unlisted", room, "give it its place in tests/tree/rooms.txt")
    bad = collections.defaultdict(set)
    for file in tree.product:
        room = room_of(file)
        for target in set(included.get(file, ())) | set(called.get(file, ())):
            other = room_of(target)
            tops = {room.split("/")[0], other.split("/")[0]}
            if room not in rank or other not in rank or rank[room] == rank[other]:
                continue
            if target.startswith("tests") or rank[other] > rank[room] or tops == {"server", "worker"}:
                bad[(file, other)].add(target)
    for (file, other), targets in sorted(bad.items()):
        out.add("room-edge", f"{file}->{other}", " ".join(sorted(targets)))


def find_header_users(tree, included, out):
    users = collections.Counter()
    for file in tree.product:
        for target in included[file]:
            if target.endswith((".h", ".cuh")) and room_of(target) == room_of(file):
                users[target] += 1
    for header, count in users.items():
        if count > USERS_MAX:
            out.add("header-users", header, f"included by {count} files of its room", count)


def find_lengths(tree, out):
    for file in tree.code:
        for name, _, length in functions(tree.bare[file]):
            if length > FUNCTION_LINES_MAX:
                out.add("function-lines", f"{file}:{name}", f"{length} lines", length)


def find_tags(tree, out):
    """One tag, one struct. A test program's own structs are its own."""
    places = collections.defaultdict(set)
    for file in tree.product:
        for tag in re.findall(r"\b(?:struct|enum|union)\s+(\w+)\s*\{", tree.bare[file]):
            places[tag].add(file)
    for tag, files in sorted(places.items()):
        if len(files) > 1:
            out.add("tag-twice", tag, " ".join(sorted(files)))


def find_prefixes(tree, defined, out):
    """dp_NOUN_ belongs to one room (and the rooms inside it). NOUN: the longest name of a file, else the first word."""
    stems = {os.path.splitext(os.path.basename(f))[0] for f in tree.product}
    rooms = collections.defaultdict(set)
    for symbol, file in defined.items():
        words = symbol.split("_")
        if words[0] == "dp" and len(words) > 2:
            nouns = ["_".join(words[1:i]) for i in range(len(words) - 1, 1, -1)]
            rooms[next((noun for noun in nouns if noun in stems), words[1])].add(room_of(file))
    for noun, where in sorted(rooms.items()):
        outer = min(where, key=len)
        if any(room != outer and not room.startswith(outer + "/") for room in where):
            out.add("prefix-twice", f"dp_{noun}_", " ".join(sorted(where)))


# The vendor libraries that one room alone sees (sodium: the two that hash files and rows).
WALLS = {"zmq": "common/net", "rocksdb/": "server/store server/store/repair", "protobuf-c/": "common/wire", "libconfig": "common/config", "mpi.h": "worker/allreduce", "microhttpd": "server/metrics",
         "cuda": "worker/compute/cuda", "cublas": "worker/compute/cuda",
         "sodium": "server/inspect server/checkpoint", "zlib": "worker/read", "archive": "worker/read"}


def find_walls(tree, out):
    for file in tree.product:
        for name in re.findall(r"^[ \t]*#[ \t]*include[ \t]+<([^>]+)>", tree.text[file], re.M):
            for vendor, room in WALLS.items():
                if name.startswith(vendor) and room_of(file) not in room.split():
                    out.add("vendor-wall", f"{file}:{name}", f"only {room} sees it")


def guard_of(file):
    parts = file.split("/")
    if parts[0] != "tests" and len(parts) > 2:
        parts = parts[1:]
    return "DP_" + re.sub(r"\W", "_", os.path.splitext("_".join(parts))[0]).upper() + "_H"


def find_guards(tree, out):
    for file in tree.code:
        if file.endswith((".h", ".cuh")):
            match = re.search(r"^#ifndef (\w+)\n#define \1$", tree.text[file], re.M)
            if not match or match.group(1) != guard_of(file):
                out.add("guard", file, f"{match.group(1) if match else 'none'}, not {guard_of(file)}")


def find_strstr(tree, out):
    for file in tree.product:
        for line in uncomment(tree.text[file]).splitlines():
            for argument in re.findall(r"\bstr(?:case)?str\((.*?)\)", line):
                needle = argument.split(",", 1)[-1].strip().replace(" ", "_")
                out.add("strstr", f"{file}:{needle}", "a decision on a text: make it a status or a field")


def prose(text):
    """The lines of a manual that are text: no table, no code"""
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if not fenced and not line.startswith(("```", "|", "    ")):
            yield line


FILE = re.compile(r"(?<![\w./*<>-])((?:[\w-]+/)*[\w.-]+\.(?:c|h|cu|cuh|py|sh|proto))(?![\w*])")
SYMBOL = re.compile(r"\b(dp_\w+|test_\w+)(\*?)")


def listed(text):
    """The files that the tables of a README list: a first column with the heading `file`"""
    listing = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 3:
            listing = False
        elif listing and not cells[1].startswith("---"):
            yield from (word.rstrip("_") for word in re.findall(r"[\w.*]+", cells[1]) if "*" not in word)
        listing = listing or (len(cells) > 2 and cells[1] == "file")


def find_stale_names(tree, out):
    """A file, function or test that a README or a header's comment names must be there."""
    ends = set()
    for file in tree.files:
        parts = file.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
    words, systems = set(), set()
    for file in tree.files:
        if file.endswith(CODE):
            words.update(re.findall(r"\w+", tree.bare[file]))
            systems.update(name for path in re.findall(r"#\s*include\s*<([^>]+)>", tree.text[file]) for name in (path, os.path.basename(path)))
        elif file.endswith((".txt", ".sh", ".py", ".cmake")):
            words.update(re.findall(r"\w+", read(os.path.join(tree.root, file))))
    words.update(os.path.splitext(os.path.basename(f))[0] for f in tree.files)
    walks = [f for f in tree.manuals if f.endswith("ADDING.md")]  # of names that the reader gives
    for file in [f for f in tree.manuals if f not in walks]:
        here = {os.path.basename(f) for f in tree.files if f.startswith(os.path.dirname(file))}
        here |= {os.path.splitext(name)[0] for name in here} | {"and"}
        for name in sorted(set(listed(tree.text[file])) - here):
            if not name.startswith("_"):
                out.add("stale-name", f"{file}:{name}", "its table lists a file that this folder lacks")
    for file in [f for f in tree.manuals if f not in walks] + [f for f in tree.code if f.endswith((".h", ".cuh"))]:
        text = tree.text[file] if file.endswith(".md") else "\n".join(re.findall(r"/\*.*?\*/", tree.text[file], re.S))
        for name in sorted(set(FILE.findall(text))):
            if name not in ends and name not in systems and not name.endswith("pb-c.h"):
                out.add("stale-name", f"{file}:{name}", "no file has that name")
        for name, star in sorted(set(SYMBOL.findall(text))):
            if not (any(w.startswith(name) for w in words) if star or name.endswith("_") else name in words):
                out.add("stale-name", f"{file}:{name}", "nothing has that name")


def totals(tree):
    """What totals.txt bounds"""
    counts = collections.Counter()
    for file in tree.code:
        part = "bench" if file.startswith(("deploy/bench/", "tests/bench/")) else "tests" if file.startswith("tests/") else "product"
        counts[part] += tree.text[file].count("\n")
        counts["wide-code"] += sum(len(line) > COMMENT_COLUMNS for line in tree.text[file].splitlines())
    for file in tree.manuals:
        counts["wide-prose"] += sum(len(line) > PROSE_COLUMNS for line in prose(tree.text[file]))
    return counts


def find_totals(tree, bounds, out):
    for name, count in sorted(totals(tree).items()):
        if name in bounds and count > bounds[name]:
            out.add("total", name, f"{count} lines, {bounds[name]} in totals.txt; raise that only with a reason in the commit's body", count)


def read_totals(path):
    return {name: int(number) for name, number in (line.split("#")[0].split() for line in read(path).splitlines() if line.split("#")[0].strip())}


def write_totals(path, counts):
    lines = [re.sub(r"^(\S+ +)\d+", lambda m: m.group(1) + str(counts[m.group(1).strip()]), line) for line in read(path).splitlines(True)]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def find_silent_raise(root, path, out):
    """The last commit that raised a number of totals.txt must name the file in its body."""
    git = lambda *words: subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    last = git("log", "-1", "--format=%H", "--", path).stdout.strip()
    if not last or git("rev-parse", "-q", "--verify", f"{last}^").returncode != 0:
        return
    old = dict(re.findall(r"^(\S+) +(\d+)", git("show", f"{last}^:{path}").stdout, re.M))
    new = dict(re.findall(r"^(\S+) +(\d+)", git("show", f"{last}:{path}").stdout, re.M))
    raised = [name for name in new if name in old and int(new[name]) > int(old[name])]
    if raised and "totals.txt" not in git("log", "-1", "--format=%b", last).stdout:
        out.add("total-raised", last[:12], f"{' '.join(raised)}: the commit's body has no line 'totals.txt: why'")


def findings(tree, found):
    """[(rule, subject, text, number)] of the tree; found: source -> object"""
    out = Findings()
    included = includes(tree)
    called, defined = calls(found)
    find_include_circles(included, out)
    find_call_circles(called, out)
    find_room_edges(tree, included, called, out)
    find_header_users(tree, included, out)
    find_lengths(tree, out)
    find_tags(tree, out)
    find_prefixes(tree, defined, out)
    find_walls(tree, out)
    find_guards(tree, out)
    find_strstr(tree, out)
    find_stale_names(tree, out)
    return out.all


def allowance(line):
    """`rule subject [number]  # reason` -> (rule, subject), number or None; None for any other line"""
    words = line.split("  #")[0].split()
    if not words or words[0].startswith("#"):
        return None
    return (words[0], words[1]), int(words[2]) if len(words) > 2 else None


def read_allowed(path):
    return dict(filter(None, map(allowance, read(path).splitlines())))


def shrink(path, met):
    lines = [line for line in read(path).splitlines(True) if not allowance(line) or allowance(line)[0] in met]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def judge(findings, allowed):
    """The failures: findings that are not allowed or have grown, and allowed ones that are mended."""
    failures, met = [], set()
    for rule, subject, text, number in findings:
        met.add((rule, subject))
        if (rule, subject) not in allowed:
            failures.append(f"new: {rule} {subject}  ({text})")
        elif allowed[(rule, subject)] is not None and number > allowed[(rule, subject)]:
            failures.append(f"grown: {rule} {subject}: {number}, allowed are {allowed[(rule, subject)]}  ({text})")
    for rule, subject in sorted(set(allowed) - met):
        failures.append(f"mended: {rule} {subject}: take its line out of tests/tree/allowed.txt (--shrink does)")
    return sorted(failures)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--build", default=os.path.join(ROOT, "build"))
    options.add_argument("--list", action="store_true", help="print every finding, allowed ones too")
    options.add_argument("--shrink", action="store_true", help="remove mended findings from allowed.txt, lower totals.txt")
    options = options.parse_args()
    tree = Tree(ROOT)
    found, missing = objects(tree, options.build)
    if missing:
        print(f"tree: not built yet: {' '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}; run ninja -C {options.build}")
        return 1
    bounds, sizes = os.path.join(HERE, "totals.txt"), Findings()
    find_totals(tree, read_totals(bounds), sizes)
    find_silent_raise(ROOT, os.path.relpath(bounds, ROOT), sizes)
    all_found = findings(tree, found) + sizes.all
    if options.list:
        for rule, subject, text, _ in sorted(all_found):
            print(f"{rule} {subject}  ({text})")
    counts = totals(tree)
    print("tree: lines: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    if options.shrink:
        write_totals(bounds, {name: min(counts[name], bound) for name, bound in read_totals(bounds).items()})
        shrink(os.path.join(HERE, "allowed.txt"), {(rule, subject) for rule, subject, _, _ in all_found})
    allowed = read_allowed(os.path.join(HERE, "allowed.txt"))
    failures = judge(all_found, allowed)
    print("\n".join(failures))
    print(f"tree: {len(all_found)} findings, {len(allowed)} allowed, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# A page of a training: from whole, unfinished, damaged and missing reports; it is well-formed, needs nothing
# from elsewhere, and takes the place of an earlier one in one step.
# usage: report.sh PATH/TO/downpour
. "$(dirname "$0")/../cli/lib.sh"

# page FILE: what each page must be. The tags are counted by python3, where it is installed.
page() {
    local size
    size=$(stat -c %s "$1") || fail "there is no page $1"
    [ "$size" -lt 1000000 ] || fail "$1 has $size bytes"
    head -c 15 "$1" | grep -q '^<!DOCTYPE html>' || fail "$1 does not begin as HTML"
    tail -c 8 "$1" | grep -q '</html>' || fail "$1 has no end"
    sed -E 's/url\(#h[0-9]\)//g; s/href="(figures\/[a-z0-9-]+\.svg|curves\.csv|runs\.csv)"//g' "$1" |
        grep -niE '(https?:|src=|href=|url\(|@import|<script|<link|<img|<iframe| on[a-z]+=|javascript:)' &&
        fail "$1 names something outside of its directory, or runs something"
    ! grep -nE '\b-?(nan|inf)\b' "$1" || fail "$1 shows a number that is none"
    command -v python3 >/dev/null || return 0
    python3 - "$1" >"$dir/tags" <<'EOF' || fail "$1 is not well-formed: $(cat "$dir/tags")"
import sys
from html.parser import HTMLParser
class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.bad, self.ids, self.rows = [], [], set(), 0
    def handle_startendtag(self, tag, attrs):
        self.see(tag, attrs)
    def handle_starttag(self, tag, attrs):
        self.see(tag, attrs)
        if tag != "meta":
            self.open.append(tag)
    def see(self, tag, attrs):
        names = [a for a, _ in attrs]
        self.rows += tag == "tr"
        self.bad += [f"{tag} {a}" for a in names if names.count(a) > 1]
        for a, v in attrs:
            if a == "id" and v in self.ids:
                self.bad.append("id " + v)
            self.ids.add(v if a == "id" else None)
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(f"</{tag}> at {self.getpos()}")
tags = Tags()
tags.feed(open(sys.argv[1], encoding="utf-8").read())
tags.close()
print(tags.bad, tags.open, tags.rows)
sys.exit(bool(tags.bad or tags.open or tags.rows < 10))
EOF
}

has() { # FILE TEXT
    grep -qF -e "$2" "$1" || fail "'$2' is not in $1"
}

lacks() {
    ! grep -qF -e "$2" "$1" || fail "'$2' is in $1"
}

mkdir "$dir/empty"

# --- what is no run
expect 2 "give the directory of one run" "$downpour" report
expect 2 "there is no directory '$dir/none'" "$downpour" report "$dir/none"
expect 2 "there is no report in '$dir/empty'" "$downpour" report "$dir/empty"

# --- a run whose names are markup, and commands
run="$dir/a <b>&'q\"\`id\`"
expect 0 "A page with plots:       downpour report " "$downpour" run --dir "$run" --workers 2 --model mlp:64-8-10 --epochs 3 \
    --batch 32 --journal-bytes 16MiB --cache-bytes 64MiB --train tests/data/digits.train.libsvm.gz --test tests/data/digits.test.libsvm.gz
[ ! -e "$run/report.html" ] || fail "the run itself made a page"
page=$run/report.html
expect 0 "Page:      $page" "$downpour" report "$run"
page "$page"
[ "$(grep -c '<svg viewBox="0 0 520 300"' "$page")" -ge 7 ] || fail "there are fewer than 7 plots"
lacks "$page" "<details open>"
has "$page" "Loss over time"
lacks "$page" "<b>"
has "$page" "a &lt;b&gt;&amp;&#39;q&quot;\`id\`"
has "$page" "mlp:64-8-10 was trained for 3 epochs on 1,437 examples by 2 workers with 1 server, asynchronously."
has "$page" "downpour run --workers"
has "$page" "GiB of memory"
# The words' numbers are the report's.
for key in examples_per_s accuracy loss; do
    number=$(sed -n "/\"$([ $key = examples_per_s ] && echo throughput || echo final)\"/,/}/s/.*\"$key\": \([0-9.e-]*\).*/\1/p" "$run/report.json" | head -n 1)
    case $key in
    examples_per_s) shown=$(printf '%.0f' "$number" | sed ':a;s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/;ta') ;;
    accuracy) shown=$(printf 'accuracy %.4f' "$number") ;;
    loss) shown=$(printf 'loss %.5f on the test set' "$number") ;;
    esac
    has "$page" "$shown"
done
# The command makes it again as it stands, from anywhere, in a directory of its own.
again() { # PAGE
    grep '^<pre>' "$1" | sed "s/<[^>]*>//g; s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&#39;/'/g; s/&amp;/\&/g" >"$dir/again"
    (cd / && env -i PATH=/usr/bin:/bin HOME=/ bash -e "$dir/again" >"$dir/out" 2>"$dir/err") ||
        fail "the command on the page does not run: $(cat "$dir/again" "$dir/err")"
}
again "$page"
has "$run-again/report.json" '"finished": true'
has "$page" "libzmq"
# Begun again in its directory, it has another page.
expect 0 "Report:" "$downpour" run --dir "$run" --fresh --workers 2 --model mlp:64-8-10 --epochs 3 \
    --batch 32 --journal-bytes 16MiB --cache-bytes 64MiB --train tests/data/digits.train.libsvm.gz --test tests/data/digits.test.libsvm.gz
[ ! -e "$page" ] || fail "--fresh kept the page of the run that it replaced"
[ "$(ls "$run/runs")" = 2 ] && [ -e "$run/current/origin.json" ] || fail "how the run was begun is not kept as its own"

# --- a comparison, from relative files in a directory whose name needs quotes and has a control character
there="$dir/it's \\ "$'a\ttab'
mkdir "$there"
cp tests/data/digits.train.libsvm.gz "$there/-train.gz"
cp tests/data/digits.test.libsvm.gz "$there/test.gz"
expect 0 "Page:" sh -c 'cd "$1" && exec "$0" compare --dir "a & b" --model mlp:64-8-10 --train=./-train.gz --test test.gz --epochs 1 --seeds 1 \
    --modes sync,async --journal-bytes 16MiB --cache-bytes 64MiB --overwrite' "$downpour" "$there"
page=$there/a\ \&\ b/report.html
page "$page"
has "$page" 'href="figures/loss-over-time.svg"'
[ -s "$there/a & b/figures/throughput.svg" ] || fail "there is no figures/throughput.svg"
again "$page"
has "$there/a & b-again/report.json" '"finished": true'
[ -s "$there/a & b-again/runs.csv" ] || fail "the comparison that was made again has no table of its runs"
# The same elsewhere: by the flags of a report alone, with the same data, wherever that lies; and again by the report of that.
report=$there/a\ \&\ b/report.json
cp "$report" "$dir/sent.json"
mkdir "$dir/else"
cp tests/data/digits.train.libsvm.gz "$dir/else/train.gz"
cp tests/data/digits.test.libsvm.gz "$dir/else/test.gz"
expect 2 "cannot read '/nothing': No such file or directory: name the report.json of a comparison" \
    "$downpour" compare --like /nothing --dir "$dir/else/no"
expect 2 "cannot read '/nothing': No such file or directory: name the report.json of a comparison" \
    "$downpour" report "$there/a & b" --against /nothing
expect 2 "report DIR --against REPORT" "$downpour" compare --against "$dir/sent.json"
# Its relative names are not here.
expect 2 "cannot read './-train.gz', --train of the report: No such file or directory: give its present place with --train" \
    "$downpour" compare --like "$dir/sent.json" --dir "$dir/else/no"
expect 2 "--train: 'tests/data/digits.test.libsvm.gz' has other bytes than the report's file: BLAKE2b" "$downpour" compare \
    --like "$dir/sent.json" --train tests/data/digits.test.libsvm.gz --test "$dir/else/test.gz" --dir "$dir/else/no"
expect 2 "give no flag but --dir" "$downpour" compare --like "$dir/sent.json" --resume
[ ! -e "$dir/else/no" ] || fail "a comparison with other data was begun"
expect 0 "Page:" sh -c 'cd "$1/else" && exec "$0" compare --like "$1/sent.json" --train train.gz --dir one' "$downpour" "$dir"
said "As in $dir/sent.json: Made with Downpour "
if command -v python3 >/dev/null; then
    python3 - "$report" "$dir/else/one/report.json" <<'EOF' || fail "a comparison like another has other settings"
import json, sys
one, other = (json.load(open(path)) for path in sys.argv[1:])
for of in (one, other):
    del of["settings"]["train"]
modes = lambda of: [(r["mode"], r["seed"], r["samples"][-1]["examples"]) for r in of["runs"]]
assert other["finished"] and one["settings"].keys() == other["settings"].keys() and modes(one) == modes(other)
assert one["modes"] == other["modes"] and [f["blake2b"] for f in one["files"]] == [f["blake2b"] for f in other["files"]]
assert "--like" not in other["command"] and other["command"][other["command"].index("--train") + 1] == "train.gz"
EOF
fi
expect 0 " results agree" "$downpour" report "$dir/else/one" --against "$dir/sent.json"
said "not known  async, accuracy at the end: "
! grep -q BLAKE2b "$dir/out" || fail "files with the same bytes differ"
expect 2 "makes no page" "$downpour" report "$dir/else/one" --against "$dir/sent.json" --out -
expect 2 "is not the report of a comparison" "$downpour" report "$dir/else/one" --against "$run"
again "$dir/else/one/report.html"
# Elsewhere the page stands alone.
expect 0 "Page:" "$downpour" report "$there/a & b" --out "$dir/alone.html"
page "$dir/alone.html"
lacks "$dir/alone.html" "href="

# --- where it goes
expect 0 "Page:" "$downpour" report "$run"
expect 0 "" "$downpour" report "$run" --out -
page "$dir/out"
cp "$dir/out" "$dir/whole.html"
expect 2 "is the report itself" "$downpour" report "$run" --out "$run/report.json"
expect 2 "$dir/none/x.html" "$downpour" report "$run" --out "$dir/none/x.html"
# A page is replaced by a complete one only: the command may write 8 KiB, and is ended at the next byte.
echo "an earlier page" >"$dir/x.html"
(ulimit -f 8 && exec "$downpour" report "$run" --out "$dir/x.html") >"$dir/run.out" 2>"$dir/run.err" && fail "a page has at most 8 KiB"
[ "$(cat "$dir/x.html")" = "an earlier page" ] || fail "a command that was ended left its page"
expect 0 "Page:" "$downpour" report "$run" --out "$dir/x.html"
cmp -s "$dir/x.html" "$dir/whole.html" || fail "another page than on standard output"
ls "$dir"/x.html.new* 2>/dev/null && fail "the killed command's temp file is still there"
[ "$(stat -c %h "$dir/x.html")" = 1 ] || fail "the page has two names"

# --- reports that are not whole
mkdir "$dir/part"
report=$dir/part/report.json
for bytes in 0 1 100 1000; do
    head -c "$bytes" "$run/report.json" >"$report"
    expect 2 "$report" "$downpour" report "$dir/part"
    said "is damaged"
done
[ ! -e "$dir/part/report.html" ] || fail "a damaged report made a page"
echo '{"finished": false, "model": "<script>", "epochs": []}' >"$report"
expect 0 "Page:" "$downpour" report "$dir/part"
page=$dir/part/report.html
has "$page" "This training is not finished"
has "$page" "No epoch has ended yet."
has "$page" "The directory does not keep the command"
lacks "$page" "<script"
echo '{"epochs": [{}, 1, {"train_loss": 1e308, "seconds": 1e-300}, {"train_loss": -1e308, "test": []}], "settings": {"x": [1], "rate": 1e400}}' >"$report"
expect 2 "is damaged" "$downpour" report "$dir/part"
sed -i 's/, "rate": 1e400//' "$report"
expect 0 "Page:" "$downpour" report "$dir/part"
has "$page" "was trained for 4 epochs"
# What a run that was stopped has left.
sed 's/"finished": true/"finished": false, "ended": "stopped"/; s/"epochs": 3/"epochs": 9/' "$run/report.json" >"$report"
expect 0 "Page:" "$downpour" report "$dir/part"
page "$page"
has "$page" "This training is not finished: it was stopped after 3 of 9 epochs."

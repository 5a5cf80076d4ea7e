#!/usr/bin/env bash
# A cluster that is started by hand does what `downpour run` does on one machine: files in `dir`, numbers of runs, a further day's
# file by the schema of the first, early stopping, the best epoch; and predict, export and report take its cluster file.
# usage: cluster.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

programs=$(dirname "$downpour")
cd "$dir" || exit 1
awk 'BEGIN { srand(1); print "city,age,y"
    for (i = 0; i < 800; i++) { c = substr("romeoslolima", 1 + 4 * int(3 * rand()), 4); print c "," 20 + 30 * rand() "," (rand() < (c == "rome" ? 0.9 : 0.1)) } }' >day1.csv
# Another order of columns, a new name, other means.
awk -F, 'NR == 1 { print "age,y,city"; next } { print $2 + 40 "," $3 "," (NR % 9 ? $1 : "kiev") }' day1.csv >day2.csv
cat >c.conf <<END
name = "hand"; model = "logistic"; dir = "kept"; journal_bytes = "16MiB";
servers = ( { host = "ipc://$dir/s"; port = 1; shards = 2; store = "store/0"; }, { host = "ipc://$dir/s"; port = 11; store = "store/1"; } );
checkpoint = { to = "ck"; every = 3600; };
data = { train = "day1.csv"; label = "y"; validation_share = 0.2; };
training = { workers = 2; epochs = 30; patience = 2; rate = 0.05; };
END
sed 's/day1/day2/; s/epochs = 30/epochs = 2/' c.conf >d.conf

serve() { # [FLAG]
    servers=()
    for i in 0 1; do
        "$programs/downpour-server" --cluster c.conf --server $i "$@" 2>>server-$i.log &
        servers+=($!)
    done
}
serve --new
# work FILE [FLAG]: all workers, to their end
work() {
    local workers=() i
    for i in 0 1; do
        "$programs/downpour-worker" --cluster "$1" --worker $i ${2:+"$2"} 2>worker-$i.log &
        workers+=($!)
    done
    for i in 0 1; do
        wait "${workers[i]}" || { fail "worker $i of $1"; tail -n 3 worker-$i.log; }
    done
}

work c.conf
grep -q "run 1" worker-0.log || fail "no run 1"
for f in report.json columns.csv names.tsv runs/1/report.json runs/1/steps-0.log runs/1/steps-1.log; do
    [ -s kept/$f ] || fail "no kept/$f"
done
grep -q '"best_epoch"' kept/report.json || fail "no early stopping"
[ -d ck/best/checkpoint-000001 ] || ls ck/best | grep -q checkpoint || fail "no checkpoint of the best epoch"
grep -q "the best one, are a checkpoint in .*ck/best" worker-0.log || fail "does not say where the best weights are"
grep -A3 '"step_logs"' ck/best/checkpoint-*/manifest.json | grep -q '"name"' || fail "a checkpoint without step logs"
cp kept/report.json first.json
grep -q '"rate": 0.05,' kept/report.json && grep -q '"decay": "none"' kept/report.json || fail "a rate of the file"
epochs=$(grep -c '"epoch":' kept/report.json)
sum=$(sed -n '/^means/p' kept/columns.csv)
expect 0 "" "$downpour" predict --cluster c.conf --data day1.csv --out first
[ "$(wc -l <first)" = 800 ] || fail "no scores of the running cluster"

# One that is started again with --resume, and one that was killed, find their run. All others begin the next.
work c.conf --resume
grep -q "the run is already complete" worker-0.log || fail "--resume began another run"
work d.conf
grep -q "run 2" worker-0.log || fail "no run 2"
[ "$(readlink kept/report.json)" = runs/2/report.json ] || fail "report.json leads elsewhere"
cmp -s first.json kept/runs/1/report.json || fail "the second run changed the report of the first"
grep -q "is of another run" worker-*.log && fail "a step log of another run is read"
[ "$(sed -n '/^means/p' kept/columns.csv)" = "$sum" ] || fail "another day's means"
grep -q "city=kiev" kept/names.tsv || fail "names do not grow"
grep -q "earlier files had 640 examples" worker-0.log || fail "the first day's examples do not count"
grep -q '"first_epoch": [1-9]' kept/report.json || fail "epochs do not count on: $epochs"
"$downpour" status --cluster c.conf >status.out || fail "status"
grep -Eq '^ +1  done ' status.out || fail "status shows no worker of the last run"
# A run that the file numbers is read by the schema, too.
sed 's/training = {/& run = 7;/' d.conf >e.conf
work e.conf
[ "$(sed -n '/^means/p' kept/columns.csv)" = "$sum" ] || fail "another day's means in a numbered run"

# The same, from another directory: paths in the file are relative to it.
expect 0 "report.html" "$downpour" report --cluster c.conf
expect 0 "" "$downpour" export --cluster c.conf --to w.txt
grep -q '^city=kiev' w.txt || fail "no names in the export"
expect 2 "give either --from DIR or --cluster FILE" "$downpour" export --cluster c.conf --from ck --to w.txt
expect 2 "give either --from DIR or --cluster FILE" "$downpour" predict --cluster c.conf --from ck --data day1.csv
sed 's/"hand"/"other"/' c.conf >o.conf
expect 2 "cluster 'other' (id " "$programs/downpour-worker" --cluster o.conf --worker 0
sed '/^checkpoint/d; s/dir = "kept"; //' c.conf >n.conf
expect 2 "names no directory for checkpoints" "$downpour" export --cluster n.conf --to x.txt
expect 2 "names no 'dir'" "$downpour" report --cluster n.conf
sed 's/"logistic"/"deepfm:4-8"/; s/dir = "kept"; //' c.conf >f.conf
expect 2 'model = "deepfm:4-8,columns=1,fields=1"' "$programs/downpour-worker" --cluster f.conf --worker 0
mkdir again elsewhere
kill "${servers[@]}"
wait
expect 2 "name the cluster's file (--cluster FILE)" "$downpour" predict --from kept --data day1.csv
last=$(ls -d ck/checkpoint-* | tail -n 1)
expect 0 "$last, made 20" "$downpour" export --cluster c.conf --to again/w.txt
cmp -s w.txt again/w.txt || fail "another export of the same checkpoint"
expect 2 "start the servers of 'c.conf', or use a checkpoint (--from)" "$downpour" predict --cluster c.conf --data day1.csv
cd elsewhere || exit 1
expect 0 "" "$downpour" export --from ../ck --to w.txt
cmp -s w.txt ../w.txt || fail "another export of a checkpoint whose cluster file is relative"

# The best epoch's weights into the stores, and a run on them.
cd ..
expect 0 "" "$downpour" restore --from ck/best --cluster c.conf --overwrite
serve
sed 's/training = {/& run = 9;/' d.conf >b.conf
work b.conf
[ "$(readlink kept/report.json)" = runs/9/report.json ] || fail "no run on the best weights"
kill "${servers[@]}"
wait

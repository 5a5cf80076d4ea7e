#!/usr/bin/env bash
# The files of deploy/dashboards: rules and their tests, Prometheus's file, and each query of the dashboard, by promtool.
# usage: dashboards.sh PATH/TO/downpour
. "$(dirname "$0")/lib.sh"

command -v promtool >/dev/null || { echo "skipped: no promtool (package prometheus)"; trap - EXIT; rm -rf "$dir"; exit 77; }
files=$PWD/deploy/dashboards
expect 0 "SUCCESS" promtool check config "$files/prometheus.yml"
expect 0 "SUCCESS" promtool check rules "$files/downpour.rules.yml"
expect 0 "SUCCESS" promtool test rules "$files/downpour.test.yml"
# A test that expects something else fails.
mkdir "$dir/planted"
cp "$files"/downpour.* "$dir/planted"
sed -i 's/silent_seconds > 60/silent_seconds > 600/' "$dir/planted/downpour.rules.yml"
expect 1 "DownpourWorkerSilent" promtool test rules "$dir/planted/downpour.test.yml"
python3 - "$files/grafana.json" >"$dir/queries.yml" <<'END' || fail "the dashboard is no JSON"
import json
import sys
print("groups: [{name: queries, rules: [")
for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel.get("targets", []):
        query = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$job", "downpour")
        print(f"  {{record: 'query:{panel['id']}{target['refId']}', expr: {json.dumps(query)}}},")
print("]}]")
END
expect 0 "SUCCESS" promtool check rules "$dir/queries.yml"
[ "$(grep -c record "$dir/queries.yml")" -ge 20 ] || fail "few queries"

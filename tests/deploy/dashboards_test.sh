#!/usr/bin/env bash
# The dashboards and alerts of deploy/ against a service of the real program that has answered and has lost a worker:
# every series, label and value that they name is published. Where Prometheus can be had, it scrapes the service and is
# asked every question of every panel, and its own tool checks and tests the rules.
#
# usage: tests/deploy/dashboards_test.sh LAMELLA WRITE_TINY_MODEL SOURCE   (exit code 77: skipped, with the reason)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../process/tiny_service.sh"
. "$here/prometheus.sh" "$(dirname "$lamella")"

# Prometheus first: it takes five seconds to begin.
at=$(free_port)
if [ -n "$PROMTOOL" ]; then
  for sample in prometheus.yml compose/prometheus.yml; do
    mkdir -p "config/$(dirname "$sample")"
    cp "$source/deploy/$sample" "config/$sample"
    cp "$source/deploy/alerts.yml" "config/$(dirname "$sample")/"
  done
  scrape=$(free_port)
  sed "s|127.0.0.1:8001|127.0.0.1:$at|; s|_interval: 15s|_interval: 500ms|; s|scrape_timeout: 10s|scrape_timeout: 500ms|" \
    config/prometheus.yml >config/fast.yml
  "$PROMETHEUS" --config.file=config/fast.yml --storage.tsdb.path=tsdb --web.listen-address="127.0.0.1:$scrape" \
    >prometheus.log 2>&1 &
  workers+=($!)
  for sample in prometheus.yml compose/prometheus.yml; do
    "$PROMTOOL" check config "config/$sample" >said 2>&1
    expect "promtool takes deploy/$sample and the alerts" 0 $?
  done
  "$PROMTOOL" test rules "$here/alerts.yml" >said 2>&1
  expect "the alerts say what they are for" "SUCCESS" "$(tr -d ' ' <said | tail -n +2 | grep .)"
else
  echo "prometheus and promtool cannot be had: no query was evaluated, no rule checked by its own tool"
fi
serve log --config "$source/config/parity.yaml" "${tiny[@]}" --set "admin.listen=127.0.0.1:$at"

# Some work at each scrape, and a worker that is lost.
scrapes() { # scrapes: of the service, so far
  python3 - "$scrape" <<'PYTHON'
import json, sys, urllib.request
try:
    url = f"http://127.0.0.1:{sys.argv[1]}/api/v1/query?query=count_over_time(lamella_ready%5B1h%5D)"
    found = json.load(urllib.request.urlopen(url, timeout=60))["data"]["result"]
    print(found[0]["value"][1] if found else 0)
except OSError:
    print(0)
PYTHON
}
answers first.txt 4 24
kill -KILL "$(pid_of attention/0)"
sits_again attention/0 2
expect "the service answers, and has all its workers again" 0 $?
if [ -n "$PROMTOOL" ]; then
  seen=0
  for _ in $(seq 100); do
    answers more.txt 2 24
    seen=$(scrapes)
    [ "$seen" -lt 3 ] || break
  done
  expect "Prometheus scrapes it" 1 $((seen >= 3)) || tail prometheus.log
fi
python3 -c 'import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=120).read().decode())' "http://127.0.0.1:$admin/metrics" >page
python3 "$here/dashboards.py" "$source" page ${PROMTOOL:+"http://127.0.0.1:$scrape"}
expect "the dashboards ask for what there is" 0 $?
stop "the service"
finish

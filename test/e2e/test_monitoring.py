#!/usr/bin/env python3
"""test_monitoring.py WEIR DIST-DIRECTORY - what dist/ has for Prometheus, Grafana and bpftrace, against
a real server that a real Prometheus scrapes. Writes TAP.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

WEIR, DIST = map(os.path.abspath, sys.argv[1:3])
PATIENCE_S = 60
RULES = os.path.join(DIST, "prometheus", "weir.rules.yml")


def fetch(url):
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return answer.read().decode()


def wait(ready, what):
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            value = ready()
            if value:
                return value
        except (urllib.error.URLError, ConnectionError):
            pass
        assert time.monotonic() < end, "waited %d s for %s" % (PATIENCE_S, what)
        time.sleep(0.05)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Place:
    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.running = []
        env = dict(os.environ, HOME=self.directory.name, WEIR_STORE="sqlite:jobs.db")
        env.pop("XDG_RUNTIME_DIR", None)
        self.env = env
        server = self.start([WEIR, "serve", "--store", "sqlite:jobs.db", "--data", ".", "--listen",
                             "127.0.0.1:0"], stdout=subprocess.PIPE)
        self.url = next(line for line in server.stdout if "http://" in line).split()[-1]
        for args in (["add", "good", "--count", "20"], ["add", "bad", "--count", "3"],
                     ["work", "good", "--exec", "true", "--drain"],
                     ["work", "bad", "--exec", "false", "--drain"], ["add", "held"],
                     ["pause", "held"]):
            done = subprocess.run([WEIR, *args], cwd=self.directory.name, env=env, text=True,
                                  capture_output=True, timeout=PATIENCE_S, check=False)
            assert done.returncode in (0, 1), (args, done.stderr)

    def start(self, args, **more):
        process = subprocess.Popen(args, cwd=self.directory.name, env=self.env, text=True,
                                   stderr=subprocess.DEVNULL, **more)
        self.running.append(process)
        return process

    def close(self):
        for process in reversed(self.running):
            process.terminate()
            process.wait(PATIENCE_S)
            if process.stdout:
                process.stdout.close()
        self.directory.cleanup()


def names(scrape):
    """The names of all series, those of histograms with their endings."""
    return set(re.findall(r"^(weir_\w+)", scrape, re.M))


def asked_for(text):
    return set(re.findall(r"\bweir_\w+", text)) - {"weir_rules"}


def promtool(*args, **more):
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def the_metrics_are_well_formed(place):
    promtool("check", "metrics", input=fetch(place.url + "/metrics"))


def the_rules_do_what_they_say(_):
    promtool("test", "rules", "weir.rules.test.yml", cwd=os.path.dirname(RULES))


def rules_and_dashboard_ask_for_what_is_there(place):
    there = names(fetch(place.url + "/metrics"))
    with open(RULES, encoding="utf-8") as file:
        missing = asked_for(file.read()) - there
    assert not missing, missing
    with open(os.path.join(DIST, "grafana", "weir.json"), encoding="utf-8") as file:
        board = json.load(file)
    asked = [t["expr"] for p in board["panels"] for t in p["targets"]]
    asked += [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    assert len(board["panels"]) == len({p["id"] for p in board["panels"]}) >= 10
    missing = asked_for(" ".join(asked)) - there
    assert not missing, missing


def a_real_prometheus_takes_them(place):
    port = free_port()
    config = os.path.join(place.directory.name, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
                   "rule_files": [RULES],
                   "scrape_configs": [{"job_name": "weir", "static_configs": [
                       {"targets": [place.url.split("//")[1]]}]}]}, file)
    place.start(["prometheus", "--config.file=" + config, "--storage.tsdb.path=prometheus",
                 "--web.listen-address=127.0.0.1:%d" % port, "--log.level=error"])
    base = "http://127.0.0.1:%d/api/v1/" % port

    def query(text):
        answer = json.loads(fetch(base + "query?query=" + urllib.parse.quote(text)))
        return [(r["metric"], float(r["value"][1])) for r in answer["data"]["result"]]

    wait(lambda: query('up{job="weir"} == 1'), "a scrape")
    assert query('weir_jobs{type="good",state="complete"}')[0][1] == 20
    assert query('weir_executions_failed_total{type="bad"}')[0][1] == 3
    paused = wait(lambda: query('ALERTS{alertname="WeirPausedWithBacklog"}'), "an alert")
    assert paused[0][0]["type"] == "held" and paused[0][0]["alertstate"] == "pending", paused

    def healthy():
        groups = json.loads(fetch(base + "rules"))["data"]["groups"]
        health = [rule["health"] for group in groups for rule in group["rules"]]
        assert "err" not in health, groups
        return len(health) >= 8 and set(health) == {"ok"}
    wait(healthy, "all rules")


def the_program_has_the_probes(_):
    notes = subprocess.run(["readelf", "-n", WEIR], capture_output=True, text=True,
                           check=True).stdout
    there = set(re.findall(r"Provider: weir\s+Name: (\w+)", notes))
    assert there == {"add", "take", "finish"}, there
    with open(os.path.join(DIST, "bpftrace", "weir.bt"), encoding="utf-8") as file:
        assert set(re.findall(r"usdt:\*:weir:(\w+)", file.read())) == there


CASES = [the_metrics_are_well_formed, the_rules_do_what_they_say,
         rules_and_dashboard_ask_for_what_is_there, a_real_prometheus_takes_them,
         the_program_has_the_probes]


def main():
    bad = 0
    print("1..%d" % len(CASES))
    place = Place()
    try:
        for n, case in enumerate(CASES, 1):
            try:
                case(place)
                print("ok %d - %s" % (n, case.__name__), flush=True)
            except Exception as why:      # pylint: disable=broad-except
                bad = 1
                print("not ok %d - %s\n# %s: %s" % (n, case.__name__, type(why).__name__,
                                                   str(why).replace("\n", "\n# ")), flush=True)
    finally:
        place.close()
    return bad


sys.exit(main())

#!/usr/bin/env python3
"""test_trace.py WEIR CLIENT-DIRECTORY - traces from end to end, at a collector made for the test.

The collector takes OTLP over HTTP with JSON. A trace is one tree: one root, and every other span has
its parent in it. Writes TAP.
"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

WEIR, DIRECTORY = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, DIRECTORY)
PATIENCE_S = 60
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector:
    def __init__(self, status=200):
        self.spans, self.lock, self.status, self.posts = [], threading.Lock(), status, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    outer.posts += 1
                    status = outer.status
                    if status == 200:
                        outer.take(self.path, self.headers, body)
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, headers, body):
        assert path == "/v1/traces", path
        assert headers["Content-Type"] == "application/json"
        for resource in body["resourceSpans"]:
            about = {a["key"]: a["value"]["stringValue"]
                     for a in resource["resource"]["attributes"]}
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    span["service"] = about["service.name"]
                    span["header"] = headers["X-Team"]
                    self.spans.append(span)

    def wait(self, ready):
        """The spans, once ready(spans) is true."""
        end = time.monotonic() + PATIENCE_S
        while True:
            with self.lock:
                spans = list(self.spans)
            if ready(spans):
                return spans
            assert time.monotonic() < end, "the collector has only: %s" % json.dumps(spans)
            time.sleep(0.02)


def tree(spans, root_parent=None):
    """The names of the spans with their children. There is one root, all are of one trace."""
    assert len({s["traceId"] for s in spans}) == 1, spans
    assert len({s["spanId"] for s in spans}) == len(spans), spans
    known = {s["spanId"] for s in spans}
    roots = [s for s in spans if s.get("parentSpanId") not in known]
    assert len(roots) == 1, roots
    assert roots[0].get("parentSpanId") == root_parent, roots[0]

    def below(span):
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        children = [s for s in spans if s.get("parentSpanId") == span["spanId"]]
        return {span["name"]: [below(s) for s in sorted(children, key=lambda s: s["name"])]}
    return below(roots[0])


class Place:
    """A directory, a collector, and commands that report to it."""

    def __init__(self, status=200):
        self.directory = tempfile.TemporaryDirectory()
        self.collector = Collector(status)
        self.running = []

    def env(self, **more):
        env = dict(os.environ, HOME=self.directory.name, WEIR_STORE="sqlite:jobs.db",
                   OTEL_EXPORTER_OTLP_ENDPOINT=self.collector.url, OTEL_SERVICE_NAME="shop",
                   OTEL_EXPORTER_OTLP_HEADERS="X-Team=blue,X-More=1", NO_COLOR="1")
        for name in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "TRACEPARENT", "WEIR_TOKEN"):
            env.pop(name, None)
        env.update(more)
        return env

    def run(self, *args, **more):
        done = subprocess.run([WEIR, *args], cwd=self.directory.name, env=self.env(**more),
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, done.stderr
        return done

    def start(self, *args, **more):
        process = subprocess.Popen([WEIR, *args], cwd=self.directory.name, env=self.env(**more),
                                   stdout=subprocess.PIPE, text=True)
        self.running.append(process)
        return process

    def serve(self):
        server = self.start("serve", "--store", "sqlite:jobs.db", "--data", ".", "--listen",
                            "127.0.0.1:0")
        return next(line for line in server.stdout if "http://" in line).split()[-1]

    def close(self):
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(PATIENCE_S)
            process.stdout.close()
        self.collector.server.shutdown()
        self.collector.server.server_close()
        self.directory.cleanup()


def post(url, body, **headers):
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     dict(headers, **{"Content-Type": "application/json"}))
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def a_program_and_its_child(place):
    """A shell adds, a program executes and adds a child, which another program executes."""
    place.start("work", "parent", "--exec", WEIR + " add child >&2", "--pass-env", "WEIR_STORE")
    place.start("work", "child", "--exec", "echo \"$TRACEPARENT\" >trace; true")
    place.run("add", "parent", "--wait", "50s")
    spans = place.collector.wait(lambda spans: len(spans) == 4)
    assert tree(spans) == {"add parent": [{"process parent": [{"add child": [
        {"process child": []}]}]}]}, spans
    assert all(s["service"] == "shop" and s["header"] == "blue" for s in spans)
    last = next(s for s in spans if s["name"] == "process child")
    with open(place.directory.name + "/trace", encoding="ascii") as file:
        assert file.read() == "00-%s-%s-01\n" % (last["traceId"], last["spanId"])


def a_trace_that_began_elsewhere(place):
    place.start("work", "a", "--exec", "true")
    place.run("add", "a", "--wait", "50s", TRACEPARENT=TRACE)
    spans = place.collector.wait(lambda spans: len(spans) == 2)
    assert tree(spans, "b7ad6b7169203331") == {"add a": [{"process a": []}]}
    assert spans[0]["traceId"] == "0af7651916cd43dd8448eb211c80319c"


def what_is_not_sampled_is_carried_but_not_sent(place):
    quiet = TRACE[:-1] + "0"
    place.run("add", "a", TRACEPARENT=quiet)
    job = json.loads(place.run("get", "1", "--json").stdout)
    assert job["values"]["traceparent"].startswith(quiet[:36]), job
    place.run("add", "b", TRACEPARENT="nonsense")
    spans = place.collector.wait(lambda spans: spans)
    assert [s["name"] for s in spans] == ["add b"], spans


def failures_are_errors(place):
    place.start("work", "a", "--exec", "echo broken >&2; exit 3")
    done = subprocess.run([WEIR, "add", "a", "--wait", "50s"], cwd=place.directory.name,
                          env=place.env(), capture_output=True, check=False)
    assert done.returncode == 1
    spans = place.collector.wait(lambda spans: len(spans) == 2)
    span = next(s for s in spans if s["name"] == "process a")
    assert span["status"]["code"] == 2 and span["status"]["message"], span
    assert {"key": "weir.job.outcome", "value": {"stringValue": "fail"}} in span["attributes"]


def a_python_worker_and_its_child(place):
    """A shell adds over HTTP; a Python worker adds a child and ends it, too."""
    from weir import Weir
    url = place.serve()
    queue = Weir(url)
    done = threading.Event()

    def parent(job):
        queue.add("child", {"of": job["id"]})

    for type_, handler in (("parent", parent), ("child", lambda job: None)):
        threading.Thread(target=queue.work, args=(type_, handler),
                         kwargs={"stop": done}, daemon=True).start()
    try:
        place.run("--store", url, "add", "parent", OTEL_SERVICE_NAME="shell")
        spans = place.collector.wait(lambda spans: len(spans) == 4)
    finally:
        done.set()
    assert tree(spans) == {"add parent": [{"process parent": [{"add child": [
        {"process child": []}]}]}]}, spans
    assert next(s for s in spans if s["name"] == "add parent")["service"] == "shell"


def an_absent_collector_harms_nothing(place):
    place.collector.status = 503
    done = place.run("add", "a", OTEL_EXPORTER_OTLP_ENDPOINT=place.collector.url + "/")
    assert done.stdout == "1\n"
    assert "1 spans were not delivered: the collector answered with status 503" in done.stderr
    place.collector.status = 400
    assert "status 400" in place.run("add", "a").stderr
    wrong = subprocess.run([WEIR, "add", "a"], cwd=place.directory.name, capture_output=True,
                           env=place.env(OTEL_EXPORTER_OTLP_ENDPOINT="collector"), text=True,
                           check=False)
    assert wrong.returncode == 2 and "endpoint: \"collector\": expected http://" in wrong.stderr


def a_collector_that_comes_back(place):
    """What could not be delivered is sent again, once."""
    place.collector.status = 503
    url = place.serve()
    post(url + "/v1/jobs", {"type": "a"})
    end = time.monotonic() + PATIENCE_S
    while place.collector.posts < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    place.collector.status = 200
    spans = place.collector.wait(lambda spans: spans)
    assert [s["name"] for s in spans] == ["add a"]


def a_worker_over_http(place):
    """Headers and members of the API, without a client; and over the bus."""
    url = place.serve()
    post(url + "/v1/jobs", [{"type": "a"}, {"type": "a"}], traceparent=TRACE)
    jobs = post(url + "/v1/take", {"types": ["a"], "n": 2})["jobs"]
    assert all(job["traceparent"][:36] == TRACE[:36] for job in jobs), jobs
    post(url + "/v1/finish", {"jobs": [{"id": job["id"], "delivery": job["delivery"],
                                        "error": "no"} for job in jobs]})
    spans = place.collector.wait(lambda spans: len(spans) == 3)
    assert tree(spans, TRACE[36:52]) == {"add a": [{"process a": []}, {"process a": []}]}, spans
    added = next(s for s in spans if s["kind"] == 4)
    assert {"key": "messaging.batch.message_count", "value": {"intValue": "2"}} in \
        added["attributes"]
    assert {s["spanId"] for s in spans if s["kind"] == 5} == \
        {job["traceparent"][36:52] for job in jobs}


CASES = [a_program_and_its_child, a_trace_that_began_elsewhere,
         what_is_not_sampled_is_carried_but_not_sent, failures_are_errors,
         a_python_worker_and_its_child, an_absent_collector_harms_nothing,
         a_collector_that_comes_back, a_worker_over_http]


def main():
    bad = 0
    print("1..%d" % len(CASES))
    for n, case in enumerate(CASES, 1):
        place = Place()
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

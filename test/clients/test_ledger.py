#!/usr/bin/env python3
"""test_ledger.py WEIR CLIENT-DIRECTORY [KILLS] - kill -9 of a server under load from 50 clients.

40 clients add jobs and 10 take and finish them, each noting what was acknowledged; the server is
killed and started again, again and again. In the end every acknowledged job is there once, none
was added twice although adds were repeated, and what was acknowledged as finished was never begun
again. Writes TAP.
"""
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid

WEIR, DIRECTORY = sys.argv[1:3]
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 6
sys.path.insert(0, DIRECTORY)
from weir import Weir, WeirError      # noqa: E402

PRODUCERS, WORKERS, BETWEEN, PATIENCE_S = 40, 10, 150, 120


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.added = {}             # number of a job -> the id that was acknowledged
        self.finished = {}          # id -> when that was acknowledged
        self.begun = []             # (id, when the request that gave it was sent)
        self.stop = threading.Event()       # no more new jobs
        self.over = threading.Event()       # no more work


def start(directory, listen):
    env = dict(os.environ, XDG_RUNTIME_DIR=directory, WEIR_DATA=directory)
    env.pop("WEIR_STORE", None)
    process = subprocess.Popen([WEIR, "serve", "--store", "sqlite:%s/jobs.db" % directory, "--data",
                                directory, "--listen", listen], stdout=subprocess.PIPE, text=True,
                               env=env)
    return process, process.stdout.readline().split()[-1]


def insist(call):
    """Call until it is answered."""
    while True:
        try:
            return call()
        except WeirError as why:
            if why.status and why.status < 500:
                raise
            time.sleep(0.01)


def produce(url, ledger, lane):
    queue, n = Weir(url), 0
    while not ledger.stop.is_set():
        number, key = lane * 1000000 + n, uuid.uuid4().hex
        n += 1
        added = insist(lambda: queue.call("POST", "/v1/jobs", {
            "type": "order", "data": {"number": number}}, headers={"Idempotency-Key": key}))
        with ledger.lock:
            ledger.added[number] = added["id"]


def work(url, ledger, name):
    queue = Weir(url)
    while not ledger.over.is_set():
        asked = time.monotonic()
        # a lease of a second: what a lost answer took away comes back soon
        jobs = insist(lambda: queue.call("POST", "/v1/take", {
            "types": ["order"], "n": 5, "wait": 200, "lease": 1000, "worker": name}))["jobs"]
        with ledger.lock:
            ledger.begun += [(job["id"], asked) for job in jobs]
        if not jobs:
            continue
        answer = insist(lambda: queue.call("POST", "/v1/finish", {"jobs": [
            {"id": job["id"], "delivery": job["delivery"], "result": job["data"]["number"]}
            for job in jobs]}))
        now = time.monotonic()
        with ledger.lock:
            for said in answer["results"]:
                if said.get("state") == "complete":
                    ledger.finished[said["id"]] = now


def all_jobs(queue):
    jobs, after = [], None
    while True:
        page = queue.list(limit=1000, after=after)
        jobs += page["jobs"]
        after = page["next"]
        if not after:
            return jobs


def wait_for(what):
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "never"
        time.sleep(0.01)


def check(name, wrong):
    check.n += 1
    print("%sok %d - ledger over HTTP: %s" % ("not " if wrong else "", check.n, name))
    if wrong:
        print("# %s" % str(wrong)[:500])
        check.failed = True


check.n, check.failed = 0, False


def run(directory):
    ledger = Ledger()
    server, url = start(directory, "127.0.0.1:0")
    listen = url.split("//")[1]
    threads = [threading.Thread(target=produce, args=(url, ledger, i), daemon=True)
               for i in range(PRODUCERS)]
    workers = [threading.Thread(target=work, args=(url, ledger, "w%d" % i), daemon=True)
               for i in range(WORKERS)]
    for thread in threads + workers:
        thread.start()
    for _ in range(KILLS):
        seen = len(ledger.added)
        wait_for(lambda: len(ledger.added) > seen + BETWEEN)
        time.sleep(random.random() * 0.05)
        server.kill()
        server.wait()
        server, url = start(directory, listen)
    seen = len(ledger.added)
    wait_for(lambda: len(ledger.added) > seen + BETWEEN)
    ledger.stop.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    queue = Weir(url)
    wait_for(lambda: insist(queue.stats)["counts"]["complete"] == len(ledger.added))
    ledger.over.set()
    for thread in workers:
        thread.join(PATIENCE_S)
    jobs = {job["id"]: job for job in all_jobs(queue)}
    server.terminate()
    server.wait()
    return ledger, jobs


def main():
    print("1..5")
    with tempfile.TemporaryDirectory() as directory:
        ledger, jobs = run(directory)
        print("# %d kills, %d jobs added, %d begun" % (KILLS, len(ledger.added), len(ledger.begun)))
        check("every acknowledged job is there, as it was added",
              [n for n, id in ledger.added.items()
               if id not in jobs or jobs[id]["data"] != {"number": n}])
        check("no job is there that was not added, and none twice",
              [] if len(jobs) == len(ledger.added) == len(set(ledger.added.values()))
              else (len(jobs), len(ledger.added)))
        check("what was acknowledged as finished is complete",
              [id for id in ledger.finished if jobs[id]["state"] != "complete"])
        check("what was acknowledged as finished was never begun again",
              [id for id, asked in ledger.begun if asked > ledger.finished.get(id, float("inf"))])
        env = dict(os.environ)
        env.pop("WEIR_STORE", None)
        answer = subprocess.run([WEIR, "--store", "sqlite:%s/jobs.db" % directory, "check"],
                                capture_output=True, text=True, env=env)
        check("the store is consistent", answer.returncode and answer.stdout + answer.stderr)
    return 1 if check.failed else 0


sys.exit(main())

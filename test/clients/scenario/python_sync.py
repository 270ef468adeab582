#!/usr/bin/env python3
"""python_sync.py CLIENT-DIRECTORY - scenario.md with the Python client."""
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])
from weir import Bus, Weir, WeirError     # noqa: E402

PATIENCE_S = 60
DATA = {"to": "ann", "n": [1, 2.5, "ä"]}
queue, bus = Weir(), Bus()
stop, seen, cancelled = threading.Event(), threading.Event(), threading.Event()


def until(what):
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "never"
        time.sleep(0.005)


def again(call):
    """A call, repeated while the server is away."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except WeirError as why:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def fails(call):
    try:
        call()
    except WeirError as why:
        return why
    raise AssertionError("it did not fail")


def done(id):
    return queue.wait(id, timeout_ms=PATIENCE_S * 1000)


def flaky(job):
    if job["delivery"] == 1:
        raise ValueError("not yet")


def slow(job):
    job.progress(1, 4)
    job.log("a quarter")
    assert seen.wait(PATIENCE_S)


def endless(job):
    job.progress(1, 2)
    until(lambda: job.cancelled)
    cancelled.set()


def add():
    added = queue.add("first", DATA, priority="high", attempts=3, unique="u")
    job = queue.get(added["id"])
    assert (job["data"], job["priority"], job["max_attempts"], job["state"]) == (DATA, -10, 3, "inactive")
    assert queue.add("first", unique="u") == dict(added, existed=True)


def bulk():
    assert len({one["id"] for one in queue.add_many([{"type": "bulk"}] * 100)}) == 100
    assert len(queue.list(type="bulk", state="inactive", limit=1000)["jobs"]) == 100


def wait():
    id = queue.add("first")["id"]
    assert queue.wait(id, timeout_ms=50)["state"] == "inactive"


def work():
    ids = [queue.add("sum", {"a": i, "b": 1})["id"] for i in range(10)]
    for i, id in enumerate(ids):
        job = done(id)
        assert (job["state"], job["result"]) == ("complete", i + 1)


def fail_and_retry():
    job = done(queue.add("flaky", attempts=2)["id"])
    assert (job["state"], job["attempts"]) == ("complete", 2)
    id = queue.add("flaky")["id"]
    job = done(id)
    assert job["state"] == "failed" and "not yet" in job["error"]
    queue.retry(id)
    assert done(id)["state"] == "complete"


def progress():
    id = queue.add("slow")["id"]
    until(lambda: queue.get(id).get("progress") == 25)
    until(lambda: [line["text"] for line in queue.log(id)] == ["a quarter"])
    seen.set()
    assert done(id)["state"] == "complete"


def cancel():
    id = queue.add("endless")["id"]
    until(lambda: queue.get(id).get("progress") == 50)
    queue.cancel(id)
    assert cancelled.wait(PATIENCE_S)
    assert queue.get(id)["state"] == "cancelled"
    id = queue.add("first", delay="1h")["id"]
    queue.cancel(id)
    assert queue.get(id)["state"] == "cancelled"


def schedule():
    queue.schedule_put("nightly", "0 3 * * *", "night")
    assert queue.get(queue.schedule_fire("nightly"))["type"] == "night"
    assert queue.schedule("nightly")["next_at"]
    queue.schedule_remove("nightly")
    assert fails(lambda: queue.schedule("nightly")).code == "ENOENT"


def talk():
    bus.consume("double", lambda message: message.body * 2)
    assert bus.request("double", 21).body == 42
    heard = []
    for name in "ab":
        bus.consume("news", lambda message, name=name: heard.append(name + message.body))
    bus.publish("news", "!")
    until(lambda: sorted(heard) == ["a!", "b!"])
    assert fails(lambda: bus.request("nobody")).failure == "NO_HANDLERS"


def reconnect():
    id = queue.add("stays")["id"]
    print("# restart", flush=True)
    assert sys.stdin.readline()
    assert again(lambda: queue.get(id))["type"] == "stays"
    sum = again(lambda: queue.add("sum", {"a": 1, "b": 2}))["id"]
    assert again(lambda: done(sum))["result"] == 3
    assert again(lambda: bus.request("double", 4)).body == 8


HANDLERS = {"sum": lambda job: job.data["a"] + job.data["b"], "flaky": flaky, "slow": slow, "endless": endless}
threads = [threading.Thread(target=queue.work, args=(type, handler), kwargs={"concurrency": 2, "stop": stop})
           for type, handler in HANDLERS.items()]
for thread in threads:
    thread.start()
try:
    STEPS = [add, bulk, wait, work, fail_and_retry, progress, cancel, schedule, talk, reconnect]
    print("1..%d" % len(STEPS))
    for n, step in enumerate(STEPS, 1):
        step()
        print("ok %d - %s" % (n, step.__name__), flush=True)
finally:
    stop.set()
    seen.set()
    bus.close()
    for thread in threads:
        thread.join()

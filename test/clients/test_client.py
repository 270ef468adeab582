#!/usr/bin/env python3
"""test_client.py WEIR CLIENT-DIRECTORY - the Python client against a real server. Writes TAP."""
import os
import socket
import sys
import threading
import time

from rig import PATIENCE_S, run, until
from weir import ReturnJob, Weir, WeirError


class Working:
    """A work() on a thread of its own."""

    def __init__(self, queue, types, handler, **options):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=queue.work, args=(types, handler),
                                       kwargs=dict(options, stop=self.stop))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


# ---- cases: each gets a queue and its server ----

def the_server_is_that_of_weir_store(_, server):
    os.environ["WEIR_STORE"] = server.url
    assert Weir().stats()["type"] == "*"
    os.environ["WEIR_STORE"] = "sqlite:jobs.db"
    try:
        Weir()
        raise AssertionError("it must be refused")
    except ValueError as why:
        assert "sqlite:...: not a weir server; expected http" in str(why)
    try:
        Weir("localhost:7340")
        raise AssertionError("it must be refused")
    except ValueError as why:
        assert "localhost:7340: the scheme is missing; write http://localhost:7340" in str(why)
    finally:
        del os.environ["WEIR_STORE"]


def adds_and_finds(queue, server):
    added = queue.add("mail", {"to": "ann@example.org", "n": 2 ** 53 - 1}, priority="high",
                      attempts=3)
    assert added["state"] == "inactive" and not added["existed"]
    job = queue.get(added["id"])
    assert job["data"] == {"to": "ann@example.org", "n": 2 ** 53 - 1}
    assert job["priority"] == -10 and job["max_attempts"] == 3
    assert queue.list(type="mail")["jobs"][0]["id"] == added["id"]
    again = queue.add("mail", unique="k")
    assert queue.add("mail", unique="k") == dict(again, existed=True)
    queue.remove(added["id"])
    try:
        queue.get(added["id"])
        assert False
    except WeirError as why:
        assert why.status == 404 and why.code == "ENOENT"


def adds_many_each_by_itself(queue, server):
    answers = queue.add_many([{"type": "a"}, {"type": "b", "attempts": -1}, {"type": "c"}])
    assert "id" in answers[0] and "id" in answers[2]
    assert answers[1]["error"]["field"].endswith("attempts")


def says_what_is_wrong(queue, server):
    try:
        queue.add("mail", priorty=3)
        assert False
    except WeirError as why:
        assert why.status == 400 and "priorty" in str(why)
    try:
        Weir("http://127.0.0.1:1").get(1)
        assert False
    except WeirError as why:
        assert why.status == 0 and why.code == "EUNAVAIL"


def refused(why, words, call, *args, **named):
    try:
        call(*args, **named)
        raise AssertionError("it must be refused")
    except why as e:
        assert words in str(e), e


def changes_jobs_pauses_types_lists_some(queue, server):
    id = queue.add("held", priority="low")["id"]
    queue.pause("held")
    assert [t for t in queue.types() if t["type"] == "held"][0]["paused"]
    queue.resume("held")
    assert queue.update(id, priority="high", from_="inactive")["priority"] == -10
    refused(WeirError, "", queue.update, id, priority=1, from_="failed")
    other = queue.add("held", delay="1h")["id"]
    queue.cancel(id)

    def ids(**query):
        return [job["id"] for job in queue.list(type="held", **query)["jobs"]]
    assert ids(state=["cancelled", "delayed"], order="desc") == [other, id]
    assert ids(state="cancelled,failed", since="1h") == [id]
    assert ids(sort="priority") == [id, other]
    refused(WeirError, "state", queue.list, state=["odd"])


def what_is_wrong_is_said_before_it_is_sent(queue, server):
    refused(ValueError, "id: 'abc' is not the number of a job", queue.get, "abc")
    refused(ValueError, "id: 0 is not the number of a job", queue.remove, 0)
    refused(ValueError, "NaN and infinity are not JSON", queue.add, "nan", {"x": float("nan")})


def works(queue, server):
    def handler(job):
        job.log("adding")
        job.progress(1, 2)
        return job["data"]["a"] + job["data"]["b"]
    with Working(queue, ["sum"], handler, concurrency=4):
        ids = [queue.add("sum", {"a": i, "b": 1})["id"] for i in range(20)]
        assert [queue.wait(id, timeout_ms=60000)["result"] for id in ids] == list(range(1, 21))
        assert queue.log(ids[0])[0]["text"] == "adding"
    assert queue.get(ids[0])["workerId"].endswith(":%d" % os.getpid())


def values_stay_with_the_job(queue, server):
    def handler(job):
        if job["attempts"] == 0:
            job.set(step=1, note="halfway")
            raise ValueError("again")
        job.set(note=None)
        return [job["values"], queue.get(job["id"])["values"]]
    id = queue.add("values", attempts=2, values={"color": "red"})["id"]
    queue.set(id, size=7, color=None)
    assert queue.get(id)["values"] == {"size": 7}
    with Working(queue, "values", handler):
        job = queue.wait(id, timeout_ms=60000)
    assert job["result"] == [{"size": 7, "step": 1}] * 2
    try:
        queue.set(id, state=1)
        assert False
    except WeirError as why:
        assert why.status == 400 and "values.state" in str(why)


def failures_use_up_attempts(queue, server):
    seen = []

    def handler(job):
        seen.append(job["attempts"])
        raise ValueError("no such thing")
    with Working(queue, "bad", handler):
        job = queue.wait(queue.add("bad", attempts=3)["id"], timeout_ms=60000)
    assert job["state"] == "failed" and job["error"] == "ValueError: no such thing"
    assert seen == [0, 1, 2]


def a_returned_job_runs_again(queue, server):
    seen = []

    def handler(job):
        seen.append(job["delivery"])
        if len(seen) == 1:
            raise ReturnJob
        if len(seen) == 2:
            raise ReturnJob(delay=10)
        return "third"
    with Working(queue, "again", handler):
        job = queue.wait(queue.add("again")["id"], timeout_ms=60000)
    assert job["result"] == "third" and job["attempts"] == 1
    assert [past["state"] for past in job["history"]][:2] == ["inactive", "delayed"]


def leases_are_renewed(queue, server):
    def handler(job):
        end = time.monotonic() + 2              # four leases
        while time.monotonic() < end and not job.cancelled:
            time.sleep(0.01)
        return job.cancelled
    with Working(queue, "slow", handler, lease_ms=500):
        job = queue.wait(queue.add("slow")["id"], timeout_ms=60000)
    assert job["result"] is False and job["delivery"] == 1


def a_cancelled_handler_is_told(queue, server):
    told = threading.Event()

    def handler(job):
        until(lambda: job.cancelled)
        told.set()
    with Working(queue, "stop", handler, lease_ms=300):
        id = queue.add("stop")["id"]
        until(lambda: queue.get(id)["state"] == "active")
        queue.cancel(id)
        assert told.wait(PATIENCE_S)
    assert queue.get(id)["state"] == "cancelled"


def hears_events(queue, server):
    heard = set()

    def listen():
        for event in queue.events(type="heard"):
            heard.add(event["event"])
            if {"enqueue", "start", "complete"} <= heard:
                return
    thread = threading.Thread(target=listen)
    thread.start()
    with Working(queue, "heard", lambda job: None):
        until(lambda: (queue.wait(queue.add("heard")["id"], timeout_ms=60000), not thread.is_alive())[1])


def a_break_within_an_event_loses_nothing(queue, server):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    whole = b'id: r-0\n\nid: r-1\nevent: enqueue\ndata: {"event":"enqueue"}\n\n'
    ends = [whole.index(b"data"), whole.index(b"enqueue\"}"), len(whole)]
    asked = []

    def serve(listener):
        for end in ends:
            connection = listener.accept()[0]
            with connection:
                asked.append(connection.recv(65536))
                connection.sendall(head + whole[:end])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        events = Weir("http://127.0.0.1:%d" % listener.getsockname()[1]).events()
        assert next(events) == {"event": "enqueue"}
        thread.join(PATIENCE_S)
    assert b"Last-Event-ID" not in asked[0]
    assert b"Last-Event-ID: r-0\r\n" in asked[1] and b"Last-Event-ID: r-0\r\n" in asked[2]


def survives_a_killed_server(queue, server):
    added, failed = [], []

    def produce():
        for _ in range(200):
            try:
                added.append(queue.add("order")["id"])
            except WeirError as why:
                failed.append(why)
    thread = threading.Thread(target=produce)
    thread.start()
    until(lambda: len(added) > 20)
    server.kill()
    server.start()
    thread.join(PATIENCE_S)
    assert not failed and len(set(added)) == 200
    total = next(t for t in queue.stats()["types"] if t["type"] == "order")["counts"]["inactive"]
    assert total == 200, "%d jobs for 200 calls" % total


def keeps_schedules(queue, server):
    made = queue.schedule_put("a/b", "30 6 * * 1", "report", {"n": 1}, zone="Europe/Berlin",
                              job={"attempts": 3})
    assert made["words"] == "at 06:30 on Monday (Europe/Berlin)" and len(made["next"]) == 5
    assert queue.schedule("a/b")["job"]["attempts"] == 3
    assert [s["name"] for s in queue.schedules()] == ["a/b"]
    id = queue.schedule_fire("a/b")
    assert queue.get(id)["values"]["schedule"] == "a/b"
    assert queue.schedule_backfill("a/b", 1774569600000, 1775449800001) == 2
    assert queue.schedule_pause("a/b")["paused"] and not queue.schedule_resume("a/b")["paused"]
    assert len(queue.schedule_next("@daily", n=7)["next"]) == 7
    queue.schedule_remove("a/b")
    assert not list(queue.schedules())


CASES = [keeps_schedules, adds_and_finds, the_server_is_that_of_weir_store, adds_many_each_by_itself,
         says_what_is_wrong, works, changes_jobs_pauses_types_lists_some,
         what_is_wrong_is_said_before_it_is_sent,
         values_stay_with_the_job, failures_use_up_attempts, a_returned_job_runs_again, leases_are_renewed,
         a_cancelled_handler_is_told, hears_events, a_break_within_an_event_loses_nothing,
         survives_a_killed_server]


sys.exit(run(CASES, lambda case, server: case(Weir(server.url), server)))

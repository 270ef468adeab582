#!/usr/bin/env python3
"""test_bus.py WEIR CLIENT-DIRECTORY - the Python client of the event bus against a real server. Writes
TAP. test_bus.mjs has the same cases."""
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading

from rig import PATIENCE_S, WEIR, Server, redis, run, until
import weir.bus
from weir import AsyncBus, Bus, BusError, Weir, WeirError


def fails(call, *args, **options):
    """The error with which the call ends."""
    try:
        call(*args, **options)
    except WeirError as why:
        return why
    raise AssertionError("it did not fail")


def status_of(server, address):
    return next(q for q in Weir(server.url).workqueues() if q["address"] == address)


# ---- cases: each gets a bus and its server ----

def publishes_to_all_and_sends_in_turns(bus, server):
    with Bus(server.url) as other:
        heard = {"a": [], "b": []}
        for name, one in (("a", bus), ("b", other)):
            one.consume("news", lambda m, name=name: heard[name].append((m.body, m.sent, m.headers)))
        bus.publish("news", {"text": "Füße \U0001f389"}, headers={"from": "ann"})
        until(lambda: heard["a"] and heard["b"])
        assert heard["a"] == heard["b"] == [({"text": "Füße \U0001f389"}, False, {"from": "ann"})]
        for n in range(4):
            other.send("news", n)
        until(lambda: sum(map(len, heard.values())) == 6)
        assert len(heard["a"]) == len(heard["b"]) == 3 and heard["a"][1][1] is True


def a_trace_goes_on_in_messages_and_jobs(bus, server):
    trace, queue = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Weir(server.url)
    bus.consume("traced", lambda m: [m.headers.get("traceparent"),
                                     queue.get(queue.add("child")["id"])["values"]["traceparent"]])
    bus.consume("first", lambda m: bus.request("traced").body)
    assert bus.request("first", headers={"traceparent": trace}).body == [trace, trace]

    async def in_a_loop():
        async with AsyncBus(server.url) as loop_bus:
            async def handler(message):
                return (await loop_bus.request("traced")).body
            await loop_bus.consume("second", handler)
            return (await loop_bus.request("second", headers={"traceparent": trace})).body
    assert asyncio.run(in_a_loop()) == [trace, trace]


def consumers_of_one_bus_take_turns_too(bus, server):
    heard = []
    first = bus.consume("turns", lambda m: heard.append("a"))
    bus.consume("turns", lambda m: heard.append("b"))
    for _ in range(4):
        bus.send("turns")
    until(lambda: len(heard) == 4)
    assert sorted(heard) == ["a", "a", "b", "b"]
    bus.publish("turns")
    until(lambda: len(heard) == 6)
    first.close()
    bus.publish("turns")
    until(lambda: len(heard) == 7)
    assert heard[6] == "b"


def requests_are_answered_or_fail(bus, server):
    def handler(message):
        if message.body == "typed":
            raise BusError("no such user", code=404)
        if message.body == "raised":
            raise ValueError("a bug")
        if message.body == "later":
            threading.Thread(target=message.reply, args=("now",), kwargs={"headers": {"k": "v"}}).start()
            return None
        return None if message.body == "silent" else {"got": message.body}
    bus.consume("ask", handler)
    assert bus.request("ask", [1, None, "x"]).body == {"got": [1, None, "x"]}
    late = bus.request("ask", "later")
    assert late.body == "now" and late.headers == {"k": "v"} and not late.expects_reply
    why = fails(bus.request, "ask", "typed")
    assert (why.failure, why.code, why.message) == ("RECIPIENT_FAILURE", 404, "no such user")
    why = fails(bus.request, "ask", "raised")
    assert (why.failure, why.code, why.message) == ("RECIPIENT_FAILURE", -1, "ValueError: a bug")
    assert fails(bus.request, "ask", "silent", timeout_ms=50).failure == "TIMEOUT"
    why = fails(bus.request, "nobody", 1)
    assert (why.failure, why.code) == ("NO_HANDLERS", -1) and "No handlers for address nobody" in str(why)
    big = "x" * (10 << 20)
    assert bus.request("ask", big).body == {"got": big}


def replies_are_replied_to(bus, server):
    heard = []

    def handler(message):
        try:
            second = message.request({"step": "which?"})
        except BusError as why:
            heard.append(why.code)
            return
        heard.append(second.body)
        second.reply("done")
    bus.consume("talk", handler)
    first = bus.request("talk", "begin")
    assert first.body == {"step": "which?"} and first.expects_reply
    assert first.request("this").body == "done" and heard == ["this"]
    assert "nobody waits" in str(fails(first.reply, 1))
    again = bus.request("talk", "begin")
    again.fail(7, "never mind")
    until(lambda: heard == ["this", 7])


def services_are_called(bus, server):
    def fail(args, message):
        raise BusError("not today", code=9)
    with Bus(server.url) as other:
        other.service("calc", {"add": lambda args, message: args["a"] + args["b"], "fail": fail,
                               "nothing": lambda args, message: None})
        assert bus.call("calc", "add", {"a": 1, "b": 2}) == 3
        assert bus.call("calc", "nothing") is None
        assert fails(bus.call, "calc", "fail").code == 9
        assert fails(bus.call, "calc", "add").message == "KeyError: 'a'"
        why = fails(bus.call, "calc", "sub")
        assert (why.code, why.message) == (500, "Invalid action: sub")
        assert fails(bus.request, "calc", {}).message == "action not specified"
    assert bus.call("vertx.kue.service.job.internal", "existsJob", {"id": 1}) is False


def processors_have_the_work_of_a_work_queue(bus, server):
    Weir(server.url).workqueue_put("resize")
    Weir(server.url).workqueue_put("res/ize", process_timeout="1m", persist=True)
    assert status_of(server, "res/ize")["process_timeout"] == 60000
    Weir(server.url).workqueue_remove("res/ize")
    assert [q["address"] for q in Weir(server.url).workqueues()] == ["resize"]
    lock, running, most = threading.Lock(), [0], [0]

    def handler(message):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        until(lambda: most[0] == 3)             # three at once
        with lock:
            running[0] -= 1
        if message.body == 7:
            raise ValueError("not seven")
        return None if message.body == 8 else message.body * 2
    with Bus(server.url) as worker:
        processor = worker.process("resize", handler, concurrency=3)
        answers = {}

        def ask(n):
            try:
                answers[n] = bus.request("resize", n).body
            except BusError as why:
                answers[n] = why.message
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert answers == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8, 5: 10, 6: 12, 7: "ValueError: not seven", 8: None}
        processor.close()
        until(lambda: status_of(server, "resize")["idle"] == 0)
        bus.send("resize", 1)
        until(lambda: status_of(server, "resize")["waiting"] == 1)
    assert "No handlers" in str(fails(bus.process, "no.such.queue", handler))


def a_killed_server_is_found_again(bus, server):
    heard, started = [], threading.Event()
    bus.consume("again", lambda m: heard.append(m.body) or "yes")
    silent = bus.consume("silent", lambda m: started.set())
    Weir(server.url).workqueue_put("kept", persist=True)
    bus.process("kept", lambda m: heard.append(m.body))
    waiting = []
    thread = threading.Thread(target=lambda: waiting.append(fails(bus.request, "silent", 1)))
    thread.start()
    assert started.wait(PATIENCE_S)
    server.kill()
    thread.join(PATIENCE_S)
    assert (waiting[0].failure, waiting[0].error) == ("ERROR", "ELOST")
    assert "connection to the server was lost" in str(waiting[0])
    calling = threading.Thread(target=lambda: bus.publish("again", 1))      # waits for the server
    calling.start()
    server.start()
    calling.join(PATIENCE_S)
    until(lambda: heard == [1])
    assert bus.request("again", 2).body == "yes"
    bus.request("kept", 3)
    assert heard == [1, 2, 3]
    silent.close()
    assert fails(bus.request, "silent", 1).failure == "NO_HANDLERS"


def when_a_server_is_killed_the_other_one_of_the_list_is_used(*_):
    with redis() as store, tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        first, second = Server(a, store=store), Server(b, store=store)
        for server in (first, second):
            Weir(server.url).workqueue_put("memory")
            Weir(server.url).workqueue_put("kept", persist=True)
        with Bus([first.url, second.url]) as bus, Bus(second.url) as far:
            def ask(address, body, asker=far):
                """What is on its way when a server is killed fails, and its consumers vanish within
                seconds."""
                replies = []

                def answered():
                    try:
                        replies.append(asker.request(address, body, timeout_ms=1000).body)
                    except WeirError:
                        pass
                    return replies
                until(answered)
                return replies[0]
            bus.consume("square", lambda m: m.body ** 2)
            bus.process("memory", lambda m: m.body + 1, concurrency=2)
            bus.process("kept", lambda m: m.body + 2)
            assert [ask("square", 7), ask("memory", 1), ask("kept", 1)] == [49, 2, 3]
            first.kill()
            assert [ask("square", 8), ask("memory", 2), ask("kept", 2)] == [64, 3, 4]
            until(lambda: status_of(second, "memory")["idle"] == 2)
            assert bus.request("square", 9).body == 81
            first.start()                       # and back again
            second.kill()
            assert ask("square", 2, bus) == 4
        first.stop()
    try:
        Bus([])
    except ValueError as why:
        assert "list of servers is empty" in str(why)
    else:
        raise AssertionError("no error")


def permissions_and_tokens(_, server):
    with tempfile.TemporaryDirectory() as directory:
        with open(directory + "/config.json", "w") as file:
            json.dump({"bus": {"inbound": ["chat\\..*"], "outbound": ["chat\\..*"]}}, file)
        os.chmod(directory + "/config.json", 0o600)

        def token(*args):
            return subprocess.run([WEIR, "token", "add", *args, "--data", directory], check=True,
                                  capture_output=True, text=True).stdout.strip()
        guest, admin = token("guest", "--role", "produce"), token("boss", "--role", "admin")
        guarded = Server(directory, "--config", directory + "/config.json")
        with Bus(guarded.url, token=guest) as bus:
            heard = []
            bus.consume("chat.x", lambda m: heard.append(m.body))
            bus.publish("chat.x", 1)
            until(lambda: heard == [1])
            for call, what in ((bus.publish, "publish"), (bus.send, "send"), (bus.request, "send")):
                why = fails(call, "secret", 1)
                assert (why.failure, str(why)) == ("ERROR", "access_denied: %s secret" % what)
            assert str(fails(bus.consume, "secret", print)) == "access_denied: register secret"
            bus.publish("chat.x", 2)            # and goes on
            until(lambda: heard == [1, 2])
        with Bus(guarded.url, token=admin) as bus:
            bus.consume("secret", lambda m: m.body)
            assert bus.request("secret", 5).body == 5
        with Bus(guarded.url, token="wtk_wrong") as bus:
            assert "access_denied" in str(fails(bus.publish, "chat.x", 1))
        guarded.stop()


def speaks_tls(_, server):
    with tempfile.TemporaryDirectory() as directory:
        pem = [directory + "/cert.pem", directory + "/key.pem"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-days", "2", "-keyout", pem[1], "-out", pem[0], "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        secure = Server(directory, "--tls-cert", pem[0], "--tls-key", pem[1])
        with Bus(secure.url, ca=pem[0]) as bus:
            bus.consume("echo", lambda m: m.body)
            threads = [threading.Thread(target=lambda: [bus.request("echo", "x" * 70000) for _ in range(50)])
                       for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE_S)
            assert bus.request("echo", 1).body == 1
        with Bus(secure.url) as bus:            # does not know the certificate
            assert fails(bus.request, "echo", 1, timeout_ms=300).code == "EUNAVAIL"
        secure.stop()


def a_consumer_that_is_behind_misses_messages(bus, server):
    go, heard = threading.Event(), []
    weir.bus.MAX_WAITING, before = 4, weir.bus.MAX_WAITING
    consumer = bus.consume("slow", lambda m: (go.wait(PATIENCE_S), heard.append(m.body)))
    weir.bus.MAX_WAITING = before
    for n in range(10):
        bus.publish("slow", n)
    until(lambda: consumer.missed >= 5)
    assert "too many messages" in str(fails(bus.request, "slow", 1))
    go.set()
    consumer.close()
    assert heard == sorted(heard) and 4 <= len(heard) <= 5


def a_closed_bus_says_so(bus, server):
    bus.consume("x", print)
    bus.close()
    assert fails(bus.publish, "x").error == "ECLOSED"
    assert "closed" in str(fails(bus.request, "x"))


CASES = [publishes_to_all_and_sends_in_turns, consumers_of_one_bus_take_turns_too,
         requests_are_answered_or_fail, replies_are_replied_to, services_are_called,
         a_trace_goes_on_in_messages_and_jobs,
         processors_have_the_work_of_a_work_queue, a_killed_server_is_found_again,
         when_a_server_is_killed_the_other_one_of_the_list_is_used, permissions_and_tokens,
         speaks_tls, a_consumer_that_is_behind_misses_messages, a_closed_bus_says_so]


def with_bus(case, server):
    with Bus(server.url) as bus:
        case(bus, server)


sys.exit(run(CASES, with_bus))

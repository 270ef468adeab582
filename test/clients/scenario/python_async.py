#!/usr/bin/env python3
"""python_async.py CLIENT-DIRECTORY - scenario.md with the Python client for asyncio."""
import asyncio
import sys
import time

sys.path.insert(0, sys.argv[1])
from weir import AsyncBus, AsyncWeir, WeirError     # noqa: E402

PATIENCE_S = 60
DATA = {"to": "ann", "n": [1, 2.5, "ä"]}


async def until(what):
    end = time.monotonic() + PATIENCE_S
    while not await what():
        assert time.monotonic() < end, "never"
        await asyncio.sleep(0.005)


async def again(call):
    """A call, repeated while the server is away."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await call()
        except WeirError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.02)


async def fails(call):
    try:
        await call
    except WeirError as why:
        return why
    raise AssertionError("it did not fail")


class Scenario:
    def __init__(self, queue, bus):
        self.queue, self.bus = queue, bus
        self.stop, self.seen, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.handlers = {"sum": lambda job: job.data["a"] + job.data["b"], "flaky": self.flaky,
                         "slow": self.slow, "endless": self.endless}

    async def done(self, id):
        return await self.queue.wait(id, timeout_ms=PATIENCE_S * 1000)

    async def progress_of(self, id):
        return (await self.queue.get(id)).get("progress")

    # ---- handlers ----

    async def flaky(self, job):
        if job["delivery"] == 1:
            raise ValueError("not yet")

    async def slow(self, job):
        await job.progress(1, 4)
        await job.log("a quarter")
        await asyncio.wait_for(self.seen.wait(), PATIENCE_S)

    async def endless(self, job):
        await job.progress(1, 2)

        async def over():
            return job.cancelled
        await until(over)
        self.cancelled.set()

    # ---- steps ----

    async def add(self):
        added = await self.queue.add("first", DATA, priority="high", attempts=3, unique="u")
        job = await self.queue.get(added["id"])
        assert (job["data"], job["priority"], job["max_attempts"], job["state"]) == (DATA, -10, 3, "inactive")
        assert await self.queue.add("first", unique="u") == dict(added, existed=True)

    async def bulk(self):
        assert len({one["id"] for one in await self.queue.add_many([{"type": "bulk"}] * 100)}) == 100
        assert len((await self.queue.list(type="bulk", state="inactive", limit=1000))["jobs"]) == 100

    async def wait(self):
        id = (await self.queue.add("first"))["id"]
        assert (await self.queue.wait(id, timeout_ms=50))["state"] == "inactive"

    async def work(self):
        ids = [(await self.queue.add("sum", {"a": i, "b": 1}))["id"] for i in range(10)]
        for i, id in enumerate(ids):
            job = await self.done(id)
            assert (job["state"], job["result"]) == ("complete", i + 1)

    async def fail_and_retry(self):
        job = await self.done((await self.queue.add("flaky", attempts=2))["id"])
        assert (job["state"], job["attempts"]) == ("complete", 2)
        id = (await self.queue.add("flaky"))["id"]
        job = await self.done(id)
        assert job["state"] == "failed" and "not yet" in job["error"]
        await self.queue.retry(id)
        assert (await self.done(id))["state"] == "complete"

    async def progress(self):
        id = (await self.queue.add("slow"))["id"]

        async def logged():
            return await self.progress_of(id) == 25 and \
                [line["text"] for line in await self.queue.log(id)] == ["a quarter"]
        await until(logged)
        self.seen.set()
        assert (await self.done(id))["state"] == "complete"

    async def cancel(self):
        id = (await self.queue.add("endless"))["id"]

        async def runs():
            return await self.progress_of(id) == 50
        await until(runs)
        await self.queue.cancel(id)
        await asyncio.wait_for(self.cancelled.wait(), PATIENCE_S)
        assert (await self.queue.get(id))["state"] == "cancelled"
        id = (await self.queue.add("first", delay="1h"))["id"]
        await self.queue.cancel(id)
        assert (await self.queue.get(id))["state"] == "cancelled"

    async def schedule(self):
        await self.queue.schedule_put("nightly", "0 3 * * *", "night")
        assert (await self.queue.get(await self.queue.schedule_fire("nightly")))["type"] == "night"
        assert (await self.queue.schedule("nightly"))["next_at"]
        await self.queue.schedule_remove("nightly")
        assert (await fails(self.queue.schedule("nightly"))).code == "ENOENT"

    async def talk(self):
        async def double(message):
            return message.body * 2
        await self.bus.consume("double", double)
        assert (await self.bus.request("double", 21)).body == 42
        heard = []
        for name in "ab":
            await self.bus.consume("news", lambda message, name=name: heard.append(name + message.body))
        await self.bus.publish("news", "!")

        async def both():
            return sorted(heard) == ["a!", "b!"]
        await until(both)
        assert (await fails(self.bus.request("nobody"))).failure == "NO_HANDLERS"

    async def reconnect(self):
        id = (await self.queue.add("stays"))["id"]
        print("# restart", flush=True)
        assert await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        assert (await again(lambda: self.queue.get(id)))["type"] == "stays"
        sum = (await again(lambda: self.queue.add("sum", {"a": 1, "b": 2})))["id"]
        assert (await again(lambda: self.done(sum)))["result"] == 3
        assert (await again(lambda: self.bus.request("double", 4))).body == 8

    async def run(self):
        workers = [asyncio.ensure_future(self.queue.work(type, handler, concurrency=2, stop=self.stop))
                   for type, handler in self.handlers.items()]
        steps = [self.add, self.bulk, self.wait, self.work, self.fail_and_retry, self.progress, self.cancel,
                 self.schedule, self.talk, self.reconnect]
        print("1..%d" % len(steps))
        try:
            for n, step in enumerate(steps, 1):
                await step()
                print("ok %d - %s" % (n, step.__name__), flush=True)
        finally:
            self.stop.set()
            self.seen.set()
            await asyncio.gather(*workers)


async def main():
    async with AsyncWeir() as queue, AsyncBus() as bus:
        await Scenario(queue, bus).run()


asyncio.run(main())

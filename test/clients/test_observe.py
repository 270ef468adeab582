#!/usr/bin/env python3
"""test_observe.py WEIR CLIENT-DIRECTORY - jobs as an async iterator, against a real server. Writes
TAP. test_observe.mjs has the same cases."""
import asyncio
import sys

from rig import PATIENCE_S, run
from weir import AsyncWeir, Weir, WeirError, observe


def state(queue, id):
    return queue.get(id)["state"]


async def until(what):
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while not what():
        assert asyncio.get_running_loop().time() < end, "never"
        await asyncio.sleep(0.005)


async def each_outcome(queue, server):
    ids = [queue.add("each", n, attempts=3)["id"] for n in range(4)]
    async with observe(AsyncWeir(server.url), "each", window=4) as jobs:
        got = [await jobs.__anext__() for _ in range(4)]
        assert [job["id"] for job in got] == ids
        await got[0].done({"n": 1})
        await got[1].give_back("1h")
        await got[2].give_up("no such user")
        assert [state(queue, id) for id in ids] == ["complete", "delayed", "failed", "active"]
        assert queue.get(ids[0])["result"] == {"n": 1}
        await got[3].fail("no answer")
        again = await jobs.__anext__()
        assert again["id"] == ids[3] and again["attempts"] == 1
        await again.done()
        try:
            await again.done()
            assert False, "it ended twice"
        except WeirError as why:
            assert why.code == "ESTALE"


async def no_more_than_the_window(queue, server):
    ids = [queue.add("window")["id"] for _ in range(4)]
    async with observe(AsyncWeir(server.url), "window", window=2) as jobs:
        got = [await jobs.__anext__() for _ in range(2)]
        third = asyncio.ensure_future(jobs.__anext__())
        await asyncio.sleep(0.05)
        assert not third.done()
        assert [state(queue, id) for id in ids] == ["active"] * 2 + ["inactive"] * 2
        await got[0].done()
        assert (await third)["id"] == ids[2]
    assert [state(queue, id) for id in ids] == ["complete"] + ["inactive"] * 3     # back


async def jobs_come_as_they_are_added(queue, server):
    seen = []
    async with observe(AsyncWeir(server.url), ["first", "second"]) as jobs:
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, queue.add, "second", 2)
        async for job in jobs:
            seen.append(job["data"])
            await job.done()
            if len(seen) == 2:
                break
            queue.add("first", 1)
    assert seen == [2, 1]


async def a_condition_leaves_jobs_to_others(queue, server):
    us, eu = (queue.add("region", {"region": name})["id"] for name in ("us", "eu"))
    async with observe(AsyncWeir(server.url), "region", when='data.region = "eu"') as some:
        async with observe(AsyncWeir(server.url), "region") as others:
            job = await some.__anext__()
            assert job["id"] == eu
            assert (await others.__anext__())["id"] == us
            await job.done()
            waiting = asyncio.ensure_future(some.__anext__())
            queue.add("region", {"region": "us"})
            later = queue.add("region", {"region": "eu"})["id"]
            assert (await waiting)["id"] == later
    try:
        async with observe(AsyncWeir(server.url), "region", when="data.region =") as wrong:
            await wrong.__anext__()
            assert False, "a wrong condition"
    except WeirError as why:
        assert why.code == "EINVAL" and "column" in str(why)


async def leases_are_renewed(queue, server):
    id = queue.add("slow")["id"]
    async with observe(AsyncWeir(server.url), "slow", lease_ms=500) as jobs:
        job = await jobs.__anext__()
        await asyncio.sleep(1.2)
        assert not job.cancelled and state(queue, id) == "active"
        queue.cancel(id)
        await until(lambda: job.cancelled)


async def a_server_that_is_away_comes_back(queue, server):
    async with observe(AsyncWeir(server.url), "away") as jobs:
        waiting = asyncio.ensure_future(jobs.__anext__())
        await asyncio.sleep(0.1)
        server.kill()
        server.start()
        id = queue.add("away")["id"]
        job = await asyncio.wait_for(waiting, PATIENCE_S)
        assert job["id"] == id
        await job.done()


CASES = [each_outcome, no_more_than_the_window, jobs_come_as_they_are_added,
         a_condition_leaves_jobs_to_others, leases_are_renewed, a_server_that_is_away_comes_back]
sys.exit(run(CASES, lambda case, server: asyncio.run(case(Weir(server.url), server))))

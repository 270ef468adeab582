"""The jobs of a weir server as an async iterator.

    async with observe(AsyncWeir(), "mail", window=10) as jobs:
        async for job in jobs:
            await job.done({"sent": True})      # or fail(), give_back(), give_up()

At most `window` jobs are without an outcome at any time: the others stay in the queue. Their leases
are renewed meanwhile. Jobs without an outcome go back to the queue when the block is left. With
when='data.region = "eu"', only jobs for which this condition is true; the others stay for others.
"""
import asyncio
from typing import Any, Dict, List, Optional, Tuple

from . import protocol
from .aio import AsyncJob, AsyncWeir, finish, renew
from .client import Types, list_of, worker_name
from .protocol import Answer, Time, WeirError, jitter


class ObservedJob(AsyncJob):
    """A job that waits for its outcome: the first of these calls is it."""

    def __init__(self, members: Answer, queue: AsyncWeir, stream: "observe") -> None:
        super().__init__(members, queue)
        self._stream = stream

    async def done(self, result: Any = None) -> None:
        """It is complete."""
        await self._stream._end(self, {"result": result})

    async def fail(self, error: Any) -> None:
        """It is tried again, if attempts are left."""
        await self._stream._end(self, {"error": str(error)})

    async def give_up(self, error: Any) -> None:
        """It has failed, however many attempts are left."""
        await self._stream._end(self, {"error": str(error), "final": True})

    async def give_back(self, delay: Time = 0) -> None:
        """The job is delivered again after `delay` (milliseconds, or "5s"); no attempt is used."""
        await self._stream._end(self, {"return": True, "delay": delay})


class observe:
    """See above. Raises WeirError for what trying again would not cure."""

    def __init__(self, queue: AsyncWeir, types: Types, *, window: int = 1, lease_ms: int = 30000,
                 worker: Optional[str] = None, when: Optional[str] = None) -> None:
        self._when = when
        self._queue, self._types = queue, list_of(types)
        self._window, self._lease_ms = window, int(lease_ms)
        self._worker = worker or worker_name() + ":observe"
        self._held: Dict[Tuple[int, int], ObservedJob] = {}     # without an outcome
        self._came: List[ObservedJob] = []      # of those, what the consumer has not seen
        self._taking: Optional["asyncio.Task[None]"] = None
        self._closed = False

    async def __aenter__(self) -> "observe":
        self._room = asyncio.Condition()
        self._renewing = asyncio.ensure_future(self._renew())
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._closed = True
        self._renewing.cancel()
        if self._taking:
            self._taking.cancel()
        for job in list(self._held.values()):
            try:
                await job.give_back()
            except WeirError:
                pass                        # it is lost to us, or its lease decides

    def __aiter__(self) -> "observe":
        return self

    async def __anext__(self) -> ObservedJob:
        while not self._came and not self._closed:
            async with self._room:
                await self._room.wait_for(lambda: len(self._held) < self._window)
            await self._take()
        if self._closed:
            raise StopAsyncIteration
        return self._came.pop(0)

    async def _take(self) -> None:
        """The task outlives a caller that is cancelled, so that no job is taken and forgotten."""
        if self._taking is None or self._taking.done():
            self._taking = asyncio.ensure_future(self._take_once())
        try:
            await asyncio.shield(self._taking)
        except asyncio.CancelledError:
            if not self._closed:
                raise

    async def _take_once(self) -> None:
        try:
            jobs = await self._queue._call(protocol.take(
                self._types, self._window - len(self._held), self._lease_ms, self._worker,
                self._when))
        except WeirError as why:
            if not why.may_pass:
                raise
            await asyncio.sleep(jitter(1))      # the server is away: it comes back
            return
        for members in jobs:
            job = ObservedJob(members, self._queue, self)
            self._held[job.id, job["delivery"]] = job
            self._came.append(job)

    async def _end(self, job: ObservedJob, outcome: Dict[str, Any]) -> None:
        if not self._held.pop((job.id, job["delivery"]), None):
            raise WeirError(409, "ESTALE", "the job has an outcome already")
        try:
            answer = await finish(self._queue, protocol.finish(job.id, job["delivery"], outcome),
                                  self._lease_ms)
        finally:
            async with self._room:
                self._room.notify_all()
        if "error" in answer:
            raise WeirError(409, answer["error"]["code"], answer["error"]["message"])

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 3000)
            await renew(self._queue, self._held, self._lease_ms)

"""The asyncio client: AsyncWeir has the calls of Weir, to be awaited. It needs no threads."""
import asyncio
import inspect
import signal
import threading
import time
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Iterable, List, Optional, Set, Tuple, Union

from . import protocol
from .client import TakenJob, Types, list_of, worker_name
from .http_aio import Connection, Connections
from .protocol import (ENDED, FIRST_PAUSE_S, LAST_PAUSE_S, LONG_POLL_S, TRIES, Address, Answer,
                       EventReader, Request, WeirError, jitter, no_answer)

AsyncHandler = Callable[["AsyncJob"], Union[Any, Awaitable[Any]]]


class AsyncJob(TakenJob):
    """A job that a handler works on, and ways to report how it goes."""

    def __init__(self, members: Answer, queue: "AsyncWeir") -> None:
        super().__init__(members)
        self._queue = queue

    async def log(self, text: str) -> None:
        """Add a line to the job's log."""
        await self._queue._call(protocol.add_log(self, text))

    async def progress(self, done: int, total: int, data: Any = None) -> None:
        """Report how far it is: done of total."""
        await self._queue._call(protocol.progress(self, done, total, data))

    async def set(self, **values: Any) -> None:
        """Set values of the job, which stay with it; None removes one."""
        await self._queue._call(protocol.set_values(self.id, values, self["delivery"]))
        self._have_set(values)


class AsyncWeir:
    """A queue on a weir server, for asyncio: the calls of Weir. `async with` closes it."""

    def __init__(self, url: Optional[str] = None, *, token: Optional[str] = None,
                 timeout_ms: int = 30000, ca: Optional[str] = None) -> None:
        self._address = Address(url, token, ca)
        self._timeout = timeout_ms / 1000
        self._connections = Connections(self._address)

    async def __aenter__(self) -> "AsyncWeir":
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept."""
        self._connections.close()

    async def _call(self, request: Request) -> Any:
        """One request, repeated when no answer came and that does no harm."""
        sent, pause = request.encode(self._address), FIRST_PAUSE_S
        for left in reversed(range(TRIES if request.again else 1)):
            try:
                status, raw = await self._connections.request(
                    request.method, sent, self._timeout + request.wait)
            except (OSError, asyncio.TimeoutError) as why:
                if not left:
                    raise no_answer(why) from why
            else:
                if status != 503 or not left:
                    return request.read(status, raw)
            await asyncio.sleep(jitter(pause))
            pause *= 2

    async def call(self, method: str, path: str, body: Any = None, *, headers: Optional[Dict[str, str]] = None,
                   again: Optional[bool] = None) -> Any:
        """Any route of the API (docs/http.md): what it answers. With `again` (default: GET alone)
        the request is repeated when no answer came."""
        return await self._call(Request(method, path, body, headers or {}, method == "GET" if again is None else again))

    # ---- jobs ----

    async def add(self, type: str, data: Any = None, **options: Any) -> Answer:
        answer: Answer = await self._call(protocol.add(type, data, options))
        return answer

    async def add_many(self, specs: Iterable[Dict[str, Any]]) -> List[Answer]:
        answers: List[Answer] = await self._call(protocol.add_many(specs))
        return answers

    async def get(self, id: int) -> Answer:
        answer: Answer = await self._call(protocol.get(id))
        return answer

    async def list(self, **query: Any) -> Answer:
        answer: Answer = await self._call(protocol.list_jobs(query))
        return answer

    async def wait(self, id: int, *, timeout_ms: Optional[float] = None) -> Answer:
        end = float("inf") if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while True:
            left = max(0, min(LONG_POLL_S, end - time.monotonic()))
            job: Answer = await self._call(protocol.wait(id, left))
            if job["state"] in ENDED or time.monotonic() >= end:
                return job

    async def set(self, id: int, **values: Any) -> None:
        await self._call(protocol.set_values(id, values))

    async def retry(self, id: int) -> Answer:
        answer: Answer = await self._call(protocol.act(id, "retry"))
        return answer

    async def promote(self, id: int) -> Answer:
        answer: Answer = await self._call(protocol.act(id, "promote"))
        return answer

    async def cancel(self, id: int) -> Answer:
        answer: Answer = await self._call(protocol.act(id, "cancel"))
        return answer

    async def update(self, id: int, **changes: Any) -> Answer:
        job: Answer = await self._call(protocol.update(id, changes))
        return job

    async def remove(self, id: int) -> None:
        await self._call(protocol.remove(id))

    async def log(self, id: int, after: int = 0) -> List[Answer]:
        lines: List[Answer] = await self._call(protocol.log(id, after))
        return lines

    async def stats(self) -> Answer:
        answer: Answer = await self._call(protocol.stats())
        return answer

    # ---- types ----

    async def types(self) -> List[Answer]:
        types: List[Answer] = await self._call(protocol.types())
        return types

    async def pause(self, type: str = "*") -> None:
        await self._call(protocol.type_act(type, "pause"))

    async def resume(self, type: str = "*") -> None:
        await self._call(protocol.type_act(type, "resume"))

    # ---- schedules ----

    async def schedule_put(self, name: str, when: str, type: str, data: Any = None,
                           job: Optional[Dict[str, Any]] = None, **more: Any) -> Answer:
        answer: Answer = await self._call(protocol.schedule_put(name, when, type, data, job, more))
        return answer

    async def schedule(self, name: str) -> Answer:
        answer: Answer = await self._call(protocol.schedule(name))
        return answer

    async def schedules(self) -> AsyncIterator[Answer]:
        page: Answer = {"next": None}
        while True:
            page = await self._call(protocol.schedules(page["next"]))
            for one in page["schedules"]:
                yield one
            if page["next"] is None:
                return

    async def schedule_next(self, when: str, **more: Any) -> Answer:
        answer: Answer = await self._call(protocol.schedule_next(when, more))
        return answer

    async def schedule_pause(self, name: str) -> Answer:
        answer: Answer = await self._call(protocol.schedule_act(name, "pause"))
        return answer

    async def schedule_resume(self, name: str) -> Answer:
        answer: Answer = await self._call(protocol.schedule_act(name, "resume"))
        return answer

    async def schedule_fire(self, name: str) -> int:
        return int(await self._call(protocol.schedule_fire(name)))

    async def schedule_backfill(self, name: str, from_at: int, to_at: Optional[int] = None) -> int:
        return int(await self._call(protocol.schedule_backfill(name, from_at, to_at)))

    async def schedule_remove(self, name: str) -> None:
        await self._call(protocol.schedule_remove(name))

    # ---- work queues ----

    async def workqueue_put(self, address: str, **settings: Any) -> Answer:
        answer: Answer = await self._call(protocol.workqueue_put(address, settings))
        return answer

    async def workqueues(self) -> List[Answer]:
        queues: List[Answer] = await self._call(protocol.workqueues())
        return queues

    async def workqueue_remove(self, address: str) -> None:
        await self._call(protocol.workqueue_remove(address))

    # ---- events ----

    async def events(self, type: Optional[str] = None, id: Optional[int] = None,
                     event: Union[None, str, Iterable[str]] = None) -> AsyncIterator[Answer]:
        names = event if event is None or isinstance(event, str) else ",".join(event)
        reader, pause = EventReader(), FIRST_PAUSE_S
        while True:
            request = protocol.events(type, id, names, reader.last)
            connection: Optional[Connection] = None
            try:
                connection = await Connection.open(self._address)
                await connection.send(self._address, "GET", request.encode(self._address))
                status, headers = await connection.head()
                if status != 200:
                    request.read(status, b"".join([b async for b in connection.blocks(headers)]))
                pause = FIRST_PAUSE_S
                reader.begin()
                rest = b""
                async for block in connection.blocks(headers):
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        one = reader.read(line)
                        if one:
                            yield one
            except OSError:
                pass
            finally:
                if connection:
                    connection.close()
            await asyncio.sleep(jitter(pause))
            pause = min(pause * 2, LAST_PAUSE_S)

    # ---- work ----

    async def work(self, types: Types, handler: AsyncHandler, *, concurrency: int = 1,
                   lease_ms: int = 30000, worker: Optional[str] = None, when: Optional[str] = None,
                   stop: Optional[asyncio.Event] = None) -> None:
        """Take jobs of these types and call handler(job) for each, a function or a coroutine
        function, `concurrency` at once, until `stop` (an asyncio.Event) is set or, in the main thread,
        SIGTERM or SIGINT arrives. A task that is cancelled stops the same way. With `when`, only
        jobs for which this condition is true ('data.region = "eu"')."""
        await _Work(self, list_of(types), handler, concurrency, lease_ms, worker or worker_name(),
                    when, stop or asyncio.Event()).run()


class _Work:
    """A running work()."""

    def __init__(self, queue: AsyncWeir, types: List[str], handler: AsyncHandler, concurrency: int,
                 lease_ms: int, worker: str, when: Optional[str], stop: asyncio.Event) -> None:
        self.queue, self.types, self.handler, self.when = queue, types, handler, when
        self.concurrency, self.lease_ms, self.worker = concurrency, int(lease_ms), worker
        self.stop = stop
        self.held: Dict[Tuple[int, int], AsyncJob] = {}
        self.running: Set["asyncio.Task[None]"] = set()

    async def run(self) -> None:
        loop, signals = asyncio.get_running_loop(), []
        if threading.current_thread() is threading.main_thread():
            signals = [signal.SIGTERM, signal.SIGINT]
        for number in signals:
            loop.add_signal_handler(number, self.stop.set)
        renewer = asyncio.ensure_future(self.renew())
        stopped = asyncio.ensure_future(self.stop.wait())
        try:
            while not self.stop.is_set():
                await self.take(stopped)
        finally:
            stopped.cancel()
            try:
                while self.running:             # until the last handler has returned
                    await asyncio.wait(self.running)
            finally:
                renewer.cancel()
                for number in signals:
                    loop.remove_signal_handler(number)

    async def take(self, stopped: "asyncio.Future[Any]") -> None:
        room = self.concurrency - len(self.running)
        if not room:
            await asyncio.wait({stopped, *self.running}, return_when=asyncio.FIRST_COMPLETED)
            return
        asking = asyncio.ensure_future(self.queue._call(
            protocol.take(self.types, room, self.lease_ms, self.worker, self.when)))
        try:
            await asyncio.wait({stopped, asking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not asking.done():
                asking.cancel()                 # hangs up: the server gives the jobs to others
        if asking.cancelled() or not asking.done():
            return
        try:
            jobs = asking.result()
        except WeirError as why:
            if not why.may_pass:
                raise
            await asyncio.wait({stopped}, timeout=jitter(1))    # the server is away: it comes back
            return
        for members in jobs:
            job = AsyncJob(members, self.queue)
            self.held[job.id, job["delivery"]] = job
            task = asyncio.ensure_future(self.do(job))
            self.running.add(task)
            task.add_done_callback(self.running.discard)

    async def do(self, job: AsyncJob) -> None:
        protocol.traceparent.set(job.get("traceparent"))
        try:
            result = self.handler(job)
            if inspect.isawaitable(result):
                result = await result
            outcome = protocol.outcome_of(result)
        except BaseException as why:            # whatever it is, it is the job that failed
            outcome = protocol.outcome_of_error(why)
        try:
            if not job.cancelled:
                await finish(self.queue, protocol.finish(job.id, job["delivery"], outcome), self.lease_ms)
        except WeirError:
            pass                                # the lease decides what becomes of it
        finally:
            self.held.pop((job.id, job["delivery"]), None)

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(self.lease_ms / 3000)
            await renew(self.queue, self.held, self.lease_ms)


async def finish(queue: AsyncWeir, request: Request, lease_ms: int) -> Answer:
    """Sent again until the server answers: an outcome that comes twice changes nothing."""
    until = time.monotonic() + lease_ms / 1000
    while True:
        try:
            results: List[Answer] = await queue._call(request)
            return results[0]
        except WeirError as why:
            if (why.status and why.status < 500) or time.monotonic() > until:
                raise
            await asyncio.sleep(jitter(0.3))


async def renew(queue: AsyncWeir, held: Dict[Tuple[int, int], Any], lease_ms: int) -> None:
    """Renew the leases of the jobs held; a job that is not ours any more is marked as lost."""
    jobs = dict(held)
    if not jobs:
        return
    try:
        results = await queue._call(protocol.renew(jobs, lease_ms))
    except WeirError:
        return                                  # the next time
    for job, said in zip(jobs.values(), results):
        if "error" in said:
            job._lost.set()

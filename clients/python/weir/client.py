"""The sync client: Weir, which may be used from any number of threads, and its worker."""
import http.client
import os
import signal
import socket
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import protocol
from .protocol import (ENDED, FIRST_PAUSE_S, LAST_PAUSE_S, LONG_POLL_S, TRIES, Address, Answer, Encoded,
                       EventReader, Request, WeirError, jitter, no_answer)

Handler = Callable[["Job"], Any]
Types = Union[str, Sequence[str]]


class TakenJob(Dict[str, Any]):
    """A job that was taken: its members as items, the most used ones as attributes, too."""

    def __init__(self, members: Answer) -> None:
        super().__init__(members)
        self._lost = threading.Event()

    @property
    def id(self) -> int:
        return int(self["id"])

    @property
    def type(self) -> str:
        return str(self["type"])

    @property
    def data(self) -> Any:
        return self.get("data")

    @property
    def attempts(self) -> int:
        """Attempts that have ended before this one."""
        return int(self["attempts"])

    @property
    def cancelled(self) -> bool:
        """True when there is no point in going on: cancelled, removed, or given to another."""
        return self._lost.is_set()

    def _have_set(self, values: Dict[str, Any]) -> None:
        kept = dict(self.get("values") or {}, **values)
        self["values"] = {name: value for name, value in kept.items() if value is not None}


class Job(TakenJob):
    """A job that a handler works on, and ways to report how it goes."""

    def __init__(self, members: Answer, queue: "Weir") -> None:
        super().__init__(members)
        self._queue = queue

    def log(self, text: str) -> None:
        """Add a line to the job's log."""
        self._queue._call(protocol.add_log(self, text))

    def progress(self, done: int, total: int, data: Any = None) -> None:
        """Report how far it is: done of total."""
        self._queue._call(protocol.progress(self, done, total, data))

    def set(self, **values: Any) -> None:
        """Set values of the job, which stay with it; None removes one."""
        self._queue._call(protocol.set_values(self.id, values, self["delivery"]))
        self._have_set(values)


class Weir:
    """A queue on a weir server."""

    def __init__(self, url: Optional[str] = None, *, token: Optional[str] = None,
                 timeout_ms: int = 30000, ca: Optional[str] = None) -> None:
        """`url` and `token` default to $WEIR_STORE (http://127.0.0.1:7340 if that is not set) and
        $WEIR_TOKEN; `ca` is a PEM file to trust. `timeout_ms`: how long the server may be silent."""
        self._address = Address(url, token, ca)
        self._timeout = timeout_ms / 1000
        self._local = threading.local()

    # ---- requests ----

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        at = self._address
        if at.tls:
            return http.client.HTTPSConnection(at.host, at.port, timeout=timeout, context=at.tls)
        return http.client.HTTPConnection(at.host, at.port, timeout=timeout)

    def _connection(self, wait: float) -> http.client.HTTPConnection:
        """This thread's connection, which is kept."""
        connection: Optional[http.client.HTTPConnection] = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect(self._timeout + wait)
        connection.timeout = self._timeout + wait
        if connection.sock:
            connection.sock.settimeout(self._timeout + wait)
        return connection

    def _once(self, method: str, sent: Encoded, wait: float) -> Tuple[int, bytes]:
        connection = self._connection(wait)
        try:
            connection.request(method, sent.path, sent.body, sent.headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self._local.connection = None
            raise

    def _call(self, request: Request) -> Any:
        """One request, repeated when no answer came and that does no harm."""
        sent, pause = request.encode(self._address), FIRST_PAUSE_S
        for left in reversed(range(TRIES if request.again else 1)):
            try:
                status, raw = self._once(request.method, sent, request.wait)
            except (OSError, http.client.HTTPException) as why:
                if not left:
                    raise no_answer(why) from why
            else:
                if status != 503 or not left:
                    return request.read(status, raw)
            time.sleep(jitter(pause))
            pause *= 2

    def call(self, method: str, path: str, body: Any = None, *, headers: Optional[Dict[str, str]] = None,
             again: Optional[bool] = None) -> Any:
        """Any route of the API (docs/http.md): what it answers. With `again` (default: GET alone)
        the request is repeated when no answer came."""
        return self._call(Request(method, path, body, headers or {}, method == "GET" if again is None else again))

    # ---- jobs ----

    def add(self, type: str, data: Any = None, **options: Any) -> Answer:
        """Add a job: {"id", "state", "existed", "durability"}. Options are those of the API:
        priority, attempts, delay, run_at, backoff, ttl, deadline, unique, removeOnComplete,
        search, values ... Repeated by itself when the line breaks, without adding twice."""
        answer: Answer = self._call(protocol.add(type, data, options))
        return answer

    def add_many(self, specs: Iterable[Dict[str, Any]]) -> List[Answer]:
        """Add up to 10,000 jobs, each a dict with "type" and options: a list of answers in the
        same order, each as add() gives it or {"error": {...}}."""
        answers: List[Answer] = self._call(protocol.add_many(specs))
        return answers

    def get(self, id: int) -> Answer:
        """The job."""
        answer: Answer = self._call(protocol.get(id))
        return answer

    def list(self, **query: Any) -> Answer:
        """One page: {"jobs": [...], "next": cursor or None}; give `after=next` for the next. The rest
        is that of GET /v1/jobs: state (one, or a list), type, priority, search, since, until, sort,
        order, limit ..."""
        answer: Answer = self._call(protocol.list_jobs(query))
        return answer

    def wait(self, id: int, *, timeout_ms: Optional[float] = None) -> Answer:
        """The job when it has ended, however long that takes, or as it is after `timeout_ms`."""
        end = float("inf") if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while True:
            left = max(0, min(LONG_POLL_S, end - time.monotonic()))
            job: Answer = self._call(protocol.wait(id, left))
            if job["state"] in ENDED or time.monotonic() >= end:
                return job

    def set(self, id: int, **values: Any) -> None:
        """Set values of a job, in any state; None removes one."""
        self._call(protocol.set_values(id, values))

    def retry(self, id: int) -> Answer:
        answer: Answer = self._call(protocol.act(id, "retry"))
        return answer

    def promote(self, id: int) -> Answer:
        answer: Answer = self._call(protocol.act(id, "promote"))
        return answer

    def cancel(self, id: int) -> Answer:
        answer: Answer = self._call(protocol.act(id, "cancel"))
        return answer

    def update(self, id: int, **changes: Any) -> Answer:
        """Change a job, all of it or nothing: priority, data, values, delay, run_at, state; with
        from_="failed", only if it is in that state. The job as it is then."""
        job: Answer = self._call(protocol.update(id, changes))
        return job

    def remove(self, id: int) -> None:
        self._call(protocol.remove(id))

    def log(self, id: int, after: int = 0) -> List[Answer]:
        """The lines of a job's log behind number `after`: [{"n", "at", "text"}]."""
        lines: List[Answer] = self._call(protocol.log(id, after))
        return lines

    def stats(self) -> Answer:
        answer: Answer = self._call(protocol.stats())
        return answer

    # ---- types ----

    def types(self) -> List[Answer]:
        """All types, each with its counts and settings."""
        types: List[Answer] = self._call(protocol.types())
        return types

    def pause(self, type: str = "*") -> None:
        """Workers take no more jobs of this type ("*": of any), until resume()."""
        self._call(protocol.type_act(type, "pause"))

    def resume(self, type: str = "*") -> None:
        self._call(protocol.type_act(type, "resume"))

    # ---- schedules ----

    def schedule_put(self, name: str, when: str, type: str, data: Any = None,
                     job: Optional[Dict[str, Any]] = None, **more: Any) -> Answer:
        """Add a schedule, or change it: a job of `type` whenever the expression `when` says so.
        `job` has more of its members (attempts ...); `more` are those of PUT /v1/schedules:
        zone, overlap, missed, start_at, end_at, except, jitter, paused ..."""
        answer: Answer = self._call(protocol.schedule_put(name, when, type, data, job, more))
        return answer

    def schedule(self, name: str) -> Answer:
        answer: Answer = self._call(protocol.schedule(name))
        return answer

    def schedules(self) -> Iterator[Answer]:
        """All schedules, in the order of names; they are fetched as you go."""
        page: Answer = {"next": None}
        while True:
            page = self._call(protocol.schedules(page["next"]))
            yield from page["schedules"]
            if page["next"] is None:
                return

    def schedule_next(self, when: str, **more: Any) -> Answer:
        """When an expression fires next: {"words": ..., "next": [ms, ...]}. more: zone, n ..."""
        answer: Answer = self._call(protocol.schedule_next(when, more))
        return answer

    def schedule_pause(self, name: str) -> Answer:
        answer: Answer = self._call(protocol.schedule_act(name, "pause"))
        return answer

    def schedule_resume(self, name: str) -> Answer:
        answer: Answer = self._call(protocol.schedule_act(name, "resume"))
        return answer

    def schedule_fire(self, name: str) -> int:
        """Add its job now; the answer is the job's id."""
        return int(self._call(protocol.schedule_fire(name)))

    def schedule_backfill(self, name: str, from_at: int, to_at: Optional[int] = None) -> int:
        """Add a job for each firing of a past span; the answer is how many."""
        return int(self._call(protocol.schedule_backfill(name, from_at, to_at)))

    def schedule_remove(self, name: str) -> None:
        self._call(protocol.schedule_remove(name))

    # ---- work queues: Bus sends work to them and processes it ----

    def workqueue_put(self, address: str, **settings: Any) -> Answer:
        """Start a work queue at this address of the event bus, unless it runs: process_timeout, persist,
        collection, timed_out_first."""
        answer: Answer = self._call(protocol.workqueue_put(address, settings))
        return answer

    def workqueues(self) -> List[Answer]:
        """All work queues, each with its numbers: waiting, running, idle, busy, done ..."""
        queues: List[Answer] = self._call(protocol.workqueues())
        return queues

    def workqueue_remove(self, address: str) -> None:
        self._call(protocol.workqueue_remove(address))

    # ---- events ----

    def events(self, type: Optional[str] = None, id: Optional[int] = None,
               event: Union[None, str, Iterable[str]] = None) -> Iterator[Answer]:
        """What happens, as dicts, for as long as you like; event is a name or a list of them.
        Comes back by itself after a break. {"event": "lost"}: some may have been missed."""
        names = event if event is None or isinstance(event, str) else ",".join(event)
        reader, pause = EventReader(), FIRST_PAUSE_S
        while True:
            request = protocol.events(type, id, names, reader.last)
            sent = request.encode(self._address)
            connection = self._connect(60)      # the server says something each 15 s
            try:
                connection.request("GET", sent.path, headers=sent.headers)
                answer = connection.getresponse()
                if answer.status != 200:
                    request.read(answer.status, answer.read())
                pause = FIRST_PAUSE_S
                reader.begin()
                for line in answer:
                    one = reader.read(line)
                    if one:
                        yield one
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(jitter(pause))
            pause = min(pause * 2, LAST_PAUSE_S)

    # ---- work ----

    def work(self, types: Types, handler: Handler, *, concurrency: int = 1, lease_ms: int = 30000,
             worker: Optional[str] = None, when: Optional[str] = None,
             stop: Optional[threading.Event] = None) -> None:
        """Take jobs of these types and call handler(job) for each, `concurrency` at once, until
        `stop` (a threading.Event) is set or, in the main thread, SIGTERM or SIGINT arrives. What
        it returns is the result; what it raises fails the job, by the rule of its attempts. With
        `when`, only jobs for which this condition is true ('data.region = "eu"')."""
        _Work(self, list_of(types), handler, concurrency, lease_ms, worker or worker_name(), when,
              stop or threading.Event()).run()


def list_of(types: Types) -> List[str]:
    return [types] if isinstance(types, str) else list(types)


def worker_name() -> str:
    return "%s:%d" % (socket.gethostname(), os.getpid())


class _Work:
    """A running work()."""

    def __init__(self, queue: Weir, types: List[str], handler: Handler, concurrency: int,
                 lease_ms: int, worker: str, when: Optional[str], stop: threading.Event) -> None:
        self.queue, self.types, self.handler, self.when = queue, types, handler, when
        self.lease_ms, self.worker, self.stop = int(lease_ms), worker, stop
        self.free = threading.Semaphore(concurrency)
        self.concurrency = concurrency
        self.lock = threading.Lock()
        self.held: Dict[Tuple[int, int], Job] = {}      # by id and delivery; guarded by lock
        self.over = threading.Event()
        self.waiting: Optional[http.client.HTTPConnection] = None     # for jobs

    def run(self) -> None:
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number, lambda *_: self.stop.set())
        renewer = threading.Thread(target=self.renew, daemon=True)
        renewer.start()
        threading.Thread(target=self.hang_up, daemon=True).start()
        try:
            while not self.stop.is_set():
                self.take()
        finally:
            for _ in range(self.concurrency):       # until the last handler has returned
                self.free.acquire()
            self.stop.set()
            self.over.set()
            renewer.join()
            for number, handler in before.items():
                signal.signal(number, handler)

    def hang_up(self) -> None:
        """Once `stop` is set, do not wait for jobs: the server notices, and gives them to others."""
        self.stop.wait()
        while not self.over.is_set():
            connection = self.waiting
            if connection and connection.sock:
                try:
                    connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.over.wait(0.1)

    def take(self) -> None:
        if not self.free.acquire(timeout=0.2):
            return
        n = 1
        while n < self.concurrency and self.free.acquire(blocking=False):
            n += 1
        jobs: List[Answer] = []
        try:
            self.waiting = self.queue._connection(LONG_POLL_S)
            jobs = self.queue._call(protocol.take(self.types, n, self.lease_ms, self.worker,
                                                  self.when))
        except WeirError as why:
            if not why.may_pass:
                raise
            self.stop.wait(jitter(1))       # the server is away: it comes back
        finally:
            self.waiting = None
            for _ in range(n - len(jobs)):
                self.free.release()
        for members in jobs:
            job = Job(members, self.queue)
            with self.lock:
                self.held[job.id, job["delivery"]] = job
            threading.Thread(target=self.do, args=(job,), daemon=True).start()

    def do(self, job: Job) -> None:
        protocol.traceparent.set(job.get("traceparent"))
        try:
            outcome = protocol.outcome_of(self.handler(job))
        except BaseException as why:                # whatever it is, it is the job that failed
            outcome = protocol.outcome_of_error(why)
        try:
            if not job.cancelled:
                self.finish(protocol.finish(job.id, job["delivery"], outcome))
        finally:
            with self.lock:
                self.held.pop((job.id, job["delivery"]), None)
            self.free.release()

    def finish(self, request: Request) -> None:
        """Sent again until the server answers: an outcome that comes twice changes nothing."""
        until = time.monotonic() + self.lease_ms / 1000
        while True:
            try:
                self.queue._call(request)
                return
            except WeirError as why:
                if (why.status and why.status < 500) or time.monotonic() > until:
                    return                          # the lease decides what becomes of it
                time.sleep(jitter(0.3))

    def renew(self) -> None:
        while not self.over.wait(self.lease_ms / 3000):
            with self.lock:
                held = dict(self.held)
            if not held:
                continue
            try:
                results = self.queue._call(protocol.renew(held, self.lease_ms))
            except WeirError:
                continue                            # the next time
            for job, said in zip(held.values(), results):
                if "error" in said:
                    job._lost.set()

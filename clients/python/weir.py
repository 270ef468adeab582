"""weir: background jobs on a weir server. Needs nothing but Python 3.8 and its standard library.

    from weir import Weir

    queue = Weir()              # the server of $WEIR_STORE; or Weir("http://...", token="wtk_...")
    added = queue.add("mail", {"to": "ann@example.org"}, priority="high", attempts=3)
    print(queue.wait(added["id"], timeout_ms=10000)["result"])

    queue.work("mail", lambda job: send(job["data"]), concurrency=4)     # until SIGTERM

Times are in milliseconds, and their names end in _ms; where the server takes a time (delay, ttl,
backoff ...), a text such as "5s" does as well. A Weir may be used from any number of threads.
Everything it raises is a WeirError.
"""
import http.client
import json
import os
import random
import signal
import socket
import ssl
import threading
import time
import urllib.parse
import uuid

__all__ = ["Weir", "WeirError", "Job", "ReturnJob"]
__version__ = "0.2.0"

LONG_POLL_S = 30        # how long one request waits for jobs or for a result
TRIES = 5               # of a request that can be repeated without harm


class WeirError(Exception):
    """What went wrong: `status` of HTTP (0: no answer), `code` ("EINVAL"), `message`, `field`."""

    def __init__(self, status, code, message, field=None):
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field


class ReturnJob(Exception):
    """Raised by a handler to give the job back: it runs again after `delay` (milliseconds, or a text
    such as "5s"), and no attempt is used up."""

    def __init__(self, delay=0):
        super().__init__("the job runs again")
        self.delay = delay


class Job(dict):
    """A job that a handler works on: its members as items, and ways to report how it goes."""

    def __init__(self, members, queue):
        super().__init__(members)
        self._queue = queue
        self._lost = threading.Event()

    @property
    def cancelled(self):
        """True when there is no point in going on: cancelled, removed, or given to another."""
        return self._lost.is_set()

    def log(self, text):
        """Add a line to the job's log."""
        self._queue._call("POST", "/v1/jobs/%d/log" % self["id"],
                          {"text": text, "delivery": self["delivery"]})

    def progress(self, done, total, data=None):
        """Tell how far it is: done of total."""
        body = {"delivery": self["delivery"], "done": done, "total": total}
        if data is not None:
            body["data"] = data
        self._queue._call("POST", "/v1/jobs/%d/progress" % self["id"], body)

    def set(self, **values):
        """Set values of the job, which stay with it; None removes one."""
        self._queue._call("POST", "/v1/jobs/%d/values" % self["id"],
                          {"values": values, "delivery": self["delivery"]})
        kept = dict(self.get("values") or {}, **values)
        self["values"] = {name: value for name, value in kept.items() if value is not None}


def _shown(parts):
    """A URL for a message: without what may be a password."""
    return "%s:..." % parts.scheme if parts.scheme else "an address without http://"


class Weir:
    """A queue on a weir server."""

    def __init__(self, url=None, *, token=None, timeout_ms=30000, ca=None):
        """`url` and `token` default to $WEIR_STORE (http://127.0.0.1:7340 if that is not set) and
        $WEIR_TOKEN; `ca` is a PEM file to trust. `timeout_ms`: how long the server may be silent."""
        url = url or os.environ.get("WEIR_STORE") or "http://127.0.0.1:7340"
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("%s: not a weir server; expected http://HOST:7340 (as an argument or "
                             "in WEIR_STORE)" % _shown(parts))
        options = dict(urllib.parse.parse_qsl(parts.query))
        token, ca = token or options.get("token"), ca or options.get("ca")
        self._host, self._port = parts.hostname, parts.port
        self._tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        self._base = parts.path.rstrip("/")
        self._token = token or os.environ.get("WEIR_TOKEN")
        self._timeout = timeout_ms / 1000
        self._local = threading.local()

    # ---- requests ----

    def _connect(self, timeout):
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout,
                                               context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _headers(self, more=None):
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        headers.update(more or {})
        return headers

    def _connection(self, wait):
        """This thread's connection, which is kept."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect(self._timeout + wait)
        connection.timeout = self._timeout + wait
        if connection.sock:
            connection.sock.settimeout(self._timeout + wait)
        return connection

    def _once(self, method, path, body, headers, wait):
        connection = self._connection(wait)
        try:
            connection.request(method, self._base + path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self._local.connection = None
            raise

    def _call(self, method, path, body=None, headers=None, wait=0, again=None):
        """One request. With `again` (default: GET alone) it is repeated when no answer came."""
        again = method == "GET" if again is None else again
        text = None
        headers = self._headers(headers)
        if body is not None:
            text = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        pause = 0.1
        for left in reversed(range(TRIES)):
            try:
                status, raw = self._once(method, path, text, headers, wait)
            except (OSError, http.client.HTTPException) as why:
                if again and left:
                    time.sleep(pause * (0.5 + random.random()))
                    pause *= 2
                    continue
                raise WeirError(0, "EUNAVAIL", "no answer from the server: %s" % why) from why
            if status == 503 and left and again:
                time.sleep(pause * (0.5 + random.random()))
                pause *= 2
                continue
            return self._answer(status, raw)

    @staticmethod
    def _answer(status, raw):
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        if status < 400:
            return body
        error = body.get("error", {}) if isinstance(body, dict) else {}
        if not isinstance(error, dict):
            error = {"message": str(error)}
        raise WeirError(status, error.get("code", str(status)),
                        error.get("message", "HTTP status %d" % status), error.get("field"))

    # ---- jobs ----

    def add(self, type, data=None, **options):
        """Add a job: {"id", "state", "existed", "durability"}. Options are those of the API:
        priority, attempts, delay, run_at, backoff, ttl, deadline, unique, removeOnComplete,
        search, values ... Repeated by itself when the line breaks, without adding twice."""
        spec = dict(options, type=type)
        if data is not None:
            spec["data"] = data
        return self._call("POST", "/v1/jobs", spec, {"Idempotency-Key": uuid.uuid4().hex},
                          again=True)

    def add_many(self, specs):
        """Add up to 10,000 jobs, each a dict with "type" and options: a list of answers in the
        same order, each as add() gives it or {"error": {...}}."""
        return self._call("POST", "/v1/jobs", list(specs),
                          {"Idempotency-Key": uuid.uuid4().hex}, again=True)["results"]

    def get(self, id):
        """The job."""
        return self._call("GET", "/v1/jobs/%d" % id)

    def list(self, **query):
        """One page: {"jobs": [...], "next": cursor or None}; give `after=next` for the next."""
        text = urllib.parse.urlencode({k: v for k, v in query.items() if v is not None})
        return self._call("GET", "/v1/jobs" + ("?" + text if text else ""))

    def wait(self, id, *, timeout_ms=None):
        """The job when it has ended, however long that takes, or as it is after `timeout_ms`."""
        end = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while True:
            left = LONG_POLL_S if end is None else max(0, min(LONG_POLL_S, end - time.monotonic()))
            job = self._call("GET", "/v1/jobs/%d/wait?timeout=%dms" % (id, left * 1000), wait=left)
            if job["state"] in ("complete", "failed", "cancelled"):
                return job
            if end is not None and time.monotonic() >= end:
                return job

    def set(self, id, **values):
        """Set values of a job, in any state; None removes one."""
        self._call("POST", "/v1/jobs/%d/values" % id, {"values": values})

    def retry(self, id):
        return self._call("POST", "/v1/jobs/%d/retry" % id)

    def promote(self, id):
        return self._call("POST", "/v1/jobs/%d/promote" % id)

    def cancel(self, id):
        return self._call("POST", "/v1/jobs/%d/cancel" % id)

    def remove(self, id):
        self._call("DELETE", "/v1/jobs/%d" % id)

    def log(self, id, after=0):
        """The lines of a job's log behind number `after`: [{"n", "at", "text"}]."""
        return self._call("GET", "/v1/jobs/%d/log?after=%d" % (id, after))["lines"]

    def stats(self):
        return self._call("GET", "/v1/stats")

    # ---- schedules ----

    def schedule_put(self, name, when, type, data=None, job=None, **more):
        """Add a schedule, or change it: a job of `type` whenever the expression `when` says so.
        `job` has more of its members (attempts ...); `more` are those of PUT /v1/schedules:
        zone, overlap, missed, start_at, end_at, except, jitter, paused ..."""
        spec = dict(job or {}, type=type)
        if data is not None:
            spec["data"] = data
        return self._call("PUT", _schedule(name), dict(more, when=when, job=spec), again=True)

    def schedule(self, name):
        return self._call("GET", _schedule(name))

    def schedules(self):
        """All schedules, in the order of names; they are fetched as you go."""
        after = ""
        while after is not None:
            page = self._call("GET", "/v1/schedules?" + urllib.parse.urlencode(
                {"after": after} if after else {}))
            yield from page["schedules"]
            after = page["next"]

    def schedule_next(self, when, **more):
        """When an expression fires next: {"words": ..., "next": [ms, ...]}. more: zone, n ..."""
        return self._call("GET", "/v1/schedules/next?" + urllib.parse.urlencode(
            dict(more, when=when)))

    def schedule_pause(self, name):
        return self._call("POST", _schedule(name) + "/pause", again=True)

    def schedule_resume(self, name):
        return self._call("POST", _schedule(name) + "/resume", again=True)

    def schedule_fire(self, name):
        """Add its job now; the answer is the job's id."""
        return self._call("POST", _schedule(name) + "/fire")["id"]

    def schedule_backfill(self, name, from_at, to_at=None):
        """Add a job for each firing of a past span; the answer is how many."""
        span = {"from": from_at} if to_at is None else {"from": from_at, "to": to_at}
        return self._call("POST", _schedule(name) + "/backfill", span)["added"]

    def schedule_remove(self, name):
        self._call("DELETE", _schedule(name))

    # ---- events ----

    def events(self, type=None, id=None, event=None):
        """What happens, as dicts, for as long as you like; event is a name or a list of them.
        Comes back by itself after a break. {"event": "lost"}: some may have been missed."""
        names = event if event is None or isinstance(event, str) else ",".join(event)
        query = urllib.parse.urlencode({k: v for k, v in
                                        (("type", type), ("id", id), ("event", names)) if v})
        last, pause = None, 0.1
        while True:
            connection = self._connect(60)      # the server says something each 15 s
            headers = {"Accept": "text/event-stream"}
            if last:
                headers["Last-Event-ID"] = last
            try:
                connection.request("GET", self._base + "/v1/events?" + query,
                                   headers=self._headers(headers))
                answer = connection.getresponse()
                if answer.status != 200:
                    self._answer(answer.status, answer.read())
                pause = 0.1
                for message in _messages(answer):
                    last = message.get("id", last)
                    if message.get("event") in ("lost", "dropped"):
                        yield {"event": "lost"}
                    elif "data" in message:
                        yield json.loads(message["data"])
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(pause * (0.5 + random.random()))
            pause = min(pause * 2, 10)

    # ---- work ----

    def work(self, types, handler, *, concurrency=1, lease_ms=30000, worker=None,
             stop=None):
        """Take jobs of these types and call handler(job) for each, `concurrency` at once, until
        `stop` (a threading.Event) is set or, in the main thread, SIGTERM or SIGINT arrives. What
        it returns is the result; what it raises fails the job, by the rule of its attempts."""
        _Work(self, [types] if isinstance(types, str) else list(types), handler, concurrency,
              lease_ms, worker or "%s:%d" % (socket.gethostname(), os.getpid()),
              stop or threading.Event()).run()


def _schedule(name):
    return "/v1/schedules/" + urllib.parse.quote(name, safe="")


def _messages(answer):
    """The messages of a stream of events, each a dict ("id", "event", "data"), once it is whole: an
    id must not count before its data has come."""
    message = {}
    for raw in answer:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line:
            name, _, value = line.partition(":")
            message[name] = value[1:] if value.startswith(" ") else value
        else:
            yield message
            message = {}


class _Work:
    """A running work()."""

    def __init__(self, queue, types, handler, concurrency, lease_ms, worker, stop):
        self.queue, self.types, self.handler = queue, types, handler
        self.lease_ms, self.worker, self.stop = int(lease_ms), worker, stop
        self.free = threading.Semaphore(concurrency)
        self.concurrency = concurrency
        self.lock = threading.Lock()
        self.held = {}          # (id, delivery) -> Job; guarded by lock
        self.over = threading.Event()
        self.waiting = None     # the connection on which jobs are waited for

    def run(self):
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

    def hang_up(self):
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

    def take(self):
        if not self.free.acquire(timeout=0.2):
            return
        n = 1
        while n < self.concurrency and self.free.acquire(blocking=False):
            n += 1
        jobs = []
        try:
            self.waiting = self.queue._connection(LONG_POLL_S)
            jobs = self.queue._call("POST", "/v1/take", {
                "types": self.types, "n": n, "wait": LONG_POLL_S * 1000, "lease": self.lease_ms,
                "worker": self.worker}, wait=LONG_POLL_S)["jobs"]
        except WeirError as why:
            if why.status and why.status not in (429, 503, 504):
                raise
            self.stop.wait(0.5 + random.random())   # the server is away: it comes back
        finally:
            self.waiting = None
            for _ in range(n - len(jobs)):
                self.free.release()
        for members in jobs:
            job = Job(members, self.queue)
            with self.lock:
                self.held[job["id"], job["delivery"]] = job
            threading.Thread(target=self.do, args=(job,), daemon=True).start()

    def do(self, job):
        end = {"id": job["id"], "delivery": job["delivery"]}
        try:
            result = self.handler(job)
            json.dumps(result)                      # what is no JSON is the handler's failure
            end["result"] = result
        except ReturnJob as back:
            end["return"], end["delay"] = True, back.delay
        except BaseException as why:                # whatever it is, it is the job that failed
            end["error"] = "%s: %s" % (type(why).__name__, why) if str(why) else type(why).__name__
        try:
            if not job.cancelled:
                self.finish(end)
        finally:
            with self.lock:
                self.held.pop((job["id"], job["delivery"]), None)
            self.free.release()

    def finish(self, end):
        """Sent again until the server answers: an outcome that comes twice changes nothing."""
        until = time.monotonic() + self.lease_ms / 1000
        while True:
            try:
                self.queue._call("POST", "/v1/finish", {"jobs": [end]})
                return
            except WeirError as why:
                if (why.status and why.status < 500) or time.monotonic() > until:
                    return                          # the lease decides what becomes of it
                time.sleep(0.2 + random.random() / 5)

    def renew(self):
        while not self.over.wait(self.lease_ms / 3000):
            with self.lock:
                held = dict(self.held)
            if not held:
                continue
            try:
                answer = self.queue._call("POST", "/v1/renew", {
                    "lease": self.lease_ms,
                    "jobs": [{"id": id, "delivery": delivery} for id, delivery in held]})
            except WeirError:
                continue                            # the next time
            for job, said in zip(held.values(), answer["results"]):
                if "error" in said:
                    job._lost.set()

"""What the sync and the asyncio client share: errors, the address of the server, and each call of
the API as a Request."""
import json
import os
import random
import re
import ssl
import urllib.parse
import uuid
from contextvars import ContextVar
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Union

__version__ = "0.2.0"

LONG_POLL_S = 30        # how long one request waits for jobs or for a result
TRIES = 5               # of a request that can be repeated without harm
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 10.0     # before another try; doubled each time
ENDED = ("complete", "failed", "cancelled")

Time = Union[int, str]          # milliseconds, or a text such as "5s"
Answer = Dict[str, Any]         # an object of the server's


# The W3C trace context of what runs here: jobs that it adds belong to this trace. A handler has that of
# its job.
traceparent: "ContextVar[Optional[str]]" = ContextVar("traceparent",
                                                      default=os.environ.get("TRACEPARENT"))


class WeirError(Exception):
    """What went wrong: `status` of HTTP (0: no answer), `code` ("EINVAL"), `message`, `field`."""

    def __init__(self, status: int, code: Union[str, int], message: str,
                 field: Optional[str] = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field

    @property
    def may_pass(self) -> bool:
        """True if the server is away or busy: the same call may succeed later."""
        return self.status in (0, 429, 503, 504)


class ReturnJob(Exception):
    """Raised by a handler to give the job back: it runs again after `delay` (milliseconds, or a text
    such as "5s"), and no attempt is used up."""

    def __init__(self, delay: Time = 0) -> None:
        super().__init__("the job runs again")
        self.delay = delay


class Address:
    """Where the server is, and how to speak to it."""

    def __init__(self, url: Optional[str], token: Optional[str], ca: Optional[str]) -> None:
        url = url or os.environ.get("WEIR_STORE") or "http://127.0.0.1:7340"
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("%s (as an argument or in WEIR_STORE)" % _wrong(url, parts))
        options = dict(urllib.parse.parse_qsl(parts.query))
        self.host: str = parts.hostname
        self.tls: Optional[ssl.SSLContext] = None
        if parts.scheme == "https":
            self.tls = ssl.create_default_context(cafile=ca or options.get("ca"))
        self.port: int = parts.port or (443 if self.tls else 80)
        self.base = parts.path.rstrip("/")
        self.token = token or options.get("token") or os.environ.get("WEIR_TOKEN")

    @property
    def host_header(self) -> str:
        return "%s:%d" % ("[%s]" % self.host if ":" in self.host else self.host, self.port)

    def headers(self, more: Optional[Dict[str, str]] = None) -> Dict[str, str]:
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        trace = traceparent.get()
        if trace:
            headers["traceparent"] = trace
        headers.update(more or {})
        return headers


def _wrong(url: str, parts: urllib.parse.SplitResult) -> str:
    """The error text for a wrong URL, without a possible password."""
    if re.fullmatch(r"[\w.-]+(:\d+)?|\[[0-9A-Fa-f:]+\](:\d+)?", url):
        return "%s: the scheme is missing; write http://%s" % (url, url)
    return "%s: not a weir server; expected http://HOST:7340" % (
        parts.scheme + ":..." if parts.scheme else "an address without http://")


def jitter(seconds: float) -> float:
    return seconds * (0.5 + random.random())


def to_json(value: Any) -> str:
    """Its JSON, which has no NaN and no infinity."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as why:
        raise ValueError("%s: NaN and infinity are not JSON; use None or a text" % why) from None


def traced(headers: Optional[Dict[str, str]]) -> Dict[str, str]:
    """Headers of a message on the bus, with the trace that it belongs to."""
    trace = traceparent.get()
    return dict({"traceparent": trace} if trace else {}, **(headers or {}))


# ---- requests ----

class Request(NamedTuple):
    """One call. `again`: it may be repeated when no answer came; `wait`: the server answers this
    much later, in seconds; `pick`: the member of the answer that the caller gets."""
    method: str
    path: str
    body: Any = None
    headers: Dict[str, str] = {}
    again: bool = False
    wait: float = 0
    pick: Optional[str] = None

    def encode(self, address: Address) -> "Encoded":
        headers = address.headers(self.headers)
        if self.body is None:
            return Encoded(address.base + self.path, None, headers)
        headers["Content-Type"] = "application/json"
        return Encoded(address.base + self.path, to_json(self.body).encode(), headers)

    def read(self, status: int, raw: bytes) -> Any:
        """What the caller gets of this answer; raises what the server said."""
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        if status < 400:
            return body[self.pick] if self.pick else body
        error = body.get("error", {}) if isinstance(body, dict) else {}
        if not isinstance(error, dict):
            error = {"message": str(error)}
        raise WeirError(status, error.get("code", str(status)),
                        error.get("message", "HTTP status %d" % status), error.get("field"))


class Encoded(NamedTuple):
    path: str
    body: Optional[bytes]
    headers: Dict[str, str]


def no_answer(why: BaseException) -> WeirError:
    return WeirError(0, "EUNAVAIL", "no answer from the server: %s" % why)


def _query(members: Dict[str, Any]) -> str:
    text = urllib.parse.urlencode({k: v for k, v in members.items() if v is not None})
    return "?" + text if text else ""


def _get(path: str, **query: Any) -> Request:
    return Request("GET", path + _query(query), again=True)


def _key() -> Dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex}


def add(type: str, data: Any, options: Dict[str, Any]) -> Request:
    spec = dict(options, type=type)
    if data is not None:
        spec["data"] = data
    return Request("POST", "/v1/jobs", spec, _key(), again=True)


def add_many(specs: Iterable[Dict[str, Any]]) -> Request:
    return Request("POST", "/v1/jobs", list(specs), _key(), again=True, pick="results")


def _job(id: int) -> str:
    if isinstance(id, bool) or not isinstance(id, int) or id < 1:
        raise ValueError("id: %r is not the number of a job" % (id,))
    return "/v1/jobs/%d" % id


def get(id: int) -> Request:
    return _get(_job(id))


def list_jobs(query: Dict[str, Any]) -> Request:
    """Several states are a list, or a text with commas between."""
    state = query.get("state")
    if state is not None and not isinstance(state, str):
        query = dict(query, state=",".join(state))
    return _get("/v1/jobs", **query)


def update(id: int, changes: Dict[str, Any]) -> Request:
    """`from` is a word of Python: from_ is it."""
    return Request("PATCH", _job(id), {name.rstrip("_"): value for name, value in changes.items()})


def types() -> Request:
    return _get("/v1/types")._replace(pick="types")


def type_act(type: str, verb: str) -> Request:
    return Request("POST", "/v1/types/%s/%s" % (urllib.parse.quote(type, safe=""), verb), again=True)


def wait(id: int, seconds: float) -> Request:
    return Request("GET", "%s/wait?timeout=%dms" % (_job(id), seconds * 1000), again=True, wait=seconds)


def act(id: int, verb: str) -> Request:
    return Request("POST", "%s/%s" % (_job(id), verb))


def remove(id: int) -> Request:
    return Request("DELETE", _job(id))


def log(id: int, after: int) -> Request:
    return _get(_job(id) + "/log", after=after)._replace(pick="lines")


def stats() -> Request:
    return _get("/v1/stats")


# ---- of a worker ----

def take(types: List[str], n: int, lease_ms: int, worker: str, when: Optional[str]) -> Request:
    body = {"types": types, "n": n, "wait": LONG_POLL_S * 1000, "lease": lease_ms, "worker": worker}
    if when is not None:
        body["when"] = when
    return Request("POST", "/v1/take", body, wait=LONG_POLL_S, pick="jobs")


def renew(jobs: Iterable[Any], lease_ms: int) -> Request:
    return Request("POST", "/v1/renew", {
        "lease": lease_ms, "jobs": [{"id": id, "delivery": delivery} for id, delivery in jobs]},
        pick="results")


def finish(id: int, delivery: int, outcome: Dict[str, Any]) -> Request:
    return Request("POST", "/v1/finish", {"jobs": [dict(outcome, id=id, delivery=delivery)]},
                   pick="results")


def add_log(job: Answer, text: str) -> Request:
    return Request("POST", "/v1/jobs/%d/log" % job["id"], {"text": text, "delivery": job["delivery"]})


def progress(job: Answer, done: int, total: int, data: Any) -> Request:
    body = {"delivery": job["delivery"], "done": done, "total": total}
    if data is not None:
        body["data"] = data
    return Request("POST", "/v1/jobs/%d/progress" % job["id"], body)


def set_values(id: int, values: Dict[str, Any], delivery: Optional[int] = None) -> Request:
    body: Dict[str, Any] = {"values": values}
    if delivery is not None:
        body["delivery"] = delivery
    return Request("POST", _job(id) + "/values", body)


def outcome_of(result: Any) -> Dict[str, Any]:
    to_json(result)                                 # what is no JSON is the handler's failure
    return {"result": result}


def outcome_of_error(why: BaseException) -> Dict[str, Any]:
    if isinstance(why, ReturnJob):
        return {"return": True, "delay": why.delay}
    return {"error": "%s: %s" % (type(why).__name__, why) if str(why) else type(why).__name__}


# ---- schedules and work queues ----

def _schedule(name: str) -> str:
    return "/v1/schedules/" + urllib.parse.quote(name, safe="")


def schedule_put(name: str, when: str, type: str, data: Any, job: Optional[Dict[str, Any]],
                 more: Dict[str, Any]) -> Request:
    spec = dict(job or {}, type=type)
    if data is not None:
        spec["data"] = data
    return Request("PUT", _schedule(name), dict(more, when=when, job=spec), again=True)


def schedule(name: str) -> Request:
    return _get(_schedule(name))


def schedules(after: Optional[str]) -> Request:
    return _get("/v1/schedules", after=after)


def schedule_next(when: str, more: Dict[str, Any]) -> Request:
    return _get("/v1/firings", **dict(more, when=when))


def schedule_act(name: str, verb: str) -> Request:
    return Request("POST", "%s/%s" % (_schedule(name), verb), again=True)


def schedule_fire(name: str) -> Request:
    return Request("POST", _schedule(name) + "/fire", pick="id")


def schedule_backfill(name: str, from_at: int, to_at: Optional[int]) -> Request:
    span = {"from": from_at} if to_at is None else {"from": from_at, "to": to_at}
    return Request("POST", _schedule(name) + "/backfill", span, pick="added")


def schedule_remove(name: str) -> Request:
    return Request("DELETE", _schedule(name))


def _workqueue(address: str) -> str:
    return "/v1/workqueues/" + urllib.parse.quote(address, safe="")


def workqueue_put(address: str, settings: Dict[str, Any]) -> Request:
    return Request("PUT", _workqueue(address), settings, again=True)


def workqueues() -> Request:
    return _get("/v1/workqueues")._replace(pick="work_queues")


def workqueue_remove(address: str) -> Request:
    return Request("DELETE", _workqueue(address))


# ---- events ----

def events(type: Optional[str], id: Optional[int], event: Union[None, str, Iterable[str]],
           last: Optional[str]) -> Request:
    names = event if event is None or isinstance(event, str) else ",".join(event)
    headers = {"Accept": "text/event-stream"}
    if last:
        headers["Last-Event-ID"] = last
    return Request("GET", "/v1/events" + _query({"type": type, "id": id, "event": names}),
                   headers=headers)


class EventReader:
    """Reads a stream of events line by line."""

    def __init__(self) -> None:
        self.last: Optional[str] = None         # the id of the last event that came whole
        self._message: Dict[str, str] = {}

    def begin(self) -> None:
        """A new connection: half an event is forgotten."""
        self._message = {}

    def read(self, raw: bytes) -> Optional[Answer]:
        """An event, if this line ends one. An id does not count before its data has come."""
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line:
            name, _, value = line.partition(":")
            self._message[name] = value[1:] if value.startswith(" ") else value
            return None
        message, self._message = self._message, {}
        self.last = message.get("id", self.last)
        if message.get("event") in ("lost", "dropped"):
            return {"event": "lost"}
        if "data" not in message:
            return None
        event: Answer = json.loads(message["data"])
        return event

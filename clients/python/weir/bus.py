"""The event bus of a weir server.

    from weir import Bus

    with Bus() as bus:          # the server of $WEIR_STORE; or Bus("http://...", token="wtk_..."), or a
                                # list of servers on one store, which are tried in turn
        bus.consume("square", lambda message: message.body ** 2)
        print(bus.request("square", 7, timeout_ms=1000).body)        # 49
        bus.publish("news", {"text": "it works"}, headers={"from": "ann"})

A bus connects by itself, and again after a break; consumers, services and processors are there
again then. Calls wait for the connection, at most as long as a request waits. A Bus may be used from
any number of threads; each consumer has a thread of its own. What goes wrong on the bus is a
BusError. docs/bus.md has the rules of the bus, and of the messages below.
"""
import collections
import concurrent.futures
import json
import queue
import random
import selectors
import signal
import socket
import ssl
import struct
import threading
import time
import uuid
from typing import Any, Callable, Deque, Dict, Iterable, Optional, Sequence, Set, Union

from .client import Weir
from .protocol import FIRST_PAUSE_S, LAST_PAUSE_S, WeirError, to_json, traced, traceparent

Frame = Dict[str, Any]
Headers = Optional[Dict[str, str]]
Servers = Union[str, Sequence[str], None]

REQUEST_MS = 30000      # how long a request waits by default
PING_S = 5              # how often the server is asked whether it is there
SILENCE_S = 20          # without an answer to pings the connection is lost
GRACE_S = 2             # the server ends a request in time; this long after, we do
MAX_WAITING = 4096      # messages that wait for the handler of one consumer


class BusError(WeirError):
    """A failure on the bus: `failure` is NO_HANDLERS, TIMEOUT, RECIPIENT_FAILURE or ERROR, `code` a
    number (-1 unless the recipient has chosen one), `error` of an ERROR weir's own code ("ELOST"). A
    handler raises one to fail a request with a code."""

    def __init__(self, message: str, *, code: int = -1, failure: str = "RECIPIENT_FAILURE",
                 error: Optional[str] = None) -> None:
        super().__init__(0, code, message)
        self.failure, self.error = failure, error


def _own(error: str, message: str) -> BusError:
    return BusError(message, failure="ERROR", error=error)


def _lost() -> BusError:
    return _own("ELOST", "the connection to the server was lost")


def _closed() -> BusError:
    return _own("ECLOSED", "the bus is closed")


Answering = Callable[[Frame, Optional[float]], Optional["Message"]]


class Message:
    """A message, or a reply: `address`, `body`, `headers`; `sent` is False if it was published."""

    def __init__(self, frame: Frame, answer: Answering) -> None:
        self.address: str = frame["address"]
        self.body: Any = frame.get("body")
        self.headers: Dict[str, str] = frame.get("headers", {})
        self.sent: bool = frame.get("send", True)
        self._reply_address: Optional[str] = frame.get("replyAddress")
        self._answer = answer

    @property
    def expects_reply(self) -> bool:
        """True until it is answered, if the sender waits for that."""
        return self._reply_address is not None

    def _answer_with(self, members: Frame, timeout_ms: Optional[float] = None) -> Optional["Message"]:
        if not self.expects_reply:
            raise _own("ESTALE", "nobody waits for a reply to this message")
        to_json(members)                        # what is no JSON leaves it unanswered
        address, self._reply_address = self._reply_address, None
        return self._answer(dict(members, type="send", address=address), timeout_ms)

    def reply(self, body: Any = None, *, headers: Headers = None) -> None:
        """Answer it."""
        self._answer_with({"body": body, "headers": traced(headers)})

    def request(self, body: Any = None, *, headers: Headers = None,
                timeout_ms: float = REQUEST_MS) -> "Message":
        """Answer it, and wait for the answer to that: a Message."""
        answer = self._answer_with({"body": body, "headers": traced(headers)}, timeout_ms)
        assert answer
        return answer

    def fail(self, code: int, text: str) -> None:
        """Answer it with a failure."""
        self._answer_with({"failureCode": code, "message": text})


MessageHandler = Callable[[Message], Any]


class Consumer:
    """A handler at an address. `missed`: messages for which it had no room."""

    def __init__(self, bus: "Bus", address: str, handler: MessageHandler, threads: int = 1) -> None:
        self.address, self.missed = address, 0
        self._bus, self._handler = bus, handler
        self._messages: "queue.Queue[Optional[Message]]" = queue.Queue()
        self._room = MAX_WAITING
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Receive no more. Returns when what has come is handled, unless a handler calls it."""
        self._bus._forget(self)
        self._end()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _end(self) -> None:
        for _ in self._threads:
            self._messages.put(None)

    def _put(self, message: Message) -> None:
        """Give it to a thread; if they are too far behind, a request fails, another message is missed."""
        if self._messages.qsize() < self._room:
            self._messages.put(message)
            return
        self.missed += 1
        if message.expects_reply:
            message.fail(-1, "the recipient has too many messages that wait")

    def _run(self) -> None:
        while True:
            message = self._messages.get()
            if message is None:
                return
            traceparent.set(message.headers.get("traceparent"))
            try:
                value = self._handler(message)
                if value is not None and message.expects_reply:
                    message.reply(value)
            except Exception as why:
                self._fail(message, why)

    @staticmethod
    def _fail(message: Message, why: Exception) -> None:
        if not message.expects_reply:           # a bug of the program, as in any thread
            threading.excepthook(threading.ExceptHookArgs(
                (type(why), why, why.__traceback__, threading.current_thread())))
        elif isinstance(why, BusError):
            message.fail(int(why.code), why.message)
        else:
            message.fail(-1, "%s: %s" % (type(why).__name__, why) if str(why) else type(why).__name__)


class _Processor(Consumer):
    """A consumer that is registered with a work queue, once for each of its threads."""

    def __init__(self, bus: "Bus", work: str, address: str, handler: MessageHandler,
                 concurrency: int) -> None:
        super().__init__(bus, address, handler, concurrency)
        self._work = work

    def _ask(self, verb: str) -> None:
        body = self._bus.request("%s.%s" % (self._work, verb), {"processor": self.address}).body
        said = body if isinstance(body, dict) else {}
        if said.get("status") != "ok":
            raise BusError(said.get("message", "%s: not a work queue" % self._work))

    def close(self) -> None:
        self._bus._processors.discard(self)
        if self._bus._up.is_set():
            try:
                for _ in self._threads:
                    self._ask("unregister")
            except WeirError:
                pass
        super().close()


class Bus:
    """The event bus of a server."""

    def __init__(self, url: Servers = None, *, token: Optional[str] = None,
                 ca: Optional[str] = None) -> None:
        """`url` and `token` default to $WEIR_STORE (http://127.0.0.1:7340 if that is not set) and
        $WEIR_TOKEN; `ca` is a PEM file to trust. A list of addresses is of servers on one store: when
        the one in use is lost, the next is tried."""
        urls = [url] if url is None or isinstance(url, str) else list(url)
        if not urls:
            raise ValueError("the list of servers is empty; expected at least one address")
        self._servers = [Weir(one, token=token, ca=ca) for one in urls]
        self._lock = threading.Lock()           # guards what follows
        self._line: Optional[_Line] = None      # the connection
        self._numbers = 0
        self._fences: Deque[_Waiting] = collections.deque()     # pings that are not answered, in order
        self._requests: Dict[str, _Waiting] = {}        # by reply address
        self._consumers: Dict[str, Deque[Consumer]] = {}    # by address; the first has the next turn
        self._processors: Set[_Processor] = set()
        self._refused: Optional[WeirError] = None   # why the server did not let us in
        self._up = threading.Event()            # connected, and the server knows our consumers
        self._news = threading.Condition(self._lock)    # connected, refused or closed
        self._stop = threading.Event()
        for run in (self._run, self._beat):
            threading.Thread(target=run, daemon=True).start()

    def __enter__(self) -> "Bus":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. What waits fails."""
        self._stop.set()
        with self._lock:
            line, consumers = self._line, [c for all in self._consumers.values() for c in all]
            self._consumers.clear()
        self._down(_closed())
        if line:
            line.close()
        for consumer in consumers:
            consumer._end()

    @property
    def closed(self) -> bool:
        return self._stop.is_set()

    def wait(self) -> None:
        """Wait until the bus is closed; in the main thread, SIGTERM and SIGINT do that."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number, lambda *_: self._stop.set())
        self._stop.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
        self.close()

    # ---- messages ----

    def publish(self, address: str, body: Any = None, *, headers: Headers = None) -> None:
        """To every consumer of the address. Returns when the server has it."""
        self._connected()
        self._post({"type": "publish", "address": address, "body": body, "headers": traced(headers)})

    def send(self, address: str, body: Any = None, *, headers: Headers = None) -> None:
        """To one consumer of the address; they take turns. Returns when the server has it."""
        self._connected()
        self._post({"type": "send", "address": address, "body": body, "headers": traced(headers)})

    def request(self, address: str, body: Any = None, *, headers: Headers = None,
                timeout_ms: float = REQUEST_MS) -> Message:
        """As send, and wait for the reply: a Message."""
        end = time.monotonic() + timeout_ms / 1000
        self._connected(timeout_ms / 1000)
        return self._ask({"type": "send", "address": address, "body": body, "headers": traced(headers)},
                         max(0.001, end - time.monotonic()))

    def consume(self, address: str, handler: MessageHandler) -> Consumer:
        """Call handler(message) for each message to the address, one at a time, on a thread of its own.
        What it returns is the reply, what it raises the failure; if it returns None, it replies
        itself, or nobody waits. Answers a Consumer, when the server has registered it."""
        return self._add(Consumer(self, address, handler))

    # ---- services ----

    def service(self, name: str, actions: Dict[str, Callable[..., Any]]) -> Consumer:
        """Publish a service: actions are functions of (args, message), by name; what they return is
        the result, what they raise the failure. Answers a Consumer."""
        def handler(message: Message) -> None:
            action = message.headers.get("action")
            if not action:
                raise BusError("action not specified", code=500)
            if action not in actions:
                raise BusError("Invalid action: %s" % action, code=500)
            _reply_always(message, actions[action](message.body or {}, message))
        return self.consume(name, handler)

    def call(self, name: str, action: str, args: Any = None, *, headers: Headers = None,
             timeout_ms: float = REQUEST_MS) -> Any:
        """Call an action of a service: its result."""
        return self.request(name, args or {}, headers=dict(headers or {}, action=action),
                            timeout_ms=timeout_ms).body

    # ---- work queues ----

    def process(self, address: str, handler: MessageHandler, *, concurrency: int = 1,
                processor: Optional[str] = None) -> Consumer:
        """Process the work of a work queue, `concurrency` messages at once: what handler(message)
        returns is the reply, what it raises the failure. `processor` is the address at which the work
        comes. Answers a Consumer."""
        one = _Processor(self, address, processor or "%s.processor.%s" % (address, uuid.uuid4().hex[:8]),
                         lambda message: _reply_always(message, handler(message)), concurrency)
        self._add(one)
        try:
            for _ in one._threads:
                one._ask("register")
        except BaseException:
            one.close()
            raise
        self._processors.add(one)
        return one

    # ---- the connection ----

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._stop.is_set():
            refused: Optional[WeirError] = None
            for server in self._servers:
                try:
                    line = _Line(server)
                except WeirError as why:
                    refused = why
                except OSError:
                    pass
                else:
                    if self._serve(line):
                        pause, refused = FIRST_PAUSE_S, None
                    refused = line.refused or refused
                if self._stop.is_set():
                    return
            if refused:
                self._down(refused, refused=True)
            self._stop.wait(pause * (0.5 + random.random()))
            pause = min(pause * 2, LAST_PAUSE_S)

    def _serve(self, line: "_Line") -> bool:
        """Read until the connection ends; beside that, say who we are. True: the server let us in."""
        with self._lock:
            self._line = line
        handshake = threading.Thread(target=self._handshake, args=(line,), daemon=True)
        handshake.start()
        try:
            while not self._stop.is_set():
                self._read(line, line.read_frame())
        except (OSError, ValueError):
            pass
        was_up = self._up.is_set()
        with self._lock:
            self._line = None
        line.release()
        self._down()
        return was_up

    def _handshake(self, line: "_Line") -> None:
        token = line.token
        try:
            self._post(None, {"Authorization": "Bearer " + token} if token else {})
        except BusError as why:
            if self._line is line:
                line.refused = why
                line.close()
            return
        with self._lock:
            addresses = list(self._consumers)
        for address in addresses:
            try:
                self._post({"type": "register", "address": address})
            except BusError:
                if self._line is not line:
                    return                      # else it is not permitted: consume() says so
        with self._lock:
            self._refused = None
            self._up.set()
            self._news.notify_all()
        for processor in list(self._processors):
            threading.Thread(target=self._again, args=(processor, line), daemon=True).start()

    def _again(self, processor: "_Processor", line: "_Line") -> None:
        """The server forgot our processors with the connection."""
        pause, slots = FIRST_PAUSE_S, len(processor._threads)
        while slots and self._line is line and processor in self._processors:
            try:
                processor._ask("register")
                slots -= 1
            except WeirError:
                self._stop.wait(pause)
                pause = min(pause * 2, LAST_PAUSE_S)

    def _beat(self) -> None:
        while not self._stop.wait(PING_S):
            if self._up.is_set():
                try:
                    self._post(None)
                except WeirError:
                    pass                        # the reader notices

    def _down(self, why: Optional[WeirError] = None, refused: bool = False) -> None:
        """No connection: what waits for answers fails; with `why`, also what waits for a connection."""
        with self._lock:
            self._up.clear()
            waiting = list(self._fences) + list(self._requests.values())
            self._fences.clear()
            self._requests.clear()
            if refused:
                self._refused = why
            self._news.notify_all()
        for one in waiting:
            one.fail(why or _lost())

    def _connected(self, seconds: float = REQUEST_MS / 1000) -> None:
        if self._up.is_set():
            return
        with self._lock:
            self._news.wait_for(lambda: self._up.is_set() or self._refused is not None or
                                self._stop.is_set(), seconds)
            refused = self._refused
        if self._stop.is_set():
            raise _closed()
        if not self._up.is_set():
            raise refused or WeirError(0, "EUNAVAIL", "no connection to the event bus of the server")

    # ---- consumers ----

    def _add(self, consumer: Consumer) -> Consumer:
        with self._lock:
            self._consumers.setdefault(consumer.address, collections.deque()).append(consumer)
        try:
            self._connected()
            self._post({"type": "register", "address": consumer.address})
        except BaseException:
            Consumer.close(consumer)
            raise
        return consumer

    def _forget(self, consumer: Consumer) -> None:
        with self._lock:
            others = self._consumers.get(consumer.address)
            if others is None or consumer not in others:
                return
            others.remove(consumer)
            if others:
                return
            del self._consumers[consumer.address]
        if self._up.is_set():
            try:
                self._post({"type": "unregister", "address": consumer.address})
            except WeirError:
                pass

    # ---- out ----

    def _send_frames(self, waiting: "_Waiting", keep: Callable[["_Waiting"], None], *frames: Frame) -> None:
        """Write frames, and keep what waits for their answer: under the lock, so in the same order."""
        texts = [to_json(frame).encode() for frame in frames]
        with self._lock:
            if self._line is None:
                raise _lost()
            line = self._line
            keep(waiting)
            line.put(texts)
        line.flush()

    def _post(self, message: Optional[Frame], headers: Headers = None) -> None:
        """Send a message that the server does not answer, and a ping, which it does: what it complains
        about before it answers is this message."""
        waiting = _Waiting(self._number("f"), "%(type)s %(address)s" % message if message else "connect")
        ping = {"type": "ping", "replyAddress": waiting.id, "headers": traced(headers)}
        self._send_frames(waiting, self._fences.append, *([message, ping] if message else [ping]))
        waiting.result(SILENCE_S + GRACE_S)

    def _ask(self, message: Frame, seconds: float) -> Message:
        waiting = _Waiting(self._number("r"), "send " + message["address"])
        headers = dict(message["headers"], timeout=str(max(1, round(seconds * 1000))))

        def keep(one: "_Waiting") -> None:
            self._requests[one.id] = one
        self._send_frames(waiting, keep, dict(message, replyAddress=waiting.id, headers=headers))
        try:
            reply = waiting.result(seconds + GRACE_S)
            assert reply
            return reply
        finally:
            with self._lock:
                self._requests.pop(waiting.id, None)

    def _number(self, letter: str) -> str:
        with self._lock:
            self._numbers += 1
            return "%s%d" % (letter, self._numbers)

    # ---- in ----

    def _read(self, line: "_Line", frame: Frame) -> None:
        kind = frame.get("type")
        if kind == "message":
            self._read_message(line, frame)
        elif kind == "err":
            self._read_error(frame)
        elif kind == "pong":
            with self._lock:
                fence = self._fences.popleft() if self._fences else None
            if fence:
                fence.pass_on()

    def _read_error(self, frame: Frame) -> None:
        address, text = frame.get("address"), frame.get("message", "")
        with self._lock:
            waiting = self._requests.pop(str(address), None)
            if waiting is None and self._fences and address in (None, self._fences[0].id):
                waiting = self._fences[0]
                if address is not None:
                    self._fences.popleft()
        if waiting is None:
            return
        failure = frame.get("failureType", "ERROR")
        if failure != "RECIPIENT_FAILURE" and text.replace("_", "").isalnum():  # a code of the bridge
            text = "%s: %s" % (text, waiting.what)
        why = BusError(text, code=frame.get("failureCode", -1), failure=failure, error=frame.get("error"))
        if address is None:
            waiting.why = waiting.why or why    # its ping is still answered
        else:
            waiting.fail(why)

    def _read_message(self, line: "_Line", frame: Frame) -> None:
        message = Message(frame, lambda answer, timeout_ms: self._answer(line, answer, timeout_ms))
        with self._lock:
            request = self._requests.pop(frame["address"], None)
            consumers = self._consumers.get(frame["address"])
            if consumers and message.sent:
                consumers.rotate(-1)
            takers = [] if not consumers else [consumers[-1]] if message.sent else list(consumers)
        if request:
            request.set(message)
        for consumer in takers:
            consumer._put(message)

    def _answer(self, line: "_Line", answer: Frame, timeout_ms: Optional[float]) -> Optional[Message]:
        if timeout_ms is not None:
            if self._line is not line:
                raise _lost()
            return self._ask(answer, timeout_ms / 1000)
        if self._line is line:          # else the other side has a failure already
            ping = _Waiting(self._number("f"), "reply")
            try:
                self._send_frames(ping, self._fences.append, answer,
                                  {"type": "ping", "replyAddress": ping.id})
            except BusError:
                pass
        return None


def _reply_always(message: Message, value: Any) -> None:
    if message.expects_reply:
        message.reply(value)


class _Waiting:
    """What waits for an answer of the server."""

    def __init__(self, id: str, what: str) -> None:
        self.id, self.what = id, what
        self.why: Optional[WeirError] = None
        self._future: "concurrent.futures.Future[Optional[Message]]" = concurrent.futures.Future()

    def set(self, value: Optional[Message]) -> None:
        self._future.set_result(value)

    def fail(self, why: Exception) -> None:
        self._future.set_exception(why)

    def pass_on(self) -> None:
        if self.why:
            self.fail(self.why)
        else:
            self.set(None)

    def result(self, seconds: float) -> Optional[Message]:
        try:
            return self._future.result(seconds)
        except concurrent.futures.TimeoutError:
            raise BusError("%s: no answer" % self.what, failure="TIMEOUT") from None


class _Line:
    """A connection: an HTTP request that goes on as frames, each with its length before it."""

    def __init__(self, server: Weir) -> None:
        connection = server._connect(SILENCE_S)
        connection.connect()
        assert connection.sock
        self._socket: socket.socket = connection.sock
        self.token = server._address.token
        self.refused: Optional[WeirError] = None        # it answers, but does not let us in
        self._in, self._out = bytearray(), bytearray()
        self._io = threading.Lock()     # one thread at a time is in the socket: TLS needs that
        self._outer = threading.Lock()  # guards _out
        self._writer = threading.Lock()  # held by the thread that writes
        try:
            self._upgrade(server)
        except BaseException:
            self._socket.close()
            raise

    def _upgrade(self, server: Weir) -> None:
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(("GET %s/eventbus/tcp HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\n"
                              "Upgrade: weir-bus\r\n\r\n" % (
                                  server._address.base, server._address.host_header)).encode())
        self._socket.setblocking(False)
        while b"\r\n\r\n" not in self._in:
            self._receive()
        head, _, rest = bytes(self._in).partition(b"\r\n\r\n")
        self._in = bytearray(rest)
        status = int(head.split(None, 2)[1])
        if 400 <= status < 500 and status != 429:
            raise WeirError(status, str(status), "/eventbus/tcp: HTTP status %d" % status)
        if status != 101:
            raise OSError("HTTP status %d" % status)

    def close(self) -> None:
        """Hang up, which ends the reader."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def release(self) -> None:
        """The reader has ended."""
        with self._io:
            self._socket.close()

    def _try(self, call: Callable[..., Any], *args: Any) -> Any:
        """What the call answers; None: it has to wait."""
        with self._io:
            try:
                return call(*args)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return None

    def _ready(self, event: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, event)
            if not selector.select(SILENCE_S):
                raise OSError("the server is silent")

    def _receive(self) -> None:
        """Some more bytes."""
        while True:
            more = self._try(self._socket.recv, 65536)
            if more is None:
                self._ready(selectors.EVENT_READ)
            elif not more:
                raise OSError("the server has closed the connection")
            else:
                self._in += more
                return

    def read_frame(self) -> Frame:
        need = 4
        while len(self._in) < need:
            self._receive()
        need += int(struct.unpack_from(">I", self._in)[0])
        while len(self._in) < need:
            self._receive()
        frame: Frame = json.loads(bytes(self._in[4:need]))
        del self._in[:need]
        return frame

    def put(self, texts: Iterable[bytes]) -> None:
        """Frames to write, in this order."""
        with self._outer:
            for text in texts:
                self._out += struct.pack(">I", len(text)) + text

    def flush(self) -> None:
        """Write the frames put. The thread that writes takes the frames of other threads, too."""
        while self._out and self._writer.acquire(blocking=False):
            try:
                self._write()
            except (OSError, ValueError):       # ValueError: the socket is closed
                self.close()                    # the reader notices
                return
            finally:
                self._writer.release()

    def _write(self) -> None:
        while True:
            with self._outer:
                text, self._out = memoryview(self._out), bytearray()
            if not text:
                return
            while text:
                n = self._try(self._socket.send, text)
                if n is None:
                    self._ready(selectors.EVENT_WRITE)
                else:
                    text = text[n:]

"""The event bus for asyncio. A Bus with its threads is behind it; handlers run in the loop.

    async with AsyncBus() as bus:
        async def square(message):
            return message.body ** 2
        await bus.consume("square", square)
        print((await bus.request("square", 7, timeout_ms=1000)).body)       # 49
"""
import asyncio
import concurrent.futures
import contextvars
import functools
import inspect
from typing import Any, Awaitable, Callable, Dict, Optional, TypeVar, Union

from .bus import REQUEST_MS, Bus, BusError, Consumer, Message, Servers

Headers = Optional[Dict[str, str]]
T = TypeVar("T")
CALLS = 64          # calls of one bus that wait at once; more take their turn


class AsyncMessage:
    """A message, or a reply: `address`, `body`, `headers`; `sent` is False if it was published."""

    def __init__(self, message: Message, bus: "AsyncBus") -> None:
        self._message, self._bus = message, bus
        self.address, self.body = message.address, message.body
        self.headers, self.sent = message.headers, message.sent

    @property
    def expects_reply(self) -> bool:
        """True until it is answered, if the sender waits for that."""
        return self._message.expects_reply

    def reply(self, body: Any = None, *, headers: Headers = None) -> None:
        """Answer it."""
        self._message.reply(body, headers=headers)

    async def request(self, body: Any = None, *, headers: Headers = None,
                      timeout_ms: float = REQUEST_MS) -> "AsyncMessage":
        """Answer it, and wait for the answer to that."""
        return AsyncMessage(await self._bus._do(self._message.request, body, headers=headers,
                                                timeout_ms=timeout_ms), self._bus)

    def fail(self, code: int, text: str) -> None:
        """Answer it with a failure."""
        self._message.fail(code, text)


AsyncMessageHandler = Callable[[AsyncMessage], Union[Any, Awaitable[Any]]]


class AsyncConsumer:
    """A handler at an address."""

    def __init__(self, consumer: Consumer, bus: "AsyncBus") -> None:
        self._consumer, self._bus = consumer, bus

    @property
    def missed(self) -> int:
        """Messages for which it had no room."""
        return self._consumer.missed

    async def close(self) -> None:
        """Receive no more. Returns when what has come is handled."""
        await self._bus._do(self._consumer.close)


class AsyncBus:
    """The event bus of a server, or of several, as Bus has it. Create it while the loop runs."""

    def __init__(self, url: Servers = None, *, token: Optional[str] = None,
                 ca: Optional[str] = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._bus = Bus(url, token=token, ca=ca)
        self._calls = concurrent.futures.ThreadPoolExecutor(CALLS, "weir-bus")

    async def __aenter__(self) -> "AsyncBus":
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. What waits fails."""
        self._bus.close()
        self._calls.shutdown(wait=False)

    async def _do(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        try:
            here = contextvars.copy_context()           # the trace, for the thread that calls
            task = functools.partial(call, *args, **named)
            return await self._loop.run_in_executor(self._calls, lambda: here.run(task))
        except RuntimeError as why:
            if self._bus.closed:
                raise BusError("the bus is closed", failure="ERROR", error="ECLOSED") from why
            raise

    def _in_loop(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """A handler for the thread of a consumer, which waits for what runs in the loop."""
        async def call(message: Message, *before: Any) -> Any:
            value = handler(*before, AsyncMessage(message, self))
            return await value if inspect.isawaitable(value) else value

        def wait(message: Message, *before: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(call(message, *before), self._loop).result()
        return wait

    async def publish(self, address: str, body: Any = None, *, headers: Headers = None) -> None:
        """To every consumer of the address. Done when the server has it."""
        await self._do(self._bus.publish, address, body, headers=headers)

    async def send(self, address: str, body: Any = None, *, headers: Headers = None) -> None:
        """To one consumer of the address; they take turns. Done when the server has it."""
        await self._do(self._bus.send, address, body, headers=headers)

    async def request(self, address: str, body: Any = None, *, headers: Headers = None,
                      timeout_ms: float = REQUEST_MS) -> AsyncMessage:
        """As send, and wait for the reply."""
        return AsyncMessage(await self._do(self._bus.request, address, body, headers=headers,
                                           timeout_ms=timeout_ms), self)

    async def consume(self, address: str, handler: AsyncMessageHandler) -> AsyncConsumer:
        """Call handler(message), a function or a coroutine function, for one message after the other."""
        return AsyncConsumer(await self._do(self._bus.consume, address, self._in_loop(handler)), self)

    async def service(self, name: str, actions: Dict[str, Callable[..., Any]]) -> AsyncConsumer:
        """Publish a service: actions are functions of (args, message), by name."""
        def wrap(action: Callable[..., Any]) -> Callable[..., Any]:
            run = self._in_loop(action)
            return lambda args, message: run(message, args)
        wrapped = {action: wrap(function) for action, function in actions.items()}
        return AsyncConsumer(await self._do(self._bus.service, name, wrapped), self)

    async def call(self, name: str, action: str, args: Any = None, *, headers: Headers = None,
                   timeout_ms: float = REQUEST_MS) -> Any:
        """Call an action of a service: its result."""
        return await self._do(self._bus.call, name, action, args, headers=headers, timeout_ms=timeout_ms)

    async def process(self, address: str, handler: AsyncMessageHandler, *,
                      concurrency: int = 1) -> AsyncConsumer:
        """Process the work of a work queue, `concurrency` messages at once."""
        return AsyncConsumer(await self._do(self._bus.process, address, self._in_loop(handler),
                                            concurrency=concurrency), self)

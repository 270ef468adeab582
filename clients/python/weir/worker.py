"""Workers by decorator: @worker("mail") registers a function, run() works until SIGTERM."""
import asyncio
import inspect
import signal
import threading
from typing import Any, Callable, List, NamedTuple, Optional, TypeVar

from .aio import AsyncWeir
from .client import Types, Weir, list_of

F = TypeVar("F", bound=Callable[..., Any])


class _Registered(NamedTuple):
    types: List[str]
    handler: Callable[..., Any]
    concurrency: int
    lease_ms: int


_registered: List[_Registered] = []


def worker(types: Types, *, concurrency: int = 1, lease_ms: int = 30000) -> Callable[[F], F]:
    """Register a function of (job), or a coroutine function, as the handler of these types. run()
    calls it; the function itself stays as it is."""
    if callable(types):
        raise TypeError("worker: the types are missing; write @worker(\"mail\")")

    def register(handler: F) -> F:
        _registered.append(_Registered(list_of(types), handler, concurrency, lease_ms))
        return handler
    return register


def run(url: Optional[str] = None, *, token: Optional[str] = None, ca: Optional[str] = None,
        stop: Optional[threading.Event] = None) -> None:
    """Work with all registered handlers on the server of $WEIR_STORE (or `url`), until `stop` is set
    or, in the main thread, SIGTERM or SIGINT arrives. Handlers that run may finish."""
    if not _registered:
        raise RuntimeError("run: no worker is registered; write @worker(\"mail\") above a function")
    ending = stop or threading.Event()
    failed: List[BaseException] = []
    threads = [threading.Thread(target=_work, args=(one, url, token, ca, ending, failed))
               for one in _registered]
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, lambda *_: ending.set())
    try:
        for thread in threads:
            thread.start()
        ending.wait()
        for thread in threads:
            thread.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failed:
        raise failed[0]


def _work(one: _Registered, url: Optional[str], token: Optional[str], ca: Optional[str],
          stop: threading.Event, failed: List[BaseException]) -> None:
    try:
        if inspect.iscoroutinefunction(one.handler):
            asyncio.run(_work_async(one, AsyncWeir(url, token=token, ca=ca), stop))
        else:
            Weir(url, token=token, ca=ca).work(one.types, one.handler, concurrency=one.concurrency,
                                               lease_ms=one.lease_ms, stop=stop)
    except BaseException as why:
        failed.append(why)
        stop.set()


async def _work_async(one: _Registered, queue: AsyncWeir, stop: threading.Event) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()

    def wait() -> None:
        stop.wait()
        try:
            loop.call_soon_threadsafe(stopped.set)
        except RuntimeError:
            pass                            # the loop has ended, with an error
    threading.Thread(target=wait, daemon=True).start()
    async with queue:
        await queue.work(one.types, one.handler, concurrency=one.concurrency, lease_ms=one.lease_ms,
                         stop=stopped)

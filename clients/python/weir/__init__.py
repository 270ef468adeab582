"""weir: background jobs on a weir server. Needs nothing but Python 3.8 and its standard library.

    from weir import Weir

    queue = Weir()              # the server of $WEIR_STORE; or Weir("http://...", token="wtk_...")
    added = queue.add("mail", {"to": "ann@example.org"}, priority="high", attempts=3)
    print(queue.wait(added["id"], timeout_ms=10000)["result"])

A worker, until SIGTERM:

    from weir import run, worker

    @worker("mail", concurrency=4)
    def mail(job):
        return send(job.data["to"])

    run()

AsyncWeir has the same calls for asyncio, and observe(): jobs as an async iterator. Bus and AsyncBus
are the event bus. Times are in milliseconds, and their names end in _ms; where the server takes a time
(delay, ttl, backoff ...), a text such as "5s" does as well. Everything they raise is a WeirError.

`traceparent` is a ContextVar: the W3C trace context that jobs added from here belong to. A handler has
that of its job.
"""
from .aio import AsyncJob, AsyncWeir
from .bus import Bus, BusError, Consumer, Message
from .bus_aio import AsyncBus, AsyncConsumer, AsyncMessage
from .client import Job, Weir
from .observe import ObservedJob, observe
from .protocol import ReturnJob, WeirError, __version__, traceparent
from .worker import run, worker

__all__ = ["AsyncBus", "AsyncConsumer", "AsyncJob", "AsyncMessage", "AsyncWeir", "Bus", "BusError",
           "Consumer", "Job", "Message", "ObservedJob", "ReturnJob", "Weir", "WeirError", "__version__",
           "observe", "run", "traceparent", "worker"]

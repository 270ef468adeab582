"""primes.py work | primes.py N - a compute cluster over a work queue. `work` is a member of the cluster: start
one on each machine. With a number it counts the primes below it: it sends parts to the work queue, which
gives them to idle members, and adds up their replies. It finds the server in WEIR_STORE."""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../clients/python"))
from weir import Bus, Weir      # noqa: E402

QUEUE, PART = "primes", 10000


def count_primes(message):
    """A part of the work: a reply if all is well, a failure if this raises."""
    first, last = message.body["from"], message.body["to"]
    return sum(n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1)) for n in range(first, last))


def main(what):
    Weir().workqueue_put(QUEUE, process_timeout="1m")       # unless it is there
    with Bus() as bus:
        if what == "work":
            bus.process(QUEUE, count_primes, concurrency=2)
            print("ready", flush=True)
            bus.wait()
            return
        parts = [{"from": n, "to": min(n + PART, int(what))} for n in range(0, int(what), PART)]
        with ThreadPoolExecutor(len(parts)) as senders:
            replies = list(senders.map(lambda part: bus.request(QUEUE, part, timeout_ms=300000), parts))
        print("%d parts, %d primes below %s" % (len(parts), sum(r.body for r in replies), what))


main(sys.argv[1])

"""rig.py - what the tests of the Python client share: a server, waiting, TAP. Run as
TEST.py WEIR CLIENT-DIRECTORY."""
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import traceback

WEIR, DIRECTORY = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, DIRECTORY)
PATIENCE_S = 60


class Server:
    """A server in a directory of its own; its port stays the same when it is started again."""

    def __init__(self, directory, *options, store=None):
        self.directory, self.listen, self.options = directory, "127.0.0.1:0", options
        self.store = store or "sqlite:%s/jobs.db" % directory
        self.start()

    def start(self):
        env = dict(os.environ, XDG_RUNTIME_DIR=self.directory, WEIR_DATA=self.directory)
        for name in ("WEIR_STORE", "WEIR_TOKEN"):
            env.pop(name, None)
        self.process = subprocess.Popen(
            [WEIR, "serve", "--store", self.store, "--data", self.directory, "--listen", self.listen,
             *self.options], stdout=subprocess.PIPE, text=True, env=env)
        self.url = self.process.stdout.readline().split()[-1]
        self.listen = self.url.split("//")[1]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE_S) == 0


@contextlib.contextmanager
def redis():
    """A Redis that keeps nothing: its URL."""
    with tempfile.TemporaryDirectory() as directory:
        at = directory + "/redis.sock"
        process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", at, "--save", "", "--dir",
                                    directory], stdout=subprocess.DEVNULL)
        try:
            until(lambda: os.path.exists(at))
            yield "redis+unix://" + at
        finally:
            process.kill()
            process.wait()


def until(what):
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "never"
        time.sleep(0.005)


def run(cases, call):
    """call(case, server) for each; writes TAP, and answers the status to exit with."""
    failed = 0
    print("1..%d" % len(cases))
    with tempfile.TemporaryDirectory() as directory:
        server = Server(directory)
        for number, case in enumerate(cases, 1):
            try:
                call(case, server)
                print("ok %d - python: %s" % (number, case.__name__), flush=True)
            except BaseException:
                failed += 1
                print("not ok %d - python: %s" % (number, case.__name__), flush=True)
                print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
        server.stop()
    return 1 if failed else 0

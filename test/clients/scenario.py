#!/usr/bin/env python3
"""scenario.py WEIR STORE PROGRAM... - run the program of a client through scenario.md on a store:
sqlite, redis, direct-sqlite, direct-redis. Passes its TAP on."""
import os
import signal
import subprocess
import sys
import tempfile
import time

WEIR, STORE, PROGRAM = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
PATIENCE_S = 60


class Server:
    """weir serve; its port stays the same when it is started again."""

    def __init__(self, directory, store):
        self.directory, self.store, self.listen = directory, store, "127.0.0.1:0"
        os.mkdir(directory)
        self.start()

    def start(self):
        env = dict(os.environ, XDG_RUNTIME_DIR=self.directory, WEIR_DATA=self.directory)
        env.pop("WEIR_STORE", None)
        self.process = subprocess.Popen(
            [WEIR, "serve", "--store", self.store, "--data", self.directory, "--listen", self.listen],
            stdout=subprocess.PIPE, text=True, env=env)
        line = self.process.stdout.readline()
        assert line, "the server of %s ended" % self.store
        self.url = line.split()[-1]
        self.listen = self.url.split("//")[1]


class Redis:
    """A Redis that has each change on the disk before it answers."""

    def __init__(self, directory):
        self.directory, self.socket = directory, directory + "/redis.sock"
        os.mkdir(directory)
        self.url = "redis+unix://" + self.socket
        self.start()

    def start(self):
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.directory,
             "--appendonly", "yes", "--appendfsync", "always", "--save", ""], stdout=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE_S
        while subprocess.run(["redis-cli", "-s", self.socket, "ping"], capture_output=True).stdout != b"PONG\n":
            assert time.monotonic() < end, "Redis does not start"
            time.sleep(0.01)


def make(directory):
    """(URL for the program, all that runs in the order of its start, what a restart kills)."""
    file = "sqlite:%s/jobs.db" % directory
    if STORE == "direct-sqlite":
        return file, [], []
    if STORE == "direct-redis":
        redis = Redis(directory + "/redis")
        return redis.url, [redis], [redis]
    if STORE == "redis":
        redis = Redis(directory + "/redis")
        server = Server(directory + "/server", redis.url)
        return server.url, [redis, server], [server]
    assert STORE == "sqlite", "unknown store " + STORE
    server = Server(directory + "/server", file)
    return server.url, [server], [server]


def restart(running):
    for one in reversed(running):
        one.process.kill()
        one.process.wait()
    for one in running:
        one.start()


def end(running):
    """True if all ended well."""
    well = True
    for one in reversed(running):
        one.process.send_signal(signal.SIGTERM)
        well = one.process.wait(PATIENCE_S) == 0 and well
    return well


def play(running, killed, url):
    """Run the program; its status."""
    program = subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=dict(os.environ, WEIR_STORE=url))
    try:
        for line in program.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if line == "# restart\n":
                restart(killed)
                program.stdin.write("restarted\n")
                program.stdin.flush()
        return program.wait()
    finally:
        program.kill()


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
with tempfile.TemporaryDirectory() as directory:
    url, running, killed = make(directory)
    try:
        status = play(running, killed, url)
        if not end(running):
            print("# a server did not end well")
            status = status or 1
    finally:
        for one in running:
            one.process.kill()
sys.exit(1 if status else 0)

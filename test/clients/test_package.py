#!/usr/bin/env python3
"""test_package.py WEIR CLIENT-DIRECTORY - the Python package: pip installs it without a network, its
types hold, and a worker of five lines works from there. Writes TAP."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from rig import DIRECTORY, PATIENCE_S, WEIR, Server, run
from weir import Weir, __version__

PYTHON = "/usr/bin/python3"         # Debian's, for which pip and setuptools are packages
WORKER = '''from weir import run, worker

@worker("sum")
def add(job):
    return job.data["a"] + job.data["b"]

@worker("product", concurrency=2)
async def multiply(job):
    await job.log("multiplying")
    return job.data["a"] * job.data["b"]

run()
'''
USER = '''from weir import AsyncWeir, Bus, Job, Weir, worker

@worker("mail", concurrency=4)
def mail(job: Job) -> int:
    return job.id

reveal_type(mail)
reveal_type(Weir().get(1))
async def look(queue: AsyncWeir) -> None:
    reveal_type(await queue.add_many([{"type": "mail"}]))
Weir().cancel("seven")
'''


def said(*command, status=0, **options):
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=240, **options)
    assert answer.returncode == status, "%s:\n%s" % (" ".join(command), answer.stdout)
    return answer.stdout


def install(target):
    source = os.path.join(target, "source")         # setuptools builds beside its sources
    shutil.copytree(DIRECTORY, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    said(PYTHON, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-index",
         "--disable-pip-version-check", "--root-user-action=ignore", "--target",
         os.path.join(target, "site"), source)
    return os.path.join(target, "site")


def pip_installs_it_and_a_worker_works(server):
    with tempfile.TemporaryDirectory() as target:
        site = install(target)
        assert os.path.exists(os.path.join(site, "weir", "py.typed"))
        assert os.path.isdir(os.path.join(site, "weir-%s.dist-info" % __version__))
        with open(os.path.join(target, "work.py"), "w") as file:
            file.write(WORKER)
        process = subprocess.Popen([PYTHON, "work.py"], cwd=target,
                                   env=dict(os.environ, PYTHONPATH=site, WEIR_STORE=server.url))
        queue = Weir(server.url)
        numbers = {"a": 6, "b": 7}
        assert queue.wait(queue.add("sum", numbers)["id"], timeout_ms=PATIENCE_S * 1000)["result"] == 13
        done = queue.wait(queue.add("product", numbers)["id"], timeout_ms=PATIENCE_S * 1000)
        assert done["result"] == 42 and queue.log(done["id"])[0]["text"] == "multiplying"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def its_types_hold(_):
    with tempfile.TemporaryDirectory() as target:
        said("mypy", "--strict", "--cache-dir", target, os.path.join(DIRECTORY, "weir"))


def a_user_has_its_types(_):
    with tempfile.TemporaryDirectory() as target:
        with open(os.path.join(target, "user.py"), "w") as file:
            file.write(USER)
        text = said("mypy", "--strict", "--cache-dir", target, "user.py", cwd=target, status=1,
                    env=dict(os.environ, MYPYPATH=DIRECTORY))
    assert '"def (job: weir.client.Job) -> builtins.int"' in text, text
    assert text.count('"builtins.dict[builtins.str, Any]"') == 1, text
    assert '"builtins.list[builtins.dict[builtins.str, Any]]"' in text, text
    assert 'Argument 1 to "cancel" of "Weir" has incompatible type "str"; expected "int"' in text, text
    assert "Found 1 error" in text, text


def a_worker_without_types_says_so(_):
    for program, why in (("from weir import worker\n@worker\ndef mail(job): pass", "the types are missing"),
                         ("import weir\nweir.run()", "no worker is registered")):
        text = said(PYTHON, "-c", program, status=1, env=dict(os.environ, PYTHONPATH=DIRECTORY))
        assert why in text, text


def a_token_that_is_wrong_ends_the_worker(_):
    with tempfile.TemporaryDirectory() as data:
        said(WEIR, "token", "add", "boss", "--role", "admin", "--data", data)
        guarded = Server(data)
        try:
            text = said(PYTHON, "-c", WORKER, status=1, env=dict(
                os.environ, PYTHONPATH=DIRECTORY, WEIR_STORE=guarded.url, WEIR_TOKEN="wtk_wrong"))
            assert "WeirError" in text, text
        finally:
            guarded.stop()


CASES = [pip_installs_it_and_a_worker_works, its_types_hold, a_user_has_its_types,
         a_worker_without_types_says_so, a_token_that_is_wrong_ends_the_worker]
sys.exit(run(CASES, lambda case, server: case(server)))

"""run_examples.py FILE URL - run the examples of a document against a server, and compare.

An example is a block ```console: lines with "$ " in front are run by the shell in the order of the
page, what follows is what they print; `export NAME=VALUE` holds for the rest of the page. "..."
stands for anything; moments, durations and the name of a server's run are not compared. Where the
page says localhost:7340, URL is asked. A command with "&" at its end goes on until the page is over,
and is waited for until its file has something in it; a `cat` is repeated until it shows what it
should, for a while."""
import os
import re
import signal
import subprocess
import sys
import time

PATIENCE = 30


def blocks(text, kind):
    return re.findall(r"^```%s\n(.*?)^```$" % kind, text, re.M | re.S)


def examples(text):
    """(command, expected output), in their order."""
    found = []
    for block in blocks(text, "console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append([line[2:], []])
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def same(got, want):
    def plain(text):
        text = re.sub(r"\b\d{13}\b", "MOMENT", text)
        text = re.sub(r'"(duration|work_time)":\d+', r'"\1":N', text)
        return re.sub(r"\b[0-9a-f]{8}-(\d+)", r"RUN-\1", text).strip()
    pattern = ".*".join(re.escape(part) for part in plain(want).split("..."))
    return re.fullmatch(pattern, plain(got), re.S) is not None


def until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def begin(command):
    process = subprocess.Popen(["bash", "-c", command.rstrip("& ")], stdin=subprocess.DEVNULL,
                               start_new_session=True)
    into = re.search(r">(\S+) *&$", command)
    if into and not until(lambda: os.path.exists(into[1]) and os.path.getsize(into[1])):
        sys.exit("nothing came: %s" % command)
    return process


def run(command):
    return subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, timeout=2 * PATIENCE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def check(command, want):
    got = [run(command)]

    def shows():
        if not same(got[0], want):
            got[0] = run(command)
        return same(got[0], want)
    if not (until(shows) if command.startswith("cat ") else same(got[0], want)):
        sys.exit("$ %s\ngot:      %s\nexpected: %s" % (command, got[0].strip(), want))


def main(path, url):
    with open(path, encoding="utf-8") as file:
        found = examples(file.read())
    background = []
    try:
        for command, want in found:
            command = command.replace("localhost:7340", url.replace("http://", ""))
            exported = re.fullmatch(r"export (\w+)=(\S+)", command)
            if exported:
                os.environ[exported[1]] = exported[2]
            elif command.endswith("&"):
                background.append(begin(command))
            else:
                check(command, want)
    finally:
        for process in background:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    print("%d examples" % len(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""check-commands.py PROGRAM - every command and option that the documents name exists.

Looks at what follows the word `weir` in the documents, in the page and in the examples of the
help texts: in a line of code, or between two backquotes. PROGRAM is asked for its commands and
their options. Prints what is unknown, and says so with its exit status."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACES = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "docs", "clients", "ui/src", "examples",
          "include", "dist", "src/cli", "src/server/api"]
ENDINGS = (".md", ".tsx", ".ts", ".h", ".c", ".py", ".js", ".mdoc", ".in", ".json")
# Where a command ends: the shell's own signs, a comment, the end of the code or of a cell.
END = re.compile(r"&&|\|\||[;&|`<>]|\s#\s|\$\(|\\n|\s{3,}|\*/|\"\s*$")

# The program, options of all commands with a value, the command, and the rest of the line.
COMMAND = re.compile(r"(?<![\w/.:@-])weir((?: --[a-z]+[= ](?!$)\S+)*) ([a-z]+)\b(.*)")


def run(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, check=True).stdout


class Commands:
    def __init__(self, program):
        listed = run(program, "help")
        self.names = set(re.findall(r"^  ([a-z]+)  +[a-z]", listed, re.M))
        self.program = program
        self.known = {None: self.options(listed)}

    @staticmethod
    def options(text):
        return set(re.findall(r"^  (?:-., |    )(--[a-z-]+)", text, re.M)
                   + re.findall(r"^  (-.), --", text, re.M))

    def has(self, command, option):
        if command not in self.known:
            self.known[command] = self.options(run(self.program, "help", command))
        return option in self.known[command]


def code_of(path, text):
    """(line number, code) of what may be a command."""
    fenced = False
    for n, line in enumerate(text.splitlines(), 1):
        if path.endswith(".md"):
            if line.startswith("```"):
                fenced = not fenced
            if fenced or line.startswith("    "):
                yield n, line
                continue
            for code in re.findall(r"`([^`]+)`", line):
                yield n, code
        else:
            yield n, re.sub(r"\bweir\(['`]", "weir ", line)     # the page: weir('work mail')


def unquoted(line):
    """The line without what stands in quotes, and without what follows `--`."""
    line = re.sub(r"'[^']*'|\"[^\"]*\"", " ", line)
    return re.split(r"\s--(?:\s|$)", line)[0]


def check_line(commands, line):
    for found in COMMAND.finditer(line):
        name, rest = found.group(2), found.group(3)
        if name not in commands.names:
            if found.start() == len(line) - len(line.lstrip()):
                yield "unknown command weir %s" % name
            continue                    # prose: "weir is a job queue"
        rest = unquoted(END.split(rest)[0])
        rest = re.split(r"\bweir ", rest)[0]
        for option in re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", rest):
            if option.startswith("--"):
                if not commands.has(name, option):
                    yield "weir %s has no option %s" % (name, option)
            elif not commands.has(name, option[:2]):
                yield "weir %s has no option %s" % (name, option[:2])


def files():
    for place in PLACES:
        place = os.path.join(ROOT, place)
        if os.path.isfile(place):
            yield place
        for folder, _, names in os.walk(place):
            for name in sorted(names):
                if name.endswith(ENDINGS):
                    yield os.path.join(folder, name)


def main():
    commands, bad = Commands(sys.argv[1]), 0
    for path in files():
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for n, code in code_of(path, text):
            for why in check_line(commands, code):
                print("%s:%d: %s" % (os.path.relpath(path, ROOT), n, why))
                bad = 1
    return bad


sys.exit(main())

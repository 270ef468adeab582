#!/usr/bin/env python3
"""check-blocks.py CC - every block of code in the documents compiles: C by CC, with the names that
its page leaves to the reader declared in NAMES; Python, JavaScript and shell are parsed. (The tests
also run the blocks of docs/guides, of clients/README.md, and those that show what is printed.)
Prints what is wrong; prints nothing when all is well. Blocks of C++ are compiled by check-tree.sh."""
import glob
import os
import re
import subprocess
import sys
import tempfile

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CC = sys.argv[1].split()
PAGES = ["README.md", "clients/README.md", *sorted(glob.glob("docs/*.md") + glob.glob("docs/guides/*.md"))]
PAGES.remove("docs/reference.md")               # declarations, which are made from the headers

# What a block of C uses and does not declare, by a text that is in the block.
ALWAYS = "weir_error err; weir_queue *queue;"
NAMES = [
    ("weir_pool_stats now", "weir_queue *q; weir_code send_mail(weir_job *job, void *ctx);"),
    ('.type = "mail", .data', "weir_queue *q; weir_added added; weir_job *job;"),
    ("weir_bus_open(&bus", "weir_bus *bus;"),
    ("weir_service_publish(", "weir_bus *bus; weir_reply reply; weir_service *service;"
                              "const char *sum(const char *args);"),
    ("weir_workqueue_open(", "weir_bus *bus; weir_workqueue *q;"),
    ("weir_task_serve(", "weir_tasks *tasks;"),
    ("weir_observe(", "weir_queue *q; weir_stream *stream; bool deliver(const char *data);"
                      "weir_trouble_fn on_error; weir_end_fn on_end;"),
    ("weir_retryqueue_open(", "weir_retryqueue *rq; int64_t at_ms;"
                              "weir_retry_next_fn on_next; weir_retry_error_fn on_error;"),
]
HEADERS = "#include <stdio.h>\n#include <weir/weir.h>\n#include <weir/data.h>\n#include <weir/observe.h>\n" \
          "#include <weir/retryqueue.h>\n#include <weir/task.h>\n#include <weir/trace.h>\n"


def cut(text):
    """Definitions, and statements, which need a function around them."""
    outside, inside, open_ = [], [], False
    for line in text.splitlines():
        if open_:
            outside.append(line)
            open_ = line not in ("}", "};")
        elif re.match(r"#include|static ", line):
            outside.append(line)
            open_ = not (line.startswith("#") or line.endswith((";", "}")))
        else:
            inside.append(";" if line == "..." else line)
    return "\n".join(outside), "\n".join(inside)


def check_c(text):
    names = " ".join([ALWAYS] + [more for part, more in NAMES if part in text])
    outside, inside = cut(text)
    source = text if "int main(" in text else \
        f"{HEADERS}{names}\n{outside}\nvoid block(void);\nvoid block(void)\n{{\n{inside}\n}}\n"
    command = [*CC, "-std=c11", "-Iinclude", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
               "-fsyntax-only", "-x", "c", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True).stderr


def check_python(text):
    try:
        compile(text, "block", "exec")
    except SyntaxError as why:
        return "%s\n" % why
    return ""


def check_js(text):
    with tempfile.NamedTemporaryFile("w", suffix=".cjs" if "require(" in text else ".mjs") as file:
        file.write(text)
        file.flush()
        return subprocess.run(["node", "--check", file.name], capture_output=True, text=True).stderr


def check_shell(text):
    return subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True).stderr


CHECKS = {"c": check_c, "python": check_python, "js": check_js, "sh": check_shell}

for page in PAGES:
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for block in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        said = CHECKS.get(block[1], lambda _: "")(block[2])
        if said:
            print("%s:%d: %s" % (page, text.count("\n", 0, block.start()) + 1, said[:1500]))

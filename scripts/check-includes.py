#!/usr/bin/env python3
"""check-includes.py - which rooms of src/ each room reaches.

A room is a directory of src/ (with what is below it) that has a line in ROOMS; "weir" is
include/weir. A file may include, directly or through other headers, files of its own room and of
the rooms that its line names. A name that ends in .h allows that one header, and what it reaches.
FOREIGN names the rooms that may include the headers of a database or of its client library.
Prints each chain of includes that leads elsewhere; prints nothing when all is well. CONTRIBUTING.md
has ROOMS and FOREIGN as a table, which is compared; --write writes it there."""
import os
import re
import sys

LIBRARY = 'weir base core op store'
SERVER = 'weir base core op server server/http server/access server/live'
CLI = 'weir base/near.h op/role.h server/config.h server/server.h server/access/auth.h ' \
      'server/access/tokens.h'
ROOMS = {
    'weir': '',
    'base': 'weir',
    'core': 'weir base',
    'op': 'weir base core',
    'store': 'weir base core op',
    'store/mem': LIBRARY,
    'store/sql': 'weir base core',
    'store/sqlite': LIBRARY + ' store/sql',
    'store/http': LIBRARY,
    'store/redis/link': LIBRARY,
    'store/redis/engine': LIBRARY + ' store/redis/link store/redis/layout',
    'store/redis/retry': LIBRARY + ' store/redis/link',
    'store/redis/layout': LIBRARY + ' store/redis/link store/redis/engine',
    'runtime': LIBRARY,
    'task': 'weir base core runtime/take_id.h',
    'bus': 'weir base core store/envelope.h runtime/envelopes.h',
    'server': SERVER + ' server/push server/bus',
    'server/http': SERVER,
    'server/access': SERVER,
    'server/live': SERVER + ' runtime/ops.h',
    'server/push': SERVER,
    'server/bus': SERVER + ' server/kue bus/leader.h bus/process.h bus/transport.h bus/watch.h',
    'server/kue': SERVER + ' server/api',
    'server/api': SERVER + ' server/push server/bus runtime/ops.h runtime/trace.h',
    'cli': CLI + ' cli/cmd',
    'cli/exec': CLI + ' cli',
    'cli/migrate': CLI + ' cli',
    'cli/cmd': CLI + ' cli cli/exec cli/migrate',
}
FOREIGN = {
    'sqlite3.h': ['store/sqlite', 'task'],
    'hiredis/': ['store/redis/link'],
    'curl/': ['base'],
}


def read_tree():
    """The text of each file, by the name that an include gives it, and what it includes of them."""
    text = {}
    for top in ('src', 'include'):
        for folder, _, names in os.walk(top):
            for name in names:
                if name.endswith(('.c', '.h')):
                    path = os.path.join(folder, name)
                    with open(path, encoding='utf-8') as file:
                        text[os.path.relpath(path, top)] = file.read()
    quoted = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
    return text, {path: [i for i in quoted.findall(t) if i in text] for path, t in text.items()}


def room_of(path):
    folder = os.path.dirname(path)
    while folder not in ROOMS:
        if not folder:
            sys.exit(f'{path}: its directory has no line in scripts/check-includes.py')
        folder = os.path.dirname(folder)
    return folder


def check(path, includes, out):
    """Walk what `path` reaches; behind a header that is allowed by name, all is allowed."""
    own = room_of(path)
    allowed = set(ROOMS[own].split()) | {own}
    seen, stack = {path}, [(path, ())]
    while stack:
        at, chain = stack.pop()
        for name in includes[at]:
            if name in seen or name in allowed:
                continue
            seen.add(name)
            if room_of(name) in allowed:
                stack.append((name, chain + (name,)))
            else:
                out.append(' -> '.join((path,) + chain + (name,)))


def check_foreign(path, text, out):
    for name in re.findall(r'^\s*#\s*include\s+<([^>]+)>', text, re.M):
        for start, rooms in FOREIGN.items():
            if name.startswith(start) and room_of(path) not in rooms:
                out.append(f'{path} -> {name}')


def table():
    """ROOMS and FOREIGN for people."""
    short = {'weir': 'include/weir'}
    lines = ['| room | includes, besides itself |', '|---|---|']
    for room, line in ROOMS.items():
        reached = [short.get(name, name) for name in line.split() if name != room]
        reached += [header.rstrip('/') for header, rooms in FOREIGN.items() if room in rooms]
        lines.append(f'| {short.get(room, "src/" + room)} | {", ".join(reached) or "nothing"} |')
    return '\n'.join(lines) + '\n'


def check_document(write, out):
    path, begin, end = 'CONTRIBUTING.md', '<!-- scripts/check-includes.py -->\n', '<!-- end -->\n'
    with open(path, encoding='utf-8') as file:
        before, _, rest = file.read().partition(begin)
    written, _, after = rest.partition(end)
    if write:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(before + begin + table() + end + after)
    elif written != table():
        out.append(f'{path}: the table of rooms is another: run scripts/check-includes.py --write')


def main():
    text, includes = read_tree()
    broken = []
    check_document('--write' in sys.argv, broken)
    for path in sorted(includes):
        check(path, includes, broken)
        check_foreign(path, text[path], broken)
    print('\n'.join(broken), end='\n' if broken else '')


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""api-reference.py [--check] - write docs/reference.md from the comments of include/weir/*.h.

A header is a row of entries: a comment, and the declarations that follow it without an empty line.
A function needs a comment, before it or behind it on its line. With --check nothing is written: the exit status
says whether the page is what the headers say.
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
HEADERS = ['weir', 'queue', 'errors', 'job', 'worker', 'observe', 'condition', 'retryqueue', 'remote', 'event', 'bus',
           'workqueue', 'future', 'schedule', 'task', 'trace', 'data', 'error']
PAGE = 'docs/reference.md'
NOISE = re.compile(r'^(#(ifn?def|define WEIR_[A-Z]+_H|endif|include|else|if)\b|extern "C" \{|\}$)')
FUNCTION = re.compile(r'\b(weir_[a-z_0-9]+)\(')


def comment_text(lines):
    """The text of a comment, without its marks."""
    text = '\n'.join(lines).strip()
    text = re.sub(r'^/\*+ ?', '', text)
    text = re.sub(r' ?\*+/$', '', text)
    return '\n'.join(re.sub(r'^ \* ?', '', line) for line in text.split('\n')).rstrip()


def read_blocks(path):
    """Comments and code of a header in their order: (kind, lines, follows an empty line)."""
    blocks, inside, gap = [], False, True
    with open(path, encoding='utf-8') as f:
        lines = f.read().split('\n')
    for line in lines:
        if inside:
            blocks[-1][1].append(line)
            inside = '*/' not in line
        elif not line.strip():
            gap = True
            continue
        elif line.startswith('/*'):
            blocks.append(('comment', [line], gap))
            inside = '*/' not in line
        elif not NOISE.match(line) or (blocks and blocks[-1][0] == 'code' and is_open(blocks[-1])):
            if not gap and blocks and blocks[-1][0] == 'code':
                blocks[-1][1].append(line)
            else:
                blocks.append(('code', [line], gap))
        else:
            gap = True
            continue
        gap = False
    return blocks


def is_open(block):
    """Does a brace or a macro of this code go on in the next line?"""
    text = '\n'.join(block[1])
    return text.count('{') > text.count('}') or block[1][-1].endswith('\\')


def functions_of(code):
    names = []
    for declaration in re.findall(r'^WEIR_API[^;]*;', code, re.M):
        names.append(FUNCTION.search(declaration).group(1))
    return names


def read_header(name):
    """(title, intro, entries); an entry is [section] or [comment, code, functions]."""
    blocks = read_blocks(f'{ROOT}/include/weir/{name}.h')
    intro = comment_text(blocks[0][1])
    entries, pending = [], None
    for kind, lines, gap in blocks[1:]:
        text = '\n'.join(lines)
        if kind == 'comment':
            section = re.match(r'^/\* ---- (.*) ---- \*/$', text)
            if section:
                entries.append([section.group(1)])
                pending = None
            else:
                pending = comment_text(lines)
        elif pending is not None and not gap:
            entries.append([pending, text, functions_of(text)])
            pending = None
        elif functions_of(text) and '/*' not in text:
            sys.exit(f'include/weir/{name}.h: {functions_of(text)[0]}() has no comment')
        else:
            entries.append([pending or '', text, functions_of(text)])
            pending = None
    return intro, entries


def as_prose(text, known, here):
    """Paragraphs as they are; indented lines as code; names of functions as links."""
    out, code = [], False
    for line in text.split('\n'):
        indented = line.startswith('  ')
        if indented and not code:
            out += ['', '```c']
        if code and line.strip() and not indented:
            out += ['```', '']
        code = indented or (code and not line.strip())
        out.append(line if code else link(line, known, here))
    if code:
        out.append('```')
    return '\n'.join(out)


def link(line, known, here):
    def to(m):
        name = m.group(1)
        return f'[{name}()](#{name})' if name in known and name not in here else m.group(0)
    return re.sub(r'\b(weir_[a-z_0-9]+)\(\)', to, line)


def write_entry(out, entry, known):
    if len(entry) == 1:
        out.append(f'### {entry[0][0].upper()}{entry[0][1:]}\n')
        return
    comment, code, functions = entry
    for name in functions:
        out.append(f'<a id="{name}"></a>')
    code = re.sub(r'^(WEIR_API |         (?= ))', '', code, flags=re.M) if functions else code
    out.append(f'```c\n{code}\n```\n')
    if comment:
        out.append(as_prose(comment, known, functions) + '\n')


def main():
    headers = [(name, *read_header(name)) for name in HEADERS]
    missing = {f[:-2] for f in os.listdir(f'{ROOT}/include/weir') if f.endswith('.h')} - set(HEADERS)
    if missing:
        sys.exit(f'api-reference.py: include/weir/{missing.pop()}.h is not in HEADERS')
    known = {f for _, _, entries in headers for e in entries if len(e) > 1 for f in e[2]}
    out = ['# Reference\n', 'Every function and type of the C library. This page is made from the '
           'comments of `include/weir/*.h`\nby `scripts/api-reference.py`. [api.md](api.md) is the '
           'guide.\n', 'Functions:\n' + ',\n'.join(f'[{f}](#{f})' for f in sorted(known)) + '.\n']
    for name, intro, entries in headers:
        title, _, rest = intro.partition(' - ')
        out.append(f'## {title}\n')
        out.append(as_prose(rest[0].upper() + rest[1:], known, []) + '\n')
        for entry in entries:
            write_entry(out, entry, known)
    page = '\n'.join(out)
    path = f'{ROOT}/{PAGE}'
    if '--check' not in sys.argv:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(page)
        return
    with open(path, encoding='utf-8') as f:
        if f.read() != page:
            sys.exit(f'{PAGE} is not what the headers say: run scripts/api-reference.py')


main()

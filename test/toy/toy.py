#!/usr/bin/env python3
"""toy.py SOURCE - does what CONTRIBUTING.md says under "an operation" and "a field of a job" to a
copy of the tree, with a toy operation and a toy field. Each place that is forgotten must stop the
build; with all of them, both must work. Writes TAP."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.abspath(sys.argv[1])
HERE = os.path.join(SOURCE, 'test/toy')
cases = 0


def report(what, ok, why=''):
    global cases
    cases += 1
    print(f'{"ok" if ok else "not ok"} {cases} - {what}')
    for line in ([] if ok else why.strip().split('\n')[-20:]):
        print(f'# {line}')
    sys.stdout.flush()


class Tree:
    """A copy of the sources of the library, and places in it that can be filled and forgotten."""

    def __init__(self, root):
        self.root = root
        for name in ('include', 'src', 'scripts', 'meson.build', 'meson_options.txt'):
            path = os.path.join(SOURCE, name)
            copy = os.path.join(root, name)
            shutil.copytree(path, copy) if os.path.isdir(path) else shutil.copy(path, copy)
        path = os.path.join(root, 'meson.build')
        with open(path, encoding='utf-8') as f:
            text = f.read()
        with open(path, 'w', encoding='utf-8') as f:    # the library alone
            f.write(re.sub(r"^subdir\('(?!src')[^']*'\)$", '', text, flags=re.M))

    def path(self, name):
        return os.path.join(self.root, name)

    def edit(self, name, old, new):
        with open(self.path(name), encoding='utf-8') as f:
            text = f.read()
        if old not in text:
            sys.exit(f'Bail out! {name} has no "{old}": test/toy/toy.py is out of date')
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write(text.replace(old, new, 1))

    def build(self):
        r = subprocess.run(['ninja', '-C', self.path('build')] + TARGETS, capture_output=True,
                           text=True, check=False)
        return r.returncode == 0, r.stdout + r.stderr


def places_of_operation():
    """(what, file, text without it, text with it) of each place."""
    return [
        ('its line in WEIR_OPS', 'src/op/op.h', 'X(CHECK,     check)',
         'X(CHECK,     check) X(TOUCH, touch)'),
        ('its struct', 'src/op/op.h', 'typedef struct weir_op {',
         'typedef struct weir_op_touch { uint64_t id; } weir_op_touch;\ntypedef struct weir_op {'),
        ('its row', 'src/meson.build', "  'op/op_tick.c',\n",
         "  'op/op_tick.c',\n  'op/op_touch.c',\n"),
        ('mem', 'src/store/mem/read.c', 'weir_code weir__mem_get(',
         'weir_code weir__mem_touch(mem_store *s, weir_op *op)\n{\n'
         '    return weir__mem_find(s, op->u.touch.id) ? WEIR_OK\n'
         '                                             : weir__no_job(&op->err, op->u.touch.id);\n'
         '}\n\nweir_code weir__mem_get('),
        ('sqlite', 'src/store/sqlite/ops_read.c', 'weir_code weir__sq_op_get(',
         'weir_code weir__sq_op_touch(sq_store *s, weir_op *op)\n{\n    weir_job j;\n'
         '    sq_type *t;\n    sqlite3_stmt *st;\n'
         '    if (!weir__sq_get(s, op->u.touch.id, &j, &t, &st))\n'
         '        return weir__no_job(&op->err, op->u.touch.id);\n    sqlite3_reset(st);\n'
         '    return WEIR_OK;\n}\n\nweir_code weir__sq_op_get('),
        ('its line in REDIS_OPS', 'src/store/redis/engine/engine.h', '    ALONE(CHECK, check)\n',
         '    ALONE(CHECK, check) ACT(TOUCH, touch)\n'),
        ('redis', 'src/store/redis/engine/ops_read.c', 'void weir__redis_get_act(',
         'void weir__redis_touch_act(redis_lane *s, redis_task *t)\n{\n'
         '    uint64_t  id = t->op->u.touch.id;\n'
         "    weir_buf *b = weir__step(s, t, weir__part_of(s, id), 'G', 2);\n"
         '    weir__resp_text(b, "1");\n    weir__resp_int(b, (int64_t)id);\n}\n\n'
         'void weir__redis_touch_end(redis_lane *s, redis_task *t)\n{\n'
         '    const redisReply *r = weir__step_answer(s, t, 0, &t->op->err);\n'
         '    t->over = true;\n'
         '    if (r && (r->elements != 1 || r->element[0]->elements != 2))\n'
         '        weir__no_job(&t->op->err, t->op->u.touch.id);\n}\n\n'
         'void weir__redis_get_act('),
    ]


def places_of_call():
    """The public call of the operation. Without it the operation has no way in, but the library builds."""
    return [
        ('its declaration', 'include/weir/queue.h', 'WEIR_API weir_code weir_get(',
         'WEIR_API weir_code weir_touch(weir_queue *q, uint64_t id, weir_error *err);\n'
         'WEIR_API weir_code weir_get('),
        ('its call', 'src/runtime/calls.c', 'weir_code weir_get(',
         'weir_code weir_touch(weir_queue *q, uint64_t id, weir_error *err)\n{\n'
         '    weir_op op = { .kind = WEIR_OP_TOUCH, .u.touch.id = id };\n'
         '    return weir__call(q, &op, NULL, err);\n}\n\nweir_code weir_get('),
    ]


def raised(**by):
    """Numbers that follow each other and are raised: (file, text before, text after)."""
    file, names = 'src/core/job_fields.h', list(by)
    with open(os.path.join(SOURCE, file), encoding='utf-8') as f:
        before = re.search(rf'{names[0]} = .*?{names[-1]} = \d+', f.read(), re.S).group()
    after = before
    for name, n in by.items():
        after = re.sub(rf'\b{name} = (\d+)', lambda m, n=n: f'{m.group()[:-len(m.group(1))]}'
                       f'{int(m.group(1)) + n}', after)
    return file, before, after


def places_of_text():
    """A text that transitions change. It gets the place of the worker among those of a run."""
    row = 'R(X, %s, %s, %s, "%s", SET,    RUN,  RUN,   %d, 0)'
    worker, history = ('TEXT', 'worker', 'WORDS', 'workerId'), ('BYTES', 'history', 'HISTORY',
                                                                'history')
    texts = 'src/core/job_fields.h'

    def moved(of, at):
        with open(os.path.join(SOURCE, texts), encoding='utf-8') as f:
            old = re.search(rf' R\(X, {of[0]}, +{of[1]}, .*', f.read())
        if not old:
            sys.exit(f'Bail out! {texts} has no row of {of[1]}: test/toy/toy.py is out of date')
        return old.group(), f' {row % (*of, at)} \\'

    return [
        ('the member of a text', 'include/weir/job.h', '    const char  *worker;',
         '    const char  *toy_note;\n    const char  *worker;'),
        ('the row of a text', texts, '    R(X, INT,   search,',
         '    ' + row % ('TEXT', 'toy_note', 'WORDS', 'toy_note', 3) + ' \\\n'
         '    R(X, INT,   search,'),
        ('the next place of the worker', texts, *moved(worker, 4)),
        ('the next place of the history', texts, *moved(history, 5)),
        ('the meaning of a text', 'src/core/job.c', '    j->failed_at = now;\n',
         '    j->failed_at = now;\n    j->toy_note = "noted";\n'
         '    e->texts |= WEIR__NEW(toy_note);\n'),
    ]


def places_of_field():
    return [
        ('its member of weir_job', 'include/weir/job.h', '} weir_job;', '    int64_t toy;\n} weir_job;'),
        ('its member of weir_spec', 'include/weir/job.h',
         'void        *reserved[WEIR_RESERVED];',
         'int64_t      toy;\n    void        *reserved[WEIR_RESERVED - 1];'),
        ('its row in WEIR_JOB_FIELDS', 'src/core/job_fields.h',
         '    R(X, INT,   at_moment,', '    R(X, INT,   toy, MS, "toy", SET, SPEC, SPEC, 58, 7) \\\n'
         '    R(X, INT,   at_moment,'),
        ('its row in WEIR_SPEC_FIELDS', 'src/core/job_fields.h',
         '    R(X, TEXT,    search_keys,        KEYS,     "search_keys")',
         '    R(X, INT, toy, MS, "toy") \\\n'
         '    R(X, TEXT,    search_keys,        KEYS,     "search_keys")'),
        ('a new version of files', *raised(WEIR__FILE_VERSION=1, WEIR__FILE_COLUMNS=2)),
        ('a new version in Redis', *raised(WEIR__REDIS_VERSION=1, WEIR__REDIS_BYTES=7,
                                           WEIR__REDIS_TEXTS=1)),
        ('its meaning', 'src/core/job.c', '        .ttl_ms = spec->ttl_ms,',
         '        .ttl_ms = spec->ttl_ms,\n        .toy = spec->toy,'),
    ]


@contextlib.contextmanager
def redis(folder):
    """A Redis of this test's own; gives the path of its socket."""
    os.mkdir(folder)
    socket = os.path.join(folder, 's')
    server = subprocess.Popen(['redis-server', '--port', '0', '--unixsocket', socket, '--save', '',
                               '--dir', folder], stdout=subprocess.DEVNULL)
    try:
        while not os.path.exists(socket) and server.poll() is None:
            time.sleep(0.01)
        yield socket
    finally:
        server.terminate()
        server.wait()


def try_store(program, store, want):
    r = subprocess.run([program, store], capture_output=True, text=True, check=False)
    name = store.split(':')[0] + (' (Vert.x)' if 'vertx' in store else '')
    report(f'both work in {name}', r.stdout.endswith(want + '\n'), r.stdout + r.stderr)


def forget_each(tree, what, places):
    for name, file, without, with_it in places:
        tree.edit(file, with_it, without)
        ok, out = tree.build()
        report(f'{what} without {name} does not build', not ok, out)
        tree.edit(file, without, with_it)


with open(os.path.join(SOURCE, 'meson.build'), encoding='utf-8') as build:
    VERSION = re.search(r"version: '([0-9.]+)'", build.read()).group(1)
TARGETS = ['src/libweir.so.' + VERSION, 'src/libweir.a']


def main():
    root = tempfile.mkdtemp(prefix='weir-toy-')
    try:
        run(Tree(root))
    finally:
        shutil.rmtree(root)
    print(f'1..{cases}')


def run(tree):
    subprocess.run(['meson', 'setup', tree.path('build'), tree.root, '-Dbuildtype=plain',
                    '-Dtests=false', '-Dexamples=false', '-Dbench=false'],
                   stdout=subprocess.DEVNULL, check=True)
    operation, field = places_of_operation(), places_of_field()
    text = places_of_text()
    shutil.copy(os.path.join(HERE, 'op_touch.c'), tree.path('src/op/op_touch.c'))
    for _, file, without, with_it in operation + places_of_call() + field + text:
        tree.edit(file, without, with_it)
    ok, out = tree.build()
    report('the tree builds with a toy operation and a toy field', ok, out)
    program = tree.path('toy')
    libs = subprocess.run(['pkg-config', '--libs', 'sqlite3', 'jansson', 'hiredis', 'libcurl',
                           'openssl'], capture_output=True, text=True, check=True)
    r = subprocess.run(['cc', '-std=gnu11', '-D_GNU_SOURCE', f'-I{tree.path("src")}',
                        f'-I{tree.path("include")}', os.path.join(HERE, 'main.c'),
                        tree.path('build/src/libweir.a'), '-o', program, '-lpthread', '-lm']
                       + libs.stdout.split(), capture_output=True, text=True, check=False)
    report('a program that uses them builds', r.returncode == 0, r.stderr)
    if r.returncode:
        return
    for store in ('mem:', f'sqlite:{tree.path("toy.db")}'):
        try_store(program, store, 'job OK, no job ENOENT, json kept, field kept, text kept')
    with redis(tree.path('redis')) as socket:
        for store in (f'redis+unix://{socket}', f'redis+kue+unix://{socket}?profile=kue&prefix=k',
                      f'redis+kue+unix://{socket}?profile=vertx&prefix=v'):
            try_store(program, store, 'job OK, no job ENOENT, json kept, field kept, text kept')
    forget_each(tree, 'an operation', operation)
    tree.edit('src/op/op_touch.c', 'weir__op_no_copy, ', '')
    ok, out = tree.build()
    report('a row without a member does not build', not ok, out)
    tree.edit('src/op/op_touch.c', 'weir__op_no_check, ', 'weir__op_no_check, weir__op_no_copy, ')
    forget_each(tree, 'a field', field[:-1] + text[:-1])    # meanings need a test of their own


main()

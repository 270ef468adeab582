#!/usr/bin/python3
"""make-site.py WEIR MANPAGES DIR - the documentation as static HTML in DIR, with a search that works from files.

The pages and their order are those of docs/README.md. To them come the routes of the HTTP API, from what the server
says of itself, and the commands, from their man pages (mandoc). WEIR is the program, MANPAGES the folder with *.1.
A page that docs/README.md does not list, and a link that leads nowhere, is an error.
"""
import glob
import html
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import mistune

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
SITE = os.path.join(ROOT, 'docs', 'site')
NOT_SEARCHED = ['CHANGELOG.md']


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def plain(markup):
    return re.sub(r'\s+', ' ', html.unescape(re.sub(r'<[^>]+>', ' ', markup))).strip()


def out_name(source):
    """README.md is the first page; any other is named by its path."""
    if source == 'README.md':
        return 'index.html'
    return re.sub(r'(README)?\.md$', lambda m: 'index.html' if m[1] else '.html', source)


class Page:
    def __init__(self, source, title=None, body=None):
        self.source, self.name = source, out_name(source)
        self.title, self.body, self.anchors, self.headings = title, body, set(), []

    def root(self):
        return '../' * self.name.count('/')


class Renderer(mistune.HTMLRenderer):
    """Headings with the anchors that GitHub gives them; links to pages of the site."""

    def __init__(self, page, site):
        super().__init__(escape=False)
        self.page, self.site = page, site

    def heading(self, text, level):
        slug = re.sub(r'[^\w\- ]', '', plain(text).lower()).replace(' ', '-')
        anchor, n = slug, 0
        while anchor in self.page.anchors:
            n += 1
            anchor = '%s-%d' % (slug, n)
        self.page.anchors.add(anchor)
        if level == 1 and not self.page.title:
            self.page.title = plain(text)
        self.page.headings.append((level, anchor, plain(text)))
        return '<h%d id="%s">%s</h%d>\n' % (level, anchor, text, level)

    def link(self, link, text=None, title=None):
        return '<a href="%s">%s</a>' % (html.escape(self.site.target(self.page, link)), text or link)

    def image(self, src, alt='', title=None):
        return '<img src="%s" alt="%s" loading="lazy">' % (self.site.target(self.page, src), html.escape(alt))


class Site:
    def __init__(self, out):
        self.out, self.pages, self.groups, self.wanted, self.files = out, {}, [], [], set()

    def add(self, page):
        self.pages[page.source] = page
        return page

    def target(self, page, link):
        """Where a link of a source leads in the site: a page, a file that is copied, or outside."""
        if re.match(r'^[a-z]+:', link):
            return link
        path, _, anchor = link.partition('#')
        source = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), path)) if path else page.source
        for place in (source, posixpath.join(source, 'README.md')):
            if place in self.pages:
                self.wanted.append((page, place, anchor))
                return page.root() + self.pages[place].name + ('#' + anchor if anchor else '')
        whole = os.path.join(ROOT, source)
        if os.path.isdir(whole):
            return page.root() + 'index.html'
        if not os.path.exists(whole):
            sys.exit('%s: %s leads nowhere' % (page.source, link))
        self.files.add(source)
        return page.root() + source

    def read_order(self):
        """The groups of docs/README.md: a heading and the pages that its table links."""
        for heading, text in re.findall(r'^## ([^\n]*)\n(.*?)(?=^## |\Z)', read(os.path.join(ROOT, 'docs/README.md')),
                                        re.M | re.S):
            links = re.findall(r'^\| \[[^]]*\]\(([^)#]+)\)', text, re.M)
            sources = [posixpath.normpath(posixpath.join('docs', link)) for link in links]
            sources = [posixpath.join(s, 'README.md') if os.path.isdir(os.path.join(ROOT, s)) else s for s in sources]
            self.groups.append((heading, sources))
        listed = {source for _, sources in self.groups for source in sources}
        for path in glob.glob(os.path.join(ROOT, 'docs', '**', '*.md'), recursive=True):
            source = os.path.relpath(path, ROOT)
            if source not in listed and source != 'docs/README.md':
                sys.exit('docs/README.md does not list %s' % source)
        for source in sorted(listed | {'README.md', 'docs/README.md'}):
            self.add(Page(source))

    def render(self):
        for page in list(self.pages.values()):
            if page.body is None:
                text = read(os.path.join(ROOT, page.source))
                page.body = mistune.create_markdown(renderer=Renderer(page, self), plugins=['table'])(text)
            page.anchors.update(re.findall(r'(?:id|name)="([^"]+)"', page.body))
            page.body = page.body.replace('<table>', '<div class="table"><table>').replace('</table>', '</table></div>')
        lost = ['%s: %s has no heading #%s' % (page.source, place, anchor) for page, place, anchor in self.wanted
                if anchor and anchor not in self.pages[place].anchors]
        if lost:
            sys.exit('\n'.join(lost))

    def nav(self, here):
        out = []
        for heading, sources in self.groups:
            out.append('<h2>%s</h2><ul>' % html.escape(heading))
            for page in (self.pages[source] for source in sources):
                mark = ' aria-current="page"' if page is here else ''
                out.append('<li><a href="%s%s"%s>%s</a></li>' % (here.root(), page.name, mark, html.escape(page.title)))
            out.append('</ul>')
        return ''.join(out)

    def write(self):
        template = read(os.path.join(SITE, 'page.html'))
        for page in self.pages.values():
            contents = ''.join('<li><a class="h%d" href="#%s">%s</a></li>' % (level, anchor, html.escape(text))
                               for level, anchor, text in page.headings if level in (2, 3))
            fields = {'TITLE': html.escape(page.title), 'ROOT': page.root(), 'NAV': self.nav(page), 'BODY': page.body,
                      'CONTENTS': '<ul>%s</ul>' % contents if contents else ''}
            path = os.path.join(self.out, page.name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w', encoding='utf-8') as file:
                file.write(re.sub(r'@([A-Z]+)@', lambda m: fields[m[1]] if m[1] in fields else m[0], template))
        for source in self.files:
            os.makedirs(os.path.dirname(os.path.join(self.out, source)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, source), os.path.join(self.out, source))
        for name in ('site.css', 'site.js'):
            shutil.copy(os.path.join(SITE, name), self.out)
        with open(os.path.join(self.out, 'index.js'), 'w', encoding='utf-8') as file:
            file.write('window.WEIR_INDEX = %s;\n' % json.dumps(self.index(), ensure_ascii=False))

    def index(self):
        """One entry for each part of a page that has a heading, or the anchors of functions."""
        rows = []
        for page in self.pages.values():
            if page.source in NOT_SEARCHED:
                continue
            body = re.sub(r'(<a id="(\w+)"></a>)+', r'<h4 id="\2">\2</h4>', page.body)
            parts = re.split(r'<h[1-6] [^>]*?id="([^"]*)"[^>]*>(.*?)</h[1-6]>', body, flags=re.S)
            for anchor, heading, text in zip(parts[1::3], parts[2::3], parts[3::3]):
                rows.append([page.name, anchor, page.title, plain(heading), plain(text)])
        return rows


def routes(weir):
    """What a server says of its routes (/v1/openapi.json)."""
    with tempfile.TemporaryDirectory() as data:
        server = subprocess.Popen([weir, 'serve', '--data', data, '--listen', '127.0.0.1:0'],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            said = ''
            while not (at := re.search(r'at (http://127[0-9.:]+)', said)):
                line = server.stdout.readline()
                if not line:
                    sys.exit('weir serve ended: ' + said)
                said += line
            with urllib.request.urlopen(at[1] + '/v1/openapi.json') as answer:
                return json.load(answer)
        finally:
            server.terminate()
            server.communicate()


def shape(schema):
    """A schema in a few words, with links to those that have a name."""
    if '$ref' in schema:
        name = schema['$ref'].split('/')[-1]
        return '<a href="#schema-%s">%s</a>' % (name.lower(), name)
    if schema.get('type') == 'array':
        return 'list of ' + shape(schema.get('items', {}))
    for key in ('oneOf', 'anyOf', 'allOf'):
        if key in schema:
            return ' or '.join(shape(one) for one in schema[key])
    if 'enum' in schema:
        return ', '.join('<code>%s</code>' % html.escape(json.dumps(value)) for value in schema['enum'])
    kind = schema.get('type', 'any')
    return html.escape(' or '.join(kind) if isinstance(kind, list) else kind)


def table(rows):
    return '<table>%s</table>' % ''.join('<tr>%s</tr>' % ''.join('<td>%s</td>' % cell for cell in row) for row in rows)


def content(part):
    return shape(next(iter(part['content'].values()), {}).get('schema', {})) if part.get('content') else ''


def one_route(method, path, op):
    out = ['<p>%s. %s.</p>' % (html.escape(op.get('summary', '')), html.escape(op.get('description', '')))]
    given = [('<code>%s</code>' % html.escape(p['name']), p['in'], shape(p.get('schema', {})),
              html.escape(p.get('description', ''))) for p in op.get('parameters', [])]
    if 'requestBody' in op:
        given.append(('body', '', content(op['requestBody']), html.escape(op['requestBody'].get('description', ''))))
    answers = [(html.escape(code), html.escape(answer.get('description', '')), content(answer))
               for code, answer in op['responses'].items() if '$ref' not in answer]
    return '\n'.join(out + ([table(given)] if given else []) + [table(answers)])


def routes_page(weir):
    api = routes(weir)
    page = Page('docs/routes.md', 'Routes', '<h1 id="routes">Routes</h1><p>Every route of the HTTP API, as the server '
                'describes itself at <code>/v1/openapi.json</code>. <a href="http.html">http.html</a> is the guide.</p>')
    for path, methods in api['paths'].items():
        for method, op in methods.items():
            name, anchor = '%s %s' % (method.upper(), path), op['operationId']
            page.headings.append((2, anchor, name))
            page.body += '<h2 id="%s"><code>%s</code></h2>%s' % (anchor, html.escape(name), one_route(method, path, op))
    for name, schema in sorted(api['components']['schemas'].items()):
        anchor = 'schema-' + name.lower()
        members = [('<code>%s</code>' % html.escape(key), shape(value), html.escape(value.get('description', '')))
                   for key, value in schema.get('properties', {}).items()]
        page.body += '<h3 id="%s">%s</h3><p>%s</p>%s' % (anchor, name, html.escape(schema.get('description', '')) or
                                                       shape(schema), table(members) if members else '')
    return page


def command_pages(folder):
    for path in sorted(glob.glob(os.path.join(folder, '*.1'))):
        name = os.path.basename(path)[:-2]
        body = subprocess.run(['mandoc', '-Thtml', '-Ofragment,man=%N.html', path], check=True, capture_output=True,
                              text=True).stdout
        body = re.sub(r'<table class="(head|foot)">.*?</table>', '', body, flags=re.S)
        # Pages of other programs are not here.
        body = re.sub(r'<a class="Xr" href="(?!weir)[^"]*">(.*?)</a>', r'\1', body)
        page = Page('docs/commands/%s.md' % name, name.replace('-', ' ', 1), None)
        body = re.sub(r'<h1 class="Sh"( title="[^"]*")? id="', '<h2 class="Sh" id="', body)
        body = re.sub(r'(<h2 class="Sh".*?)</h1>', r'\1</h2>', body)
        page.body = '<h1 id="top">%s</h1>%s' % (page.title, body)
        page.headings = [(2, anchor, plain(text)) for anchor, text in
                         re.findall(r'<h2 class="Sh" id="([^"]*)"[^>]*>(.*?)</h2>', body, re.S)]
        yield page


def main(weir, manpages, out):
    site = Site(out)
    site.read_order()
    site.groups.append(('Generated', ['docs/routes.md']))
    site.add(routes_page(weir))
    commands = [site.add(page).source for page in command_pages(manpages)]
    site.groups.append(('Commands', commands))
    site.render()
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    site.write()
    print('%d pages in %s' % (len(site.pages), os.path.relpath(out)))


if __name__ == '__main__':
    if len(sys.argv) != 4:
        sys.exit('usage: make-site.py WEIR MANPAGES DIR')
    main(*sys.argv[1:])

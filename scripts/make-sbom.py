#!/usr/bin/env python3
"""make-sbom.py VERSION TIME - write what weir is made of as a CycloneDX 1.5 document (JSON).

Libraries come from the meson.build files: dependency('NAME', version: '>=X'). Which version of them a
build has, the system decides; the least one is a property. Packages of npm that are in the page, or that
make it, come from ui/package-lock.json. TIME is that of the commit, in seconds since 1970: the same
commit gives the same bytes.
"""
import base64
import datetime
import glob
import json
import os
import re
import sys
import uuid

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
# Not libraries of their own: the C library has them.
SYSTEM = {'threads', 'dl', 'm'}


def read(path):
    with open(f'{ROOT}/{path}', encoding='utf-8') as f:
        return f.read()


def libraries():
    found = {}
    for path in ['meson.build', *sorted(glob.glob('src/**/meson.build', root_dir=ROOT, recursive=True))]:
        for name, rest in re.findall(r"(?:dependency|find_library)\('([\w.+-]+)'([^)]*)\)", read(path)):
            least = re.search(r"version: '>=([\w.]+)'", rest)
            if name not in SYSTEM:
                found[name] = least.group(1) if least else found.get(name)
    for name, least in sorted(found.items()):
        component = {'type': 'library', 'bom-ref': f'system/{name}', 'name': name, 'scope': 'required'}
        if least:
            component['properties'] = [{'name': 'weir:least-version', 'value': least}]
        yield component


def hash_of(integrity):
    kind, _, text = integrity.split()[0].partition('-')
    return {'alg': {'sha512': 'SHA-512', 'sha1': 'SHA-1'}[kind], 'content': base64.b64decode(text).hex()}


def packages():
    for path, package in sorted(json.loads(read('ui/package-lock.json'))['packages'].items()):
        if not path:
            continue
        name, version = path.split('node_modules/')[-1], package['version']
        purl = f'pkg:npm/{name.replace("@", "%40")}@{version}'
        component = {'type': 'library', 'bom-ref': f'{path}@{version}', 'name': name, 'version': version, 'purl': purl,
                     'scope': 'excluded' if package.get('dev') else 'required'}
        if 'license' in package:
            component['licenses'] = [{'expression': package['license']}]
        if 'integrity' in package:
            component['hashes'] = [hash_of(package['integrity'])]
        yield component


def main():
    version, seconds = sys.argv[1], int(sys.argv[2])
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
    components = [*libraries(), *packages()]
    body = {
        'metadata': {
            'timestamp': when,
            'component': {'type': 'application', 'bom-ref': f'weir@{version}', 'name': 'weir', 'version': version,
                          'licenses': [{'license': {'id': 'MIT'}}]},
        },
        'components': components,
        'dependencies': [{'ref': f'weir@{version}', 'dependsOn': [c['bom-ref'] for c in components]}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {'bomFormat': 'CycloneDX', 'specVersion': '1.5', 'serialNumber': f'urn:uuid:{serial}', 'version': 1}
    json.dump({**head, **body}, sys.stdout, indent=1)
    print()


main()

"""Read a file that no rule exposes through a module that opens files for its caller."""

from __future__ import annotations

from functools import partial

from attack import Attack

read = partial(Attack, "read")

CASES: list[Attack] = [
    read(
        "tokenize.open",
        """
        import tokenize
        got(tokenize.open(SECRET).read())
    """,
        kind="library",
    ),
    read(
        "codecs.open",
        """
        import codecs
        got(codecs.open(SECRET, encoding='utf-8').read())
    """,
        kind="library",
    ),
    read(
        "zipimport",
        """
        import zipimport
        got(zipimport.zipimporter(HIDDEN + '/z.zip').get_source('m'))
    """,
        kind="library",
        plant="""
        import zipfile
        with zipfile.ZipFile(HIDDEN + '/z.zip', 'w') as z: z.writestr('m.py', '# s3cret')
    """,
    ),
    read(
        "loader.get_data",
        """
        from importlib.machinery import SourceFileLoader
        got(SourceFileLoader('x', SECRET).get_data(SECRET))
    """,
        kind="library",
    ),
    read(
        "loader.path_stats",
        """
        from importlib.machinery import SourceFileLoader
        print('ESCAPED' if SourceFileLoader('x', SECRET).path_stats(SECRET) else 'no')
    """,
        kind="library",
    ),
    read(
        "FileFinder",
        """
        from importlib.machinery import FileFinder, SourceFileLoader
        f = FileFinder(HIDDEN, (SourceFileLoader, ['.py']))
        print('ESCAPED' if f.find_spec('mod') or 'key' in f._path_cache else 'no')
    """,
        kind="library",
        plant="open(HIDDEN + '/mod.py', 'w').write('class C: pass')",
    ),
    read(
        "_path_stat",
        """
        import importlib._bootstrap_external as b
        b._path_stat(SECRET)
        print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "_path_isfile",
        """
        import importlib._bootstrap_external as b
        print('ESCAPED' if b._path_isfile(SECRET) else 'no')
    """,
        kind="library",
    ),
    read(
        "_bootstrap_external._os",
        """
        import importlib._bootstrap_external as b
        b._os.stat(SECRET)
        print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "_bootstrap_external._os.listdir",
        """
        import importlib._bootstrap_external as b
        print('ESCAPED' if 'key' in b._os.listdir(HIDDEN) else 'no')
    """,
        kind="library",
    ),
    read(
        "pkgutil.iter_modules",
        """
        import pkgutil
        print('ESCAPED' if [m for m in pkgutil.iter_modules([HIDDEN])] else 'no')
    """,
        kind="library",
        plant="open(HIDDEN + '/mod.py', 'w').write('class C: pass')",
    ),
    read(
        "pkgutil.get_data",
        """
        import pkgutil, sys, types
        m = types.ModuleType('m')
        from importlib.machinery import ModuleSpec, SourceFileLoader
        m.__file__ = HIDDEN + '/x.py'
        m.__spec__ = ModuleSpec('m', SourceFileLoader('m', m.__file__))
        sys.modules['m'] = m
        got(pkgutil.get_data('m', 'key'))
    """,
        kind="library",
    ),
    read(
        "importlib.resources",
        """
        import importlib.resources, sys, types
        from importlib.machinery import ModuleSpec, SourceFileLoader
        m = types.ModuleType('mr')
        m.__path__ = [HIDDEN]
        m.__spec__ = ModuleSpec('mr', SourceFileLoader('mr', HIDDEN + '/__init__.py'), is_package=True)
        m.__spec__.origin = HIDDEN + '/__init__.py'
        sys.modules['mr'] = m
        got(importlib.resources.files(m).joinpath('key').read_text())
    """,
        kind="library",
    ),
    read(
        "importlib.metadata",
        """
        import importlib.metadata, pathlib
        got(importlib.metadata.PathDistribution(pathlib.Path(HIDDEN)).read_text('key'))
    """,
        kind="library",
    ),
    read(
        "configparser",
        """
        import configparser
        try: configparser.RawConfigParser().read(SECRET)
        except configparser.Error as e: got(e)
    """,
        kind="library",
    ),
    read(
        "netrc",
        """
        import netrc
        try: netrc.netrc(SECRET)
        except netrc.NetrcParseError as e: got(e)
    """,
        kind="library",
    ),
    read(
        "mimetypes",
        """
        import mimetypes
        print('ESCAPED' if mimetypes.read_mime_types(SECRET) is not None else 'no')
    """,
        kind="library",
    ),
    read(
        "filecmp",
        """
        import filecmp
        print('ESCAPED' if filecmp.cmp(SECRET, SECRET) else 'no')
    """,
        kind="library",
    ),
    read(
        "mailbox",
        """
        import mailbox
        mailbox.mbox(SECRET, create=False)
        print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "urllib",
        """
        import urllib.request
        got(urllib.request.urlopen('file://' + SECRET).read())
    """,
        kind="library",
    ),
    read(
        "urllib, a host in the URL",
        """
        import urllib.request
        got(urllib.request.urlopen('file://localhost' + SECRET).read())
    """,
        kind="library",
    ),
    read(
        "urllib, percent signs",
        """
        import urllib.request
        got(urllib.request.urlopen('file://' + SECRET[:-1] + '%79').read())
    """,
        kind="library",
    ),
    read(
        "robotparser",
        """
        import urllib.robotparser
        p = urllib.robotparser.RobotFileParser('file://' + SECRET)
        p.read()
        print('ESCAPED' if p.mtime() else 'no')
    """,
        kind="library",
    ),
    read(
        "minidom",
        """
        import xml.dom.minidom, xml.parsers.expat
        try: xml.dom.minidom.parse(SECRET)
        except xml.parsers.expat.ExpatError: print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "ElementTree",
        """
        import xml.etree.ElementTree as t
        try: t.parse(SECRET)
        except t.ParseError: print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "an external entity",
        """
        import io, xml.sax, xml.sax.handler
        class H(xml.sax.handler.ContentHandler):
            def characters(self, text): got(text)
        p = xml.sax.make_parser()
        p.setFeature(xml.sax.handler.feature_external_ges, True)
        p.setContentHandler(H())
        p.parse(io.StringIO(f'<!DOCTYPE a [<!ENTITY e SYSTEM "file://{SECRET}">]><a>&e;</a>'))
    """,
        kind="library",
    ),
    read(
        "XInclude",
        """
        import xml.etree.ElementTree as t, xml.etree.ElementInclude as i
        e = t.fromstring(f'<a xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="{SECRET}" parse="text"/></a>')
        i.include(e)
        got(t.tostring(e))
    """,
        kind="library",
    ),
    read(
        "gzip",
        """
        import gzip
        try: gzip.open(SECRET).read()
        except gzip.BadGzipFile: print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "bz2",
        """
        import bz2
        f = bz2.BZ2File(SECRET)
        print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "lzma",
        """
        import lzma
        try: lzma.LZMAFile(SECRET).read()
        except lzma.LZMAError: print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "zipfile",
        """
        import zipfile
        try: zipfile.ZipFile(SECRET)
        except zipfile.BadZipFile: print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "zipfile.write",
        """
        import io, zipfile
        z = zipfile.ZipFile(io.BytesIO(), 'w')
        z.write(SECRET, 'x')
        got(z.read('x'))
    """,
        kind="library",
    ),
    read(
        "zipfile.is_zipfile",
        """
        import zipfile, zlib
        print('ESCAPED' if zipfile.is_zipfile(HIDDEN + '/z') else 'no')
    """,
        kind="library",
        plant="""
        import zipfile
        zipfile.ZipFile(HIDDEN + '/z', 'w').close()
    """,
    ),
    read(
        "tarfile",
        """
        import tarfile
        try: tarfile.open(SECRET)
        except tarfile.ReadError: print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "tarfile.add",
        """
        import io, tarfile
        b = io.BytesIO()
        t = tarfile.open(fileobj=b, mode='w')
        t.add(SECRET)
        t.close()
        got(b.getvalue())
    """,
        kind="library",
    ),
    read(
        "zipapp",
        """
        import io, zipapp, zipfile
        b = io.BytesIO()
        zipapp.create_archive(HIDDEN, b, main='key:x')
        got(zipfile.ZipFile(b).read('key'))
    """,
        kind="library",
    ),
    read(
        "dbm.dumb",
        """
        import dbm.dumb
        got(dbm.dumb._Database(HIDDEN + '/base', 0o600, 'r')[b'a'])
    """,
        kind="library",
        plant="""
        import dbm.dumb
        with dbm.dumb.open(HIDDEN + '/base') as d: d['a'] = 's3cret'
    """,
    ),
    read(
        "linecache, updated",
        """
        import linecache
        got(linecache.updatecache(SECRET))
    """,
        kind="library",
    ),
    read(
        "a frame summary",
        """
        import traceback
        got(traceback.FrameSummary(SECRET, 1, 'f').line)
    """,
        kind="library",
    ),
    read(
        "a warning's line",
        """
        import warnings
        got(warnings.formatwarning('x', UserWarning, SECRET, 1))
    """,
        kind="library",
    ),
    read(
        "fileinput, one file",
        """
        import fileinput
        got(''.join(fileinput.FileInput(SECRET)))
    """,
        kind="library",
    ),
    read(
        "fileinput by arguments",
        """
        import fileinput, sys
        sys.argv[1:] = [SECRET]
        try: got(''.join(fileinput.input()))
        finally: del sys.argv[1:]
    """,
        kind="library",
    ),
    read(
        "logging.config",
        """
        import logging.config
        try: logging.config.fileConfig(SECRET)
        except Exception as e: got(repr((e, e.__cause__, e.__context__)))
    """,
        kind="library",
    ),
    read(
        "wave",
        """
        import wave
        try: wave.open(SECRET)
        except (EOFError, wave.Error): print('ESCAPED')
    """,
        kind="library",
    ),
    read(
        "zoneinfo",
        """
        import zoneinfo
        zoneinfo.reset_tzpath(to=[HIDDEN])
        try: zoneinfo.ZoneInfo('key')
        except ValueError: print('ESCAPED')
        finally: zoneinfo.reset_tzpath()
    """,
        kind="library",
    ),
    read(
        "http.server",
        """
        import http.server, io
        class H(http.server.SimpleHTTPRequestHandler):
            directory, path, headers, request_version, command = HIDDEN, '/key', {}, 'HTTP/1.0', 'GET'
            requestline, client_address = '', ('x', 1)
            def __init__(self): self.wfile = io.BytesIO()
            def log_message(self, *args): pass
        h = H()
        h.do_GET()
        got(h.wfile.getvalue())
    """,
        kind="library",
    ),
    read(
        "py_compile",
        """
        import py_compile
        try: py_compile.compile(SECRET, cfile=WORK + '/x', doraise=True)
        except py_compile.PyCompileError: pass
        print('ESCAPED')
    """,
        kind="library",
        grants="expose-rw=./work",
    ),
    read(
        "pyclbr",
        """
        import pyclbr
        print('ESCAPED' if 'C' in pyclbr.readmodule('mod', [HIDDEN]) else 'no')
    """,
        kind="library",
        plant="open(HIDDEN + '/mod.py', 'w').write('class C: pass')",
    ),
    read(
        "modulefinder",
        """
        import modulefinder
        modulefinder.ModuleFinder().run_script(HIDDEN + '/mod.py')
        print('ESCAPED')
    """,
        kind="library",
        plant="open(HIDDEN + '/mod.py', 'w').write('class C: pass')",
    ),
    read(
        "shutil.copyfileobj",
        """
        import io, shutil
        b = io.StringIO()
        shutil.copyfileobj(open(SECRET), b)
        got(b.getvalue())
    """,
        kind="library",
    ),
    read(
        "asyncio in a thread",
        """
        import asyncio, pathlib
        got(asyncio.run(asyncio.to_thread(pathlib.Path(SECRET).read_text)))
    """,
        kind="library",
        grants="python-api=ALLOW:threads",
    ),
]

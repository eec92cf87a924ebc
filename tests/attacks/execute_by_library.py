"""Start a program by a library that does so for its caller."""

from __future__ import annotations

from functools import partial

from attack import Attack

execute = partial(Attack, "execute")

CASES: list[Attack] = [
    execute(
        "an interpreter of Tcl",
        """
        try: import _tkinter
        except ImportError: absent('it was not built')
        try: print(_tkinter.create(None, 'x', 'Tk', 0, 1, 0).eval('exec echo ESCAPED'))
        except _tkinter.TclError: absent('the library of Tcl is not here')
    """,
        kind="native",
    ),
    execute(
        "webbrowser",
        """
        import webbrowser
        webbrowser.register('x', None, webbrowser.GenericBrowser(['echo', 'ESCAPED', '%s']), preferred=True)
        webbrowser.open('x')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "webbrowser by get",
        """
        import webbrowser
        webbrowser.register('x', None, webbrowser.GenericBrowser(['echo', 'ESCAPED', '%s']), preferred=True)
        webbrowser.get().open('x')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "webbrowser GenericBrowser",
        """
        import webbrowser
        webbrowser.GenericBrowser(['echo', 'ESCAPED', '%s']).open('x')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "webbrowser UnixBrowser",
        """
        import webbrowser
        b = webbrowser.UnixBrowser('echo'); b.raise_opts = None; b.background = False; b.redirect_stdout = False
        b._invoke(['ESCAPED'], False, False)
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "webbrowser BackgroundBrowser",
        """
        import webbrowser, time
        webbrowser.BackgroundBrowser(['sh', '-c', 'echo ESCAPED']).open('x')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "antigravity",
        """
        import webbrowser
        webbrowser.register('x', None, webbrowser.GenericBrowser(['echo', 'ESCAPED', '%s']), preferred=True)
        import antigravity
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "pydoc pipe pager",
        """
        import pydoc
        try: pydoc.pipepager('ESCAPED', 'cat')
        except AttributeError:
            import _pyrepl.pager as p; p.pipe_pager('ESCAPED', 'cat')
    """,
        kind="library",
    ),
    execute(
        "pydoc temporary file pager",
        """
        import pydoc, tempfile
        tempfile.tempdir = WORK
        if hasattr(pydoc, 'tempfilepager'): pydoc.tempfilepager('ESCAPED', 'cat')
        else:
            import _pyrepl.pager as p; p.tempfile_pager('ESCAPED', 'cat')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "platform.processor",
        r"""
        import os, platform
        open(WORK + '/uname', 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/uname', 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        platform.processor()
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "platform.architecture",
        r"""
        import os, platform
        open(WORK + '/file', 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/file', 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        platform.architecture(os.__file__)
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "uuid.getnode",
        r"""
        import os, uuid
        for name in ('ifconfig', 'ip', 'arp', 'lanscan', 'netstat'):
            open(WORK + '/' + name, 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/' + name, 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        for f in (uuid._ifconfig_getnode, uuid._ip_getnode): f()
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "ctypes.util.find_library",
        r"""
        import os, ctypes.util
        for name in ('gcc', 'ld', 'objdump'):
            open(WORK + '/' + name, 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/' + name, 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        os.environ['TMPDIR'] = os.path.abspath(WORK)
        ctypes.util._findLib_gcc('nothing')
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "ctypes.util soname",
        r"""
        import os, ctypes.util
        open(WORK + '/objdump', 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/objdump', 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        ctypes.util._get_soname(os.__file__)
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "distutils",
        """
        import warnings; warnings.simplefilter('ignore')
        from distutils.spawn import spawn
        spawn(['echo', 'ESCAPED'])
    """,
        before=(3, 12),
        kind="library",
    ),
    execute(
        "mailcap",
        """
        import warnings; warnings.simplefilter('ignore')
        import mailcap
        mailcap.findmatch({'a/b': [{'test': 'echo ESCAPED', 'view': 'x'}]}, 'a/b')
    """,
        before=(3, 13),
        kind="library",
    ),
    execute(
        "pipes",
        """
        import warnings; warnings.simplefilter('ignore')
        import pipes
        t = pipes.Template(); t.append('echo ESCAPED', '--')
        print(t.open(WORK + '/x', 'r').read()) if open(WORK + '/x', 'w') else 0
    """,
        grants="expose-rw=./work",
        before=(3, 13),
        kind="library",
    ),
    execute(
        "imaplib stream",
        """
        import imaplib
        try: imaplib.IMAP4_stream('echo ESCAPED >&2; echo ESCAPED')
        except imaplib.IMAP4.error as e: print(e, e.args)
        except AttributeError as e: print(e)
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "venv's helper",
        r"""
        import venv, types, os
        open(WORK + '/run', 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/run', 0o755)
        path = os.path.abspath(WORK + '/run')
        try: venv.EnvBuilder()._call_new_python(types.SimpleNamespace(env_exe=path, env_exec_cmd=path, env_dir='.'), 'x')
        except AttributeError:
            try: venv.EnvBuilder()._setup_pip(types.SimpleNamespace(env_exe=path, env_exec_cmd=path, env_dir='.'))
            except AttributeError: absent('no helper')
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
    ),
    execute(
        "ensurepip",
        """
        import ensurepip, subprocess
        try: ensurepip._run_pip(['--version'])
        except subprocess.CalledProcessError: pass
        print('ESCAPED')
    """,
        kind="library",
    ),
    execute(
        "socketserver forking",
        """
        import socketserver, os
        class S(socketserver.ForkingMixIn):
            def finish_request(self, r, a): os.write(1, b'ESCAPED')
            def shutdown_request(self, r): pass
            def close_request(self, r): pass
            def handle_error(self, *a): pass
        S().process_request(None, None)
        os.wait()
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "lib2to3",
        """
        import warnings; warnings.simplefilter('ignore')
        import lib2to3.refactor as r
        m = r.MultiprocessRefactoringTool([])
        m.refactor([], num_processes=2)
        print('ESCAPED')
    """,
        before=(3, 13),
        kind="library",
        alone=True,
    ),
    execute(
        "CGI server",
        """
        import warnings; warnings.simplefilter('ignore')
        import http.server as h, os
        H = h.CGIHTTPRequestHandler
        x = H.__new__(H)
        x.have_fork = True
        x.cgi_info = ('', 'echo'); x.translate_path = lambda p: '/bin/echo'; x.is_executable = lambda p: True; x.is_cgi = lambda: True
        x.is_python = lambda p: False; x.server = type('S', (), dict(server_name='', server_port=0)); x.protocol_version = x.command = ''; x.client_address = ('', 0)
        import email.message; x.headers = email.message.Message(); x.wfile = open(1, 'wb'); x.rfile = open(0, 'rb'); x.send_response_only = lambda *a: None; x.send_response = lambda *a: None; x.flush_headers = lambda: None
        x.path = 'x?ESCAPED'; x.cgi_info = ('', 'echo?ESCAPED')
        x.run_cgi()
    """,
        grants="expose-ro=/bin\nexpose-ro=/usr/bin",
        before=(3, 15),
        kind="library",
        alone=True,
    ),
    execute(
        "test.support",
        """
        try: from test.support import script_helper
        except ImportError: absent('no tests')
        print(script_helper.assert_python_ok('-c', "print('ESC' + 'APED')").out)
    """,
        kind="library",
        alone=True,
    ),
]

"""The demo's issue tracker: a real Roundup with web UI and REST API, in its own process, on 127.0.0.1.

`python -m demo.tracker FOLDER PORT` installs and serves it; `credentials(FOLDER)` returns the passwords.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server

USERS = {"admin": "Admin", "streamwarden": "User"}


def credentials(folder: Path) -> dict[str, str]:
    """User → random password from the installation; the file is readable only by its owner."""
    return dict(json.loads((folder / "credentials.json").read_text()))


def prepare(folder: Path, port: int) -> None:
    """Installs the tracker unless the folder has one, and sets its URL."""
    from roundup import configuration

    home = folder / "tracker"
    os.umask(0o077)
    if not (folder / "credentials.json").exists():
        _install(folder, home)
    config = configuration.CoreConfig(str(home))
    config["TRACKER_WEB"] = f"http://127.0.0.1:{port}/"
    config["UMASK"] = "077"  # Roundup sets its own; the database has messages and password hashes
    config.save(str(home / config.INI_FILE))
    for path in (home, *home.rglob("*")):  # Roundup creates its folder for everybody; earlier demos left it so
        path.chmod(0o700 if path.is_dir() else 0o600)


def _install(folder: Path, home: Path) -> None:
    from roundup import configuration, init, instance, password

    folder.mkdir(parents=True, exist_ok=True)
    init.install(str(home), str(Path(sys.prefix, "share", "roundup", "templates", "classic")))
    (home / "db").mkdir(exist_ok=True)
    # Without a mail server, the nosy reactor, which mails changes to people, would fail.
    (home / "detectors" / "nosyreaction.py").unlink()
    config = configuration.CoreConfig()
    for key, value in {
        "TRACKER_HOME": str(home),
        "DATABASE": "db",
        "RDBMS_BACKEND": "sqlite",
        "MAIL_DOMAIN": "localhost",
        "ADMIN_EMAIL": "admin@localhost",
        "INSTANT_REGISTRATION": False,
        "TRACKER_WEB": "http://127.0.0.1/",
        # The default takes 0.3 s per request; fewer rounds suffice for random passwords of 128 bits.
        "PASSWORD_PBKDF2_DEFAULT_ROUNDS": 1000,
    }.items():
        config[key] = value
    config.save(str(home / config.INI_FILE))
    chosen = {user: secrets.token_urlsafe(16) for user in USERS}
    tracker = instance.open(str(home))
    tracker.init(password.Password(chosen["admin"], config=tracker.config))
    database = tracker.open("admin")
    for user in USERS.keys() - {"admin"}:
        hashed = password.Password(chosen[user], config=tracker.config)
        database.user.create(username=user, password=hashed, realname="Streamwarden", roles=USERS[user])
    database.commit()
    database.close()
    file = folder / "credentials.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(chosen, indent=2))


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def serve(folder: Path, port: int) -> None:
    """Serves until SIGTERM (roundup-server itself refuses to run as root)."""
    from roundup.cgi.wsgi_handler import RequestDispatcher

    prepare(folder, port)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    application = RequestDispatcher(str(folder / "tracker"), feature_flags={"cache_tracker": ""})
    with make_server("127.0.0.1", port, application, server_class=_Server) as server:
        server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]).absolute(), int(sys.argv[2]))

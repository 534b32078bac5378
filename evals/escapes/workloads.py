"""List ordinary work that must succeed in the sandbox: what tests and builds of projects do."""

from __future__ import annotations

from typing import Any

from evals.escapes.attempts import Attempt

_PYTHON = """
.venv/bin/python - <<'END'
{}
END
"""

_ROWS: tuple[tuple[Any, ...], ...] = (
    ("pytest -n 2", ".venv/bin/python -m pytest -q -n 2 test_main.py"),
    ("asyncio", _PYTHON.format("""
import asyncio
async def main():
    async def serve(reader, writer):
        writer.write(await reader.readline())
        writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"x\\n")
    assert await reader.readline() == b"x\\n"
    child = await asyncio.create_subprocess_exec("true")
    assert await child.wait() == 0
asyncio.run(main())
""")),
    ("multiprocessing with a fork server", """
cat > pool.py <<'END'
import multiprocessing
def double(x):
    return 2 * x
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    with context.Pool(2) as pool, context.Manager() as manager:
        assert manager.list(pool.map(double, range(4)))[:] == [0, 2, 4, 6]
END
.venv/bin/python pool.py
"""),
    ("test of an HTTP server", _PYTHON.format("""
import threading, urllib.request
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(("localhost", 0), SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
with urllib.request.urlopen(f"http://localhost:{server.server_port}/main.py") as answer:
    assert answer.status == 200
""")),
    ("server in the background", """
.venv/bin/python -m http.server 8123 --bind 127.0.0.1 &
for i in $(seq 50); do curl -sf http://127.0.0.1:8123/main.py && exit; sleep 0.1; done
exit 1
""", {"needs": "curl"}),
    ("SQLite", _PYTHON.format("""
import sqlite3
with sqlite3.connect("a.db") as database:
    database.execute("pragma journal_mode = wal")
    database.execute("create table t (a)")
    database.execute("insert into t values (1)")
""")),
    ("npm test", """
echo '{"scripts": {"test": "node --test"}}' > package.json
echo 'require("node:test")("a", () => {})' > a.test.js
npm test
""", {"needs": "npm"}),
    ("tsc", """
echo 'const a: number = 1; console.log(a)' > a.ts
tsc --strict a.ts
node a.js
""", {"needs": "tsc"}),
    ("cargo build", """
mkdir src
printf '[package]\\nname = "a"\\nversion = "0.1.0"\\nedition = "2021"\\n' > Cargo.toml
echo 'fn main() { println!("x") }' > src/main.rs
cargo build --offline
target/debug/a
""", {"needs": "cargo"}),
    ("go build", """
printf 'module a\\n' > go.mod
printf 'package main\\nfunc main() {}\\n' > a.go
go build
./a
""", {"needs": "go"}),
    ("make -j", """
printf 'all: a b c\\n%%: %%.c\\n\\tgcc -o $@ $<\\n' > Makefile
for n in a b c; do echo 'int main(void) { return 0; }' > $n.c; done
make -j 4
./a
""", {"needs": "gcc"}),
    ("git status, diff, log, blame", """
git status --short
echo >> main.py
git diff --exit-code && exit 1
git log --stat
git blame main.py
git show HEAD:main.py
""", {"needs": "git"}),
    ("ps", "ps aux | grep ps; ps -o pid= -p $$", {"needs": "ps"}),
    ("locale", "locale; printf 'ä\\nb\\n' | sort; test $(printf ä | wc -m) = 1"),
    ("shared memory", _PYTHON.format("""
from multiprocessing import Lock, shared_memory
memory = shared_memory.SharedMemory(create=True, size=1 << 20)
memory.unlink()
with Lock():
    pass
""")),
    ("pip install -e without network", """
printf '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n' \
  > pyproject.toml
cat > backend.py <<'END'
import os, zipfile
def build_editable(folder, *rest):
    with zipfile.ZipFile(f"{folder}/a-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a.pth", os.getcwd())
        wheel.writestr("a-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: a\\nVersion: 1\\n")
        wheel.writestr("a-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("a-1.dist-info/RECORD", "")
    return "a-1-py3-none-any.whl"
END
.venv/bin/python -m venv own
own/bin/pip install -q -e .
cd / && $OLDPWD/own/bin/python -c 'import main'
"""),
    ("search", "if type rg; then rg main; else grep -rn main --include=*.py .; fi"),
    ("executable script", "printf '#!/bin/sh\\necho x\\n' > run; chmod +x run; ./run"),
    ("temporary files and locks", """
file=$(mktemp)
flock $file -c 'echo x > /tmp/other'
seq 100000 | shuf | sort -n -T /tmp | tail -1
cp -a main.py copy.py
test main.py -ot $file
"""),
    ("archives and patches", """
tar czf /tmp/a.tgz main.py
mkdir new
tar xzf /tmp/a.tgz -C new
sed -i s/main/other/ new/main.py
diff -u main.py new/main.py > a.patch || true
patch -p0 < a.patch
grep other main.py
""", {"needs": "patch"}),
    ("limits of tests", "timeout 0.2 sleep 5 || test $? = 124; (exit 3) || test $? = 3"),
)  # fmt: skip
BEYOND_LANDLOCK = {
    "sockets": ("asyncio", "test of an HTTP server", "server in the background"),
    "shared memory": ("shared memory", "multiprocessing with a fork server"),
    "chmod": ("make -j", "executable script", "pip install -e without network"),
    "processes of its own only": ("ps",),
    "a /tmp of its own": ("temporary files and locks", "archives and patches"),
}
"""What only namespaces can give a command without harm to others, and the work that needs it."""
WORKLOADS = tuple(
    Attempt("work", name, script, "failed", **(more[0] if more else {}))
    for name, script, *more in _ROWS
)
"""Bash in a project with `.venv` and `.git`; status 0 means that it works."""

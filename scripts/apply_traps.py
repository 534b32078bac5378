"""Writes `traps.jsonl` of the apply corpus: replies that invite a change in the wrong place.

`python scripts/apply_traps.py OUT_FOLDER`. Written by hand, right answers included; nothing of
`lcursor.edit` is used here. A trap without a right answer must be asked about or refused.
"""

# ruff: noqa: E501 - replies stand as they are

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from apply_trap import GO, LUA, SHAPES, TRAPS, TWINS, code, diff, sr, swapped, trap
from apply_traps_more import edges, omissions, wholes

S, T = {"shapes.py": SHAPES}, {"load.py": TWINS}
BODY = "    with open(path) as file:\n        rows = file.readlines()\n"
NEWER = "    with open(path, encoding='utf-8') as file:\n        rows = file.readlines()\n"


def twins() -> None:
    """The same lines twice."""
    trap("twins:search", T, sr(BODY, NEWER, "load.py"))
    trap(
        "twins:dedented",
        T,
        sr("with open(path) as file:\n", "with read(path) as file:\n", "load.py"),
    )
    trap(
        "twins:diff",
        T,
        diff(
            "--- a/load.py\n+++ b/load.py\n@@ -2,2 +2,2 @@\n"
            "-    with open(path) as file:\n+    with read(path) as file:\n         rows = file.readlines()\n"
        ),
    )
    held = "def load_groups(path):\n" + BODY
    trap(
        "twins:held",
        T,
        sr(held, "def load_groups(path):\n" + NEWER, "load.py"),
        {"load.py": TWINS.replace(held, "def load_groups(path):\n" + NEWER)},
    )
    trap(
        "twins:scope",
        T,
        diff(
            "--- a/load.py\n+++ b/load.py\n@@ -8,2 +8,2 @@ def load_groups(path):\n"
            "     with open(path) as file:\n-        rows = file.readlines()\n+        rows = list(file)\n"
        ),
        {"load.py": TWINS.replace(held, held.replace("file.readlines()", "list(file)"))},
    )
    trap(
        "twins:patch_scope",
        T,
        "*** Begin Patch\n*** Update File: load.py\n@@ def load_groups(path):\n"
        "     with open(path) as file:\n-        rows = file.readlines()\n+        rows = list(file)\n"
        "*** End Patch",
        {"load.py": TWINS.replace(held, held.replace("file.readlines()", "list(file)"))},
    )
    trap(
        "twins:order",
        T,
        diff(
            "--- a/load.py\n+++ b/load.py\n@@ @@\n-def load_groups(path):\n"
            "+def groups(path):\n@@ @@\n     with open(path) as file:\n-        rows = file.readlines()\n"
            "+        rows = list(file)\n"
        ),
    )
    after = TWINS.replace(
        "    return [row.strip() for row in rows]\n\n\n", "    return rows\n\n\n", 1
    )
    trap(
        "twins:one_done",
        {"load.py": after},
        sr("    return [row.strip() for row in rows]\n", "    return rows\n", "load.py"),
        {
            "load.py": after.replace(
                "    return [row.strip() for row in rows]\n", "    return rows\n"
            )
        },
    )
    both = TWINS.replace(BODY, NEWER, 1)
    trap(
        "twins:again",
        {"load.py": both},
        sr("def x", "def y")
        and sr(
            BODY + "    return [row.strip() for row in rows]\n",
            NEWER + "    return [row.strip() for row in rows]\n",
            "load.py",
        ),
    )
    trap(
        "twins:numbers",
        {
            "load.py": swapped(
                TWINS,
                (
                    "load_users(path):\n    with open(path) as",
                    "load_users(path):\n    with open(path, 'r') as",
                ),
            )
        },
        diff(
            "--- a/load.py\n+++ b/load.py\n@@ -2,3 +2,3 @@\n"
            "     with open(path) as file:\n         rows = file.readlines()\n-    return [row.strip() for row in rows]\n"
            "+    return rows\n"
        ),
    )
    steps = "begin(1)\nshared(x)\nmiddle()\nshared(x)\nend(9)\n"
    dependent = "@@ @@\n begin(1)\n+added(2)\n@@ @@\n{}@@ @@\n added(2)\n+another(3)\n"
    trap(
        "twins:dependent",
        {"s.py": steps},
        diff("--- a/s.py\n+++ b/s.py\n" + dependent.format("-shared(x)\n+shared(y)\n")),
    )
    trap(
        "twins:dependent_held",
        {"s.py": steps},
        diff("--- a/s.py\n+++ b/s.py\n" + dependent.format("-shared(x)\n+shared(y)\n middle()\n")),
        {
            "s.py": swapped(
                steps,
                ("begin(1)\n", "begin(1)\nadded(2)\nanother(3)\n"),
                ("shared(x)\nmiddle", "shared(y)\nmiddle"),
            )
        },
    )


def names() -> None:
    """Definitions of one name."""
    area = "    def area(self):\n        return 1\n"
    trap("names:method", S, code(area, path="shapes.py"))
    trap("names:method_bare", S, code("def area(self):\n    return 1\n", path="shapes.py"))
    trap(
        "names:class",
        S,
        code(
            "class Square:\n    # ... existing code ...\n\n    def area(self):\n"
            "        return self.a ** 2\n\n    # ... existing code ...\n",
            path="shapes.py",
        ),
        {"shapes.py": swapped(SHAPES, ("self.a * self.a", "self.a ** 2"))},
    )
    trap(
        "names:function_or_method",
        {"a.py": "class Job:\n    def run(self):\n        return 1\n"},
        code("def run():\n    return Job().run()\n", path="a.py"),
    )
    trap(
        "names:new_function",
        S,
        code("def biggest(shapes):\n    return max(shapes)\n", path="shapes.py"),
    )
    trap(
        "names:with_neighbour",
        S,
        code(
            "def biggest(shapes):\n    return max(shapes)\n\n\n"
            "def main():\n    shapes = [Circle(1), Square(2)]\n    print(biggest(shapes))\n    return 0\n",
            path="shapes.py",
        ),
        {
            "shapes.py": swapped(
                SHAPES,
                ("def main():", "def biggest(shapes):\n    return max(shapes)\n\n\ndef main():"),
                ("print(total(shapes))", "print(biggest(shapes))"),
            )
        },
    )
    trap(
        "names:receiver",
        {"a.go": GO},
        code("func (b *B) Run() int {\n\treturn 3\n}\n", "go", "a.go"),
        {"a.go": swapped(GO, ("return 2", "return 3"))},
    )
    trap("names:no_receiver", {"a.go": GO}, code("func Run() int {\n\treturn 3\n}\n", "go", "a.go"))
    trap(
        "names:lua_local",
        {"m.lua": LUA},
        code("local function read(path)\n  return assert(io.open(path))\nend\n", "lua", "m.lua"),
        {"m.lua": swapped(LUA, ("  return io.open(path)\n", "  return assert(io.open(path))\n"))},
    )
    trap(
        "names:lua_module",
        {"m.lua": LUA},
        code('function M.read(path)\n  return read(path):read("n")\nend\n', "lua", "m.lua"),
        {"m.lua": swapped(LUA, (':read("a")', ':read("n")'))},
    )
    trap(
        "names:lua_other",
        {"m.lua": LUA.replace("local function read", "local function open")},
        code("local function read(path)\n  return 1\nend\n", "lua", "m.lua"),
    )
    prop = "class A:\n    @property\n    def x(self):\n        return self._x\n\n    @x.setter\n    def x(self, v):\n        self._x = v\n"
    trap(
        "names:setter",
        {"a.py": prop},
        code("    @x.setter\n    def x(self, v):\n        self._x = int(v)\n", path="a.py"),
        {"a.py": swapped(prop, ("self._x = v", "self._x = int(v)"))},
    )
    trap(
        "names:bare_property",
        {"a.py": prop},
        code("    def x(self):\n        return 1\n", path="a.py"),
    )
    over = "int f(int a) {\n  return a;\n}\n\nint f(double a) {\n  return 2;\n}\n"
    trap(
        "names:overload", {"a.cpp": over}, code("int f(long a) {\n  return 3;\n}\n", "cpp", "a.cpp")
    )
    rust = "struct B;\n\nimpl B {\n    fn new() -> B {\n        B\n    }\n}\n\nimpl Default for B {\n    fn default() -> B {\n        B::new()\n    }\n}\n"
    trap(
        "names:impl",
        {"a.rs": rust},
        code("impl B {\n    fn new() -> Self {\n        B\n    }\n}\n", "rust", "a.rs"),
        {"a.rs": swapped(rust, ("new() -> B", "new() -> Self"))},
    )
    nest = "def outer(f):\n    def wrapper(x):\n        return f(x)\n    return wrapper\n\n\ndef use():\n    return outer(len)\n"
    trap("names:inner", {"a.py": nest}, code("def wrapper(x):\n    return x\n", path="a.py"))


def paths() -> None:
    """Which file is meant."""
    two = {"a/util.py": "X = 1\n", "b/util.py": "X = 1\n"}
    trap("path:two", two, sr("X = 1\n", "X = 2\n", "util.py"))
    trap("path:long", two, sr("X = 1\n", "X = 2\n", "b/util.py"), {"b/util.py": "X = 2\n"})
    trap(
        "path:current", two, sr("X = 1\n", "X = 2\n"), {"a/util.py": "X = 2\n"}, current="a/util.py"
    )
    trap("path:none", two, sr("X = 1\n", "X = 2\n"))
    trap("path:missing", S, sr("    return 0\n", "    return 1\n", "other.py"))
    trap(
        "path:spoken_new",
        S,
        "You could keep it in `lib/other.py` too:\n\n```python\nX = 1\n```\n",
        current="shapes.py",
    )
    trap("path:new", S, code("X = 1\n", path="lib/new.py"), {"lib/new.py": "X = 1\n"})
    trap("path:new_search", S, sr("", "X = 1\n", "lib/new.py"), {"lib/new.py": "X = 1\n"})
    trap(
        "path:created",
        S,
        diff("--- /dev/null\n+++ b/lib/new.py\n@@ -0,0 +1,2 @@\n+X = 1\n+Y = 2\n"),
        {"lib/new.py": "X = 1\nY = 2\n"},
    )
    trap("path:created_there", S, diff("--- /dev/null\n+++ b/shapes.py\n@@ -0,0 +1,1 @@\n+X = 1\n"))
    trap(
        "path:deleted",
        {"x.py": "X = 1\n", **S},
        diff(
            "diff --git a/x.py b/x.py\ndeleted file mode 100644\n--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-X = 1\n"
        ),
        {"x.py": None},
    )
    trap(
        "path:deleted_other",
        {"x.py": "X = 1\nY = 2\n", **S},
        diff("--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-X = 1\n"),
    )
    trap(
        "path:renamed",
        {"x.py": "X = 1\nY = 2\n"},
        diff(
            "diff --git a/x.py b/y.py\nsimilarity index 90%\nrename from x.py\nrename to y.py\n"
            "--- a/x.py\n+++ b/y.py\n@@ -1,2 +1,2 @@\n-X = 1\n+X = 3\n Y = 2\n"
        ),
        {"x.py": None, "y.py": "X = 3\nY = 2\n"},
    )
    renamed = "diff --git a/x.py b/y.py\nrename from x.py\nrename to y.py\n"
    trap(
        "path:renamed_then_changed",
        {"x.py": "X = 1\nY = 2\n"},
        diff(renamed) + sr("X = 1\n", "X = 3\n", "y.py"),
        {"x.py": None, "y.py": "X = 3\nY = 2\n"},
    )
    sql = "-- drop the old rows\nbegin;\n-- say so\ncommit 1;\n"
    for name, counts in (("counts", "-1,2 +1,2"), ("wrong_counts", "-1,4 +1,4")):
        trap(
            f"path:sql_{name}",
            {"a.sql": sql, "b.sql": sql},
            diff(
                f"--- a/a.sql\n+++ b/a.sql\n@@ {counts} @@\n--- drop the old rows\n"
                "+++ keep the old rows\n begin;\n@@ -3 +3 @@\n--- say so\n+++ say no\n"
                "@@ -4 +4 @@\n-commit 1;\n+commit 2;\n"
            ),
            {"a.sql": "++ keep the old rows\nbegin;\n++ say no\ncommit 2;\n"},
        )
    trap(
        "path:renamed_there",
        two,
        diff("diff --git a/a/util.py b/b/util.py\nrename from a/util.py\nrename to b/util.py\n"),
    )
    trap(
        "path:patch_all",
        {"x.py": "X = 1\n", "z.py": "Z = 1\n"},
        "*** Begin Patch\n*** Add File: y.py\n+Y = 1\n*** Delete File: z.py\n"
        "*** Update File: x.py\n*** Move to: w.py\n@@\n-X = 1\n+X = 2\n*** End Patch\n",
        {"y.py": "Y = 1\n", "z.py": None, "x.py": None, "w.py": "X = 2\n"},
    )
    trap(
        "path:patch_cut",
        {"x.py": "X = 1\n"},
        "*** Begin Patch\n*** Update File: x.py\n@@\n-X = 1\n+X = 2\n",
    )
    trap(
        "path:all_or_none",
        {"x.py": "X = 1\n", "z.py": "Z = 1\n"},
        sr("X = 1\n", "X = 2\n", "x.py") + sr("Z = 9\n", "Z = 2\n", "z.py"),
    )
    trap(
        "path:both",
        {"x.py": "X = 1\n", "z.py": "Z = 1\n"},
        sr("X = 1\n", "X = 2\n", "x.py") + sr("Z = 1\n", "Z = 2\n", "z.py"),
        {"x.py": "X = 2\n", "z.py": "Z = 2\n"},
    )
    trap(
        "path:two_names",
        {"x.py": "X = 1\n", "z.py": "X = 1\n"},
        diff("--- a/x.py\n+++ b/z.py\n@@ @@\n-X = 1\n+X = 2\n"),
    )
    trap("path:given", {"x.py": "X = 1\n"}, code("X = 2\n"), None, file="x.py")


def main(folder: Path) -> None:
    """Write them."""
    for group in (twins, names, omissions, wholes, edges, paths):
        group()
    assert len({one["id"] for one in TRAPS}) == len(TRAPS)
    with (folder / "traps.jsonl").open("w", encoding="utf-8") as file:
        for one in TRAPS:
            file.write(json.dumps(one, ensure_ascii=False) + "\n")
    print(f"{len(TRAPS)} traps")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

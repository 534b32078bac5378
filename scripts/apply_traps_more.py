"""More traps of `apply_traps.py`: what is left out, whole files, small quotes, paths."""

# ruff: noqa: E501 - replies stand as they are

from __future__ import annotations

from apply_trap import GO, NOTES, SHAPES, STEPS, code, diff, sr, swapped, trap

S = {"shapes.py": SHAPES}


def omissions() -> None:
    """Code that leaves something out."""
    steps = {"steps.py": STEPS}
    trap(
        "lazy:repeated",
        steps,
        code(
            "def run(job):\n    job.start()\n    # ... existing code ...\n"
            '    check(value)\n    log("done")\n    # ... existing code ...\n    return value\n',
            path="steps.py",
        ),
    )
    trap(
        "lazy:changed_edge",
        steps,
        code("def run(job):\n    job.begin()\n    # ... existing code ...\n", path="steps.py"),
    )
    trap(
        "lazy:no_end",
        steps,
        code(
            'def run(job):\n    job.start()\n    # ... existing code ...\n    log("two")\n'
            "    value = job.other()\n",
            path="steps.py",
        ),
    )
    trap(
        "lazy:silent_loss",
        steps,
        code(
            'def run(job):\n    job.start()\n    value = job.first()\n    log("one")\n'
            "    # ... existing code ...\n",
            path="steps.py",
        ),
    )
    trap(
        "lazy:middle",
        steps,
        code(
            'def run(job):\n    # ... existing code ...\n    log("one")\n    pause()\n'
            "    value = job.second()\n    # ... existing code ...\n",
            path="steps.py",
        ),
        {"steps.py": swapped(STEPS, ('log("one")\n', 'log("one")\n    pause()\n'))},
    )
    trap(
        "lazy:head",
        steps,
        code("def run(job, fast=False):\n    # ... existing code ...\n", path="steps.py"),
        {"steps.py": swapped(STEPS, ("run(job):", "run(job, fast=False):"))},
    )
    trap(
        "lazy:tail",
        steps,
        code(
            "def run(job):\n    # ... existing code ...\n    job.stop()\n    audit()\n    return value\n",
            path="steps.py",
        ),
        {"steps.py": swapped(STEPS, ("job.stop()\n", "job.stop()\n    audit()\n"))},
    )
    trap(
        "lazy:renamed", steps, code("def go(job):\n    # ... existing code ...\n", path="steps.py")
    )
    trap("lazy:nothing_new", steps, code("# ... existing code ...\n", path="steps.py"))
    trap(
        "lazy:order",
        S,
        code(
            "# ... existing code ...\n\ndef main():\n    return 1\n\n\ndef total(shapes):\n    return 2\n",
            path="shapes.py",
        ),
    )
    trap(
        "lazy:new_last",
        S,
        code(
            "# ... existing code ...\n\n\ndef biggest(shapes):\n    return max(shapes)\n",
            path="shapes.py",
        ),
        {"shapes.py": SHAPES + "\n\ndef biggest(shapes):\n    return max(shapes)\n"},
    )
    trap(
        "lazy:new_anywhere",
        S,
        code(
            "# ... existing code ...\n\n\ndef biggest(shapes):\n    return max(shapes)\n\n\n"
            "# ... existing code ...\n",
            path="shapes.py",
        ),
    )
    trap(
        "lazy:new_method",
        S,
        code(
            "class Circle:\n    # ... existing methods ...\n\n    def grow(self):\n        self.r += 1\n",
            path="shapes.py",
        ),
        {
            "shapes.py": swapped(
                SHAPES,
                (
                    '        return "circle"\n',
                    '        return "circle"\n\n    def grow(self):\n        self.r += 1\n',
                ),
            )
        },
    )
    trap(
        "lazy:cut_at_left",
        S,
        code(
            "import os\nimport sys\n# ... existing code ...\ndef main():\n    shapes = [Circle(1), Square(2)]\n"
            "# ... existing code ...\n",
            path="shapes.py",
        ),
    )
    stub = "class P:\n    def a(self): ...\n\n    def b(self):\n        ...\n\n\ndef use(p):\n    return p.a()\n"
    trap("lazy:stub", {"p.py": stub}, code("def use(p):\n    ...\n", path="p.py"))
    trap(
        "lazy:stub_stays",
        {"p.py": stub},
        code(
            "class P:\n    def a(self): ...\n\n    def b(self):\n        ...\n\n"
            "    def c(self):\n        ...\n\n\ndef use(p):\n    return p.a()\n",
            path="p.py",
        ),
        {
            "p.py": swapped(
                stub, ("        ...\n\n\n", "        ...\n\n    def c(self):\n        ...\n\n\n")
            )
        },
    )
    spread = "function f(...args) {\n  return g(...args);\n}\n\nfunction g(a) {\n  return a;\n}\n"
    trap(
        "lazy:spread",
        {"a.js": spread},
        code("function f(...args) {\n  return h(...args);\n}\n", "javascript", "a.js"),
        {"a.js": swapped(spread, ("return g(", "return h("))},
    )
    trap(
        "lazy:pair",
        steps,
        sr(
            "    job.start()\n    ...\n    job.stop()\n",
            "    job.begin()\n    ...\n    job.end()\n",
            "steps.py",
        ),
        {"steps.py": swapped(STEPS, ("job.start()", "job.begin()"), ("job.stop()", "job.end()"))},
    )
    trap(
        "lazy:pair_twins",
        steps,
        sr(
            "    job.start()\n    ...\n    check(value)\n",
            "    job.begin()\n    ...\n    test(value)\n",
            "steps.py",
        ),
    )
    trap(
        "lazy:only_in_new",
        steps,
        sr(
            "    job.start()\n    value = job.first()\n",
            "    job.begin()\n    # ... existing code ...\n",
            "steps.py",
        ),
    )


def wholes() -> None:
    """Files as a whole, and what only looks so."""
    lost = SHAPES[: SHAPES.index("def total")] + SHAPES[SHAPES.index("def main") :]
    trap("whole:lost_function", S, code(lost, path="shapes.py"))
    trap("whole:half", S, code(SHAPES[: len(SHAPES) // 2], path="shapes.py"))
    trap(
        "whole:lost_tail",
        S,
        code(SHAPES.replace("    print(total(shapes))\n    return 0\n", ""), path="shapes.py"),
    )
    trap(
        "whole:function_tail",
        {"steps.py": STEPS},
        code("".join(STEPS.splitlines(True)[:8]), path="steps.py"),
    )
    trap("whole:empty", S, code("", path="shapes.py"))
    trap(
        "whole:drafts",
        S,
        "First:\n"
        + code("def main():\n    return 1\n", path="shapes.py")
        + "Better:\n"
        + code("def main():\n    return 2\n", path="shapes.py"),
    )
    trap(
        "whole:example",
        S,
        code("def total(shapes):\n    return sum(s.area() for s in shapes)\n", path="shapes.py")
        + "\nUse it so:\n\n```python\nprint(total([Circle(1)]))\n```\n",
        {
            "shapes.py": SHAPES.replace(
                SHAPES[SHAPES.index("    result = 0") : SHAPES.index("\n\ndef main")],
                "    return sum(s.area() for s in shapes)\n",
            )
        },
    )
    conf = "name: app\nport: 80\nhosts:\n  - one\n  - two\nlog: debug\n"
    trap("whole:yaml_part", {"c.yaml": conf}, code("port: 81\n", "yaml", "c.yaml"))
    trap(
        "whole:yaml",
        {"c.yaml": conf},
        code(conf.replace("80", "81"), "yaml", "c.yaml"),
        {"c.yaml": conf.replace("80", "81")},
    )
    trap(
        "whole:yaml_lost",
        {"c.yaml": conf},
        code("name: app\nport: 81\nlog: debug\n", "yaml", "c.yaml"),
    )
    trap(
        "whole:notes",
        {"n.md": NOTES},
        "n.md\n````markdown\n" + NOTES.replace("The end", "An end") + "````\n",
        {"n.md": NOTES.replace("The end", "An end")},
    )
    trap(
        "whole:notes_three",
        {"n.md": NOTES},
        "n.md\n```markdown\n" + NOTES.replace("The end", "An end") + "```\n",
    )
    fenced = 'HELP = """\nUse:\n```\nrun\n```\n"""\n\n\ndef show():\n    print(HELP)\n'
    trap(
        "whole:fence_in_string",
        {"h.py": fenced},
        code(fenced.replace("print(HELP)", "return HELP"), path="h.py"),
    )
    doc = 'def f():\n    """Do.\n\n    ```\n    f()\n    ```\n    """\n    return 1\n'
    trap(
        "whole:fence_in_doc",
        {"d.py": doc},
        code(doc.replace("return 1", "return 2"), path="d.py"),
        {"d.py": doc.replace("return 1", "return 2")},
    )
    trap(
        "whole:thought",
        S,
        "<think>\n"
        + sr("    return 0\n", "    return 9\n", "shapes.py")
        + "</think>\n"
        + sr("    return 0\n", "    return 1\n", "shapes.py"),
        {"shapes.py": swapped(SHAPES, ("return 0", "return 1"))},
    )
    trap(
        "whole:other_language",
        S,
        code("function main() {\n  return 1;\n}\n", "javascript", "shapes.py"),
    )
    trap("whole:shell", S, "Run this:\n```bash\nrm -r build\n```\n", current="shapes.py")
    trap("whole:prose", S, "The function is right as it is.", current="shapes.py")
    trap(
        "whole:class_part",
        S,
        code(
            "class Square:\n    def __init__(self, a):\n        self.a = abs(a)\n\n    def area(self):\n        return self.a**2\n",
            path="shapes.py",
        ),
    )
    trap(
        "whole:lost_method",
        S,
        code(
            SHAPES.replace('    def name(self):\n        return "square"\n\n', ""), path="shapes.py"
        ),
    )
    headed = '"""Shapes, and what they add up to.\n\nNothing else.\n"""\n\n' + SHAPES
    trap("whole:no_docstring", {"shapes.py": headed}, code(SHAPES, path="shapes.py"))
    trap(
        "whole:yaml_head",
        {"c.yaml": conf},
        code("port: 81\n" + conf[conf.index("hosts") :], "yaml", "c.yaml"),
    )
    blocks = (
        ("terraform", "main.tf", 'resource "a" "{0}" {{\n  name = "{0}"\n  size = 1\n}}\n'),
        ("dart", "m.dart", "class {0} {{\n  int size() => 1;\n}}\n"),
        ("proto", "m.proto", "message {0} {{\n  string name = 1;\n}}\n"),
        ("perl", "m.pl", "sub {0} {{\n  my $x = 1;\n  return $x;\n}}\n"),
    )
    for name, path, block in blocks:  # languages without a grammar
        parts = [block.format(each) for each in ("One", "Two", "Three")]
        was, parts[1] = "\n".join(parts), parts[1].replace("1", "2")
        trap(
            f"whole:{name}",
            {path: was},
            code("\n".join(parts), name, path),
            {path: "\n".join(parts)},
        )
        trap(f"whole:{name}_lost", {path: was}, code("\n".join(parts[:2]), name, path))


def edges() -> None:
    """What is quoted is too little, too much, or not what is there."""
    trap("edge:bracket", {"a.go": GO}, sr("}\n", "}\n\nfunc x() {}\n", "a.go"))
    trap(
        "edge:one_bracket",
        {"a.c": "int f(int a) {\n  return a;\n}\n"},
        sr("}\n", "}\n\nint g(void) { return 1; }\n", "a.c"),
    )
    trap("edge:part_of_line", S, sr("3.14\n", "math.pi\n", "shapes.py"))
    trap(
        "edge:other_value",
        S,
        sr(
            "        return 3.14159 * self.r * self.r\n",
            "        return pi * self.r * self.r\n",
            "shapes.py",
        ),
    )
    trap(
        "edge:other_value_near",
        S,
        sr(
            '    def area(self):\n        return 3.1416 * self.r * self.r\n\n    def name(self):\n        return "circle"\n',
            '    def area(self):\n        return pi * self.r * self.r\n\n    def name(self):\n        return "circle"\n',
            "shapes.py",
        ),
    )
    deep = "x = 1\nif x:\n    x = 1\n    print(x)\n"
    trap("edge:left", {"a.py": deep}, sr("x = 1\n", "x = 2\n", "a.py"))
    trap(
        "edge:indented",
        {"a.py": deep},
        sr("    x = 1\n", "    x = 2\n", "a.py"),
        {"a.py": swapped(deep, ("    x = 1", "    x = 2"))},
    )
    rst = "Title\n=======\n\nText.\n"
    trap("edge:divider", {"t.rst": rst}, sr("Title\n=======\n", "Name\n=======\n", "t.rst"))
    trap(
        "edge:cut",
        S,
        sr("    return 0\n", "    return 1\n", "shapes.py")
        + "```\n<<<<<<< SEARCH\nimport os\n=======\nimport re\n",
    )
    trap(
        "edge:one_of_two",
        S,
        sr("    return 0\n", "    return 1\n", "shapes.py")
        + sr("    return 7\n", "    return 8\n", "shapes.py"),
    )
    trap(
        "edge:in_turn",
        S,
        sr("import os\n", "import io\n", "shapes.py")
        + sr("import io\nimport sys\n", "import io\n", "shapes.py"),
        {"shapes.py": swapped(SHAPES, ("import os\nimport sys\n", "import io\n"))},
    )
    trap(
        "edge:half_done",
        {
            "shapes.py": swapped(
                SHAPES, ("    print(total(shapes))\n", '    print(total(shapes), "in all")\n')
            )
        },
        sr("    print(total(shapes))\n", '    print(total(shapes), "in all")\n', "shapes.py")
        + sr("import os\n", "import io\n", "shapes.py"),
        {
            "shapes.py": swapped(
                SHAPES,
                ("    print(total(shapes))\n", '    print(total(shapes), "in all")\n'),
                ("import os", "import io"),
            )
        },
    )
    trap("edge:done", S, sr("    print(sum(shapes))\n", "    print(total(shapes))\n", "shapes.py"))
    trap("edge:no_search", S, sr("", "x = 1\n", "shapes.py"))
    trap(
        "edge:only_added",
        S,
        diff("--- a/shapes.py\n+++ b/shapes.py\n@@ -1,0 +2,1 @@\n+import re\n"),
    )
    tabbed = "def f(a):\n\tif a:\n\t\treturn 1\n\treturn 2\n"
    trap(
        "edge:tabs",
        {"t.py": tabbed},
        sr("    return 2\n", "    if not a:\n        return 3\n    return 2\n", "t.py"),
        {"t.py": swapped(tabbed, ("\treturn 2\n", "\tif not a:\n\t\treturn 3\n\treturn 2\n"))},
    )
    trap(
        "edge:two_in_four",
        S,
        sr(
            "for shape in shapes:\n  result += shape.area()\n",
            "for shape in shapes:\n  if shape:\n    result += shape.area()\n",
            "shapes.py",
        ),
        {
            "shapes.py": swapped(
                SHAPES,
                (
                    "        result += shape.area()\n",
                    "        if shape:\n            result += shape.area()\n",
                ),
            )
        },
    )
    trap(
        "edge:crlf",
        S,
        sr("    return 0\n", "    return 1\n", "shapes.py").replace("\n", "\r\n"),
        {"shapes.py": swapped(SHAPES, ("return 0", "return 1"))},
    )
    trap(
        "edge:around",
        S,
        code(
            "    result = 0\n    for shape in shapes:\n        assert shape\n        result += shape.area()\n    return result\n",
            path="shapes.py",
        ),
        {
            "shapes.py": swapped(
                SHAPES,
                (
                    "        result += shape.area()\n",
                    "        assert shape\n        result += shape.area()\n",
                ),
            )
        },
    )
    trap(
        "edge:around_lost",
        S,
        code("    result = 0\n    for shape in shapes:\n    return result\n", path="shapes.py"),
    )
    trap(
        "edge:comma",
        {"a.py": "f(\n    one(a),\n    two(b),\n)\n"},
        sr("    one(a)\n", "    one(a, c)\n", "a.py"),
    )
    trap(
        "edge:import",
        {"a.py": "import os\nimport re\n\n\ndef f():\n    return os\n"},
        code("import json\nimport os\n\n\ndef f():\n    return json\n", path="a.py"),
    )

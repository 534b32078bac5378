"""Samples of data, markup and styles."""

from __future__ import annotations

from tests.unit.index.sample import Sample

SAMPLES = [
    Sample(
        "site/index.html",
        "html",
        """\
<!doctype html>
<html>
<head><title>Hello</title></head>
<body>
  <h1 id="top">Welcome</h1>
  <section id="news">
    <p class="a">Text</p>
  </section>
  <script>
    function greet() {}
  </script>
</body>
</html>
""",
        "element top, element news",
    ),
    Sample(
        "site/main.css",
        "css",
        """\
:root { --accent: #fff; }

.card, .card > a:hover {
  color: var(--accent);
}

#menu li { margin: 0 }

@media (max-width: 600px) {
  .card { display: none }
}

@keyframes spin { from { top: 0 } to { top: 1px } }
""",
        "selector :root, variable :root>--accent, selector .card, selector .card > a:hover, "
        "selector #menu li, selector .card, keyframes spin",
    ),
    Sample(
        "package.json",
        "json",
        """\
{
  "name": "x",
  "scripts": {
    "build": "tsc",
    "deep": {"deeper": {"deepest": 1}}
  },
  "list": [{"inner": 1}]
}
""",
        "key name, key scripts, key scripts>build, key scripts>deep, key list",
    ),
    Sample(
        ".github/workflows/ci.yml",
        "yaml",
        """\
name: ci
on: [push]
jobs:
  test:
    runs-on: ubuntu
    steps:
      - uses: checkout
---
other: 1
""",
        "key name, key on, key jobs, key jobs>test, key other",
    ),
    Sample(
        "pyproject.toml",
        "toml",
        """\
title = "x"

[project]
name = "lcursor"
dependencies = [
  "a",
]

[tool.ruff.lint]
select = ["E"]

[[bin]]
path = "b"
""",
        "key title, section project, key project>name, key project>dependencies, section "
        "tool.ruff.lint, key tool.ruff.lint>select, section bin, key bin>path",
    ),
    Sample(
        "README.md",
        "markdown",
        """\
# Thing

Does it.

## Install *now*

```sh
# not a heading
make
```

Use
===

End.
""",
        "section Thing, section Thing>Install *now*, section Thing>Install *now*>Use",
    ),
    Sample(
        "db/schema.sql",
        "sql",
        """\
CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);

CREATE INDEX users_name ON users (name);

CREATE VIEW active AS SELECT * FROM users;

CREATE FUNCTION total(a int) RETURNS int AS $$ SELECT a $$ LANGUAGE sql;

INSERT INTO users (name) VALUES ('a');
""",
        "table users, index users_name, view active, function total",
    ),
]

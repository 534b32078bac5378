"""The code index: searches the files of a project in milliseconds, and follows their changes.

    from lcursor.index.client import Client

    with Client.connect(root) as client:  # starts the worker process if none runs
        client.call("begin")
        client.search("where is the config file read", limit=3)
        # [Hit(path="app/config.py", first_row=12, end_row=40, scope="Config > load", ...), ...]

In the worker, `watch` reports changed files to `pipeline`, which has them parsed (`parse`,
`chunk`), stored (`store`) and embedded (`chunk_embedder`). `search` asks the words (`postings`),
the vectors (`vector_index`) and the names of definitions, and `rank` makes one list of it.
"""

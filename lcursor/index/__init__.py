"""The code index: search the files of a project in milliseconds, and follow their changes.

    from lcursor.index.client import Client

    with Client.connect(root) as client:  # starts the worker process if none runs
        client.call("begin")
        client.search("where is the config file read", limit=3)
        # [Hit(path="app/config.py", first_row=12, end_row=40, scope="Config > load", ...), ...]

In the worker, `watch` reports changed files to `pipeline`, which parses (`parse`, `chunk`), stores
(`store`) and embeds (`chunk_embedder`) them. `search` combines lexical search (`postings`), vector
search (`vector_index`) and symbol names, and `rank` merges the results.
"""

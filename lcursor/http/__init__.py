"""HTTP to model servers: requests that any thread can stop at once, and errors with a hint.

client = Client("http://127.0.0.1:8080", key="", setting="chat")
props = client.request("/props").json()
for event in sse.objects(client.stream("/v1/chat/completions", body), client.name): ...
"""

"""Train an adapter for completion: low-rank changes of the weights (LoRA).

A developer's tool. `samples` turns commits of public repositories into prompts as the product lays
them out, `fit` trains on them, and `lcursor.fim.quantize` writes a model with the changed weights
(15 is Q4_K_M):

    python3 -m venv .venv-train && .venv-train/bin/pip install -r requirements/train.in
    export PYTHONPATH=$(echo .venv/lib/*/site-packages)
    .venv/bin/python -m train.samples samples.npz --repo CLONE --repo CLONE
    .venv-train/bin/python -m train.fit MODEL.gguf samples.npz adapter.npz
    .venv/bin/python -m lcursor.fim.quantize MODEL.gguf merged.gguf 15 adapter.npz SHA256 trial

SHA256 is that of MODEL.gguf.

Only repositories with a permissive licence may be used.
"""

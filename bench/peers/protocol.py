"""The protocol of a peer: one process that holds the model and answers one JSON line per request.

    python PEER.py MODEL.gguf --threads 2 --context 1024
    -> {"ready": true, "name": "...", "version": "...", "build": "...", "load_ms": ...}
    {"do": "prefill", "ids": [...]}              -> {"tps": ..., "ms": ..., "tokens": ...}
    {"do": "decode", "ids": [...], "tokens": N}  -> {"tps": ..., "ms": ..., "tokens": N, "ids": [...]}

Every answer also has rss_bytes, the peak so far; a request that fails is answered by {"error": ...}. A peer may offer more.
"""

import argparse
import json
import resource
import sys


def serve(make, hello: dict, requests: tuple[str, ...]) -> int:
    """Makes the peer, make(model, threads, context) with an attribute load_ms, and answers stdin until it ends.

    hello names it; requests are the names of its methods, which take the members of a request and return its answer.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=1024)
    args = parser.parse_args()
    peer = make(args.model, args.threads, args.context)
    print(json.dumps({"ready": True, **hello, "load_ms": peer.load_ms}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            what = request.pop("do")
            if what not in requests:
                raise ValueError(f"this peer has no {what}")
            answer = getattr(peer, what)(**request)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            answer = dict(error=str(error))
        answer["rss_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps(answer), flush=True)
    return 0

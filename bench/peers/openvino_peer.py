"""OpenVINO GenAI as a measured peer; the same protocol as llama_cpp_peer.py.

The package converts a GGUF file at load. It reports its own times: prefill is the time to the first token, decode the
mean time of the tokens after it (their sum over tokens - 1).
"""

import argparse
import json
import resource
import sys
import time

import numpy as np
import openvino
import openvino_genai


class Peer:
    def __init__(self, model: str, threads: int):
        begin = time.perf_counter()
        properties = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
        self.pipe = openvino_genai.LLMPipeline(model, "CPU", **properties)
        self.load_ms = 1e3 * (time.perf_counter() - begin)

    def _generate(self, ids, tokens: int):
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = tokens
        config.min_new_tokens = tokens
        config.ignore_eos = True
        config.do_sample = False
        row = np.asarray([ids], dtype=np.int64)
        given = openvino_genai.TokenizedInputs(openvino.Tensor(row), openvino.Tensor(np.ones_like(row)))
        return self.pipe.generate(given, config)

    def prefill(self, ids) -> dict:
        ms = self._generate(ids, 1).perf_metrics.get_ttft().mean
        return dict(tps=1e3 * len(ids) / ms, ms=ms, tokens=len(ids))

    def decode(self, ids, tokens: int) -> dict:
        answer = self._generate(ids, tokens + 1)
        ms = answer.perf_metrics.get_tpot().mean
        return dict(tps=1e3 / ms, ms=ms * tokens, tokens=tokens, ids=[int(i) for i in answer.tokens[0][:tokens]])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=1024)  # part of the protocol; the cache here grows by itself
    args = parser.parse_args()
    peer = Peer(args.model, args.threads)
    hello = dict(ready=True, name="OpenVINO GenAI", version=openvino_genai.__version__, build="package wheel")
    print(json.dumps({**hello, "load_ms": peer.load_ms}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            what = {"prefill": peer.prefill, "decode": peer.decode}[request.pop("do")]
            answer = what(**request)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            answer = dict(error=str(error))
        answer["rss_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

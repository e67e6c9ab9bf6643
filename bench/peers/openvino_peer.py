"""OpenVINO GenAI as a measured peer (protocol.py).

The package converts a GGUF file at load. It reports its own times: prefill is the time to the first token, decode the
mean time of the tokens after it (their sum over tokens - 1).
"""

import sys
import time

import numpy as np
import openvino
import openvino_genai
import protocol


class Peer:
    def __init__(self, model: str, threads: int, _context: int):  # the cache here grows by itself
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


if __name__ == "__main__":
    hello = dict(name="OpenVINO GenAI", version=openvino_genai.__version__, build="package wheel")
    sys.exit(protocol.serve(Peer, hello, ("prefill", "decode")))

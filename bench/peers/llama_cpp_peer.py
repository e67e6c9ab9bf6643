"""llama.cpp as a measured peer (protocol.py), with one more request:

    {"do": "logits", "ids": [...], "out": FILE}  -> {"rows": T}

It goes through the package's low-level API as llama-bench goes through the C API: the cache is cleared, prompts go in as
one batch (split into micro-batches of 512 by the library) with logits for the last token only, generation is one token
a call. Choosing the next id (argmax) is outside the timed span, so sampling costs the peer nothing.
"""

import ctypes
import sys
import time

import llama_cpp
import numpy as np
import protocol


@llama_cpp.llama_log_callback
def _quiet(_level, _text, _user_data):
    pass


class Peer:
    def __init__(self, model: str, threads: int, context: int):
        llama_cpp.llama_log_set(_quiet, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        begin = time.perf_counter()
        self.model = llama_cpp.llama_model_load_from_file(model.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise RuntimeError("llama.cpp does not load this file")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = max(params.n_batch, context)
        params.n_threads = params.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            raise RuntimeError(f"llama.cpp makes no context of {context} positions")
        self.load_ms = 1e3 * (time.perf_counter() - begin)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.size = context

    def _clear(self) -> None:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)

    def _feed(self, ids) -> None:
        tokens = (llama_cpp.llama_token * len(ids))(*ids)
        status = llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(tokens, len(ids)))
        if status != 0:
            raise RuntimeError(f"llama_decode of {len(ids)} tokens answers {status}")
        llama_cpp.llama_synchronize(self.context)

    def _last_row(self) -> np.ndarray:
        row = llama_cpp.llama_get_logits_ith(self.context, -1)
        return np.ctypeslib.as_array(row, shape=(self.vocabulary,))

    def _check(self, count: int) -> None:
        if not 0 < count <= self.size:
            raise ValueError(f"{count} tokens do not fit the context of {self.size}")

    def prefill(self, ids) -> dict:
        self._check(len(ids))
        self._clear()
        begin = time.perf_counter()
        self._feed(ids)
        seconds = time.perf_counter() - begin
        return dict(tps=len(ids) / seconds, ms=1e3 * seconds, tokens=len(ids))

    def decode(self, ids, tokens: int) -> dict:
        self._check(len(ids) + tokens)
        self._clear()
        self._feed(ids)
        seconds, chosen = 0.0, []
        for _ in range(tokens):
            chosen.append(int(self._last_row().argmax()))
            begin = time.perf_counter()
            self._feed(chosen[-1:])
            seconds += time.perf_counter() - begin
        return dict(tps=tokens / seconds, ms=1e3 * seconds, tokens=tokens, ids=chosen)

    def logits(self, ids, out: str) -> dict:
        """Teacher-forced float32 logits [T, V]: one batch that asks for every row."""
        self._check(len(ids))
        self._clear()
        batch = llama_cpp.llama_batch_init(len(ids), 0, 1)
        try:
            batch.n_tokens = len(ids)
            for i, token in enumerate(ids):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, 1
            if llama_cpp.llama_decode(self.context, batch) != 0:
                raise RuntimeError(f"llama_decode of {len(ids)} tokens failed")
            rows = np.empty((len(ids), self.vocabulary), np.float32)
            for i in range(len(ids)):
                row = llama_cpp.llama_get_logits_ith(self.context, i)
                rows[i] = np.ctypeslib.as_array(row, shape=(self.vocabulary,))
        finally:
            llama_cpp.llama_batch_free(batch)
        np.save(out, rows)
        return dict(rows=len(ids))


if __name__ == "__main__":
    build = llama_cpp.llama_print_system_info().decode().strip(" |")
    hello = dict(name="llama.cpp", version=f"llama-cpp-python {llama_cpp.__version__}", build=build)
    sys.exit(protocol.serve(Peer, hello, ("prefill", "decode", "logits")))

"""Text to ids and back with the vocabulary inside a GGUF file, for making test prompts.

Teacher forcing needs sensible ids, not a certified tokenizer: the tokenizer tests judge hearth's own. Byte-level BPE
goes through the tokenizers package; SentencePiece vocabularies through a small merge loop over scores.
"""

import heapq

import gguf
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTROL = 3


class Words:
    """The vocabulary of one file. encode() adds the BOS id where the file asks for one."""

    def __init__(self, path):
        fields = gguf.GGUFReader(str(path)).fields

        def get(key, default=None):
            return fields[f"tokenizer.ggml.{key}"].contents() if f"tokenizer.ggml.{key}" in fields else default

        self.tokens = get("tokens")
        self.types = get("token_type")
        self.eos = get("eos_token_id")
        self.bos = get("bos_token_id") if get("add_bos_token", get("model") == "llama") else None
        self.model = get("model")
        self.index = {t: i for i, t in enumerate(self.tokens)}
        if self.model == "gpt2":
            merges = [tuple(m.split(" ", 1)) for m in get("merges")]
            self.bpe = Tokenizer(models.BPE(vocab=self.index, merges=merges))
            pattern = QWEN2 if get("pre") == "qwen2" else GPT2
            self.bpe.pre_tokenizer = pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Digits(individual_digits=True),
                    pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
                ]
            )
            self.bpe.decoder = decoders.ByteLevel()
        elif self.model == "llama":
            self.scores = get("scores")
        else:
            raise ValueError(f"no encoder for the tokenizer model {self.model}")

    def encode(self, text: str, bos: bool = True) -> list[int]:
        ids = self.bpe.encode(text, add_special_tokens=False).ids if self.model == "gpt2" else self._merge(text)
        return ([self.bos] if bos and self.bos is not None else []) + ids

    def decode(self, ids) -> str:
        if self.model == "gpt2":
            return self.bpe.decode([i for i in ids if self.types[i] != CONTROL], skip_special_tokens=False)
        raw = b""
        for i in ids:
            piece = self.tokens[i]
            if self.types[i] == CONTROL:
                continue
            byte = len(piece) == 6 and piece.startswith("<0x")
            raw += bytes([int(piece[3:5], 16)]) if byte else piece.replace("\u2581", " ").encode()
        return raw.decode("utf-8", "replace")

    def _merge(self, text: str) -> list[int]:
        """SentencePiece BPE: the pair with the highest score first, the leftmost among equals."""
        pieces = list(text.replace(" ", "\u2581"))
        after = list(range(1, len(pieces) + 1))
        before = list(range(-1, len(pieces) - 1))
        heap = []

        def offer(left):
            right = after[left]
            if right < len(pieces) and (i := self.index.get(pieces[left] + pieces[right])) is not None:
                heapq.heappush(heap, (-self.scores[i], left, pieces[left], pieces[right]))

        for left in range(len(pieces)):
            offer(left)
        while heap:
            _, left, a, b = heapq.heappop(heap)
            right = after[left]
            if pieces[left] != a or right >= len(pieces) or pieces[right] != b:
                continue
            pieces[left], pieces[right] = a + b, None
            after[left] = after[right]
            if after[right] < len(pieces):
                before[after[right]] = left
            offer(left)
            if before[left] >= 0:
                offer(before[left])
        ids = []
        for piece in pieces:
            if piece is None:
                continue
            if piece in self.index:
                ids.append(self.index[piece])
            else:
                ids.extend(self.index[f"<0x{byte:02X}>"] for byte in piece.encode())
        return ids

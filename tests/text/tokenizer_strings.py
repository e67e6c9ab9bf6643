"""Seeded text for the tokenizer oracles: something to train on, and strings that provoke every rule."""
import random
import unicodedata

# Assigned characters up to Unicode 13, which every Unicode table in play knows.
ASSIGNED = [c for c in range(0x32000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
            and c < 0x31350 and unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"]

POOLS = [
    [chr(c) for c in range(32, 127)],
    list(" \t\n\r\x0b\x85\u00a0\u2003\u3000  \n"),
    list("'s't're'veLLdmST\u017f\u2019"),
    list("0123456789\u00b2\u00bd\u0663\u2167\u2460"),
    [chr(c) for c in range(0x4E00, 0x4E40)] + list("ひらがなカタカナーㄱ한국어"),
    [chr(c) for c in range(0x300, 0x320)] + [chr(c) for c in range(0x900, 0x940)],
    list("\u00c0\u00c9\u00ee\u00f6ABCdef\u01c5\u02b0\u00aa\u00df\u0130\u0131\u03a3\u03c2\ufb01\u212b"),
    list("😀👍🏽\u200d👩👧🇩🇪\ufe0f"),
    list(".,!?/\\-_()[]{}<>|@#$%^&*+=~`\"\u00ab\u00bb\u2014\u2026\u3002"),
    list("\u0000\u0007\u001b\u007f\u00ad\u200b\ufeff\ufffd\u2581"),
    ["hello", " world", " The", "ing", "!!!", "//", "\r\n", "don't", "I'LL", " 2024", "  ", "\n\n", "##", "[UNK]", "<s>",
     "</s>", "<unk>", "<0x41>", "<|end|>", "<|tool|>", " <|tool|> ", "[CLS]", "abc<sep>def"],
]


def random_string(rng):
    """One to about forty characters from one to many pools."""
    size = rng.choice((0, 1, 1, 2, 3, 4, 6, 9, 14, 22, 40))
    out = []
    while len(out) < size:
        if rng.random() < 0.1:
            out.append(chr(rng.choice(ASSIGNED)))
        else:
            pool = rng.choice(POOLS)
            out += [rng.choice(pool) for _ in range(rng.randint(1, 5))]
    return "".join(out)


def random_strings(seed, count):
    rng = random.Random(seed)
    return [random_string(rng) for _ in range(count)]


def training_lines(seed, count=3000):
    """Lines of invented words whose frequencies fall like natural ones, with digits, punctuation and other scripts."""
    rng = random.Random(seed)
    syllables = ["ka", "to", "mi", "ne", "ru", "sha", "ing", "er", "the", "an", "st", "qu", "é", "ö", "ß", "ция", "на",
                 "ст", "ρα", "日", "本", "語", "の", "한", "국", "कि", "ता", "x", "y", "A", "B", "The", "I"]
    words = ["".join(rng.choice(syllables) for _ in range(rng.randint(1, 4))) for _ in range(1200)]
    lines = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(3, 14)):
            word = words[min(int(rng.paretovariate(0.9)) - 1, len(words) - 1)]
            parts.append(rng.choice(["", "", "", "(", "\""]) + word + rng.choice(["", "", "", ",", ".", "!", "'s", "n't"]))
            if rng.random() < 0.1:
                parts.append(str(rng.randint(0, 99999)))
        lines.append(" ".join(parts) + rng.choice(["", "\n", "  \n\n", "\t"]))
    return lines

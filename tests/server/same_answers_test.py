"""R-19, R-20b over HTTP: the same request has the same answer, whatever is cached and whoever asks beside it, and no key
learns from the cache what another one asked.

HEARTH_SAME_ANSWERS sets how many requests: 50, in the full tier 500.
"""
import concurrent.futures
import os
import random

import pytest
from running import Server, write_keys

COUNT = int(os.environ.get("HEARTH_SAME_ANSWERS") or (500 if os.environ.get("HEARTH_TEST_TIER") == "full" else 50))
WORDS = "river stone window apple winter letter garden silver morning bridge number yellow".split()


def asked(number):
    """Half of them greedy, half drawn with a seed; many begin alike, so that they share prefixes, some long enough for the disk."""
    rng = random.Random(number)
    words = random.Random(number % 5).choices(WORDS, k=24 if number % 5 else 280) + rng.choices(WORDS, k=rng.randrange(12))
    body = {"messages": [{"role": "user", "content": f"Tell of: {' '.join(words)}."}], "max_tokens": 8, "logprobs": True}
    return {**body, "temperature": 0} if number % 2 else {**body, "temperature": 1.0, "top_p": 0.95, "seed": number}


def answer_of(server, number, key=None):
    """The drawn ids with their log-probabilities, to the last bit, and how much of the prompt was cached."""
    answer = server.post("/v1/chat/completions", asked(number), headers={"Authorization": f"Bearer {key}"} if key else None, timeout=600)
    assert answer.status == 200, answer.body
    document = answer.json()
    tokens = document["choices"][0]["logprobs"]["content"]
    assert tokens
    return [(t["id"], t["logprob"]) for t in tokens], document["usage"]["prompt_tokens_details"]["cached_tokens"]


def among_others(server, seed):
    """Answers of all in a random order, eight at a time; and whether some of their prompts were cached."""
    order = random.Random(seed).sample(range(COUNT), COUNT)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = dict(zip(order, pool.map(lambda number: answer_of(server, number), order)))
    return {number: answer for number, (answer, _) in found.items()}, sum(cached > 0 for _, cached in found.values())


@pytest.mark.timeout(3600)
def test_the_same_request_has_the_same_answer(tmp_path, model_file):
    common = [model_file("smollm2"), "--context", "1024"]
    with Server(tmp_path, *common, "--batch", "1", "--prompt-cache", "0B") as server:
        alone = {}
        for number in range(COUNT):
            alone[number], cached = answer_of(server, number)
            assert cached == 0
    kept = ["--batch", "8", "--disk-cache", tmp_path / "kv"]
    with Server(tmp_path, *common, *kept) as server:
        assert among_others(server, 1)[0] == alone, "in company"
        warm, cached = among_others(server, 2)
        assert warm == alone and cached > COUNT // 2, "warm"
    with Server(tmp_path, *common, *kept) as server:
        assert among_others(server, 3)[0] == alone, "behind a restart"
        assert server.get("/stats").json()["disk_cache"]["restores"] > 0


def test_a_key_finds_nothing_of_another_ones_prompts(tmp_path, model_file):
    own, *others = "key-of-one-0123456789", "key-of-another-9876543210", "key-of-a-third-5432109876"
    keys = write_keys(tmp_path / "keys", own, *others)
    flags = ["--context", "1024", "--batch", "4", "--api-key-file", keys, "--disk-cache", tmp_path / "kv"]
    for other in others:  # with what is in memory, then with what is on the disk
        with Server(tmp_path, model_file("smollm2"), *flags) as server:
            mine = [answer_of(server, number, own) for number in (5, 5, 10)]
            assert mine[1][1] > 256 and mine[2][1] > 256, "its own key finds it"
            theirs, cached = answer_of(server, 5, other)
            assert cached == 0 and theirs == mine[0][0]

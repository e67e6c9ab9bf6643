"""R-19: how long a first token takes tells no key what another one has asked.

HEARTH_GUESSES sets how many prompts are guessed; 1000 by default.
"""
import math
import os
import random
import statistics
import time

import pytest
from running import Server, write_keys

GUESSES = int(os.environ.get("HEARTH_GUESSES") or 1000)
pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
VICTIM, GUESSER = "key-of-one-0123456789", "key-of-another-9876543210"
WORDS = "river stone window apple winter letter garden silver morning bridge number yellow".split()


def same_distribution(a, b):
    """The p-value of the two-sample test of Kolmogorov and Smirnov, by its limit for many values."""
    distance = ahead = 0
    for _, side in sorted([(value, 1 / len(a)) for value in a] + [(value, -1 / len(b)) for value in b]):
        ahead += side
        distance = max(distance, abs(ahead))
    root = math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    x = (root + 0.12 + 0.11 / root) * distance
    return min(1.0, max(0.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101)))) if x > 0.2 else 1.0


def test_the_measure_tells_a_shift_from_none():
    rng = random.Random(3)
    noise, same, shifted = ([rng.gauss(mean, 1) for _ in range(1000)] for mean in (0, 0, 0.2))
    assert same_distribution(noise, same) > 0.01 > same_distribution(noise, shifted)


def seconds_of(server, key, prompt):
    """Seconds until an answer of one token, and the tokens that were cached."""
    body = {"prompt": prompt, "max_tokens": 1, "temperature": 0}
    begin = time.perf_counter()
    answer = server.post("/v1/completions", body, headers={"Authorization": f"Bearer {key}"}, timeout=600)
    took = time.perf_counter() - begin
    assert answer.status == 200, answer.body
    return took, answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


def guesses(server, rng):
    """(prompts that another key has just asked, prompts that nobody has, prompts of one's own) in seconds."""
    known, unknown, own = [], [], []
    for _ in range(GUESSES):
        secret, control = (" ".join(rng.choices(WORDS, k=90)) for _ in range(2))
        seconds_of(server, VICTIM, secret)
        asked = [(secret, known), (control, unknown)]
        rng.shuffle(asked)  # whoever is first comes right behind the other key's request
        for prompt, times in asked:
            took, cached = seconds_of(server, GUESSER, prompt)
            assert cached < 10, "words that happen to be the first of both"
            times.append(took)
        took, cached = seconds_of(server, VICTIM, secret)
        assert cached > 80, cached
        own.append(took)
    return known, unknown, own


def test_a_guess_takes_as_long_whether_it_is_right_or_not(tmp_path, model_file):
    keys = write_keys(tmp_path / "keys", VICTIM, GUESSER)
    with Server(tmp_path, model_file("smollm2"), "--context", "1024", "--batch", "2", "--api-key-file", keys) as server:
        for again in (True, False):
            known, unknown, own = guesses(server, random.Random(19 + again))
            p = same_distribution(known, unknown)
            print(f"{GUESSES} guesses: {statistics.median(known) * 1e3:.2f} ms right, {statistics.median(unknown) * 1e3:.2f} wrong, "
                  f"{statistics.median(own) * 1e3:.2f} of one's own; p = {p:.3f}")
            assert same_distribution(own, unknown) < 0.01, "a hit is not to be seen: the test measures nothing"
            if p > 0.01:
                return  # one run of a hundred is below by chance, two in a row are not
        raise AssertionError(f"right and wrong guesses differ twice, p = {p:.5f}")

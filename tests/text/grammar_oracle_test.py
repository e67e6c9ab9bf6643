"""Grammars accept and reject what llguidance does, and random walks through them end in valid JSON.

HEARTH_GRAMMAR_SCHEMAS sets how many random schemas are compared: 600 by default.
"""
import datetime
import ipaddress
import itertools
import json
import os
import random
import re
import uuid

import pytest
from llguidance import LLMatcher, LLTokenizer
from text.schema_cases import Cases
from tool import run_tool

SCHEMAS = int(os.environ.get("HEARTH_GRAMMAR_SCHEMAS") or 600)
TEXTS = 12


def hearth_answers(requests):
    lines = run_tool("grammar", stdin="".join(json.dumps(r) + "\n" for r in requests).encode()).decode().split("\n")[:-1]
    assert len(lines) == len(requests)
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def tokenizer():
    return LLTokenizer("byte")


class Oracle:
    def __init__(self, tokenizer, grammar):
        self.tokenizer = tokenizer
        self.matcher = LLMatcher(tokenizer, grammar)
        self.error = self.matcher.get_error()

    def accepts(self, text):
        tokens = self.tokenizer.tokenize_bytes(text.encode())
        self.matcher.reset()
        return self.matcher.try_consume_tokens(tokens) == len(tokens) and self.matcher.is_accepting()


def plain(text):
    """Not one of the spellings that one side leaves out: an integer as 1.0, minus zero; the escape of a slash."""
    numbers = []
    if "\\/" in text:
        return False

    def note(spelling):
        numbers.append(spelling)
        return 0

    try:
        json.loads(text, parse_int=note, parse_float=note)
    except ValueError:
        return True
    return not any(n.endswith(".0") or "e" in n.lower() or float(n) == 0 and n.startswith("-") for n in numbers)


def compare(schemas, texts, tokenizer, overrides=None):
    """hearth's answers to the texts of each schema against the oracle's; what only one side takes is not compared."""
    asked = [{"kind": "schema", "whitespace": bool(overrides), "grammar": s, "texts": t} for s, t in zip(schemas, texts)]
    compared, refused, differences, accepted = 0, [], [], 0
    for number, (schema, text_list, answer) in enumerate(zip(schemas, texts, hearth_answers(asked))):
        oracle = Oracle(tokenizer, LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=overrides))
        if "error" in answer or oracle.error:
            refused.append((number, answer.get("error"), oracle.error))
            continue
        compared += 1
        for text, got in zip(text_list, answer["accepts"]):
            want = oracle.accepts(text)
            accepted += want
            if got != want:
                differences.append(f"schema {number}: hearth {got}, oracle {want}\n  {json.dumps(schema, ensure_ascii=False)}\n  {text}")
    one_sided = [r for r in refused if bool(r[1]) != bool(r[2])]
    assert not differences, f"{len(differences)} of {compared * TEXTS}:\n" + "\n".join(sorted(differences, key=len)[:6])
    assert not one_sided, f"{len(one_sided)} schemas are taken by one side alone: {one_sided[:5]}"
    assert compared >= len(schemas) * 5 // 6 and accepted > compared * 2, (compared, accepted)


def test_schemas_accept_and_reject_as_the_oracle_does(tokenizer):
    cases = [Cases(seed) for seed in range(SCHEMAS)]
    schemas = [c.document() for c in cases]
    compare(schemas, [list(filter(plain, c.texts(s, TEXTS))) for c, s in zip(cases, schemas)], tokenizer)


def spaced(text, seed):
    """The same JSON with white space between its tokens."""
    rng = random.Random(seed)
    out = []
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|[][{}:,]|[^][{}:," ]+| +', text):
        out += [token, "".join(rng.choice(" \t\r\n") for _ in range(rng.choice([0, 0, 1, 2, 9, 127])))]
    return "".join(out[:-1])


def test_any_whitespace_accepts_and_rejects_as_the_oracle_does(tokenizer):
    cases = [Cases(seed) for seed in range(2000, 2000 + SCHEMAS // 2)]
    schemas = [c.document() for c in cases]
    texts = [[spaced(t, i) for i, t in enumerate(filter(plain, c.texts(s, TEXTS)))] for c, s in zip(cases, schemas)]
    texts = [t + [x.replace(",", "," + " " * 129, 1) for x in t[:3] if "," in x] for t in texts]
    compare(schemas, texts, tokenizer, {"whitespace_pattern": r"[ \t\r\n]{0,128}"})


# Which members may come twice: names that the schema declares never, others do on both sides.
TWICE = [
    ({"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}}, ["a", "b", "x", "ab"]),
    ({"type": "object", "properties": {"a": {}}, "required": ["z"]}, ["a", "z", "x"]),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}}, ["a", "x"]),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, ["a", "x"]),
    ({"type": "object", "properties": {"ab": {}}, "patternProperties": {"^a": {"type": "integer"}}}, ["ab", "ac", "x"]),
    ({"type": "object", "allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, ["a", "b", "x"]),
    ({"type": "object"}, ["a", "b"]),
]


def test_members_come_twice_where_the_oracle_says_so(tokenizer):
    texts = []
    for schema, names in TWICE:
        needed = schema.get("required", [])
        lists = [list(t) for n in range(1, 4) for t in itertools.product(names, repeat=n)]
        texts.append(["{" + ", ".join(f'"{name}": {i}' for i, name in enumerate(members)) + "}" for members in lists
                      if not needed or set(needed) <= set(members)])  # fmt: skip
    answers = hearth_answers([{"kind": "schema", "grammar": s, "texts": t} for (s, _), t in zip(TWICE, texts)])
    for (schema, names), text_list, answer in zip(TWICE, texts, answers):
        oracle = Oracle(tokenizer, LLMatcher.grammar_from_json_schema(json.dumps(schema)))
        assert "error" not in answer and not oracle.error, (schema, answer, oracle.error)
        wrong = [text for text, got in zip(text_list, answer["accepts"]) if got != oracle.accepts(text)]
        assert not wrong, (schema, wrong[:8])
        declared = {n for part in [schema, *schema.get("allOf", [])] for n in [*part.get("properties", {}), *part.get("required", [])]}
        for text, accepted in zip(text_list, answer["accepts"]):
            members = re.findall(r'"(\w+)":', text)
            assert not accepted or all(members.count(name) == 1 for name in declared & set(members)), text


def test_walks_are_valid_by_the_oracle(tokenizer):
    schemas = [Cases(seed).document() for seed in range(1000, 1000 + SCHEMAS // 4)]
    answers = hearth_answers([{"kind": "schema", "grammar": s, "walks": 4, "seed": i} for i, s in enumerate(schemas)])
    walks = 0
    for seed, (schema, answer) in enumerate(zip(schemas, answers), 1000):
        if "error" in answer:
            assert "accepts no text" in answer["error"] or "oneOf" in answer["error"], answer
            continue
        oracle = Oracle(tokenizer, LLMatcher.grammar_from_json_schema(json.dumps(schema)))
        for text in answer["walks"]:
            json.loads(text)
            walks += 1
            # The oracle leaves out DEL, escapes that JSON does not need in names of members, some ends of bounded
            # fractions with a zero and some IPv6 addresses.
            left_out = re.search(r"\\[u/]|\x7f|\.[0-9]*0(?![0-9])", text) or "ipv6" in json.dumps(schema)
            if not left_out:
                assert oracle.error or oracle.accepts(text), f"seed {seed}: {json.dumps(schema)}\n{text}"
    assert walks > len(schemas)


FORMATS = {"date": datetime.date.fromisoformat, "uuid": uuid.UUID, "ipv4": ipaddress.IPv4Address, "ipv6": ipaddress.IPv6Address,
           "date-time": datetime.datetime.fromisoformat, "time": lambda t: datetime.time.fromisoformat(t[:8])}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_valid_by_the_standard_library(name):
    for seed in range(4):
        request = {"kind": "schema", "grammar": {"type": "string", "format": name}, "walks": 100, "seed": seed}
        walks = hearth_answers([request])[0]["walks"]
        assert len(walks) > 50
        for text in walks:
            value = json.loads(text)
            if name == "date-time" and "." in value:  # Python takes 3 or 6 digits of a second
                value = re.sub(r"\.[0-9]+", "", value)
            FORMATS[name](value)


REGEXES = ["abc", "a|b|cd", "(ab)*c", "[a-f]{2,5}x?", "[^a-c]+", "(a|b)*a(a|b){3}", ".{2,6}b", "x(y(z|w)?)*", "\\d{3}-\\d{4}",
           "[0-9]+(\\.[0-9]+)?", "(foo|foobar)(bar)?", "a{3}b{0,2}", "\\w+@\\w+", "[\\-a]+", "é+日?", "a?b?c?", "(a{2,3}){2}"]


def test_regexes_match_as_the_oracle_does(tokenizer):
    short = ["".join(t) for n in range(5) for t in itertools.product("abcx", repeat=n)]
    more = ["foobar", "foobarbar", "123-4567", "12.5", "1.", "a@b", "éé日", "aaab", "xyzyw", "-a-", "ffx", "xxxxxxb", "\n\nb"]
    answers = hearth_answers([{"kind": "regex", "grammar": r, "texts": short + more} for r in REGEXES])
    for regex, answer in zip(REGEXES, answers):
        oracle = Oracle(tokenizer, LLMatcher.grammar_from_regex(regex))
        assert "error" not in answer and not oracle.error, (regex, answer, oracle.error)
        wrong = [t for t, got in zip(short + more, answer["accepts"]) if got != oracle.accepts(t)]
        assert not wrong, (regex, wrong)


LARK = [('start: "a" start "b" | ""', ["", "ab", "aabb", "aab"]),
        ('start: item ("," item)*\nitem: /[a-z]+/ | "[" start "]"', ["a", "a,b", "[a,[b]]", "[a", "a,,b"]),
        ('start: sum\nsum: product ("+" product)*\nproduct: atom ("*" atom)*\natom: /[0-9]+/ | "(" sum ")"',
         ["1", "1+2*3", "(1+2)*3", "((1)", "1+"]),
        ('start: "x"~2..4 ["y"]', ["xx", "xxxxy", "x", "xxxxx"])]


def test_lark_grammars_match_as_the_oracle_does(tokenizer):
    answers = hearth_answers([{"kind": "ebnf", "grammar": g, "texts": t} for g, t in LARK])
    for (grammar, texts), answer in zip(LARK, answers):
        oracle = Oracle(tokenizer, LLMatcher.grammar_from_lark(grammar))
        if oracle.error and '["y"]' in grammar:
            oracle = Oracle(tokenizer, LLMatcher.grammar_from_lark('start: "x"{2,4} "y"?'))
        assert "error" not in answer and not oracle.error, (grammar, answer, oracle.error)
        assert answer["accepts"] == [oracle.accepts(t) for t in texts], grammar


def test_allowed_bytes_are_those_of_the_definition():
    probes = [({"type": "object", "properties": {"ab": {"type": "null"}}, "required": ["ab"], "additionalProperties": False},
               [("", "{"), ("{", '"'), ('{"', "a"), ('{"ab"', ":"), ('{"ab":', " n"), ('{"ab": n', "u"), ('{"ab":null', "}")]),
              ({"enum": [1, 12, "x"]}, [("", '1"'), ("1", "2"), ("12", "")])]
    requests = [{"kind": "schema", "grammar": s, "allowed": before} for s, pairs in probes for before, _ in pairs]
    wanted = [sorted(after.encode()) for _, pairs in probes for _, after in pairs]
    assert [a["allowed"] for a in hearth_answers(requests)] == wanted

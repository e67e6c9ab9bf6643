"""The oracle of the template tests: jinja2 with the settings of Hugging Face's apply_chat_template, and the program
under test driven over JSON lines."""
import copy
import datetime
import json
import pathlib
import re
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import jinja2.utils

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tools"))
from tool import run_tool  # noqa: E402

NOW = datetime.datetime(2026, 7, 4, 9, 5, 7)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_run"), [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class TemplateDict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: NOW.strftime(format)
    env.globals["dict"] = TemplateDict()
    return env


ENVIRONMENT = environment()


def expected(source, variables):
    """The oracle's text, or the exception it raised."""
    try:
        # A copy: some of jinja2's filters change a list in place.
        return ENVIRONMENT.from_string(source).render(**copy.deepcopy(variables))
    except Exception as error:  # noqa: BLE001 - whatever a template can raise
        return error


def run_cases(cases):
    """Answers of the program to [{template, variables} or {template, chat}], in order."""
    now = [NOW.year, NOW.month, NOW.day, NOW.hour, NOW.minute, NOW.second, NOW.weekday(), NOW.timetuple().tm_yday]
    lines = "".join(json.dumps({**case, "now": now}) + "\n" for case in cases)
    answers = [json.loads(line) for line in run_tool("render_template", stdin=lines.encode()).splitlines()]
    assert len(answers) == len(cases)
    return answers


def prints_address(text):
    """Whether the text of a generator or its like, with an address of the oracle's process, stands in it: perhaps
    reversed, changed in case or cut in letters."""
    letters = re.sub(r"[^a-z]", "", text.lower())
    return any(word in letters for word in ("generator", "rotareneg", "generbtor", "reversedobject", "builtinmethod"))


def differences(cases):
    """Cases whose answer differs from the oracle's: [(case, wanted, found)]. Errors must be errors on both sides."""
    found = []
    for case, answer in zip(cases, run_cases(cases)):
        wanted = expected(case["template"], case["variables"])
        if isinstance(wanted, str) and prints_address(wanted):
            continue
        if isinstance(wanted, Exception):
            if answer["ok"]:
                found.append((case, repr(wanted), answer["text"]))
        elif not answer["ok"] or answer["text"] != wanted:
            found.append((case, wanted, answer.get("text", answer.get("error"))))
    return found


def report(found):
    return "\n".join(f"{case['template']!r}\n  wanted {wanted!r}\n  found  {text!r}" for case, wanted, text in found[:20])

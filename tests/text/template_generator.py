"""Random templates over the variables of templates_test.py: grammar-driven, so most of them render.

The filters safe and escape are left out: they make Markup, whose repr and sums differ from a string's."""

NAMES = ["n", "s", "l", "d", "m", "x", "u", "a", "b", "i"]
STRINGS = ["''", "'a'", "'Hello World'", "'x,y,z'", "' pad '", "'h\u00e9\U0001f600'", "'1.5'", "'a\\nb'", "\"it's\""]
FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "string", "int", "float", "abs", "list", "first", "last", "sort",
           "reverse", "join", "join('-')", "default('d')", "tojson", "tojson(indent=1)", "replace('a', 'b')", "unique", "sum", "min", "max",
           "items", "dictsort", "round", "round(1)", "indent", "map('string')", "select", "reject('none')",
           "select('odd')", "map(attribute='k')", "selectattr('g', 'eq', 'x')", "batch(2)", "count"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "mapping", "sequence", "iterable", "boolean", "true",
         "false", "odd", "even", "equalto(1)", "in [1, 'a']", "divisibleby 2", "lower", "upper", "eq 'a'", "gt 2"]
METHODS = [".upper()", ".strip()", ".split(',')", ".split()", ".keys()", ".items()", ".values()", ".get('x')", ".get('q', 1)", ".lower()",
           ".startswith('h')", ".replace('l', 'L', 1)", ".find('o')", ".count('a')", ".title()", ".rsplit(' ', 1)", ".x", ".k", "['x']",
           "[0]", "[-1]", ".name", ".index(2)"]
SLICES = ["[1:]", "[::-1]", "[:2]"]  # on names alone: jinja2 folds a constant's wrong slice into an undefined value
OPERATORS = ["+", "-", "*", "//", "%", "/", "~", "==", "!=", "<", ">=", "and", "or", "in", "not in", "~", "~"]


def expression(rng, depth=0):
    roll = rng.random()
    if depth > 3 or roll < 0.3:
        kind = rng.random()
        if kind < 0.45:
            return rng.choice(NAMES)
        if kind < 0.7:
            return rng.choice(STRINGS)
        return rng.choice(["0", "1", "2", "7", "-3", "1.5", "2.0", "true", "false", "none", "1e3", "[]", "{}", "()"])
    sub = lambda: expression(rng, depth + 1)  # noqa: E731
    if roll < 0.5:
        return f"({sub()} {rng.choice(OPERATORS)} {sub()})"
    if roll < 0.65:
        return f"({sub()})|{rng.choice(FILTERS)}"
    if roll < 0.72:
        return f"({sub()} is {rng.choice(['', 'not '])}{rng.choice(TESTS)})"
    if roll < 0.84:
        return f"({sub()}){rng.choice(METHODS)}"
    if roll < 0.86:
        return rng.choice(NAMES) + rng.choice(SLICES)
    if roll < 0.88:
        return f"({sub()} if {sub()} else {sub()})"
    if roll < 0.91:
        return f"[{sub()}, {sub()}]"
    if roll < 0.94:
        return f"{{'x': {sub()}, 'k': {sub()}}}"
    if roll < 0.96:
        return f"({sub()}, {sub()})"
    if roll < 0.98:
        return f"(not {sub()})"
    return f"range({rng.randrange(5)})"


def tag(rng, body):
    return f"{{%{rng.choice(['', '', '-', '+'])} {body} {rng.choice(['', '', '-', '+'])}%}}"


def text(rng):
    return rng.choice(["", " ", "x", "\n", "\n  ", "  \n", "a b", "\t", "\n\n", "<|im|>", "{# c #}", "{#- c -#}"])


def block(rng, depth=0):
    out = []
    for _ in range(rng.randrange(1, 4)):
        roll = rng.random()
        if depth > 2 or roll < 0.45:
            minus = rng.choice(["", "", "-"])
            out.append(f"{{{{{minus} {expression(rng, 1)} {rng.choice(['', '-'])}}}}}")
        elif roll < 0.6:
            parts = [tag(rng, f"if {expression(rng, 1)}"), block(rng, depth + 1)]
            if rng.random() < 0.5:
                parts += [tag(rng, "else"), block(rng, depth + 1)]
            out.append("".join(parts) + tag(rng, "endif"))
        elif roll < 0.75:
            target = rng.choice(["i", "a", "i", "a, b"])
            source = rng.choice(["l", "m", "d.items()", "s", "range(3)", "u", "x.list", expression(rng, 2)])
            condition = f" if {expression(rng, 2)}" if rng.random() < 0.2 else ""
            inner = rng.choice(["", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.length }}", "{% if loop.index > 2 %}{% break %}{% endif %}"])
            out.append(tag(rng, f"for {target} in {source}{condition}") + inner + block(rng, depth + 1) + tag(rng, "endfor"))
        elif roll < 0.88:
            out.append(tag(rng, f"set {rng.choice(['a', 'b', 'u', 's'])} = {expression(rng, 1)}"))
        elif roll < 0.92:
            out.append(tag(rng, "set a") + block(rng, depth + 1) + tag(rng, "endset"))
        elif roll < 0.96:
            out.append(tag(rng, "macro f(a, b=1)") + block(rng, depth + 1) + tag(rng, "endmacro") + "{{ f(" + expression(rng, 2) + ") }}")
        else:
            out.append(tag(rng, "filter upper") + block(rng, depth + 1) + tag(rng, "endfilter"))
        out.append(text(rng))
    return "".join(out)


def random_template(rng):
    return text(rng) + block(rng)

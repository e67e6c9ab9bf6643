"""Random JSON schemas, values that fit them, and values that nearly do; all from a seed.

Kept to what both hearth and the oracle hold to alike: members in the schema's order, no escapes that JSON does not need,
numbers with bounds without exponent.
"""
import json
import random

WORDS = ["a", "ab", "name", "id", "x1", "value", "list", "über", "日本", "k\"q", "tab\t", "", "true", "0"]
KEYS = ["id", "name", "kind", "size", "tags", "next", "a b", "naïve", "na", "x-y", "q\"uote"]
PATTERNS = [("^[a-z]+$", ["abc", "z"]), ("^a{2,4}b?$", ["aa", "aaab"]), ("[0-9]{3}", ["x123", "12345"]),
            ("^(foo|bar)-[A-Z]{2}$", ["foo-AB", "bar-ZZ"]), ("^\\S+ \\S+$", ["a b", "x.y z"]), ("end$", ["the end", "end"]),
            ("^x?(y|z)*$", ["", "xyz", "zz"]), ("^[^abc]*$", ["def", "日"])]
FORMATS = {"date": ["2024-02-29", "1999-12-31"], "time": ["10:20:30Z", "23:59:59+01:00"],
           "date-time": ["2024-02-29T10:20:30Z"], "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
           "email": ["a.b@example.org"], "ipv4": ["10.0.255.1"], "ipv6": ["fe80::1", "1:2:3:4:5:6:7:8"],
           "uri": ["https://example.org/a?b=c"]}


class Cases:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, p):
        return self.random.random() < p

    def pick(self, items):
        return self.random.choice(items)

    def schema(self, depth=3, defs=()):
        """A schema; with `defs`, references to these names."""
        kinds = ["string", "integer", "number", "boolean", "null", "enum", "const", "types"]
        if depth > 0:
            kinds += ["object", "object", "object", "array", "array", "anyOf", "oneOf", "allOf"]
        if defs:
            kinds += ["ref", "ref"]
        return getattr(self, "make_" + self.pick(kinds))(depth, defs)

    def document(self):
        """A schema with definitions that may refer to each other."""
        if self.chance(0.7):
            return self.schema()
        names = [f"d{i}" for i in range(self.random.randint(1, 3))]
        schema = self.make_object(2, names)
        schema["$defs"] = {}
        for name in names:
            body = self.make_object(1, names)
            body["required"] = []  # so that recursion can end
            schema["$defs"][name] = body
        return schema

    def make_ref(self, depth, defs):
        return {"$ref": "#/$defs/" + self.pick(defs)}

    def make_boolean(self, depth, defs):
        return {"type": "boolean"}

    def make_null(self, depth, defs):
        return {"type": "null"}

    def make_types(self, depth, defs):
        return {"type": self.random.sample(["string", "integer", "boolean", "null"], 2)}

    def make_string(self, depth, defs):
        schema = {"type": "string"}
        what = self.random.random()
        if what < 0.4:
            low = self.random.randint(0, 4)
            if self.chance(0.6):
                schema["minLength"] = low
            if self.chance(0.7):
                schema["maxLength"] = low + self.random.randint(0, 6)
        elif what < 0.6:
            schema["pattern"] = self.pick(PATTERNS)[0]
        elif what < 0.75:
            schema["format"] = self.pick(sorted(FORMATS))
        return schema

    def bounds(self, schema, scale):
        low = self.random.randint(-30, 30) * scale
        if self.chance(0.6):
            schema[self.pick(["minimum", "exclusiveMinimum"])] = low
        if self.chance(0.6):
            schema[self.pick(["maximum", "exclusiveMaximum"])] = low + self.random.randint(2, 200) * scale
        return schema

    def make_integer(self, depth, defs):
        schema = self.bounds({"type": "integer"}, 1)
        if self.chance(0.15):
            return {"type": "integer", "multipleOf": self.pick([2, 3, 7, 10])}
        return schema

    def make_number(self, depth, defs):
        # Bounds of one digit: the oracle takes 24.7 for no number below 24.75.
        return self.bounds({"type": "number"}, self.pick([1, 0.5]))

    def make_enum(self, depth, defs):
        return {"enum": self.random.sample([*WORDS, 1, -7, 2.5, True, False, None], self.random.randint(1, 5))}

    def make_const(self, depth, defs):
        return {"const": self.pick([*WORDS, 3, None, True, [1, "a"], {"k": [], "l": {"m": 1}}])}

    def make_array(self, depth, defs):
        schema = {"type": "array"}
        if self.chance(0.3):
            schema["prefixItems"] = [self.schema(depth - 1, defs) for _ in range(self.random.randint(1, 3))]
            schema["items"] = self.schema(depth - 1, defs) if self.chance(0.5) else False
        else:
            schema["items"] = self.schema(depth - 1, defs)
        if schema["items"] is not False:
            low = self.random.randint(0, 2)
            if self.chance(0.5):
                schema["minItems"] = low
            if self.chance(0.5):
                schema["maxItems"] = low + self.random.randint(0, 3)
        return schema

    def make_object(self, depth, defs):
        keys = self.random.sample(KEYS, self.random.randint(0, 5))
        schema = {"type": "object", "properties": {k: self.schema(depth - 1, defs) for k in keys}}
        schema["required"] = [k for k in keys if self.chance(0.5)]
        if self.chance(0.6):
            schema["additionalProperties"] = False
        elif self.chance(0.5):
            schema["additionalProperties"] = self.make_integer(0, ())
        if self.chance(0.1):
            schema["patternProperties"] = {"^p_": self.make_string(0, ())}
        return schema

    def make_anyOf(self, depth, defs):
        return {"anyOf": [self.schema(depth - 1, ()) for _ in range(self.random.randint(1, 3))]}

    def make_oneOf(self, depth, defs):
        branches = [self.make_string(0, ()), self.make_integer(0, ()), {"type": "null"}, self.make_array(1, ())]
        return {"oneOf": self.random.sample(branches, 2)}

    def make_allOf(self, depth, defs):
        if self.chance(0.5):
            return {"allOf": [{"type": "integer", "minimum": self.random.randint(-5, 5)},
                              {"maximum": self.random.randint(6, 30), "type": "integer"}]}
        one, two = self.make_object(depth - 1, ()), self.make_object(depth - 1, ())
        for schema in (one, two):
            schema.pop("additionalProperties", None)
            schema.pop("patternProperties", None)
        two["properties"] = {k + "2": v for k, v in two["properties"].items()}
        two["required"] = [k + "2" for k in two["required"]]
        return {"allOf": [one, two]}

    def value(self, schema, root, depth=0):
        """A value that fits, mostly."""
        if "$ref" in schema:
            return self.value(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self.value(self.pick(schema[keyword]), root, depth)
        if "allOf" in schema:
            first, second = schema["allOf"]
            if first["type"] == "object":
                return {**self.value(first, root, depth), **self.value(second, root, depth)}
            return self.random.randint(first["minimum"], second["maximum"])
        if "enum" in schema:
            return self.pick(schema["enum"])
        if "const" in schema:
            return schema["const"]
        kind = schema["type"]
        if isinstance(kind, list):
            kind = self.pick(kind)
        return getattr(self, "value_" + kind)(schema, root, depth)

    def value_null(self, schema, root, depth):
        return None

    def value_boolean(self, schema, root, depth):
        return self.chance(0.5)

    def value_string(self, schema, root, depth):
        if "pattern" in schema:
            return self.pick(dict(PATTERNS)[schema["pattern"]])
        if "format" in schema:
            return self.pick(FORMATS[schema["format"]])
        low = schema.get("minLength", 0)
        size = self.random.randint(low, min(schema.get("maxLength", low + 8), low + 8))
        return "".join(self.pick("abc Zé日😀\"\\\n\t/{}[],:0") for _ in range(size))

    def number_range(self, schema):
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        if low is None:
            low = -50 if high is None else high - 50
        return low, low + 50 if high is None else high

    def value_integer(self, schema, root, depth):
        low, high = self.number_range(schema)
        n = self.random.randint(int(low), int(high))
        step = schema.get("multipleOf", 1)
        return n // step * step

    def value_number(self, schema, root, depth):
        low, high = self.number_range(schema)
        return self.pick([low, high, round(self.random.uniform(low, high), self.random.randint(1, 5)), int(low) + 1])

    def value_array(self, schema, root, depth):
        heads = schema.get("prefixItems", [])
        rest = schema["items"]
        low = schema.get("minItems", 0)
        size = self.random.randint(low, min(schema.get("maxItems", low + 3), low + 3)) if rest is not False else len(heads)
        out = []
        for i in range(size):
            item = heads[i] if i < len(heads) else rest
            out.append(self.value(item, root, depth + 1))
        return out

    def value_object(self, schema, root, depth):
        out = {}
        for key, inner in schema["properties"].items():
            if key in schema["required"] or (depth < 4 and self.chance(0.5)):
                out[key] = self.value(inner, root, depth + 1)
        extra = schema.get("additionalProperties", True)
        if extra is not False and self.chance(0.4):
            out["extra"] = 5 if isinstance(extra, dict) else self.pick([1, "s", [None], {"deep": True}])
        if "patternProperties" in schema and self.chance(0.5):
            out["p_1"] = self.value(schema["patternProperties"]["^p_"], root, depth + 1)
        return out

    def mutated(self, value):
        """The value with one thing changed somewhere."""
        if isinstance(value, dict) and value and self.chance(0.7):
            key = self.pick(list(value))
            what = self.random.randrange(4)
            if what == 0:
                return {k: v for k, v in value.items() if k != key}
            if what == 1:
                return {**value, "more": 1}
            return {k: self.mutated(v) if k == key else v for k, v in value.items()}
        if isinstance(value, list) and self.chance(0.8):
            if value and self.chance(0.6):
                i = self.random.randrange(len(value))
                return value[:i] + ([] if self.chance(0.4) else [self.mutated(value[i])]) + value[i + 1:]
            return value + [self.pick([1, "a", None])]
        if isinstance(value, bool) or value is None:
            return self.pick([True, None, 0, "null"])
        if isinstance(value, (int, float)) and self.chance(0.8):
            return self.pick([value + 1, value - 1, value + 100, -value or 1, value + 0.5, value - 0.125])
        if isinstance(value, str) and self.chance(0.8):
            at = self.random.randint(0, len(value))
            return self.pick([value + "x", value[:-1], value[:at] + "Q" + value[at:], value * 2, value[::-1]])
        return self.pick([1, "x", [], {}, None, True, [1]])

    def texts(self, schema, count):
        """Texts of values that fit or nearly do, compact and with spaces, some of them cut or garbled."""
        out = []
        for _ in range(count):
            try:
                value = self.value(schema, schema)
            except RecursionError:
                continue
            for _ in range(self.pick([0, 0, 1, 1, 2])):
                value = self.mutated(value)
            text = json.dumps(value, ensure_ascii=False, separators=self.pick([(",", ":"), (", ", ": ")]))
            if self.chance(0.1) and len(text) > 1:
                at = self.random.randrange(len(text))
                text = text[:at] + text[at + 1:]
            out.append(text)
        return out

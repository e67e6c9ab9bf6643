"""Writes curve.hvec: transfer curves of spec server 19. The cubics are found another way than the program does: the four
conditions of each piece (two values, two slopes) are solved for the coefficients of a polynomial in u. Exact rational
arithmetic on the logarithms; no packages. Seed 19. Run: python tests/vectors/make_curve_vectors.py"""
import math
import random
import struct
from fractions import Fraction

import hvec

rng = random.Random(19)


def tangents(u, v):
    n = len(u)
    d = [(v[i + 1] - v[i]) / (u[i + 1] - u[i]) for i in range(n - 1)]
    m = [d[0]] + [(d[i - 1] + d[i]) / 2 for i in range(1, n - 1)] + [d[-1]]
    for i in range(n - 1):
        if d[i] == 0:
            m[i] = m[i + 1] = Fraction(0)
        elif (m[i] / d[i]) ** 2 + (m[i + 1] / d[i]) ** 2 > 9:
            a, b = m[i] / d[i], m[i + 1] / d[i]
            tau = Fraction(3 / math.sqrt(a * a + b * b))
            m[i], m[i + 1] = tau * a * d[i], tau * b * d[i]
    return m


def solve(rows):
    """Gauss on [coefficients | right side], exact."""
    n = len(rows)
    for i in range(n):
        pivot = next(r for r in range(i, n) if rows[r][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i])]
    return [row[n] for row in rows]


def curve(u, v, m, at):
    if at < u[0]:
        return v[0] + max(Fraction(1), m[0]) * (at - u[0])
    if at >= u[-1]:
        return v[-1] + m[-1] * (at - u[-1])
    i = max(i for i in range(len(u) - 1) if u[i] <= at)
    value = lambda x: [1, x, x * x, x ** 3]
    slope = lambda x: [0, 1, 2 * x, 3 * x * x]
    rows = [value(u[i]) + [v[i]], value(u[i + 1]) + [v[i + 1]], slope(u[i]) + [m[i]], slope(u[i + 1]) + [m[i + 1]]]
    return sum(c * x for c, x in zip(solve([[Fraction(x) for x in row] for row in rows]), value(at)))


out = {}
curves = [[(0.01, 0.01), (100, 100)], [(1, 0.1), (100, 100)], [(0.1, 5), (1, 5), (10, 5), (50, 90)],
          [(0.5, 1e-6), (1, 50), (100, 51)], [(1, 1), (2, 80), (90, 100)]]
for n in (3, 5, 9, 64):
    x = sorted(rng.uniform(math.log(1e-4), math.log(100)) for _ in range(n))
    y = sorted(rng.uniform(math.log(1e-5), math.log(100)) for _ in range(n))
    curves.append([(math.exp(a), math.exp(b)) for a, b in zip(x, y)])
for k, points in enumerate(curves):
    points = [(min(x, 100.0), min(y, 100.0)) for x, y in points]
    u = [Fraction(math.log(x / 100)) for x, _ in points]
    v = [Fraction(math.log(y / 100)) for _, y in points]
    m = tangents(u, v)
    at = [rng.uniform(-25, 0) for _ in range(40)] + [float(x) for x in u] + [0.0]
    got = [float(curve(u, v, m, Fraction(x))) for x in at]
    pack = lambda values: struct.pack(f"<{len(values)}d", *values)
    out[f"{k}.points"] = pack([p for point in points for p in point])
    out[f"{k}.l"], out[f"{k}.value"] = pack(at), pack(got)
hvec.write("curve.hvec", out)

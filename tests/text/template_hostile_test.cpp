// hostile templates end with a typed error, bounded by steps and sizes alone: the clock stands still here.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "text/template/template.h"

namespace hearth::text::jinja {
namespace {

std::string times(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

std::string nested_loops(int depth, const std::string& body) {
  return times("{% for a in range(1000) %}", depth) + body + times("{% endfor %}", depth);
}

std::vector<std::string> hostile() {
  return {
      "{{ range(10**9)|list }}",
      "{% for i in range(1000000000) %}{% endfor %}",
      "{{ range(0, -1000000000, -1)|length }}",
      nested_loops(2, "x{{ a }}"),
      nested_loops(3, ""),
      nested_loops(30, ""),
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson "
      "}}",
      "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(64) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, "
      "ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
      "{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}",
      "{% set l = [1] %}{% for i in l %}{% set _ = l.append(i) %}{% endfor %}",
      "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
      "{{ 'x' * 1000000000 }}",
      "{{ 'x' * 9223372036854775807 }}",
      "{{ [1] * 1000000000 }}",
      "{{ 10 ** 1000 }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ 99999999999999999999999 }}",
      "{{ 'x'.center(1000000000) }}",
      "{{ 'x'.ljust(1000000000) }}",
      "{{ 'x'.zfill(1000000000) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '%.1000000000f' % 1.5 }}",
      "{{ '%*d' % (1000000000, 1) }}",
      "{{ '{:1000000000}'.format(1) }}",
      "{{ 'a\nb'|indent(1000000000) }}",
      "{{ [1]|tojson(indent=1000000000) }}",
      "{{ [1]|batch(1000000000, 'x')|list }}",
      "{{ [1]|slice(1000000000)|list }}",
      "{{ ('a' * 4000000).replace('a', 'b' * 1000) }}",
      "{{ ('a' * 4000000)|replace('', 'b' * 1000) }}",
      "{{ ('a ' * 4000000).split() }}",
      "{% for i in range(1000) %}{{ 'x' * 1000000 }}{% endfor %}",
      "{% set x %}{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}{% endset %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
      "{% macro f() %}{% call f() %}{% endcall %}{{ caller() }}{% endmacro %}{{ f() }}",
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
      "{% set t = [] %}{% set _ = t.append(t) %}{% for x in t recursive %}{{ loop(x) }}{% endfor %}",
      "{{ ''.__class__ }}",
      "{{ ''.__class__.__mro__[1].__subclasses__() }}",
      "{{ cycler.__init__.__globals__.os }}",
      "{{ ''['__class__'] }}",
      "{{ ''|attr('__class__') }}",
      "{{ '{0.__class__}'.format('') }}",
      "{{ [''].__class__ }}",
      "{{ [{}]|map(attribute='__class__')|list }}",
      "{{ namespace(__class__=1) }}",
      "{% set ns = namespace() %}{% set ns._x = 1 %}",
      "{{ raise_exception.__globals__ }}",
      "{{ messages.__class__ }}",
      "{{ {}.update({'a': 1}) }}",
      "{{ [1].sort() }}",
      "{% import 'os' as os %}",
      "{% include '/etc/passwd' %}",
      "{% from 'x' import y %}",
      "{% extends 'x' %}",
      "{{ self.x }}",
      "{{ config.items() }}",
      "{{ lipsum() }}",
      times("(", 5000),
      "{{ " + times("(", 5000) + "1" + times(")", 5000) + " }}",
      "{{ " + times("[", 5000) + times("]", 5000) + " }}",
      "{{ " + times("-", 5000) + "1 }}",
      "{{ " + times("not ", 5000) + "1 }}",
      "{{ x" + times(".a", 5000) + " }}",
      "{{ x" + times("|list", 5000) + " }}",
      "{{ " + times("1 if 1 else ", 5000) + "1 }}",
      times("{% if 1 %}", 5000),
      times("{% for a in b %}", 5000) + times("{% endfor %}", 5000),
      "{% set ns = namespace(x=[1]) %}{% for i in range(1000) %}{% set ns.x = ns.x|map('string') %}{% endfor %}{{ "
      "ns.x|list }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = ns.x|select %}{% endfor %}{{ ns.x|list }}",
      "{{ range(100000)|map('string')|map('list')|map('join')|list|sort|join|length }}{{ range(100000)|unique|list }}",
      "{{ dict(range(100000)|map('list')) }}",
      "{% set ns = namespace(d={}) %}{% for i in range(100000) %}{% set ns.d = dict(ns.d, **{i|string: i}) %}{% endfor "
      "%}",
      "{{ f(*range(100000)) }}",
      "{{ 1 // 0 }}",
      "{{ strftime_now('%1000000000d') }}",
      "{{ raise_exception('no') }}",
  };
}

RenderLimits still_clock() {
  RenderLimits limits;
  limits.now_ms = [] { return int64_t{0}; };
  return limits;
}

TEST(HostileTemplate, each_ends_with_a_typed_error) {
  const std::vector<std::string> sources = hostile();
  ASSERT_GE(sources.size(), 50u);
  for (const std::string& source : sources) {
    // A list of parentheses outside of tags is text.
    if (source[0] == '(') {
      EXPECT_EQ(Template(source, "t").render({}, still_clock()).text, source);
      continue;
    }
    try {
      const std::string text = Template(source, "t").render({}, still_clock()).text;
      ADD_FAILURE() << source.substr(0, 200) << " gave " << text.size() << " bytes";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument) << source.substr(0, 200);
      EXPECT_NE(std::string(e.what()).find("t, line "), std::string::npos) << e.what();
    }
  }
}

TEST(HostileTemplate, the_clock_ends_a_render) {
  RenderLimits limits;
  int64_t now = 0;
  limits.now_ms = [&] { return now += 10; };  // each look costs 10 ms
  try {
    Template("{% for i in range(100000) %}{{ i }}{% endfor %}", "t").render({}, limits);
    ADD_FAILURE() << "the render did not end";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("250 ms"), std::string::npos) << e.what();
    EXPECT_LE(now, 300);
  }
}

TEST(HostileTemplate, steps_bound_the_work) {
  RenderLimits limits = still_clock();
  limits.steps = 1000;
  EXPECT_THROW(Template("{% for i in range(1000) %}{{ i }}{% endfor %}", "t").render({}, limits), Error);
  EXPECT_EQ(Template("{% for i in range(10) %}{{ i }}{% endfor %}", "t").render({}, limits).text, "0123456789");
}

TEST(HostileTemplate, output_is_bounded) {
  RenderLimits limits = still_clock();
  limits.output_bytes = 100;
  EXPECT_THROW(Template("{% for i in range(101) %}x{% endfor %}", "t").render({}, limits), Error);
  EXPECT_EQ(Template("{% for i in range(100) %}x{% endfor %}", "t").render({}, limits).text, std::string(100, 'x'));
}

TEST(HostileTemplate, sources_are_bounded_and_utf8) {
  EXPECT_THROW(Template(std::string(2 << 20, 'x'), "t"), Error);
  EXPECT_THROW(Template("\xFF", "t"), Error);
}

TEST(Template, errors_name_template_and_line) {
  const auto message = [](const std::string& source) -> std::string {
    try {
      Template(source, "demo").render({}, still_clock());
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message("a\n\n{{ x.y }}"), "demo, line 3: 'x' is undefined");
  EXPECT_EQ(message("a\n{% if %}"), "demo, line 2: expected an expression, found '%}'");
  EXPECT_EQ(message("{% for i in range(2) %}\n{{ raise_exception('No: ' ~ i) }}\n{% endfor %}"), "demo, line 2: No: 0");
  EXPECT_EQ(message("\n{{ strftime_now('%Y') }}"), "demo, line 2: the template asks for the time and none was given");
}

}  // namespace
}  // namespace hearth::text::jinja

// Limits of templates and grammars (reliability.md section 3), each one below, at and above, and their names.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/limit_error.h"
#include "text/grammar/grammar.h"
#include "text/template/template.h"

namespace hearth::text {
namespace {

// "" where it is taken, else the name of the limit.
std::string passed(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const LimitError& error) {
    return error.limit();
  }
}

// The least value of a limit that takes it.
int64_t least(const std::function<void(int64_t)>& work, int64_t high) {
  int64_t low = 0;  // refused
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (passed([&] { work(middle); }).empty() ? high : low) = middle;
  }
  return high;
}

// With `need` of what the limit bounds.
void check(std::string_view name, int64_t need, const std::function<void(int64_t)>& work) {
  EXPECT_EQ(passed([&] { work(need - 1); }), name) << need;
  EXPECT_EQ(passed([&] { work(need); }), "") << need;
  EXPECT_EQ(passed([&] { work(need + 1); }), "") << need;
}

std::string render(std::string_view source, const jinja::RenderLimits& limits) {
  return jinja::Template(source, "a template").render({}, limits).text;
}

std::string repeated(std::string_view text, int n) {
  std::string out;
  while (n-- > 0) out += text;
  return out;
}

// fuel, output, ranges, depth and time.
TEST(Limits, of_templates) {
  const std::string loop = "{% for i in range(500) %}{{ i }}{% endfor %}";
  const auto steps = [&](int64_t n) { render(loop, {.steps = n}); };
  const int64_t need = least(steps, 100'000);
  EXPECT_GT(need, 500);
  check("template-steps", need, steps);
  check("template-output", 1000, [&](int64_t n) {
    EXPECT_EQ(render("{% for i in range(500) %}ab{% endfor %}", {.output_bytes = n}).size(), 1000u);
  });
  check("template-output", 1000, [&](int64_t n) { render("{{ ('ab' * 500) | length }}", {.output_bytes = n}); });
  check("template-range", 500, [&](int64_t n) { render(loop, {.range_max = n}); });
  const std::string nested = "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(9) }}";
  check("template-recursion", 10, [&](int64_t n) { render(nested, {.recursion = static_cast<int>(n)}); });
  check("template-time", 100, [&](int64_t n) {
    int64_t now = 0;
    render("{% for i in range(5000) %}{{ i }}{% endfor %}",
           {.wall_ms = n, .now_ms = [&now] { return std::exchange(now, 100); }});
  });
}

// size, depth and work.
TEST(Limits, of_grammars) {
  const std::string source = "[a-z]{3}" + repeated("x", 92);
  check("grammar-bytes", 100, [&](int64_t n) { compile_regex(source, {.bytes = static_cast<size_t>(n)}); });
  const std::string ebnf = "root ::= \"" + repeated("a", 88) + "\"";
  ASSERT_EQ(ebnf.size(), 99u);
  check("grammar-bytes", 99, [&](int64_t n) { compile_ebnf(ebnf, {.bytes = static_cast<size_t>(n)}); });
  const std::vector<std::string> words = {"one", "three"};
  check("grammar-bytes", 8, [&](int64_t n) { compile_choice(words, {.bytes = static_cast<size_t>(n)}); });
  json::Object schema;
  schema["const"] = "a text of some length";
  const auto of_schema = [&](int64_t n) { compile_json_schema(schema, {}, {.bytes = static_cast<size_t>(n)}); };
  check("grammar-bytes", least(of_schema, 1000), of_schema);

  const auto groups = [](int n) { return repeated("(", n) + "a" + repeated(")", n); };
  check("grammar-depth", 9, [&](int64_t n) { compile_regex(groups(9), {.depth = static_cast<int>(n)}); });
  check("grammar-depth", 9, [&](int64_t n) {
    compile_ebnf("root ::= " + repeated("(", 9) + "\"a\"" + repeated(")", 9), {.depth = static_cast<int>(n)});
  });
  const auto work = [](int64_t n) { compile_regex("[a-z]{1,40}(foo|bar)*", {.work = n}); };
  const int64_t need = least(work, GrammarLimits{}.work);
  EXPECT_GT(need, 100);
  check("grammar-work", need, work);
}

}  // namespace
}  // namespace hearth::text

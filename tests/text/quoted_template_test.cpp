// Which bytes of a rendered text the template wrote, and which it quotes from its input.
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "text/chat_template.h"

namespace hearth::text {
namespace {

// The text with every quoted stretch in brackets.
std::string marked(const Rendered& r) {
  std::string out;
  size_t done = 0;
  for (const ByteRange& q : r.quoted) {
    EXPECT_LT(q.begin, q.end);
    EXPECT_TRUE(q.begin >= done && q.end <= r.text.size());
    EXPECT_TRUE(out.empty() || q.begin > done || done == 0) << "two stretches touch";
    out += r.text.substr(done, q.begin - done) + "[" + r.text.substr(q.begin, q.end - q.begin) + "]";
    done = q.end;
  }
  return out + r.text.substr(done);
}

std::string render(std::string_view source) {
  const json::Value input = json::parse(
      R"({"s": "<|x|>", "t": "  Ab <|x|> cd ", "k": {"<|k|>": "v", "n": 7}, "l": ["a", "b"], "lines": "one\ntwo"})",
      "in");
  jinja::RenderInput values;
  for (const auto& [name, value] : *input.object()) values.variables.emplace_back(name, &value);
  return marked(jinja::Template(source, "test").render(values));
}

TEST(Quoted, text_and_constants_are_the_templates_own) {
  EXPECT_EQ(render("a{{ 'b' }}c"), "abc");
  EXPECT_EQ(render("a{{ s }}c"), "a[<|x|>]c");
  EXPECT_EQ(render("{{ s }}{{ s }}"), "[<|x|><|x|>]");
  EXPECT_EQ(render("{{ '' ~ s[:0] }}"), "");
  EXPECT_EQ(render("{{ 'a' if s == '<|x|>' else 'b' }}"), "a");
  EXPECT_EQ(render("{{ {'<|x|>': '<|user|>'}[s] }}"), "<|user|>");
}

TEST(Quoted, parts_keep_their_origin) {
  EXPECT_EQ(render("{{ t.strip() }}"), "[Ab <|x|> cd]");
  EXPECT_EQ(render("{{ t | trim }}|"), "[Ab <|x|> cd]|");
  EXPECT_EQ(render("{{ t.split('<|x|>')[1] }}|"), "[ cd ]|");
  EXPECT_EQ(render("{{ t[2:4] }}{{ ('ab' ~ s ~ 'cd')[1:4] }}"), "[Ab]b[<|]");
  EXPECT_EQ(render("{{ ('ab' ~ s)[::-1] }}"), "[>|x|<]ba");
  EXPECT_EQ(render("{% for c in 'a' ~ s %}{{ c }}.{% endfor %}"), "a.[<].[|].[x].[|].[>].");
  EXPECT_EQ(render("{{ ('q' ~ s).partition('<')[2] }}{{ s.removeprefix('<') }}{{ lines.splitlines()[1] }}"),
            "[|x|>|x|>two]");
}

TEST(Quoted, joined_strings_keep_the_origin_of_each_part) {
  EXPECT_EQ(render("{{ 'a' + s + 'b' }}"), "a[<|x|>]b");
  EXPECT_EQ(render("{{ 'a' ~ s ~ 1 ~ 'b' }}"), "a[<|x|>1]b");
  EXPECT_EQ(render("{{ ['a', s, 'b'] | join('-') }}"), "a-[<|x|>]-b");
  EXPECT_EQ(render("{{ '-'.join(l) }}"), "[a]-[b]");
  EXPECT_EQ(render("{{ ('a' ~ s) * 2 }}"), "a[<|x|>]a[<|x|>]");
  EXPECT_EQ(render("{{ s.replace('x', '<|end|>') }}"), "[<|]<|end|>[|>]");
  EXPECT_EQ(render("{{ 'a<|end|>b' | replace('a', s) }}"), "[<|x|>]<|end|>b");
  EXPECT_EQ(render("{{ '<%s|%-6s>' % (s, 'ab') }}"), "<[<|x|>]|ab[    ]>");
  EXPECT_EQ(render("{{ '<{}|{{{:.1}>'.format(s, 'ab') }}"), "<[<|x|>]|{a>");
  EXPECT_EQ(render("{{ ('a' ~ s).ljust(8, '.') }}"), "a[<|x|>]..");
  EXPECT_EQ(render("{{ ('a\n' ~ s) | indent(2, true) }}"), "[  ]a[\n  <|x|>]");
  EXPECT_EQ(render("{{ ('a' ~ s ~ 'bcdefghijkl') | truncate(9, true, '...', 0) }}"), "a[<|x|>]...");
}

TEST(Quoted, captured_output_keeps_it_too) {
  EXPECT_EQ(render("{% set v %}<|a|>{{ s }}<|b|>{% endset %}{{ v | trim }}"), "<|a|>[<|x|>]<|b|>");
  EXPECT_EQ(render("{% macro m(v) %}<|a|>{{ v }}{% endmacro %}{{ m(s) ~ m('q') }}"), "<|a|>[<|x|>]<|a|>q");
  EXPECT_EQ(render("{% filter upper %}a{% endfilter %}{% filter trim %} a{{ s }}{% endfilter %}"), "Aa[<|x|>]");
  EXPECT_EQ(render("{% macro m() %}<|a|>{{ caller() }}{% endmacro %}{% call m() %}q{{ s }}{% endcall %}"),
            "<|a|>q[<|x|>]");
  EXPECT_EQ(
      render("{% set n = namespace(v='') %}{% for p in l %}{% set n.v = n.v ~ '<|i|>' ~ p %}{% endfor %}{{ n.v }}"),
      "<|i|>[a]<|i|>[b]");
}

TEST(Quoted, another_case_is_the_templates_where_all_of_it_is) {
  EXPECT_EQ(render("{{ 'ab' | upper }}{{ s | upper }}{{ ('a' ~ s).title() }}"), "AB[<|X|>A<|X|>]");
  EXPECT_EQ(render("{{ 'a<b' | escape }}{{ s | e }}"), "a[&lt;]b[&lt;|x|&gt;]");
}

TEST(Quoted, json_and_reprs_quote_what_they_show) {
  EXPECT_EQ(render("{{ k | tojson }}"), R"([{"<|k|>": "v", "n": 7}])");
  EXPECT_EQ(render("{{ ['<|a|>', s] | tojson }}"), R"([["]<|a|>[", "<|x|>"]])");
  EXPECT_EQ(render("{{ ['<|a|>', s] }}{{ k }}"), R"([[']<|a|>[', '<|x|>']{'<|k|>': 'v', 'n': 7}])");
  EXPECT_EQ(render("{{ 7 }}{{ none }}{{ 1.5 }}{{ true }}"), "[7None1.5True]");
}

TEST(Quoted, of_a_conversation_only_names_of_roles_are_trusted) {
  const ChatTemplate t(
      "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.name }}:{{ m.content }}{{ eos_token }}{% endfor %}"
      "{{ tools }}{{ extra }}");
  ChatInput in;
  in.messages = json::parse(R"([{"role": "user", "name": "<|n|>", "content": "<|c|>"},
                                {"role": "a|>b", "content": "user"}, {"role": "", "content": ""}])",
                            "messages");
  in.bos_token = "<s>";
  in.eos_token = "</s>";
  in.extra["extra"] = "<|e|>";
  in.tools = json::parse(R"(["<|t|>"])", "tools");
  EXPECT_EQ(marked(t.render_marked(in)),
            "<s><|user|>[<|n|>]:[<|c|>]</s><|[a|>b]|>:[user]</s><||>:</s>[['<|t|>']<|e|>]");
}

TEST(Quoted, a_renamed_developer_is_a_role_as_well) {
  const ChatTemplate t("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}");
  ChatInput in;
  in.messages = json::parse(R"([{"role": "developer", "content": [{"type": "text", "text": "a"}, "b"]}])", "messages");
  EXPECT_EQ(marked(t.render_marked(in)), "<|system|>[a\nb]");
}

TEST(Quoted, making_many_pieces_costs_steps) {
  // 2^17 alternations of the two origins: the budget ends it, not the memory.
  const std::string doubling =
      "{% set n = namespace(v='a') %}{% for i in range(40) %}{% set n.v = n.v ~ s ~ n.v %}"
      "{% endfor %}{{ n.v | length }}";
  EXPECT_THROW(render(doubling), Error);
}

}  // namespace
}  // namespace hearth::text

#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/ascii.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/template/ast.h"
#include "text/template/interpreter.h"
#include "text/template/unicode.h"

namespace hearth::text {
namespace {

using jinja::Expr;
using jinja::ExprKind;
using jinja::Stmt;
using jinja::StmtKind;
using jinja::Symbol;
using jinja::Target;
using jinja::Type;

constexpr std::array<std::string_view, 6> kInputNames = {"messages",  "tools",    "documents", "add_generation_prompt",
                                                         "bos_token", "eos_token"};
constexpr std::array<std::string_view, 5> kTokenNames = {"unk_token", "pad_token", "sep_token", "cls_token",
                                                         "mask_token"};

bool is_string_constant(const Expr* e, std::string_view s) {
  return e && e->kind == ExprKind::constant && e->value.is(Type::string) && e->value.str() == s;
}

// Finds whether a template looks into content that is a list: a loop over the content, or a part taken by number.
// Content is `x.content`, `x['content']`, a name `content`, or a name that was set to one of these.
class PartsFinder {
 public:
  explicit PartsFinder(const jinja::Ast& ast) {
    // Names first, until no assignment adds one, so that the order of statements does not matter.
    for (size_t before = SIZE_MAX; before != names_.size();) {
      before = names_.size();
      for (const auto& s : ast.stmts)
        if (s->kind == StmtKind::set && s->target.name && !s->target.attribute && is_content(s->expr))
          names_.insert(*s->target.name);
    }
    for (const auto& s : ast.stmts)
      if (s->kind == StmtKind::for_loop && is_content(s->expr)) found_ = true;
    for (const auto& e : ast.exprs)
      if (e->kind == ExprKind::item && is_content(e->args[0]) && e->args[1]->kind == ExprKind::constant &&
          e->args[1]->value.is(Type::integer))
        found_ = true;
  }

  bool found() const { return found_; }

 private:
  bool is_content(const Expr* e) const {
    if (!e) return false;
    switch (e->kind) {
      case ExprKind::name: return *e->symbol == "content" || names_.contains(*e->symbol);
      case ExprKind::attribute: return *e->symbol == "content";
      case ExprKind::item: return is_string_constant(e->args[1], "content");
      case ExprKind::filter: {
        static constexpr std::array<std::string_view, 7> kKeeping = {"default", "d",          "list",  "selectattr",
                                                                     "select",  "rejectattr", "reject"};
        return std::find(kKeeping.begin(), kKeeping.end(), *e->symbol) != kKeeping.end() && is_content(e->args[0]);
      }
      case ExprKind::conjunction:
      case ExprKind::disjunction:
        return std::any_of(e->args.begin(), e->args.end(), [&](auto* a) { return is_content(a); });
      case ExprKind::conditional: return is_content(e->args[1]) || is_content(e->args[2]);
      case ExprKind::call: {  // message.get('content')
        const Expr& callee = *e->args[0];
        return callee.kind == ExprKind::attribute && *callee.symbol == "get" && !e->call.positional.empty() &&
               is_string_constant(e->call.positional[0], "content");
      }
      default: return false;
    }
  }

  std::unordered_set<std::string> names_;
  bool found_ = false;
};

// Text parts as one string, one a line.
std::string joined_parts(const json::Array& parts, size_t message, const std::string& name) {
  std::string out;
  bool first = true;
  for (const json::Value& part : parts) {
    const std::string* text = part.string();
    if (!text) {
      const json::Value* type = part.get("type");
      const json::Value* inner = part.get("text");
      const std::string* kind = type ? type->string() : nullptr;
      if (kind && *kind != "text")
        fail(ErrorKind::invalid_argument, "messages[{}]: {} takes text only, a content part has type \"{}\"", message,
             name, kind->substr(0, 60));
      text = inner ? inner->string() : nullptr;
    }
    if (!text) fail(ErrorKind::invalid_argument, "messages[{}]: a content part has no text", message);
    if (!first) out += '\n';
    first = false;
    out += *text;
  }
  return out;
}

bool is_name(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return ascii::is_alnum(c) || c == '_' || c == '-'; });
}

// Bytes of all strings in it.
size_t checked_bytes(const json::Value& v, std::string_view what, int depth = 0) {
  if (depth > 100) fail(ErrorKind::invalid_argument, "{}: values nest more than 100 deep", what);
  size_t bytes = 0;
  if (const std::string* s = v.string()) {
    if (!is_utf8(*s)) fail(ErrorKind::invalid_argument, "{}: a string is not UTF-8", what);
    bytes += s->size();
  } else if (const json::Array* a = v.array()) {
    for (const json::Value& x : *a) bytes += checked_bytes(x, what, depth + 1);
  } else if (const json::Object* o = v.object()) {
    for (const auto& [key, x] : *o) {
      if (!is_utf8(key)) fail(ErrorKind::invalid_argument, "{}: a key is not UTF-8", what);
      bytes += key.size() + checked_bytes(x, what, depth + 1);
    }
  }
  return bytes;
}

// A text that is too long is a matter of admission, not of the template; one that is taken leaves the template its own
// bounds.
jinja::RenderLimits admitted(size_t bytes, jinja::RenderLimits limits) {
  const auto own = static_cast<int64_t>(bytes);
  if (own > limits.input_bytes) throw TextTooLong(own, limits.input_bytes);
  constexpr int64_t kBytesPerMs = 16 << 10;
  limits.output_bytes += own;
  limits.wall_ms += own / kBytesPerMs;
  return limits;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string name) : template_(source, std::move(name)) {
  const jinja::Ast& ast = template_.ast();
  takes_parts_ = PartsFinder(ast).found();
  handles_developer_ = std::any_of(ast.exprs.begin(), ast.exprs.end(),
                                   [](const auto& e) { return is_string_constant(e.get(), "developer"); });
  marks_generation_ =
      std::any_of(ast.stmts.begin(), ast.stmts.end(), [](const auto& s) { return s->kind == StmtKind::generation; });
}

bool ChatTemplate::mentions(std::string_view variable) const {
  const jinja::Ast& ast = template_.ast();
  return std::any_of(ast.exprs.begin(), ast.exprs.end(),
                     [&](const auto& e) { return e->kind == ExprKind::name && *e->symbol == variable; });
}

bool ChatTemplate::is_reserved(std::string_view variable) {
  return std::find(kInputNames.begin(), kInputNames.end(), variable) != kInputNames.end() ||
         std::find(kTokenNames.begin(), kTokenNames.end(), variable) != kTokenNames.end() ||
         jinja::find_function(variable) != nullptr || variable == "loop" || variable == "caller" ||
         variable == "self" || variable.starts_with("_");
}

json::Value ChatTemplate::prepared_messages(const json::Value& messages) const {
  if (!messages.is_array())
    fail(ErrorKind::invalid_argument, "messages: expected an array, found {}", messages.type_name());
  json::Value copy = messages;
  size_t i = 0;
  for (json::Value& m : *copy.array()) {
    json::Object* o = m.object();
    if (!o) fail(ErrorKind::invalid_argument, "messages[{}]: expected an object, found {}", i, m.type_name());
    for (auto& [key, v] : o->members) {
      if (key == "role" && !handles_developer_ && v.string() && *v.string() == "developer") v = "system";
      if (key == "content" && !takes_parts_ && v.is_array()) v = joined_parts(*v.array(), i, template_.name());
    }
    ++i;
  }
  return copy;
}

Rendered ChatTemplate::render_marked(const ChatInput& input, const jinja::RenderLimits& limits) const {
  size_t bytes = checked_bytes(input.messages, "messages") + checked_bytes(input.tools, "tools") +
                 checked_bytes(input.documents, "documents");
  if (!input.tools.is_null() && !input.tools.is_array())
    fail(ErrorKind::invalid_argument, "tools: expected an array, found {}", input.tools.type_name());
  const json::Value messages = prepared_messages(input.messages);
  const json::Value bos = input.bos_token, eos = input.eos_token, prompt = input.add_generation_prompt;
  checked_bytes(bos, "bos_token");
  checked_bytes(eos, "eos_token");
  jinja::RenderInput values;
  values.now = input.now;
  values.trusted = {*bos.string(), *eos.string()};
  for (const json::Value& m : *messages.array())
    if (const json::Value* role = m.get("role"); role && role->string() && is_name(*role->string()))
      values.trusted.push_back(*role->string());
  values.variables = {{"messages", &messages},
                      {"tools", &input.tools},
                      {"documents", &input.documents},
                      {"add_generation_prompt", &prompt},
                      {"bos_token", &bos},
                      {"eos_token", &eos}};
  for (const auto& [name, value] : input.extra) {
    if (is_reserved(name))
      fail(ErrorKind::invalid_argument, "template variable \"{}\" is reserved", name.substr(0, 60));
    bytes += checked_bytes(value, name);
    values.variables.emplace_back(name, &value);
  }
  return template_.render(values, admitted(bytes, limits));
}

std::string ChatTemplate::render(const ChatInput& input, const jinja::RenderLimits& limits) const {
  return render_marked(input, limits).text;
}

}  // namespace hearth::text

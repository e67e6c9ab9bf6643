#include "text/template/template.h"

#include <chrono>

#include "base/limit_error.h"
#include "base/utf8.h"
#include "text/template/ast.h"
#include "text/template/interpreter.h"
#include "text/template/lexer.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {
namespace {

constexpr size_t kSourceBytesMax = 1 << 20;

int64_t steady_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  if (source.size() > kSourceBytesMax)
    fail(ErrorKind::invalid_argument, "{}: {} bytes, a template has at most {}", name_, source.size(), kSourceBytesMax);
  if (!is_utf8(source)) fail(ErrorKind::invalid_argument, "{}: the template is not UTF-8", name_);
  try {
    ast_ = std::make_unique<Ast>(parse(source));
  } catch (const SyntaxFault& f) {
    fail(ErrorKind::invalid_argument, "{}, line {}: {}", name_, f.line, f.what());
  }
}

Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Rendered Template::render(const RenderInput& input, const RenderLimits& limits) const {
  RenderLimits bounded = limits;
  if (!bounded.now_ms) bounded.now_ms = steady_ms;
  Interpreter interpreter(*ast_, input, bounded);
  try {
    return interpreter.run();
  } catch (const Fault& f) {
    if (!f.limit().empty()) fail_limit(f.limit(), "{}, line {}: {}", name_, interpreter.line(), f.what());
    fail(ErrorKind::invalid_argument, "{}, line {}: {}", name_, interpreter.line(), f.what());
  }
}

}  // namespace hearth::text::jinja

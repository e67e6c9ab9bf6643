// Iterators over template values, and a scope-bound one for "for x in y if z".
#pragma once
#include "text/template/interpreter.h"

namespace hearth::text::jinja {

struct ListItems final : Iterator {
  explicit ListItems(List* l) : list(l) {}
  bool next(Interpreter& in, Value& out) override;
  List* list;
  size_t at = 0;
};

struct Characters final : Iterator {
  explicit Characters(std::string_view s) : text(s) {}
  bool next(Interpreter& in, Value& out) override;
  std::string_view text;
  size_t at = 0;
};

struct RangeItems final : Iterator {
  explicit RangeItems(const Range* r) : range(r) {}
  bool next(Interpreter& in, Value& out) override;
  const Range* range;
  int64_t at = 0;
};

struct DictItems final : Iterator {
  DictItems(Dict* d, DictView::What w) : dict(d), what(w) {}
  bool next(Interpreter& in, Value& out) override;
  Dict* dict;
  DictView::What what;
  size_t at = 0;
};

// Items of a source for which the loop's filter holds.
struct FilteredItems final : Iterator {
  FilteredItems(Iterator* s, const Stmt& f, Scope* scope_)
      : Iterator(s->chain + 1), source(s), stmt(f), scope(scope_) {}
  bool next(Interpreter& in, Value& out) override;
  Iterator* source;
  const Stmt& stmt;
  Scope* scope;
};

// Checks the length of a chain of iterators that feed on each other; every lazy filter passes its own.
void check_chain(const Iterator& it);

}  // namespace hearth::text::jinja

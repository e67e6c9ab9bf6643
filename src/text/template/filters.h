// Filters over sequences and mappings, for the table in filters.cpp. select, reject, map, unique, items and their kin
// give iterators: lazy and consumed once, as in Jinja.
#pragma once
#include "text/template/interpreter.h"

namespace hearth::text::jinja {

Value dict_items(Interpreter& in, const Value& dict);  // an iterator over its pairs

namespace sequence_filters {

Value batch(Interpreter& in, const Value& v, const Args& args);
Value dictsort(Interpreter& in, const Value& v, const Args& args);
Value first(Interpreter& in, const Value& v, const Args& args);
Value groupby(Interpreter& in, const Value& v, const Args& args);
Value items(Interpreter& in, const Value& v, const Args& args);
Value join(Interpreter& in, const Value& v, const Args& args);
Value last(Interpreter& in, const Value& v, const Args& args);
Value length(Interpreter& in, const Value& v, const Args& args);
Value list(Interpreter& in, const Value& v, const Args& args);
Value map(Interpreter& in, const Value& v, const Args& args);
Value max(Interpreter& in, const Value& v, const Args& args);
Value min(Interpreter& in, const Value& v, const Args& args);
Value reject(Interpreter& in, const Value& v, const Args& args);
Value rejectattr(Interpreter& in, const Value& v, const Args& args);
Value reverse(Interpreter& in, const Value& v, const Args& args);
Value select(Interpreter& in, const Value& v, const Args& args);
Value selectattr(Interpreter& in, const Value& v, const Args& args);
Value slices(Interpreter& in, const Value& v, const Args& args);
Value sort(Interpreter& in, const Value& v, const Args& args);
Value sum(Interpreter& in, const Value& v, const Args& args);
Value unique(Interpreter& in, const Value& v, const Args& args);

}  // namespace sequence_filters
}  // namespace hearth::text::jinja

#include "text/tools/answer_parser.h"

#include <algorithm>
#include <bitset>
#include <utility>

#include "text/tools/bare_call.h"
#include "text/tools/call_grammar.h"
#include "text/tools/call_reader.h"

namespace hearth::text {

using tools::CallStep;
using tools::is_blank;

struct AnswerParser::Impl {
  enum class Mode { text, reasoning, call };
  enum class Meaning { open_reasoning, close_reasoning, call, nothing };
  enum class Place { text, start_of_text, behind_call, reasoning };
  struct Marker {
    std::string spelling;
    Meaning meaning;
    Place place;
    size_t opener = 0;
  };
  // A call that has begun keeps this much of its markup: what may turn out to be the start of another marker.
  static constexpr size_t kTail = 64, kTailTrim = 4096;

  Impl(AnswerOptions chosen, Random random) : options(std::move(chosen)), ids(random) {
    if (options.reasoning) {
      const Place place = options.reasoning->anywhere ? Place::text : Place::start_of_text;
      markers.push_back({options.reasoning->open, Meaning::open_reasoning, place});
      markers.push_back({options.reasoning->close, Meaning::close_reasoning, Place::reasoning});
      if (options.reasoning_open) mode = Mode::reasoning;
    }
    if (mode == Mode::text) look_for_bare_call();
    if (!options.tools.empty()) {
      const auto openers = tools::openers(options.dialect);
      for (size_t i = 0; i < openers.size(); ++i)
        markers.push_back(
            {std::string(openers[i]), Meaning::call, openers[i] == "{" ? Place::start_of_text : Place::text, i});
      if (const std::string_view dropped = tools::dropped_after_call(options.dialect); !dropped.empty())
        markers.push_back({std::string(dropped), Meaning::nothing, Place::behind_call});
    }
    for (const Marker& marker : markers) first.set(static_cast<unsigned char>(marker.spelling.front()));
  }

  // ---- events

  template <class Piece>
  void emit(std::string_view bytes) {
    if (bytes.empty()) return;
    Piece* last = events.empty() ? nullptr : std::get_if<Piece>(&events.back());
    if (!last) last = &std::get<Piece>(events.emplace_back(Piece{}));
    last->text += bytes;
  }

  void emit_arguments(tools::CallReader& call) {
    std::string fragment = call.take();
    if (fragment.empty()) return;
    ToolArguments* last = events.empty() ? nullptr : std::get_if<ToolArguments>(&events.back());
    if (last && last->index == index) last->fragment += fragment;
    else events.emplace_back(ToolArguments{index, std::move(fragment)});
  }

  void emit_begin(const tools::CallReader& call) {
    std::string id = "call_";
    for (int i = 0; i < 24; ++i) {
      const uint64_t letter = ids.below(52);
      id += static_cast<char>(letter < 26 ? 'a' + letter : 'A' + (letter - 26));
    }
    events.emplace_back(ToolBegin{index, std::move(id), call.tool()->name});
    begun = true;
  }

  // ---- text and reasoning

  bool active(const Marker& marker) const {
    switch (marker.place) {
      case Place::reasoning: return mode == Mode::reasoning;
      case Place::text: return mode == Mode::text;
      case Place::start_of_text: return mode == Mode::text && at_start;
      case Place::behind_call: return mode == Mode::text && at_start && behind_call;
    }
    return false;
  }

  void step(char c) {
    if (over) return;
    if (mode == Mode::call) return call_byte(c);
    if (bare && mode == Mode::text) {
      if (!bare->push(c)) no_bare_call();
      return;
    }
    if (held.empty() && !first.test(static_cast<unsigned char>(c))) return release(c);
    held += c;
    while (!held.empty()) {
      bool open = false;
      for (const Marker& marker : markers) {
        if (!active(marker)) continue;
        if (marker.spelling == held) {
          held.clear();
          return found(marker);
        }
        open |= marker.spelling.starts_with(held);
      }
      if (open) return;
      release(held.front());
      held.erase(0, 1);
    }
  }

  // A byte that begins no marker.
  void release(char c) {
    if (mode == Mode::reasoning) {
      if (is_blank(c)) {
        blanks += c;
        return;
      }
      if (reasoning_begun) emit<ReasoningPiece>(blanks);
      blanks.clear();
      reasoning_begun = true;
      return emit<ReasoningPiece>({&c, 1});
    }
    if (is_blank(c) && (!options.tools.empty() || (at_start && !markers.empty()))) {
      blanks += c;
      return;
    }
    if (text_begun || !behind_markup) emit<TextPiece>(blanks);
    blanks.clear();
    if (!is_blank(c)) text_begun = true, at_start = false;
    emit<TextPiece>({&c, 1});
  }

  void found(const Marker& marker) {
    switch (marker.meaning) {
      case Meaning::open_reasoning:
        mode = Mode::reasoning;
        reasoning_begun = false;
        blanks.clear();
        return;
      case Meaning::close_reasoning:
        mode = Mode::text;
        behind_markup = true;
        blanks.clear();
        look_for_bare_call();
        return;
      case Meaning::nothing: blanks.clear(); return;
      case Meaning::call:
        mode = Mode::call;
        raw = std::exchange(blanks, {}) + marker.spelling;
        raw_opener = raw.size();
        markup_told = false;
        reader = tools::make_call_reader(options.dialect, options.tools);  // nothing of broken markup is left
        opener = marker.opener;
        told_early.reset();
        reader->begin(opener);
        return;
    }
  }

  // ---- calls

  void look_for_bare_call() {
    const bool family = options.dialect == ToolDialect::hermes || options.dialect == ToolDialect::generic;
    if (family && options.bare_calls && !options.tools.empty() && at_start && !behind_call) bare.emplace(options.tools);
  }

  // What was taken for one is read as any text.
  void no_bare_call() {
    const std::string text = bare->text();
    bare.reset();
    for (const char c : text) step(c);
  }

  void tell_bare_call() {
    emit_begin(bare->call());
    emit_arguments(bare->call());
    events.emplace_back(ToolEnd{index++});
    ++calls;
    at_start = behind_markup = true;
  }

  // Whether a grammar has ruled since the call's name, so that it can be told as it comes.
  bool shaped() const {
    if (!options.stream_calls) return false;
    if (opener == 0) return true;
    const std::string begin = tools::begins_bare_call(options.dialect, reader->tool()->name);
    return options.dialect == ToolDialect::llama3 && tools::without_blanks(raw) == begin;
  }

  void call_byte(char c) {
    raw += c;
    const CallStep done = reader->push(c);
    if (done == CallStep::failed) return call_failed();
    if (done == CallStep::closed || done == CallStep::ended_closed) mode = Mode::text;
    if (done == CallStep::ended || done == CallStep::ended_closed) return end_call();
    if (done == CallStep::closed) raw.clear();
    if (!reader->in_call() || !reader->tool()) return;
    if (!told_early) told_early = shaped();
    if (!*told_early) return;
    if (!begun) emit_begin(*reader);
    emit_arguments(*reader);
    raw_opener = 0;
    if (raw.size() > kTailTrim) raw.erase(0, raw.size() - kTail);
  }

  void end_call() {
    if (!begun) emit_begin(*reader);
    emit_arguments(*reader);
    told_early.reset();
    events.emplace_back(ToolEnd{index++});
    ++calls;
    begun = false;
    raw = reader->ahead();
    raw_opener = raw.size();
    at_start = behind_call = behind_markup = markup_told = true;
    over = stopped = !options.parallel_calls;
  }

  // What was read is text, but for the bytes at its end that may begin a marker.
  void call_failed() {
    size_t keep = 0;
    for (const Marker& marker : markers)
      for (size_t n = std::min(marker.spelling.size() - 1, raw.size() - raw_opener); n > keep; --n)
        if (raw.ends_with(std::string_view(marker.spelling).substr(0, n))) keep = n;
    const std::string again = raw.substr(raw.size() - keep);
    if (begun) {  // told already: its rest is not text
      begun = false;
      ++index;
      at_start = false;
      behind_markup = true;
      raw.clear();
    }
    mode = Mode::text;
    release_raw(keep);
    for (const char b : again) step(b);
  }

  void release_raw(size_t keep) {
    const std::string bytes = std::exchange(raw, {});
    for (size_t i = 0; i + keep < bytes.size(); ++i) release(bytes[i]);
  }

  // Whether what the limit cut can be nothing but a part of a call, or of a marker.
  bool is_cut_call() const { return options.calls_only || begun || (options.stream_calls && opener == 0); }
  bool is_cut_marker() const {
    const auto begins = [&](const std::string& token) { return held.starts_with(token); };
    return !held.empty() && mode == Mode::text && (options.calls_only || std::ranges::any_of(options.control, begins));
  }

  End finish(bool cut_by_limit) {
    End end;
    if (bare && mode == Mode::text && !over) {
      if (bare->whole() && !cut_by_limit) tell_bare_call();
      else if (cut_by_limit && options.calls_only) bare.reset();
      else no_bare_call();
    }
    if (mode == Mode::call && !over) {
      mode = Mode::text;
      if (!reader->in_call() && markup_told) raw.clear();
      else if (!cut_by_limit && reader->whole()) end_call();
      else {
        end.call_cut = true;
        if (begun || (cut_by_limit && is_cut_call())) raw.clear();
        release_raw(0);
      }
    }
    if (cut_by_limit && is_cut_marker()) {
      held.clear();
      blanks.clear();  // they belong to it
    }
    for (const char c : std::exchange(held, {})) release(c);
    if (mode == Mode::reasoning && reasoning_begun) emit<ReasoningPiece>(blanks);
    if (mode == Mode::text && !(at_start && behind_markup)) emit<TextPiece>(blanks);
    blanks.clear();
    over = true;
    end.calls = calls;
    end.events = std::exchange(events, {});
    return end;
  }

  AnswerOptions options;
  Random ids;
  std::unique_ptr<tools::CallReader> reader;  // of the open or the last markup
  size_t opener = 0;                          // that it began with
  std::optional<bool> told_early;             // the open call is told as it comes; unknown before its name
  std::optional<tools::BareCall> bare;        // what the answer has been so far may become one
  std::vector<Marker> markers;
  std::bitset<256> first;  // bytes that may begin a marker

  Mode mode = Mode::text;
  std::vector<AnswerEvent> events;
  std::string held;    // perhaps a marker
  std::string blanks;  // white space whose meaning depends on what follows
  bool reasoning_begun = false, text_begun = false;
  bool at_start = true;        // no text since the start or the last call
  bool behind_call = false;    // some call came before
  bool behind_markup = false;  // reasoning or a call came before
  std::string raw;             // markup of the open call, with the blanks ahead of it; its last bytes once it is told
  size_t raw_opener = 0;       // bytes of it up to the opener's end
  bool begun = false;          // the open call is told
  bool markup_told = false;    // a call of the open markup is whole
  int index = 0, calls = 0;
  bool stopped = false, over = false;
};

AnswerParser::AnswerParser(AnswerOptions options, Random ids)
    : impl_(std::make_unique<Impl>(std::move(options), ids)) {}
AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;
AnswerParser& AnswerParser::operator=(AnswerParser&&) noexcept = default;

std::vector<AnswerEvent> AnswerParser::push(std::string_view text) {
  for (const char c : text) impl_->step(c);
  return std::exchange(impl_->events, {});
}

AnswerParser::End AnswerParser::finish(bool cut_by_limit) { return impl_->finish(cut_by_limit); }

bool AnswerParser::stopped() const { return impl_->stopped; }

bool AnswerParser::in_reasoning() const { return impl_->mode == Impl::Mode::reasoning && !impl_->over; }

size_t AnswerParser::closing() const { return in_reasoning() ? impl_->held.size() : 0; }

}  // namespace hearth::text

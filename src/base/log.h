// The log: lines to stderr, pretty for people or NDJSON for machines, and a ring of recent lines for /logs and doctor.
// Every line is redacted (base/redact.h), one line long, bounded, and written whole. Any thread.
//
//   log::info("hub", "{} is ready", repo);
//   log::event(log::Level::warn, "cpu", "kernel refused", {{"kernel", "gemm_amx"}, {"reason", "no AMX state"}});
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/redact.h"

namespace hearth::log {

enum class Level { debug, info, warn, error, off };
enum class Format { pretty, ndjson };

std::string_view name_of(Level level);
std::optional<Level> level_of(std::string_view name);  // debug info warn error off

using Fields = std::initializer_list<std::pair<std::string_view, json::Value>>;

struct Options {
  Level level = Level::info;  // lines below are neither written nor kept
  Format format = Format::pretty;
  bool colour = false;
  int fd = 2;  // not owned; -1 writes nothing, the ring still fills
  size_t ring_lines = 1000;
  size_t message_bytes_max = 16 << 10;  // longer messages and field strings are cut, with the number of bytes left out
  const Clock* clock = &system_clock();
};

// As kept in the ring: redacted, valid UTF-8.
struct Line {
  uint64_t sequence = 0;  // from 1, without gaps in one process
  WallTime time{};
  Level level = Level::info;
  std::string room{}, message{};
  json::Object fields{};
};

class Logger {
 public:
  explicit Logger(const Options& options = {}) { configure(options); }

  void configure(const Options& options);  // keeps registered secrets and the newest lines of the ring
  bool wants(Level level) const;
  void write(Level level, std::string_view room, std::string_view message, Fields fields = {});
  void add_secret(std::string_view secret) { redactor_.add(secret); }
  std::string redact(std::string_view text) const { return redactor_.redact(text); }

  // The newest lines with a sequence above `after`, oldest first, at most lines_max.
  std::vector<Line> recent(size_t lines_max, uint64_t after = 0) const;

 private:
  json::Value clean_value(const json::Value& value) const;
  std::string clean_text(std::string_view text) const;

  Redactor redactor_;
  mutable std::mutex mutex_;
  Options options_;
  uint64_t sequence_ = 0;
  std::deque<Line> ring_;
};

// The process's logger.
Logger& global();

// One line without its end: {"ts": ..., "level": ..., "room": ..., "msg": ..., fields...}.
std::string format_ndjson(const Line& line);
// One line without its end: 20:19:29.123 warn  cpu: message key=value. Control characters are shown as \xNN.
std::string format_pretty(const Line& line, bool colour);

inline void event(Level level, std::string_view room, std::string_view message, Fields fields) {
  global().write(level, room, message, fields);
}

template <class... Args>
void at(Level level, std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (global().wants(level)) global().write(level, room, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  at(Level::debug, room, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  at(Level::info, room, format, std::forward<Args>(args)...);
}
template <class... Args>
void warn(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  at(Level::warn, room, format, std::forward<Args>(args)...);
}
template <class... Args>
void error(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  at(Level::error, room, format, std::forward<Args>(args)...);
}

}  // namespace hearth::log

#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace hearth::log {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warn", "error", "off"};
constexpr std::array<std::string_view, 5> kColours = {"\x1b[2m", "", "\x1b[33m", "\x1b[31m", ""};

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;  // a log that cannot be written must not stop the program
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

}  // namespace

std::string_view name_of(Level level) { return kNames[static_cast<size_t>(level)]; }

std::optional<Level> level_of(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Level>(found - kNames.begin());
}

void Logger::configure(const Options& options) {
  HEARTH_CHECK(options.clock != nullptr);
  const std::lock_guard lock(mutex_);
  options_ = options;
  while (ring_.size() > options_.ring_lines) ring_.pop_front();
}

bool Logger::wants(Level level) const {
  const std::lock_guard lock(mutex_);
  return level >= options_.level && level != Level::off;
}

std::string Logger::clean_text(std::string_view text) const {
  size_t bytes_max = 0;
  {
    const std::lock_guard lock(mutex_);
    bytes_max = options_.message_bytes_max;
  }
  // Redacted before it is cut: half a secret is one too much.
  std::string clean = repaired(redactor_.redact(text));
  if (clean.size() > bytes_max) {
    const size_t keep = utf8_cut(clean, bytes_max).size(), left_out = clean.size() - keep;
    clean.resize(keep);
    clean += fmt::format("... ({} bytes more)", left_out);
  }
  return clean;
}

json::Value Logger::clean_value(const json::Value& value) const {
  if (const std::string* text = value.string()) return clean_text(*text);
  if (const json::Array* array = value.array()) {
    json::Array clean;
    for (const json::Value& element : *array) clean.push_back(clean_value(element));
    return clean;
  }
  if (const json::Object* object = value.object()) {
    json::Object clean;
    for (const json::Member& member : *object)
      clean.members.emplace_back(clean_text(member.first),
                                 names_secret(member.first) ? json::Value("***") : clean_value(member.second));
    return clean;
  }
  return value;
}

void Logger::write(Level level, std::string_view room, std::string_view message, Fields fields) {
  if (!wants(level)) return;
  Line line{.level = level, .room = clean_text(room), .message = clean_text(message)};
  for (const auto& [key, value] : fields)
    line.fields.members.emplace_back(clean_text(key), names_secret(key) ? json::Value("***") : clean_value(value));

  const std::lock_guard lock(mutex_);
  line.sequence = ++sequence_;
  line.time = options_.clock->wall();
  if (options_.fd >= 0) {
    std::string text = options_.format == Format::ndjson ? format_ndjson(line) : format_pretty(line, options_.colour);
    text += '\n';
    write_all(options_.fd, text);
  }
  if (options_.ring_lines > 0) {
    if (ring_.size() == options_.ring_lines) ring_.pop_front();
    ring_.push_back(std::move(line));
  }
}

std::vector<Line> Logger::recent(size_t lines_max, uint64_t after) const {
  const std::lock_guard lock(mutex_);
  auto begin = std::find_if(ring_.begin(), ring_.end(), [&](const Line& line) { return line.sequence > after; });
  const auto left = static_cast<size_t>(ring_.end() - begin);
  if (left > lines_max) begin += static_cast<std::ptrdiff_t>(left - lines_max);
  return {begin, ring_.end()};
}

Logger& global() {
  static Logger logger;
  return logger;
}

std::string format_ndjson(const Line& line) {
  json::Object object;
  object["ts"] = iso8601(line.time);
  object["level"] = name_of(line.level);
  object["room"] = line.room;
  object["msg"] = line.message;
  for (const json::Member& field : line.fields) {
    // A field may not pass itself off as one of the four above.
    object[object.contains(field.first) ? field.first + "_" : field.first] = field.second;
  }
  return json::dump(object);
}

std::string format_pretty(const Line& line, bool colour) {
  const std::string_view paint = colour ? kColours[static_cast<size_t>(line.level)] : std::string_view();
  const auto shown = [](std::string_view text) { return printable(text, std::string_view::npos); };
  std::string out = fmt::format("{}{} {:5} {}: {}", paint, iso8601(line.time).substr(11, 12), name_of(line.level),
                                shown(line.room), shown(line.message));
  for (const json::Member& field : line.fields) {
    const std::string* text = field.second.string();
    const bool bare = text && !text->empty() && text->find_first_of(" \"=") == std::string::npos;
    out += fmt::format(" {}={}", shown(field.first), shown(bare ? *text : json::dump(field.second)));
  }
  if (!paint.empty()) out += "\x1b[0m";
  return out;
}

}  // namespace hearth::log

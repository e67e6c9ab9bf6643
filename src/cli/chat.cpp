#include "cli/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "hub/nearest.h"

namespace hearth::cli {
namespace {

constexpr std::string_view kTripleQuote = "\"\"\"";
constexpr size_t kConversationBytesMax = size_t{64} << 20;

struct Row {
  std::string_view name, usage, help;
};
constexpr std::array<Row, 8> kCommands = {{
    {"help", "/help", "this list"},
    {"system", "/system TEXT", "instructions to the model; the chat begins anew (no TEXT: shows them)"},
    {"set", "/set [NAME VALUE]", "a setting of the sampler (no NAME: shows all)"},
    {"save", "/save FILE", "the chat to a file"},
    {"load", "/load FILE", "a saved chat in place of this one"},
    {"clear", "/clear", "forgets the chat, keeps /system"},
    {"stats", "/stats", "tokens and speed of the last answer"},
    {"bye", "/bye", "ends the chat (also Ctrl-D)"},
}};

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

// """text""" is the text, blank first and last line dropped.
std::string without_quotes(const std::string& line) {
  if (!line.starts_with(kTripleQuote)) return line;
  std::string text = line.substr(kTripleQuote.size());
  if (const size_t end = text.rfind(kTripleQuote); end != std::string::npos) text.erase(end, kTripleQuote.size());
  if (text.starts_with('\n')) text.erase(0, 1);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::pair<std::string, std::string> split_command(std::string_view line) {
  if (line.starts_with('/')) line.remove_prefix(1);
  const size_t blank = std::min(line.find_first_of(" \t\n"), line.size());
  return {std::string(line.substr(0, blank)), trimmed(line.substr(blank))};
}

json::Array messages_json(std::span<const ChatMessage> messages) {
  json::Array rows;
  for (const ChatMessage& message : messages) {
    json::Object row;
    row["role"] = message.role;
    row["content"] = message.content;
    rows.emplace_back(std::move(row));
  }
  return rows;
}

std::string dump_conversation(const std::string& model, const std::vector<ChatMessage>& messages) {
  json::Object document;
  document["schema_version"] = 1;
  document["model"] = model;
  document["messages"] = messages_json(messages);
  return json::dump(document, {.indent = 2}) + "\n";
}

std::vector<ChatMessage> parse_conversation(std::string_view text, std::string_view what) {
  const json::Value document = json::parse(text, what);
  const json::Value* version = document.get("schema_version");
  if (version && version->as_int(fmt::format("{}: schema_version", what)) != 1)
    fail(ErrorKind::corrupt_file, "{}: schema_version is {}, this build reads 1", what, version->as_int(what));
  const json::Value* rows = document.get("messages");
  if (!rows) fail(ErrorKind::corrupt_file, "{}: messages is absent", what);
  std::vector<ChatMessage> messages;
  for (const json::Value& row : rows->as_array(fmt::format("{}: messages", what))) {
    const std::string where = fmt::format("{}: messages[{}]", what, messages.size());
    const json::Value* role = row.get("role");
    const json::Value* content = row.get("content");
    if (!role || !content) fail(ErrorKind::corrupt_file, "{}: role or content is absent", where);
    ChatMessage message{role->as_string(where + ".role"), content->as_string(where + ".content")};
    const bool has_system = !messages.empty() && messages[0].role == "system";
    const char* turn = (messages.size() - (has_system ? 1 : 0)) % 2 == 0 ? "user" : "assistant";
    if (message.role != turn && !(messages.empty() && message.role == "system"))
      fail(ErrorKind::corrupt_file, "{}.role is '{}', it must be {}{}", where, message.role, turn,
           messages.empty() ? " or system" : "");
    messages.push_back(std::move(message));
  }
  if (!messages.empty() && messages.back().role == "user")
    fail(ErrorKind::corrupt_file, "{}: the last message is the user's and has no answer", what);
  return messages;
}

Chat::Chat(ChatBackend& backend, LineSource& lines, Interrupt& interrupt, ChatOutput output, hub::Env env)
    : backend_(backend), lines_(lines), interrupt_(interrupt), output_(std::move(output)), env_(std::move(env)) {}

bool Chat::run() {
  bool interrupted = false;
  for (;;) {
    interrupt_.reset();
    const InputLine line = lines_.read("> ");
    if (line.kind == InputLine::Kind::end) return !failed_;
    if (line.kind == InputLine::Kind::interrupted) {
      if (std::exchange(interrupted, true)) return !failed_;  // a second time in a row
      output_.note("Ctrl-C again, Ctrl-D or /bye ends it");
      continue;
    }
    interrupted = false;
    const std::string entry = trimmed(line.text);
    if (entry.empty()) continue;
    if (entry.starts_with('/')) {
      if (!command(entry)) return !failed_;
      continue;
    }
    ask(without_quotes(entry));
  }
}

bool Chat::ask(const std::string& text) {
  messages_.push_back({"user", text});
  try {
    interrupt_.reset();
    ChatReply reply = backend_.reply(messages_, output_.answer, interrupt_.flag());
    if (!reply.text.ends_with('\n')) output_.answer("\n");
    if (reply.finish_reason == "cancelled") output_.note("stopped; the chat goes on");
    if (reply.context_full) output_.note("cut: the context is full; /clear forgets the chat so far");
    else if (reply.finish_reason == "length") output_.note("cut at the token limit: /set max-tokens raises it");
    if (reply.text.empty() && reply.finish_reason == "cancelled")
      messages_.pop_back();  // stopped before a word was said: as if not asked
    else messages_.push_back({"assistant", reply.text});
    last_ = std::move(reply);
    return true;
  } catch (const Error& error) {
    messages_.pop_back();
    failure(error.what());
    if (error.kind() == ErrorKind::out_of_memory) output_.note("/clear forgets the chat so far");
    return false;
  }
}

bool Chat::command(const std::string& line) {
  const auto [name, rest] = split_command(line);
  try {
    if (name == "bye" || name == "exit" || name == "quit") return false;
    if (name == "help" || name == "?") help();
    else if (name == "system") system(without_quotes(rest));
    else if (name == "set") set(rest);
    else if (name == "save") save(rest);
    else if (name == "load") load(rest);
    else if (name == "stats") stats();
    else if (name == "clear") {
      std::erase_if(messages_, [](const ChatMessage& message) { return message.role != "system"; });
      output_.note("forgotten");
    } else {
      std::vector<std::string> names;
      for (const Row& row : kCommands) names.emplace_back(row.name);
      const std::vector<std::string> near = hub::nearest(name, names, 1);
      failure(near.empty() ? fmt::format("no command /{}; /help lists them", name)
                           : fmt::format("no command /{}; did you mean /{}?", name, near[0]));
    }
  } catch (const Error& error) {
    failure(error.what());
  }
  return true;
}

void Chat::failure(std::string_view sentence) {
  failed_ = true;
  output_.error(sentence);
}

void Chat::help() {
  for (const Row& row : kCommands) output_.note(fmt::format("{:<20} {}", row.usage, row.help));
  output_.note("\"\"\" begins a text of several lines and ends it; Ctrl-C stops an answer");
}

void Chat::system(const std::string& text) {
  const bool has = !messages_.empty() && messages_[0].role == "system";
  if (text.empty()) {
    output_.note(has ? messages_[0].content : "no instructions are set");
    return;
  }
  messages_ = {{"system", text}};
  output_.note("set; the chat begins anew");
}

void Chat::set(const std::string& words) {
  const std::vector<ChatSetting> settings = backend_.settings();
  if (words.empty()) {
    for (const ChatSetting& each : settings)
      output_.note(fmt::format("{:<20} {:<10} {}", each.name, each.value.empty() ? "-" : each.value, each.help));
    return;
  }
  const size_t blank = std::min(words.find_first_of(" \t="), words.size());
  std::string name = words.substr(0, blank);
  std::replace(name.begin(), name.end(), '_', '-');
  const std::string value = trimmed(std::string_view(words).substr(std::min(blank + 1, words.size())));
  std::vector<std::string> names;
  for (const ChatSetting& each : settings) {
    names.push_back(each.name);
    if (each.name != name) continue;
    if (value.empty()) {
      output_.note(fmt::format("{} is {}", name, each.value.empty() ? "unset" : each.value));
      return;
    }
    backend_.set(name, value);
    output_.note(fmt::format("{} is {}", name, value));
    return;
  }
  const std::vector<std::string> near = hub::nearest(name, names, 1);
  fail(ErrorKind::invalid_argument, "no setting {}; {}", name,
       near.empty() ? "/set lists them" : fmt::format("did you mean {}?", near[0]));
}

void Chat::save(const std::string& file) {
  if (file.empty()) fail(ErrorKind::invalid_argument, "/save needs a file name");
  const std::filesystem::path path = hub::expand_home(file, env_);
  io::write_file_atomic(io::real_fs(), path, dump_conversation(backend_.model_name(), messages_), 0600);
  output_.note(fmt::format("saved {} message{} to {}", messages_.size(), messages_.size() == 1 ? "" : "s", file));
}

void Chat::load(const std::string& file) {
  if (file.empty()) fail(ErrorKind::invalid_argument, "/load needs a file name");
  const std::string text = io::real_fs().read_file(hub::expand_home(file, env_), kConversationBytesMax);
  messages_ = parse_conversation(text, file);
  output_.note(fmt::format("loaded {} message{}", messages_.size(), messages_.size() == 1 ? "" : "s"));
}

void Chat::stats() {
  if (!last_) {
    output_.note("no answer yet");
    return;
  }
  const decode::GenerateStats& s = last_->stats;
  output_.note(fmt::format("prompt     {} tokens, {} of them cached, {:.0f} ms, {:.1f} tokens/s", s.prompt_tokens,
                           s.cached_tokens, s.prefill_ms, s.prefill_tps()));
  output_.note(
      fmt::format("answer     {} tokens, {:.0f} ms, {:.1f} tokens/s", s.generated_tokens, s.decode_ms, s.decode_tps()));
  output_.note(fmt::format("first text after {:.0f} ms; ended by {}", s.ttft_ms, last_->finish_reason));
}

}  // namespace hearth::cli

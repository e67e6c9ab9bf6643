#include "server/front/library.h"

#include "base/log.h"

namespace hearth::server {
namespace {

constexpr size_t kFitsMax = 64;  // that wait

json::Value part(const json::Value& from, const char* key) {
  const json::Value* value = from.get(key);
  return value ? *value : json::Value();
}

json::Object row(const LocalModel& model, const Headers& headers) {
  json::Object o;
  const json::Value facts = headers.facts;
  o["id"] = model.id;
  o["repo_id"] = model.found.repo.empty() ? model.id : model.found.repo;
  o["revision"] = model.found.revision;
  for (const char* key : {"model_type", "size_bytes", "quant_bits"}) o[key] = part(facts, key);
  o["vision"] = facts.get("vision") ? part(facts, "vision") : json::Value(false);
  o["supported"] = !headers.refusal.has_value();
  o["support_tier"] = part(facts, "support_tier");
  o["serving"] = model.serving;
  if (headers.refusal) {
    o["assessment"] = json::Value();
    o["problem"] = headers.refusal->message;
    return o;
  }
  const json::Value fit = part(facts, "fit"), report = part(fit, "report");
  json::Object assessment;
  const json::Value most = part(report, "max_safe_context"), typical = part(fit, "typical_context_tokens");
  assessment["fits"] = most.is_int() && typical.is_int() && most.as_int("") >= typical.as_int("");
  assessment["max_safe_context"] = most;
  assessment["predicted_decode_tps"] = part(fit, "typical_decode_tps");
  o["assessment"] = std::move(assessment);
  return o;
}

}  // namespace

Library::Library(LibraryOptions options, const Models& models) : options_(std::move(options)), models_(models) {
  thread_ = std::thread([this] { run(); });
}

Library::~Library() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  thread_.join();
}

void Library::list(Done done, Refused refused) {
  json::Value document;
  {
    const std::lock_guard lock(mutex_);
    if (!made_ || Clock::now() - *made_ >= options_.cache) {
      lists_.push_back({std::move(done), std::move(refused)});
      asked_.notify_all();
      return;
    }
    document = document_;
  }
  done(document);
}

void Library::reload(
    std::function<WorkerCommand(const hub::FoundModel& model, std::optional<int64_t> positions)> command) {
  const std::lock_guard lock(mutex_);
  options_.command = std::move(command);
  outdated_ = true;
  made_.reset();
}

void Library::fit(const std::string& id, std::optional<int64_t> positions, Done done, Refused refused) {
  hub::FoundModel model = models_.found(id);
  {
    const std::lock_guard lock(mutex_);
    if (fits_.size() < kFitsMax) {
      fits_.push_back({id, std::move(model), positions, std::move(done), std::move(refused)});
      asked_.notify_all();
      return;
    }
  }
  refused({.kind = ErrorKind::busy, .message = fmt::format("{} such questions wait already", kFitsMax), .code = {}});
}

void Library::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, [&] { return stopping_ || !fits_.empty() || !lists_.empty(); });
      if (stopping_) return;
    }
    try {
      answer_fits();
      answer_lists();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) return;  // the server ends
      log::error("front", "library: {}", error.what());
    }
  }
}

void Library::answer_lists() {
  {
    const std::lock_guard lock(mutex_);
    if (lists_.empty()) return;
    if (outdated_) read_.clear();
    outdated_ = false;
  }
  std::optional<json::Value> document;
  try {
    document = look();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    log::error("front", "{}", error.what());  // which names folders
  }
  std::vector<ListAsk> lists;
  {
    const std::lock_guard lock(mutex_);
    if (document && !outdated_) {
      document_ = *document;
      made_ = Clock::now();
    }
    lists.swap(lists_);
  }
  for (const ListAsk& ask : lists) {
    if (document) ask.done(*document);
    else ask.refused({.kind = ErrorKind::io, .message = "the model store cannot be read", .code = {}});
  }
}

void Library::answer_fits() {
  for (;;) {
    FitAsk ask;
    {
      const std::lock_guard lock(mutex_);
      if (fits_.empty()) return;
      ask = std::move(fits_.front());
      fits_.pop_front();
    }
    const Headers headers = read(ask.model, ask.positions);
    if (headers.refusal) {
      ask.refused(*headers.refusal);
      continue;
    }
    json::Object document;
    document["model"] = ask.id;
    const json::Value* fit = headers.facts.find("fit");
    if (fit && fit->object())
      for (const auto& [key, value] : *fit->object()) document[key] = value;
    ask.done(document);
  }
}

// Who asks about one model waits for the one that is being read, not for all of them.
json::Value Library::look() {
  json::Array rows;
  std::map<std::string, Headers> kept;
  for (const LocalModel& model : models_.local()) {
    answer_fits();
    const std::string state = files_state(model.found.path);
    const auto known = read_.find(state);
    const Headers headers = known != read_.end() ? known->second : read(model.found, std::nullopt);
    if (headers.lasting) kept[state] = headers;
    rows.emplace_back(row(model, headers));
  }
  read_ = std::move(kept);
  json::Object o;
  o["models"] = std::move(rows);
  return o;
}

Headers Library::read(const hub::FoundModel& model, std::optional<int64_t> positions) {
  Headers headers;
  try {
    const auto command = [&] {
      const std::lock_guard lock(mutex_);
      return options_.command;
    }();
    headers = read_headers(command(model, positions), model.path, options_.read_max, stopping_);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    headers.refusal = Refusal{.kind = error.kind(), .message = error.what(), .code = {}};
    headers.lasting = false;
  }
  if (headers.refusal) log::info("front", "{}: {}", model.name, headers.refusal->message);
  return headers;
}

}  // namespace hearth::server

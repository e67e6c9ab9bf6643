#include "server/front/library.h"

#include <utility>

#include "base/log.h"
#include "server/error_at_hand.h"
#include "server/front/model_files.h"

namespace hearth::server {
namespace {

constexpr size_t kAsksMax = 64;  // that wait, beside lists

json::Value part(const json::Value& from, const char* key) {
  const json::Value* value = from.get(key);
  return value ? *value : json::Value();
}

json::Object row(const LocalModel& model, const ModelHeaders& headers) {
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

// Runs the work; why it could not be done. Throws Error{cancelled} when the server ends.
template <class Work>
std::optional<Refusal> why_not(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (...) {
    return with_error_at_hand([](const Error& error) {
      if (error.kind() == ErrorKind::cancelled) throw;
      log::warn("front", "library: {}", error.what());
      return refusal_of(error);
    });
  }
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

void Library::push(Ask ask) {
  {
    const std::lock_guard lock(mutex_);
    if (asks_.size() < kAsksMax) {
      asks_.push_back(std::move(ask));
      asked_.notify_all();
      return;
    }
  }
  ask.refused(
      {.kind = ErrorKind::busy, .message = fmt::format("{} such questions wait already", kAsksMax), .code = {}});
}

void Library::fit(const std::string& id, std::optional<int64_t> positions, Done done, Refused refused) {
  const auto find = [this, id, model = models_.names().found(id), positions, done = std::move(done),
                     refused]() -> std::function<void()> {
    const ModelHeaders headers = read(model, positions);
    if (headers.refusal) return [refused, refusal = *headers.refusal] { refused(refusal); };
    json::Object document;
    document["model"] = id;
    const json::Value* fit = headers.facts.find("fit");
    if (fit && fit->object())
      for (const auto& [key, value] : *fit->object()) document[key] = value;
    return [done, document = std::move(document)] { done(document); };
  };
  push({find, std::move(refused)});
}

void Library::adapters(const std::string& id, const std::filesystem::path& folder, Adapters done, Refused refused) {
  const auto find = [this, model = models_.names().found(id), folder, done = std::move(done),
                     refused]() -> std::function<void()> {
    const auto start = [&] {
      return std::make_unique<HeaderReader>(command_of(model, std::nullopt), model.path, stopping_);
    };
    std::variant<std::vector<AvailableAdapter>, Refusal> found =
        available_adapters(folder, model, start, options_.read_max);
    if (const auto* refusal = std::get_if<Refusal>(&found)) return [refused, refusal = *refusal] { refused(refusal); };
    return [done, list = std::get<std::vector<AvailableAdapter>>(std::move(found))] { done(list); };
  };
  push({find, std::move(refused)});
}

void Library::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, [&] { return stopping_ || !asks_.empty() || !lists_.empty(); });
      if (stopping_) return;
    }
    try {
      answer_asks();
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
  json::Value document;
  const std::optional<Refusal> refusal = why_not([&] { document = look(); });
  std::vector<ListAsk> lists;
  {
    const std::lock_guard lock(mutex_);
    if (!refusal && !outdated_) {
      document_ = document;
      made_ = Clock::now();
    }
    lists.swap(lists_);
  }
  for (const ListAsk& ask : lists) {
    if (refusal) ask.refused(*refusal);
    else ask.done(document);
  }
}

void Library::answer_asks() {
  for (;;) {
    Ask ask;
    {
      const std::lock_guard lock(mutex_);
      if (asks_.empty()) return;
      ask = std::move(asks_.front());
      asks_.pop_front();
    }
    std::function<void()> tell;
    if (const auto refusal = why_not([&] { tell = ask.find(); })) ask.refused(*refusal);
    else tell();
  }
}

// Who asks about one model waits for the one that is being read, not for all of them.
json::Value Library::look() {
  json::Array rows;
  std::map<std::string, ModelHeaders> kept;
  for (const LocalModel& model : models_.names().all()) {
    answer_asks();
    const std::string state = files_state(model.found.path);
    const auto known = read_.find(state);
    const ModelHeaders headers = known != read_.end() ? known->second : read(model.found, std::nullopt);
    if (headers.lasting) kept[state] = headers;
    rows.emplace_back(row(model, headers));
  }
  read_ = std::move(kept);
  json::Object o;
  o["models"] = std::move(rows);
  return o;
}

WorkerCommand Library::command_of(const hub::FoundModel& model, std::optional<int64_t> positions) {
  std::function<WorkerCommand(const hub::FoundModel&, std::optional<int64_t>)> command;
  {
    const std::lock_guard lock(mutex_);
    command = options_.command;
  }
  return command(model, positions);
}

ModelHeaders Library::read(const hub::FoundModel& model, std::optional<int64_t> positions) {
  ModelHeaders headers;
  const auto refusal =
      why_not([&] { headers = read_headers(command_of(model, positions), model.path, options_.read_max, stopping_); });
  if (refusal) {
    headers.refusal = refusal;
    headers.lasting = false;
  }
  if (headers.refusal) log::info("front", "{}: {}", model.name, headers.refusal->message);
  return headers;
}

}  // namespace hearth::server

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <map>
#include <span>
#include <string>

#include "base/error.h"
#include "base/fs.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/fit_report.h"
#include "cli/rates.h"
#include "cli/serve_flags.h"
#include "decode/memory.h"
#include "model/forward.h"
#include "server/front/worker_link.h"
#include "server/worker/sandbox.h"
#include "server/worker/worker.h"
#include "text/tools/dialect.h"
#include "text/tools/reasoning.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {{.name = "MODEL", .help = "path of the model"}};
constexpr std::array kOwnFlags = {
    Flag{.name = "name", .kind = ValueKind::text, .value = "NAME", .help = "what the model is called", .filled = true},
    Flag{.name = "role",
         .kind = ValueKind::choice,
         .value = "model|text|headers",
         .fallback = "model",
         .help = "what is read: all of it, the tokenizer and template, the headers"},
    Flag{.name = "ctx",
         .kind = ValueKind::integer,
         .value = "N",
         .help = "with the headers: positions to plan for",
         .min = 1,
         .max = 1 << 28},
    Flag{.name = "ram-gbs",
         .kind = ValueKind::number,
         .value = "GBS",
         .fallback = "0",
         .help = "with the headers: what this machine's memory gives a second",
         .min = 0},
};
constexpr auto kFlags = joined(kOwnFlags, kWorkerFlags);

constexpr int64_t kRowsMax = 64, kRowPositions = 1024;
constexpr int64_t kAdapterSlots = 16, kAdapters = 4, kAdapterRank = 32, kAdapterShare = 16;

// Memory for so many adapters of that rank over all linears, each in its slot and as the copy that stacks are made of,
// but no more than a share of the budget.
int64_t adapter_memory(const Context& context, const model::Model& model, int64_t budget) {
  if (const auto asked = context.args().bytes("adapter-memory")) return *asked;
  int64_t sum = 0;
  for (const formats::AdapterLinear& linear : model::adapter_linears(model.spec())) sum += linear.K + linear.N;
  constexpr int64_t kValueBytes = 4;
  return std::min(budget / kAdapterShare, 2 * kAdapters * kAdapterRank * kValueBytes * sum);
}

void keep_for_adapters(decode::EngineOptions& options, int64_t bytes) {
  options.adapter_bytes = bytes;
  options.adapter_slots = bytes > 0 ? kAdapterSlots : 0;
}

// As many rows as fit, and a KV pool of one whole context, the prompt cache and kRowPositions a row, if memory holds
// it: rows seldom need their whole context. Where not even one row fits beside memory for adapters that nobody asked
// for, none is kept.
void tune(const Context& context, const model::Model& model, const graph::Executor& executor,
          decode::EngineOptions& options) {
  constexpr int64_t kAhead = 32 << 20;  // some answers; it is filled again whenever a core idles
  const auto asked = context.args().integer("batch");
  options.kv_ahead_bytes = kAhead;
  keep_for_adapters(options, adapter_memory(context, model, options.memory_budget));
  const bool adapters_asked = context.args().bytes("adapter-memory").has_value();
  for (int64_t rows = asked.value_or(kRowsMax);;) {
    options.sequences_max = options.gathered_max = rows;
    options.pool_positions = 1;  // at least one context is held in any case
    const decode::MemoryPlan plan(model, executor, options);
    const int64_t positions =
        options.context > 0 ? std::min(options.context, model.spec().context) : plan.largest(options.memory_budget);
    const decode::MemoryNeed need = plan.at(std::max<int64_t>(positions, 1));
    const bool fits = positions > 0 && need.total() <= options.memory_budget;
    if (!fits && rows > 1 && !asked) {
      rows = (rows + 1) / 2;
      continue;
    }
    if (!fits && options.adapter_slots > 0 && !adapters_asked) {
      keep_for_adapters(options, 0);
      continue;
    }
    const int64_t left = std::max<int64_t>(0, options.memory_budget - need.total());
    const int64_t cache = *context.args().bytes("prompt-cache");
    options.pool_positions = positions;
    if (need.kv_per_position > 0)
      options.pool_positions +=
          std::min(left / 2, cache + rows * kRowPositions * need.kv_per_position) / need.kv_per_position;
    return;
  }
}

// How the layers' keys and values are kept: /stats shows it (spec server 37, 3.4).
json::Object kv_facts(const Context& context, std::span<const graph::KvGroup> groups) {
  json::Object o, layers, attention;
  std::map<std::string, int64_t> kinds = {{"kv4", 0}, {"kv8", 0}, {"bf16", 0}};
  int64_t windows = 0, all = 0;
  for (const graph::KvGroup& group : groups) {
    const auto count = static_cast<int64_t>(group.layers.size());
    switch (group.format) {
      case graph::KvFormat::f32: kinds["f32"] += count; break;
      case graph::KvFormat::bf16: kinds["bf16"] += count; break;
      case graph::KvFormat::q8: kinds["kv8"] += count; break;
      case graph::KvFormat::q4: kinds["kv4"] += count; break;
    }
    all += count;
    if (group.window > 0) windows += count;
  }
  for (const auto& [kind, count] : kinds) layers[kind] = count;
  attention["global"] = all - windows;
  attention["sliding_window"] = windows;
  attention["recurrent"] = 0;
  o["mode"] = *context.args().text("kv");
  o["layers"] = std::move(layers);
  o["attention"] = std::move(attention);
  return o;
}

json::Object facts(const Context& context, const LoadedModel& loaded) {
  const decode::Engine& engine = *loaded.engine;
  const decode::MemoryNeed& need = engine.need();
  json::Object o;
  o["id"] = *context.args().text("name");
  o["model_type"] = engine.spec().model_type;
  o["context_window"] = engine.context();
  o["trained_context"] = engine.spec().context;
  o["batch"] = engine.options().sequences_max;
  o["kv"] = *context.args().text("kv");
  o["kv_quant"] = kv_facts(context, loaded.engine->cache().groups());
  o["numerics"] = name_of(engine.options().numerics);
  o["weights_bytes"] = need.weights;
  o["kv_bytes"] = need.kv;
  o["arena_bytes"] = need.arena;
  o["memory_bytes"] = need.total();
  o["prompt_cache_bytes"] = *context.args().bytes("prompt-cache");
  if (context.args().given("disk-cache")) o["disk_cache_max_bytes"] = *context.args().bytes("disk-cache-max");
  o["load_ms"] = loaded.times.total;
  o["executor"] = *context.args().text("executor");
  o["threads"] = thread_count(context);
  o["vision"] = false;
  o["chat"] = o["tools"] = loaded.text->has_template();
  const model::Templates& templates = engine.model().templates();
  o["reasoning"] = std::ranges::any_of(templates, [&](const auto& one) {
    return text::choose_reasoning(one.second, loaded.text->tokenizer()).has_value();
  });
  return o;
}

server::WorkerModel load_embedder(const Context& context, const std::shared_ptr<model::Model>& opened,
                                  const std::function<void(int64_t, int64_t)>& progress) {
  const decode::EmbedderOptions options{
      .numerics = graph::parse_numerics(*context.args().text("numerics")),
      .memory_budget = context.args().bytes("memory-budget").value_or(decode::default_memory_budget())};
  server::WorkerModel model;
  model.name = context.args().text("name").value_or(opened->path().filename().string());
  model.text = std::make_unique<model::ModelText>(*opened, model.name);
  model.embedder = std::make_unique<decode::Embedder>(opened, make_executor(context, *opened), options, progress);
  json::Object& o = model.facts;
  o["id"] = model.name;
  o["model_type"] = opened->spec().model_type;
  o["embedding"] = true;
  o["context_window"] = model.embedder->embedding().tokens_max;
  o["dimensions"] = model.embedder->dimensions();
  o["numerics"] = name_of(options.numerics);
  o["weights_bytes"] = model.embedder->need().weights;
  o["memory_bytes"] = model.embedder->need().total();
  o["executor"] = *context.args().text("executor");
  o["threads"] = thread_count(context);
  o["chat"] = false;
  return model;
}

// Bits of the values that most weights are: the first number in the type's name, 4 of "q4_k" and "affine4_g64_bf16".
int64_t quant_bits(const model::Model& model) {
  std::map<std::string, int64_t> values;
  for (const model::ListedTensor& t : model.tensors()) values[t.type] += t.values;
  const auto most =
      std::max_element(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == values.end()) return 0;
  int64_t bits = 0;
  const std::string& type = most->first;
  if (const size_t digit = type.find_first_of("0123456789"); digit != std::string::npos)
    std::from_chars(type.data() + digit, type.data() + type.size(), bits);
  return bits;
}

server::WorkerModel headers(const Context& context, const model::Model& opened) {
  server::WorkerModel model;
  int64_t size = 0;
  for (const MappedFile& file : opened.weights().files()) size += static_cast<int64_t>(file.bytes().size());
  json::Object& o = model.facts;
  o["model_type"] = opened.spec().model_type;
  o["size_bytes"] = size;
  o["quant_bits"] = quant_bits(opened);
  o["vision"] = false;
  o["support_tier"] = name_of(model::support_of(opened.spec().model_type));
  o["embedding"] = decode::is_embedding_model(opened);
  o["fit"] = fit_document(context, opened,
                          {.positions = context.args().integer("ctx"), .ram_gbs = *context.args().number("ram-gbs")});
  return model;
}

std::optional<text::ToolDialect> dialect_named(const Context& context) {
  const auto name = context.args().text("tool-dialect");
  return name ? std::optional(text::tool_dialect(*name)) : std::nullopt;
}

server::WorkerModel text_of(const Context& context, const std::shared_ptr<model::Model>& opened) {
  server::WorkerModel model;
  model.name = *context.args().text("name");
  model.opened = opened;
  model.embedding = decode::is_embedding_model(*opened);
  model.text = std::make_unique<model::ModelText>(*opened, model.name);
  model.defaults = sampling_defaults(context, opened->generation_config());
  model.tool_dialect = dialect_named(context);
  model.limits = read_limits(context.args().texts("limit"));
  return model;
}

// From here on this process ends with the front, by whatever the front ended. False: it has ended already.
bool ends_with_front() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd wire{.fd = server::kWorkerWireFd, .events = POLLIN, .revents = 0};
  return ::poll(&wire, 1, 0) >= 0 && (wire.revents & POLLHUP) == 0;
}

// What the worker needs of the disk: the model, and the folders of repacked weights and of prefixes.
server::sandbox::Paths paths(const Context& context) {
  server::sandbox::Paths list;
  list.read = server::sandbox::model_paths(*context.args().positional("MODEL"));
  if (*context.args().text("role") != "model") {
    list.read.push_back(rates_folder(context.env()));
    return list;
  }
  if (*context.args().bytes("pack-cache") > 0) {
    const std::filesystem::path packed = packed_folder(context.env());
    try {
      io::real_fs().make_dirs(packed);
    } catch (const Error& error) {
      log::warn("worker", "{}", error.what());  // nothing can be kept there, then
    }
    list.write.push_back(packed);
  }
  if (const auto disk = context.args().text("disk-cache")) {
    list.write.push_back(hub::expand_home(*disk, context.env()));
    io::real_fs().make_dirs(list.write.back());
  }
  return list;
}

int run(Context& context) {
  // Without a front behind it there is nothing to do: no person calls this.
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(server::kWorkerWireFd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
    fail(ErrorKind::invalid_argument, "worker is started by serve, not by hand");
  ::fcntl(server::kWorkerWireFd, F_SETFD, FD_CLOEXEC);
  if (!ends_with_front()) return 0;
  // What is wrong with a folder is the answer to the load: the front would start a process that just ends again and
  // again.
  server::sandbox::Paths allowed;
  std::exception_ptr refused;
  try {
    allowed = paths(context);
  } catch (const Error&) {
    refused = std::current_exception();
  }
  server::sandbox::enter_loading(allowed);
  return server::run_worker(server::kWorkerWireFd, [&](const auto& progress) {
    if (refused) std::rethrow_exception(refused);
    const hub::FoundModel found = find_model(context);
    const std::shared_ptr<model::Model> opened = model::Model::open(found.path);
    const std::string role = *context.args().text("role");
    if (role == "headers") {
      server::WorkerModel model = headers(context, *opened);
      server::sandbox::enter_serving();
      return model;
    }
    if (role == "text") {
      server::WorkerModel model = text_of(context, opened);
      server::sandbox::enter_serving();
      return model;
    }
    if (decode::is_embedding_model(*opened)) {
      server::WorkerModel model = load_embedder(context, opened, progress);
      server::sandbox::enter_serving();
      return model;
    }
    LoadRequest request;
    request.called = *context.args().text("name");
    request.tune = [&](const model::Model& model, const graph::Executor& executor, decode::EngineOptions& options) {
      tune(context, model, executor, options);
    };
    request.progress = progress;
    LoadedModel loaded = load_model(context, request, {.adapter = "none"});  // the front sends them when it is up
    server::WorkerModel model;
    model.name = *context.args().text("name");
    model.facts = facts(context, loaded);
    model.defaults = sampling_defaults(context, loaded.engine->model().generation_config());
    model.facts["sampling_defaults"] = model.defaults;
    model.tool_dialect = dialect_named(context);
    model.limits = read_limits(context.args().texts("limit"));
    model.scheduler.demote_idle =
        std::chrono::nanoseconds(static_cast<int64_t>(*context.args().seconds("demote-idle") * 1e9));
    model.scheduler.prefix_bytes = *context.args().bytes("prompt-cache");
    if (const auto dir = context.args().text("disk-cache")) {
      const std::optional<std::string> state = state_of(loaded.engine->model());
      if (!state) fail(ErrorKind::not_found, "{}: its file is gone", loaded.found.path.string());
      model.disk = decode::PrefixDiskOptions{.dir = hub::expand_home(*dir, context.env()),
                                             .bytes_max = *context.args().bytes("disk-cache-max"),
                                             .model = *state};
    }
    model.adapter_bytes = loaded.engine->need().adapters;
    model.engine = std::move(loaded.engine);
    model.text = std::move(loaded.text);
    if (!model.disk) server::sandbox::enter_serving();  // the disk tier opens files as long as it lives
    return model;
  });
}

}  // namespace

const Command kWorker = {
    .name = "worker",
    .aliases = "",
    .summary = "one loaded model of a server; started by serve",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
    .json = false,
    .settings = false,
    .hidden = true,
};

}  // namespace hearth::cli

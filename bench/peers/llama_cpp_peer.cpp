// llama.cpp as a measured peer (protocol.py) without Python: prefill and decode, as llama_cpp_peer.py does them. For
// machines where the Python package does not load a model; bench/run takes it when HEARTH_LLAMA_PEER names it.
//
//   g++ -std=c++20 -O2 llama_cpp_peer.cpp -I LLAMA/include -I LLAMA/ggml/include -L LIBS -lllama -lggml -lggml-base -o
//   PEER PEER MODEL.gguf --threads 2 --context 1024          LLAMA_VERSION: what records call the version
#include <llama.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* why) {
  std::printf("{\"error\": \"%s\"}\n", why);
  std::exit(1);
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// The number behind "key": in a request; `otherwise` when it is not there.
long number(const std::string& request, const std::string& key, long otherwise) {
  const size_t at = request.find("\"" + key + "\":");
  return at == std::string::npos ? otherwise : std::atol(request.c_str() + at + key.size() + 3);
}

std::vector<llama_token> ids_of(const std::string& request) {
  std::vector<llama_token> ids;
  const size_t at = request.find("\"ids\": [");
  if (at == std::string::npos) return ids;
  const char* p = request.c_str() + at + 8;
  for (char* end = nullptr;; p = end + 1) {
    const long id = std::strtol(p, &end, 10);
    if (end == p) return ids;
    ids.push_back(static_cast<llama_token>(id));
    if (*end != ',') return ids;
  }
}

struct Peer {
  llama_context* context;
  int vocabulary;

  void feed(llama_token* ids, size_t count) {
    if (llama_decode(context, llama_batch_get_one(ids, static_cast<int32_t>(count))) != 0)
      give_up("llama_decode failed");
    llama_synchronize(context);
  }

  double prefill(std::vector<llama_token> ids) {
    llama_memory_clear(llama_get_memory(context), true);
    const auto begin = Clock::now();
    feed(ids.data(), ids.size());
    return seconds_since(begin);
  }

  // Choosing the next id is outside of the timed span.
  double decode(const std::vector<llama_token>& ids, long tokens, std::vector<llama_token>& chosen) {
    prefill(ids);
    double seconds = 0;
    for (long i = 0; i < tokens; ++i) {
      const float* row = llama_get_logits_ith(context, -1);
      llama_token id = static_cast<llama_token>(std::max_element(row, row + vocabulary) - row);
      chosen.push_back(id);
      const auto begin = Clock::now();
      feed(&id, 1);
      seconds += seconds_since(begin);
    }
    return seconds;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) give_up("usage: PEER MODEL.gguf --threads N --context N");
  const int threads = std::atoi(argv[3]), positions = std::atoi(argv[5]);
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  const auto begin = Clock::now();
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (!model) give_up("llama.cpp does not load this file");
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(positions);
  params.n_batch = std::max(params.n_batch, params.n_ctx);
  params.n_threads = params.n_threads_batch = threads;
  Peer peer{llama_init_from_model(model, params), llama_vocab_n_tokens(llama_model_get_vocab(model))};
  if (!peer.context) give_up("llama.cpp makes no context of that size");
  const char* version = std::getenv("LLAMA_VERSION");
  std::printf("{\"ready\": true, \"name\": \"llama.cpp\", \"version\": \"%s\", \"build\": \"%s\", \"load_ms\": %f}\n",
              version ? version : "unknown", llama_print_system_info(), 1e3 * seconds_since(begin));
  std::fflush(stdout);

  for (std::string request; std::getline(std::cin, request);) {
    const std::vector<llama_token> ids = ids_of(request);
    const long tokens = number(request, "tokens", 0);
    std::vector<llama_token> chosen;
    const bool decodes = request.find("\"do\": \"decode\"") != std::string::npos;
    if (ids.empty() || static_cast<long>(ids.size()) + tokens > positions)
      give_up("the request does not fit the context");
    const double seconds = decodes ? peer.decode(ids, tokens, chosen) : peer.prefill(ids);
    const double count = decodes ? static_cast<double>(tokens) : static_cast<double>(ids.size());
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("{\"tps\": %f, \"ms\": %f, \"tokens\": %.0f, \"rss_bytes\": %ld, \"ids\": [", count / seconds,
                1e3 * seconds, count, 1024 * usage.ru_maxrss);
    for (size_t i = 0; i < chosen.size(); ++i) std::printf("%s%d", i ? ", " : "", chosen[i]);
    std::printf("]}\n");
    std::fflush(stdout);
  }
}

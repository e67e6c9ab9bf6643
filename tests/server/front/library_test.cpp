// /library and /fit, with processes that follow a script in place of reading headers.
#include "server/front/library.h"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <string>
#include <vector>

#include "server/front/scripted_models.h"

namespace hearth::server {
namespace {

class LibraryTest : public ScriptedModels {
 protected:
  Library& open(const std::vector<std::string>& names, const std::function<void(LibraryOptions&)>& change = {}) {
    start(names);
    LibraryOptions o;
    const std::string program = program_path();
    o.command = [program](const hub::FoundModel& model, std::optional<int64_t> positions) {
      WorkerCommand command{.argv = {program, model.path.string(), "1000", "headers"}, .environment = {}};
      if (positions) command.argv.push_back(std::to_string(*positions));
      return command;
    };
    if (change) change(o);
    library_ = std::make_unique<Library>(o, *models_);
    return *library_;
  }

  std::future<json::Value> ask_list() {
    auto promise = std::make_shared<std::promise<json::Value>>();
    library_->list([promise](const json::Value& document) { promise->set_value(document); },
                   [promise](const Refusal& refusal) { promise->set_value(refusal.message); });
    return promise->get_future();
  }
  json::Value list() { return get(ask_list()); }

  std::future<json::Value> ask_fit(const std::string& id, std::optional<int64_t> positions = {}) {
    auto promise = std::make_shared<std::promise<json::Value>>();
    library_->fit(
        id, positions, [promise](const json::Value& document) { promise->set_value(document); },
        [promise](const Refusal& refusal) { promise->set_value(refusal.message); });
    return promise->get_future();
  }

  void adapter(const std::string& name, const std::string& config) {
    dir_.write("adapters/" + name + "/adapter_config.json", config);
    dir_.write("adapters/" + name + "/adapters.safetensors", "weights");
  }
  // The adapters, or why there are none.
  using AdaptersOutcome = std::pair<std::vector<AvailableAdapter>, std::string>;
  std::future<AdaptersOutcome> ask_adapters(const std::string& id) {
    auto promise = std::make_shared<std::promise<AdaptersOutcome>>();
    library_->adapters(
        id, dir_.path() / "adapters",
        [promise](const std::vector<AvailableAdapter>& list) { promise->set_value({list, ""}); },
        [promise](const Refusal& refusal) { promise->set_value({{}, refusal.message}); });
    return promise->get_future();
  }
  std::vector<AvailableAdapter> adapters(const std::string& id) { return get(ask_adapters(id)).first; }

  static const json::Value& row(const json::Value& document, const std::string& id) {
    for (const json::Value& one : document.get("models")->as_array("models"))
      if (*one.get("id")->string() == id) return one;
    throw std::runtime_error("no row " + id);
  }

  std::unique_ptr<Library> library_;
};

TEST_F(LibraryTest, a_reload_reads_all_models_anew) {
  write("a", "bytes 300");
  write("b", "bytes 700");
  LibraryOptions options;
  open({"a"}, [&](LibraryOptions& o) { options = o; });
  EXPECT_EQ(row(list(), "a").get("size_bytes")->as_int(""), 300);
  library_->reload([this, command = options.command](const hub::FoundModel& model, std::optional<int64_t> positions) {
    WorkerCommand other = command(model, positions);
    other.argv[1] = path("b");
    return other;
  });
  EXPECT_EQ(row(list(), "a").get("size_bytes")->as_int(""), 700);
}

TEST_F(LibraryTest, each_model_has_a_row_by_its_headers) {
  write("small", "bytes 300");
  write("large", "bytes 2000");
  write("strange", "fail invalid_argument strange.gguf: architecture mamba9 is not supported");
  write("broken", "die");
  open({"small", "large", "strange", "broken"});
  const json::Value document = list();
  ASSERT_EQ(document.get("models")->as_array("models").size(), 4u);
  const json::Value& small = row(document, "small");
  EXPECT_EQ(*small.get("model_type")->string(), "scripted");
  EXPECT_EQ(small.get("size_bytes")->as_int(""), 300);
  EXPECT_EQ(small.get("quant_bits")->as_int(""), 4);
  EXPECT_TRUE(small.get("supported")->as_bool(""));
  EXPECT_EQ(*small.get("support_tier")->string(), "supported");
  EXPECT_TRUE(small.get("assessment")->get("fits")->as_bool(""));
  EXPECT_EQ(small.get("assessment")->get("max_safe_context")->as_int(""), 100);
  EXPECT_EQ(small.get("assessment")->get("predicted_decode_tps")->as_double(""), 12.5);
  EXPECT_FALSE(row(document, "large").get("assessment")->get("fits")->as_bool(""));
  for (const char* id : {"strange", "broken"}) {
    EXPECT_FALSE(row(document, id).get("supported")->as_bool("")) << id;
    EXPECT_EQ(row(document, id).get("assessment"), nullptr) << id;
  }
  EXPECT_EQ(*row(document, "strange").get("problem")->string(), "strange.gguf: architecture mamba9 is not supported");
  EXPECT_EQ(count("load small"), 0) << "headers are no load";
}

TEST_F(LibraryTest, one_look_serves_all_who_ask_and_those_who_ask_soon_again) {
  write("a", "load_ms 150");
  open({"a"});
  std::vector<std::future<json::Value>> waiting;
  for (int i = 0; i < 8; ++i) waiting.push_back(ask_list());
  for (auto& one : waiting) EXPECT_NE(get(std::move(one)).get("models"), nullptr);
  list();
  EXPECT_EQ(count("headers a"), 1);
}

TEST_F(LibraryTest, files_that_changed_are_read_again_and_others_are_not) {
  write("a", "bytes 300");
  write("b", "bytes 300");
  open({"a", "b"}, [](LibraryOptions& o) { o.cache = 0ms; });
  list();
  write("b", "bytes 40000");
  EXPECT_EQ(row(list(), "b").get("size_bytes")->as_int(""), 40000);
  EXPECT_EQ(count("headers a"), 1);
  EXPECT_EQ(count("headers b"), 2);
}

// Whatever goes wrong on the way, who asked hears of it, and the next one is answered.
TEST_F(LibraryTest, a_question_that_cannot_be_answered_is_refused) {
  write("a", "");
  adapter("style", "good");
  bool is_short = true;
  open({"a"}, [&](LibraryOptions& o) {
    o.cache = 0ms;
    o.command = [&is_short, command = o.command](const hub::FoundModel& model, std::optional<int64_t> positions) {
      if (is_short) throw std::bad_alloc();
      return command(model, positions);
    };
  });
  const std::string why = "the server has too little memory for this request just now";
  EXPECT_EQ(*get(ask_fit("a", {})).string(), why);
  EXPECT_EQ(get(ask_adapters("a")).second, why);
  EXPECT_EQ(*row(list(), "a").get("problem")->string(), why);
  is_short = false;
  EXPECT_NE(get(ask_fit("a", {})).get("model"), nullptr);
  EXPECT_TRUE(row(list(), "a").get("supported")->as_bool(""));
}

TEST_F(LibraryTest, a_reader_that_hangs_costs_its_own_row_and_is_tried_again) {
  write("a", "hang");
  write("b", "");
  open({"a", "b"}, [](LibraryOptions& o) {
    o.cache = 0ms;
    o.read_max = 300ms;
  });
  const json::Value document = list();
  EXPECT_FALSE(row(document, "a").get("supported")->as_bool(""));
  EXPECT_TRUE(row(document, "b").get("supported")->as_bool(""));
  list();
  EXPECT_EQ(count("headers a"), 2);
  EXPECT_EQ(count("headers b"), 1);
}

TEST_F(LibraryTest, a_reader_that_was_ended_is_tried_again) {
  write("a", "die");
  write("b", "fail corrupt_file b.gguf: its header ends behind the file");
  write("c", "fail out_of_memory no memory is left");
  open({"a", "b", "c"}, [](LibraryOptions& o) { o.cache = 0ms; });
  for (int i = 1; i <= 2; ++i) {
    const json::Value document = list();
    EXPECT_EQ(*row(document, "a").get("problem")->string(), "the process that read its headers ended over them");
    EXPECT_EQ(count("headers a"), i) << "nothing is known of its files";
    EXPECT_EQ(count("headers b"), 1) << "the same files say the same";
    EXPECT_EQ(count("headers c"), i);
  }
}

TEST_F(LibraryTest, fit_answers_for_the_positions_that_are_asked_for) {
  write("a", "bytes 300");
  write("b", "fail corrupt_file b.gguf: its header ends behind the file");
  open({"a", "b"});
  const json::Value fits = get(ask_fit("a", 777));
  EXPECT_EQ(*fits.get("model")->string(), "a");
  EXPECT_EQ(fits.get("context_tokens")->as_int(""), 777);
  EXPECT_EQ(get(ask_fit("a")).get("context_tokens")->as_int(""), 100);
  EXPECT_EQ(*get(ask_fit("b")).string(), "b.gguf: its header ends behind the file");
}

TEST_F(LibraryTest, adapters_are_described_one_after_the_other_without_a_load) {
  write("a", "");
  open({"a"});
  constexpr int kMany = 300;
  for (int i = 0; i < kMany; ++i) adapter(fmt::format("x{:03}", i), i == 7 ? "bad: it is no config" : "good");
  const std::vector<AvailableAdapter> list = adapters("a");
  ASSERT_EQ(list.size(), kAdaptersListed);
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].name, fmt::format("x{:03}", i));
    EXPECT_EQ(list[i].problem, i == 7 ? "bad: it is no config" : "") << i;
    EXPECT_EQ(list[i].facts.contains("compatible"), i != 7);
  }
  EXPECT_EQ(count("headers a"), 1) << "one process for all";
  EXPECT_TRUE(is("a", ModelState::absent));
  EXPECT_EQ(count("load a"), 0);
}

TEST_F(LibraryTest, a_config_that_ends_its_reader_costs_its_own_row) {
  write("a", "");
  open({"a"});
  for (const auto& [name, config] : {std::pair("one", "good"), std::pair("two", "die"), std::pair("zwo", "good")})
    adapter(name, config);
  const std::vector<AvailableAdapter> list = adapters("a");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].problem + list[2].problem, "");
  EXPECT_EQ(list[1].problem, "the process that read it ended over it");
  EXPECT_EQ(count("headers a"), 2);
}

TEST_F(LibraryTest, adapters_of_a_model_that_cannot_be_read_are_refused_with_its_reason) {
  write("a", "fail corrupt_file a.gguf: its header ends behind the file");
  open({"a"});
  EXPECT_EQ(adapters("a").size(), 0u) << "no adapter, no process";
  EXPECT_EQ(count("headers a"), 0);
  adapter("one", "good");
  EXPECT_EQ(get(ask_adapters("a")).second, "a.gguf: its header ends behind the file");
}

TEST_F(LibraryTest, the_end_does_not_wait_for_a_reader_that_hangs) {
  write("a", "hang");
  open({"a"});
  auto asked = ask_list();
  ASSERT_TRUE(comes([&] { return count("headers a") == 1; }));
  library_.reset();
  EXPECT_EQ(asked.wait_for(0ms), std::future_status::ready) << "its promise went with it";
}

}  // namespace
}  // namespace hearth::server

// No sentence of a worker takes a folder of this machine to a client.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "server/front/scripted_models.h"

namespace hearth::server {
namespace {

class WorkerSentences : public ScriptedModels {};

// Whatever characters its folders have.
TEST_F(WorkerSentences, no_sentence_of_a_worker_names_its_folders) {
  for (const std::string name : {"my models/a", "it's \"mine\", (all); of: it/b"}) {
    std::filesystem::create_directories((dir_.path() / name).parent_path());
    const std::string id = std::filesystem::path(name).filename(), place = path(name);
    const std::string words = place + ": tensor /x is cut, see '" + dir_.path().string() + "/" + name + "' and " +
                              dir_.path().string() + "-2/x";
    for (const char* kind : {"invalid_argument", "io", "corrupt_file"}) {
      write(name, std::string("refuse ") + kind + " " + words);
      start({name});
      const Event event = get(ask(id));
      EXPECT_EQ(event.reason, kind);
      for (const std::string& part : {dir_.path().string(), dir_.path().filename().string(), std::string("mine"),
                                      std::string("my models/"), std::string("of: it/")})
        EXPECT_EQ(event.text.find(part), std::string::npos) << event.text;
      EXPECT_TRUE(event.text.starts_with(id + ".gguf: tensor ")) << event.text;
      write(name, std::string("fail ") + kind + " " + words);
      start({name});
      const Outcome outcome = get(acquire(id));
      EXPECT_TRUE(outcome.refusal.message.starts_with(id + ".gguf: tensor x is cut")) << outcome.refusal.message;
      EXPECT_EQ(outcome.refusal.message.find(dir_.path().filename().string()), std::string::npos)
          << outcome.refusal.message;
    }
  }
}

}  // namespace
}  // namespace hearth::server

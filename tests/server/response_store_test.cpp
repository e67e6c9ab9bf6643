#include "server/front/response_store.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::server {
namespace {

using std::chrono::minutes;

json::Value item(const std::string& text) {
  json::Object o;
  o["text"] = text;
  return o;
}

StoredResponse response(const std::string& id, const std::string& previous = "", const std::string& text = "x") {
  json::Object document;
  document["id"] = id;
  json::Array output, items;
  output.push_back(item("out " + id));
  items.push_back(item("in " + id + text));
  document["output"] = std::move(output);
  document["previous_response_id"] = previous.empty() ? json::Value() : json::Value(previous);
  return {.document = std::move(document), .items = std::move(items), .instructions = "of " + id};
}

TEST(ResponseStore, finds_what_was_put_for_its_owner_alone) {
  FakeClock clock;
  ResponseStore store(clock);
  store.put("ann", response("r1"));
  EXPECT_EQ(json::dump(*store.find("ann", "r1")), json::dump(response("r1").document));
  EXPECT_FALSE(store.find("bob", "r1"));
  EXPECT_FALSE(store.erase("bob", "r1"));
  EXPECT_THROW(store.past("bob", "r1"), Error);
  EXPECT_TRUE(store.erase("ann", "r1"));
  EXPECT_FALSE(store.find("ann", "r1"));
  EXPECT_EQ(store.bytes(), 0);
}

TEST(ResponseStore, the_past_is_the_whole_chain_oldest_first) {
  FakeClock clock;
  ResponseStore store(clock);
  store.put("", response("r1"));
  store.put("", response("r2", "r1"));
  store.put("", response("r3", "r2"));
  const responses::Past past = store.past("", "r3");
  EXPECT_EQ(json::dump(past.items),
            json::dump(json::parse(R"([{"text":"in r1x"},{"text":"out r1"},{"text":"in r2x"},{"text":"out r2"},)"
                                   R"({"text":"in r3x"},{"text":"out r3"}])",
                                   "")));
  EXPECT_EQ(past.instructions, "of r3");
  store.erase("", "r1");
  try {
    store.past("", "r3");
    FAIL() << "the chain is broken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_NE(std::string(error.what()).find("r1"), std::string::npos) << error.what();
  }
}

TEST(ResponseStore, forgets_an_hour_after_the_last_use) {
  FakeClock clock;
  ResponseStore store(clock);
  store.put("", response("r1"));
  store.put("", response("r2"));
  clock.advance(minutes(59));
  EXPECT_TRUE(store.find("", "r1"));
  clock.advance(minutes(1));
  EXPECT_TRUE(store.find("", "r1"));
  EXPECT_FALSE(store.find("", "r2"));
  EXPECT_EQ(store.entries(), 1);
  clock.advance(minutes(60));
  EXPECT_EQ(store.entries(), 0);
  EXPECT_EQ(store.bytes(), 0);
}

TEST(ResponseStore, drops_the_least_recently_used_beyond_its_bytes) {
  FakeClock clock;
  ResponseStore store(clock, {.bytes_max = 20'000});
  const std::string text(4'000, 't');
  for (const char* id : {"r1", "r2", "r3", "r4"}) store.put("", response(id, "", text));
  EXPECT_EQ(store.entries(), 4);
  EXPECT_TRUE(store.find("", "r1"));
  store.put("", response("r5", "", text));
  EXPECT_FALSE(store.find("", "r2"));
  for (const char* id : {"r1", "r3", "r4", "r5"}) EXPECT_TRUE(store.find("", id)) << id;
  EXPECT_LE(store.bytes(), 20'000);
  store.put("", response("r6", "", std::string(30'000, 't')));
  EXPECT_FALSE(store.find("", "r6"));
  EXPECT_EQ(store.entries(), 4);
}

}  // namespace
}  // namespace hearth::server

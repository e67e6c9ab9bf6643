#include "server/front/response_store.h"

#include <vector>

#include "base/error.h"

namespace hearth::server {
namespace {

constexpr int64_t kEntryBytes = 512;  // what an entry takes besides its texts

}  // namespace

ResponseStore::ResponseStore(const Clock& clock, ResponseStoreLimits limits) : clock_(clock), limits_(limits) {}

int64_t ResponseStore::Entry::bytes() const {
  return kEntryBytes + static_cast<int64_t>(2 * (key.first.size() + key.second.size()) + document.size() +
                                            items.size() + (instructions ? instructions->size() : 0) + previous.size());
}

void ResponseStore::put(const std::string& owner, const StoredResponse& response) {
  Entry entry;
  entry.key = {owner, response.document.get("id")->as_string("id")};
  entry.document = json::dump(response.document);
  entry.items = json::dump(response.items);
  entry.instructions = response.instructions;
  if (const json::Value* previous = response.document.get("previous_response_id"))
    entry.previous = previous->as_string("id");
  const int64_t size = entry.bytes();
  const std::lock_guard lock(mutex_);
  drop_expired();
  if (size > limits_.bytes_max) return;
  while (bytes_ + size > limits_.bytes_max) drop(std::prev(order_.end()));
  entry.used = clock_.monotonic();
  bytes_ += size;
  order_.push_front(std::move(entry));
  entries_[order_.front().key] = order_.begin();
}

std::optional<json::Value> ResponseStore::find(const std::string& owner, const std::string& id) {
  std::string document;
  {
    const std::lock_guard lock(mutex_);
    drop_expired();
    const Entry* entry = use({owner, id});
    if (!entry) return std::nullopt;
    document = entry->document;
  }
  return json::parse(document, "a stored response");
}

bool ResponseStore::erase(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  drop_expired();
  const auto found = entries_.find({owner, id});
  if (found == entries_.end()) return false;
  drop(found->second);
  return true;
}

responses::Past ResponseStore::past(const std::string& owner, const std::string& id) {
  struct Turn {
    std::string items, document;
  };
  std::vector<Turn> turns;  // the last one first
  responses::Past past;
  {
    const std::lock_guard lock(mutex_);
    drop_expired();
    for (std::string at = id; !at.empty();) {
      const Entry* entry = use({owner, at});
      if (!entry) {
        if (at == id) fail(ErrorKind::not_found, "there is no stored response {}", id);
        fail(ErrorKind::not_found, "the response {} goes on from {}, which is not stored any more", id, at);
      }
      if (at == id) past.instructions = entry->instructions;
      turns.push_back({entry->items, entry->document});
      at = entry->previous;
    }
  }
  for (size_t i = turns.size(); i-- > 0;) {
    const json::Value items = json::parse(turns[i].items, "a stored response");
    const json::Value document = json::parse(turns[i].document, "a stored response");
    for (const json::Value& item : items.as_array("input")) past.items.push_back(item);
    for (const json::Value& item : document.get("output")->as_array("output")) past.items.push_back(item);
  }
  return past;
}

int64_t ResponseStore::entries() {
  const std::lock_guard lock(mutex_);
  drop_expired();
  return static_cast<int64_t>(entries_.size());
}

int64_t ResponseStore::bytes() {
  const std::lock_guard lock(mutex_);
  drop_expired();
  return bytes_;
}

ResponseStore::Entry* ResponseStore::use(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  found->second->used = clock_.monotonic();
  return &*found->second;
}

void ResponseStore::drop(Order::iterator entry) {
  bytes_ -= entry->bytes();
  entries_.erase(entry->key);
  order_.erase(entry);
}

void ResponseStore::drop_expired() {
  while (!order_.empty() && clock_.monotonic() - order_.back().used >= limits_.ttl) drop(std::prev(order_.end()));
}

}  // namespace hearth::server

// Adapters of a session: their files are read and checked on a thread of its own, the engine thread then takes them in
// between two steps.
#include "base/error.h"
#include "model/forward.h"
#include "server/request_error.h"
#include "server/worker/adapter_files.h"
#include "server/worker/guarded.h"
#include "server/worker/session.h"
#include "server/worker/text_calls.h"

namespace hearth::server {

// What `work` throws is the answer.
template <class Work>
void Session::answer_adapter(uint64_t id, const Work& work) {
  guarded(work, [&](const Error& error) { send_adapter_error(id, error); });
}

// Work between two steps.
template <class Work>
void Session::on_engine(uint64_t id, Work work) {
  commands_.push([this, work = std::move(work), room = Unsaid::room([this, id](const Error& error) {
                                                  send_adapter_error(id, error);
                                                })](decode::Scheduler&) mutable { unsaid_.guard(room, work); });
}

// --- receiving thread ---

void Session::adapter(Frame frame) {
  const json::Value *number = frame.body.get("id"), *name = frame.body.get("name");
  if (!number || !name) fail(ErrorKind::corrupt_file, "a frame of an adapter without an id or a name");
  const auto id = static_cast<uint64_t>(number->as_int("id"));
  // At once: no request that comes behind it finds the adapter.
  if (frame.kind == FrameKind::adapter_unmount)
    return on_engine(id, [this, id, adapter = name->as_string("name")] {
      adapters_.unmount(adapter, [this, id] { reply(id, {}); });
    });
  const auto shared = std::make_shared<const Frame>(std::move(frame));
  adapter_work_.push([this, id, shared] { answer_adapter(id, [&] { mount(*shared, id); }); });
}

// --- the adapters' thread ---

void Session::run_adapters() {
  std::vector<std::function<void()>> work;
  while (adapter_work_.take_all(work)) {
    for (const std::function<void()>& item : work) item();
    work.clear();  // and with them their files
  }
}

void Session::mount(const Frame& frame, uint64_t id) {
  const json::Value* as_default = frame.body.get("default");
  const bool is_default = as_default && as_default->as_bool("default");
  const auto read = std::make_shared<ReadAdapter>(
      read_adapter(frame, model::adapter_linears(model_.engine->spec()), model_.adapter_bytes));
  on_engine(id, [this, id, read, is_default] {
    const std::string name = read->adapter.id;
    json::Object facts = facts_of(*read), o;
    const int64_t before = adapters_.bytes();
    adapters_.mount(std::move(read->adapter), read->digest);
    if (is_default) adapters_.set_default(name);
    facts["bytes"] = adapters_.bytes() - before;
    o["adapter"] = std::move(facts);
    reply(id, std::move(o));
  });
}

// --- engine thread ---

decode::AdapterChoice Session::choose_adapter(const std::string& spec) {
  try {
    return adapters_.choose(spec);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_argument) throw;
    throw RequestError("adapter", fmt::format("adapter: {}", error.what()));
  }
}

// The codes that clients get where the kind's own speaks of models.
void Session::send_adapter_error(uint64_t id, const Error& error) {
  std::string code;
  if (error.kind() == ErrorKind::not_found) code = "adapter_not_found";
  if (error.kind() == ErrorKind::busy) code = "adapters_full";
  if (error.kind() == ErrorKind::corrupt_file) code = "adapter_not_loadable";
  send_error(id, error, std::move(code));
}

}  // namespace hearth::server

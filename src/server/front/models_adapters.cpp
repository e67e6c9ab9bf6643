// The adapters of the pool's models: mounted and unmounted while workers run, and mounted again on a worker that is
// started anew, before it gets a request.
#include <algorithm>

#include "base/log.h"
#include "base/printable.h"
#include "formats/adapter.h"
#include "server/front/models.h"
#include "server/request_error.h"

namespace hearth::server {
namespace {

json::Object mount_body(const MountedAdapter& adapter, const hub::FoundModel& model) {
  json::Object body;
  body["name"] = adapter.id;
  body["files"] = adapter.files.names_json();
  body["repo"] = model.repo;
  body["revision"] = model.revision;
  body["force"] = adapter.force;
  body["default"] = adapter.is_default;
  if (const json::Value* digest = adapter.facts.find("digest")) body["digest"] = *digest;
  return body;
}

json::Object facts_of(const json::Value& reply) {
  const json::Value* facts = reply.get("adapter");
  return facts && facts->object() ? *facts->object() : json::Object();
}

auto find(std::vector<MountedAdapter>& adapters, const std::string& id) {
  return std::ranges::find(adapters, id, &MountedAdapter::id);
}

void warn_of(const std::string& model, const json::Object& facts) {
  if (const json::Value* why = facts.find("mismatch"); why && why->string())
    log::warn("front", "{}: {}", model, *why->string());
}

}  // namespace

MountedAdapter Models::adapter_at_start(const std::filesystem::path& folder) {
  MountedAdapter adapter;
  adapter.id = formats::adapter_id_of(folder);
  try {
    adapter.files = open_adapter(folder);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", folder.string(), error.what());
  }
  adapter.from_start = true;
  adapter.force = true;  // it was named by hand; a mismatch is said in the log and in the list
  return adapter;
}

void Models::mount(const std::string& id, MountedAdapter adapter, Mounted mounted,
                   std::function<void(const Refusal&)> refused) {
  know(id);
  hub::FoundModel found;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    if (find(entry.adapters, adapter.id) != entry.adapters.end())
      throw RequestError("id", fmt::format("id: adapter {} is mounted already on {}", printable(adapter.id), id));
    found = entry.found;
  }
  const auto send = [this, id, adapter = std::move(adapter), found = std::move(found), mounted = std::move(mounted),
                     refused](WorkerLink& worker, const std::shared_ptr<Errand>& errand) {
    const auto answered = [this, id, adapter, mounted, refused, errand](const Event* error, const json::Value& reply) {
      if (error && errand->goes_again(*error)) return send_mount(id, errand, refused);
      if (error) return mounted(error, {});
      MountedAdapter kept = adapter;
      kept.facts = facts_of(reply);
      kept.on_worker = true;
      {
        const std::lock_guard lock(mutex_);
        entries_.at(id).adapters.push_back(kept);
      }
      log::info("front", "adapter {} is mounted on {}", printable(kept.id), id);
      warn_of(id, kept.facts);
      mounted(nullptr, kept.facts);
    };
    return worker.call(FrameKind::adapter_mount, mount_body(adapter, found), answered, adapter.files.files,
                       errand->taken());
  };
  send_mount(id, Errand::make(send), refused);
}

void Models::send_mount(const std::string& id, const std::shared_ptr<Errand>& errand,
                        const std::function<void(const Refusal&)>& refused) {
  acquire(
      id, [errand](const std::shared_ptr<WorkerLink>& worker, const json::Object&) { errand->give(worker); }, refused);
}

// False: it was not there.
bool Models::forget_adapter(const std::string& id, const std::string& adapter) {
  const std::lock_guard lock(mutex_);
  std::vector<MountedAdapter>& adapters = entries_.at(id).adapters;
  const auto found = find(adapters, adapter);
  if (found == adapters.end()) return false;
  adapters.erase(found);
  return true;
}

void Models::unmount(const std::string& id, const std::string& adapter, Mounted done,
                     std::function<void(const Refusal&)> refused) {
  const auto not_there = fmt::format("adapter {} is not mounted on {}", printable(adapter), id);
  bool has_worker = false;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || find(entry->second.adapters, adapter) == entry->second.adapters.end())
      throw ClientError(ErrorKind::not_found, not_there);
    const ModelState state = entry->second.state;
    has_worker = state != ModelState::absent && state != ModelState::failed;
    if (!has_worker) entry->second.adapters.erase(find(entry->second.adapters, adapter));
  }
  if (!has_worker) return done(nullptr, {});
  acquire(
      id,
      [this, id, adapter, not_there, done = std::move(done)](const std::shared_ptr<WorkerLink>& worker,
                                                             const json::Object&) {
        // From here on no worker that is started gets it, whatever becomes of this one.
        if (!forget_adapter(id, adapter)) {
          Event error{.kind = Event::Kind::error};
          error.text = not_there;
          error.reason = name_of(ErrorKind::not_found);
          error.code = "adapter_not_found";
          return done(&error, {});
        }
        json::Object body;
        body["name"] = adapter;
        worker->call(FrameKind::adapter_unmount, std::move(body),
                     [id, adapter, done](const Event* error, const json::Value&) {
                       if (error && error->code != "worker_lost") return done(error, {});
                       log::info("front", "adapter {} is unmounted from {}", printable(adapter), id);
                       done(nullptr, {});
                     });
      },
      std::move(refused));
}

std::vector<AdapterView> Models::adapters() const {
  std::vector<AdapterView> views;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_)
    for (const MountedAdapter& adapter : entry.adapters)
      views.push_back({.model = id, .is_resident = entry.state == ModelState::ready, .adapter = adapter});
  return views;
}

// --- threads of the workers' links ---

// The adapters of a model that has just been loaded, one after the other; then it serves. One that was named at the
// start is part of the model. One that came later and cannot be mounted again is given up, and said so.
void Models::mount_next(const std::string& id) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_.at(id);
  if (stopping_ || entry.state != ModelState::loading || !entry.worker) return;
  const auto next = std::ranges::find(entry.adapters, false, &MountedAdapter::on_worker);
  if (next == entry.adapters.end()) return serve_loaded(id, entry, lock);
  const std::shared_ptr<WorkerLink> worker = entry.worker;
  const MountedAdapter adapter = *next;
  const uint64_t serial = entry.serial;
  const std::filesystem::path path = entry.found.path;
  json::Object body = mount_body(adapter, entry.found);
  lock.unlock();
  const auto answered = [this, id, serial, path, name = adapter.id, from_start = adapter.from_start](
                            const Event* error, const json::Value& reply) {
    {
      const std::lock_guard guard(mutex_);
      Entry& e = entries_.at(id);
      if (stopping_ || e.state != ModelState::loading || e.serial != serial) return;  // it has ended: lost()
      const auto at = find(e.adapters, name);  // it may have been unmounted meanwhile
      if (at != e.adapters.end() && !error) {
        at->facts = facts_of(reply);
        at->on_worker = true;
        warn_of(id, at->facts);
      } else if (at != e.adapters.end() && !from_start) {
        log::error("front", "{}: adapter {} is no longer mounted: {}", id, printable(name), error->text);
        e.adapters.erase(at);
      }
    }
    if (error && from_start) {
      log::warn("front", "{} is not loaded: {}", id, error->text);
      return refused(id, serial, refusal_of(*error, path));
    }
    mount_next(id);
  };
  worker->call(FrameKind::adapter_mount, std::move(body), answered, adapter.files.files);
}

}  // namespace hearth::server

// Who may call what (spec server 4, reliability ): hosts, origins, credentials. Decided from the head alone.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/http.h"
#include "server/http/problem.h"

namespace hearth::server {

enum class Access : uint8_t {
  open,       // P: anyone
  inference,  // I: a key if there are any; else callers of this machine that are no other site's page
  control     // C: the session token or the admin key
};

struct AuthOptions {
  std::vector<std::string> keys;  // API keys; empty: none is needed for inference
  std::vector<std::string> admin_keys;
  std::string session_token;              // of this run, for programs of the same person
  std::vector<std::string> hosts;         // further names in Host that are ours
  std::vector<std::string> cors_origins;  // origins of pages that may call
  std::string bind_host = "127.0.0.1";
};

// Thread-safe; immutable but for what is reloaded.
class Auth {
 public:
  explicit Auth(AuthOptions options);

  // Nothing, or why the request is refused: 421 foreign Host, 403 foreign Origin or site, 401 no credential.
  std::optional<Problem> check(const net::RequestHead& head, Access access) const;
  // The same of hosts, origins and sites alone: for those who show later who they are.
  std::optional<Problem> check_site(const net::RequestHead& head, Access access = Access::control) const;
  // Names whose request it is, for fairness and private caches; the same for the same credential. "" without keys.
  std::string owner(const net::RequestHead& head) const;
  // Whose credential it is, also where no keys are needed; "": it has none.
  std::string holder(const net::RequestHead& head) const;
  bool may_control(const std::string& holder) const;  // its credential is the session token or still an admin key
  // Headers that the answer to a page of a configured origin carries; else none.
  std::vector<net::Header> cors_headers(const net::RequestHead& head) const;

  bool needs_key() const;
  // From now on keys, admin keys, hosts and origins are these; session token and bind_host stay.
  void reload(const AuthOptions& options);
  bool knows_owner(const std::string& owner) const;  // whose key is still one; "" always is
  static bool has_credential(const net::RequestHead& head);

 private:
  bool is_our_host(const net::RequestHead& head) const;
  bool is_our_origin(const net::RequestHead& head, std::string_view origin) const;
  bool knows(const std::vector<std::string>& keys, std::string_view credential) const;

  AuthOptions options_;
  mutable std::mutex mutex_;  // of what reload() changes
};

bool is_loopback(std::string_view host);  // localhost, 127.0.0.0/8, ::1

}  // namespace hearth::server

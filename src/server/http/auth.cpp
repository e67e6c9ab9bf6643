#include "server/http/auth.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>

#include <algorithm>

#include "base/digest.h"

namespace hearth::server {
namespace {

// "host:port", "[::1]:port" -> the host in lower case, without brackets and without a final dot.
std::string host_name(std::string_view authority) {
  std::string_view host = authority;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    host = end == std::string_view::npos ? host : host.substr(1, end - 1);
  } else if (const size_t colon = host.rfind(':'); colon != std::string_view::npos) {
    host = host.substr(0, colon);
  }
  std::string name(host);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return name;
}

// As a client must write it: four decimal numbers, or IPv6. Other spellings of an address are no name of ours.
bool is_address(const std::string& name) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, name.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

bool binds_all(const std::string& host) { return host == "0.0.0.0" || host == "::" || host.empty(); }

// Two header forms, one credential; two different ones are none.
std::optional<std::string> credential_of(const net::RequestHead& head) {
  std::optional<std::string> found;
  if (head.header_count("authorization") > 1 || head.header_count("x-api-key") > 1) return std::nullopt;
  if (const auto value = head.header("authorization")) {
    constexpr std::string_view kBearer = "bearer ";
    if (value->size() <= kBearer.size() || !net::same_token(value->substr(0, kBearer.size() - 1), "bearer") ||
        (*value)[kBearer.size() - 1] != ' ')
      return std::nullopt;
    found = std::string(value->substr(kBearer.size()));
  }
  if (const auto value = head.header("x-api-key")) {
    if (found && *found != *value) return std::nullopt;
    found = std::string(*value);
  }
  return found;
}

std::string owner_of(std::string_view credential) { return sha256_hex(credential).substr(0, 16); }

Problem refused(int status, std::string type, std::string message, std::string code) {
  return {
      .status = status, .type = std::move(type), .message = std::move(message), .param = {}, .code = std::move(code)};
}

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_address(std::string(host)));
}

Auth::Auth(AuthOptions options) : options_(std::move(options)) {}

bool Auth::needs_key() const {
  const std::lock_guard lock(mutex_);
  return !options_.keys.empty();
}

void Auth::reload(const AuthOptions& options) {
  const std::lock_guard lock(mutex_);
  options_.keys = options.keys;
  options_.admin_keys = options.admin_keys;
  options_.hosts = options.hosts;
  options_.cors_origins = options.cors_origins;
}

bool Auth::knows_owner(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  const auto is_owner = [&](const std::string& key) { return owner == owner_of(key); };
  return owner.empty() || is_owner(options_.session_token) ||
         std::any_of(options_.keys.begin(), options_.keys.end(), is_owner) ||
         std::any_of(options_.admin_keys.begin(), options_.admin_keys.end(), is_owner);
}

std::string Auth::holder(const net::RequestHead& head) const {
  const std::optional<std::string> credential = credential_of(head);
  return credential ? owner_of(*credential) : "";
}

bool Auth::may_control(const std::string& holder) const {
  const std::lock_guard lock(mutex_);
  return (!options_.session_token.empty() && holder == owner_of(options_.session_token)) ||
         std::ranges::any_of(options_.admin_keys, [&](const std::string& key) { return holder == owner_of(key); });
}

bool Auth::has_credential(const net::RequestHead& head) { return credential_of(head).has_value(); }

bool Auth::is_our_host(const net::RequestHead& head) const {
  if (head.over_unix_socket) return true;
  const std::string name = host_name(head.header("host").value_or(""));
  if (is_loopback(name) || name == options_.bind_host) return true;
  const std::lock_guard lock(mutex_);
  if (std::find(options_.hosts.begin(), options_.hosts.end(), name) != options_.hosts.end()) return true;
  return binds_all(options_.bind_host) && is_address(name);
}

bool Auth::is_our_origin(const net::RequestHead& head, std::string_view origin) const {
  const std::lock_guard lock(mutex_);
  if (std::find(options_.cors_origins.begin(), options_.cors_origins.end(), origin) != options_.cors_origins.end())
    return true;
  return origin == "http://" + std::string(head.header("host").value_or(""));
}

// As long for the first byte that differs as for the last; every key is looked at.
bool Auth::knows(const std::vector<std::string>& keys, std::string_view credential) const {
  bool found = false;
  const std::string digest = sha256_hex(credential);
  for (const std::string& key : keys) {
    const std::string other = sha256_hex(key);
    found |= CRYPTO_memcmp(digest.data(), other.data(), digest.size()) == 0;
  }
  return found;
}

std::optional<Problem> Auth::check_site(const net::RequestHead& head, Access access) const {
  if (!is_our_host(head))
    return refused(421, "invalid_request_error", "this server does not answer to that Host; --allow-host adds a name",
                   "foreign_host");
  const auto origin = head.header("origin");
  if (origin && (head.header_count("origin") > 1 || !is_our_origin(head, *origin)))
    return refused(403, "permission_error", "pages of other origins may not call this server; --cors-origin adds one",
                   "foreign_origin");
  const auto site = head.header("sec-fetch-site");
  if (site && !origin && *site != "same-origin" && *site != "none" && access != Access::open)
    return refused(403, "permission_error", "pages of other sites may not call this server", "cross_site");
  return std::nullopt;
}

std::optional<Problem> Auth::check(const net::RequestHead& head, Access access) const {
  if (std::optional<Problem> problem = check_site(head, access)) return problem;
  if (access == Access::open) return std::nullopt;

  const std::optional<std::string> credential = credential_of(head);
  const std::lock_guard lock(mutex_);
  const bool is_admin =
      credential && (knows(options_.admin_keys, *credential) ||
                     (!options_.session_token.empty() && knows({options_.session_token}, *credential)));
  if (is_admin) return std::nullopt;
  if (access == Access::control)
    return refused(401, "authentication_error", "this needs the session token or an admin key", "invalid_api_key");
  if (options_.keys.empty()) return std::nullopt;
  if (credential && knows(options_.keys, *credential)) return std::nullopt;
  return refused(
      401, "authentication_error",
      credential ? "the API key is not one of this server's" : "an API key is needed: Authorization: Bearer KEY",
      "invalid_api_key");
}

std::string Auth::owner(const net::RequestHead& head) const {
  if (!needs_key()) return "";
  return owner_of(credential_of(head).value_or(""));
}

std::vector<net::Header> Auth::cors_headers(const net::RequestHead& head) const {
  const auto origin = head.header("origin");
  const std::lock_guard lock(mutex_);
  if (!origin ||
      std::find(options_.cors_origins.begin(), options_.cors_origins.end(), *origin) == options_.cors_origins.end())
    return {};
  return {{"Access-Control-Allow-Origin", std::string(*origin)},
          {"Vary", "Origin"},
          {"Access-Control-Allow-Headers", "authorization, content-type, x-api-key, anthropic-version, anthropic-beta"},
          {"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
          {"Access-Control-Max-Age", "600"}};
}

}  // namespace hearth::server

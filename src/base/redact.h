// Takes secrets out of text before it is written or shown.
#pragma once
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// What is taken out, each replaced by "***":
//   - strings registered with add(), wherever they stand;
//   - known token shapes (hf_, sk-, ghp_, gho_, github_pat_, xoxb-, xoxp-, AKIA, glpat-, npm_): the prefix stays, the
//   rest goes, when at
//     least 8 characters of [A-Za-z0-9_-] follow and no such character stands before;
//   - the word after Bearer or Basic, in any case;
//   - the value after api_key, apikey, api-key, access_token, auth_token, hub_token, hf_token, secret, password, passwd
//     and = or :, quoted or not (JSON, query strings, command lines);
//   - user and password of a URL (scheme://user:password@host).
// Linear in the text for a given number of registered secrets. Any thread.
class Redactor {
 public:
  // A secret known at run time (an API key, a hub token). Longer ones win where they overlap. Empty ones are ignored.
  void add(std::string_view secret);

  std::string redact(std::string_view text) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> secrets_;  // longest first
};

// Is this the name of a field or header whose value is a secret (api_key, Authorization, password, ...)?
bool names_secret(std::string_view key);

}  // namespace hearth

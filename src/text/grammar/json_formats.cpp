// The formats of JSON Schema as regular expressions: RFC 3339 dates that exist, RFC 4122, a dot-atom of RFC 5321 at a
// host name, RFC 2673 and 4291 addresses, RFC 3986. Each accepts only valid texts, not every valid one: no leap
// seconds, no quoted local parts, no year 0000.
#include <array>
#include <map>
#include <string>

#include "text/grammar/json_parts.h"

namespace hearth::text::grammar {

namespace {

std::string date() {
  const std::string year = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)";
  const std::string leap = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)";
  return "(" + year +
         "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|" +
         leap + "-02-29)";
}

std::string time() {
  return "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
}

std::string ipv4() {
  const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  return byte + "(\\." + byte + "){3}";
}

std::string ipv6() {
  const std::string h = "[0-9a-fA-F]{1,4}", last = "(" + h + ":" + h + "|" + ipv4() + ")";
  std::string out = "((" + h + ":){6}" + last + "|::(" + h + ":){5}" + last;
  // n groups, then ::, then the rest; at most 7 groups beside the ::.
  for (int before = 0; before <= 4; ++before) {
    const std::string front =
        before == 0 ? "(" + h + ")?" : "((" + h + ":){0," + std::to_string(before) + "}" + h + ")?";
    const int behind = 4 - before;
    out += "|" + front + "::" + (behind > 0 ? "(" + h + ":){" + std::to_string(behind) + "}" : "") + last;
  }
  out += "|((" + h + ":){0,5}" + h + ")?::" + h + "|((" + h + ":){0,6}" + h + ")?::)";
  return out;
}

std::string email() {
  const std::string atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+", label = "[a-zA-Z0-9]+(-+[a-zA-Z0-9]+)*";
  return atom + "(\\." + atom + ")*@" + label + "(\\." + label + ")*";
}

std::string uri() {
  const std::string plain = "a-zA-Z0-9._~!$&'()*+,;=", hex = "%[0-9a-fA-F]{2}";
  const std::string p = "([" + plain + ":@-]|" + hex + ")", q = "([" + plain + ":@/?-]|" + hex + ")*";
  const std::string user = "([" + plain + ":-]|" + hex + ")*", host = "([" + plain + "-]|" + hex + ")*";
  return "[a-zA-Z][a-zA-Z0-9+.-]*:(//(" + user + "@)?(" + host + "|\\[" + ipv6() + "\\])(:[0-9]*)?(/" + p + "*)*|/?" +
         p + "+(/" + p + "*)*)(\\?" + q + ")?(#" + q + ")?";
}

}  // namespace

std::optional<std::string_view> format_regex(std::string_view format) {
  static const std::map<std::string, std::string, std::less<>> known{
      {"date", date()},
      {"time", time()},
      {"date-time", date() + "T" + time()},
      {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
      {"email", email()},
      {"ipv4", ipv4()},
      {"ipv6", ipv6()},
      {"uri", uri()}};
  const auto found = known.find(format);
  if (found == known.end()) return std::nullopt;
  return found->second;
}

}  // namespace hearth::text::grammar

#include "server/client_sentence.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "hub/repo.h"

namespace hearth::server {
namespace {

constexpr std::string_view kSpace = " \t\n\r", kQuotes = "'\"`", kEnds = ",;)]}>", kBefore = "([{<=:,;";

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// Where a path may begin: behind nothing, white space, a quote, a bracket.
bool begins_word(std::string_view text, size_t at) {
  return at == 0 || is_one_of(text[at - 1], kSpace) || is_one_of(text[at - 1], kQuotes) ||
         is_one_of(text[at - 1], kBefore);
}

size_t end_of_path(std::string_view text, size_t at) {
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (is_one_of(c, kSpace) || is_one_of(c, kQuotes) || is_one_of(c, kEnds)) return at;
    if (c == ':' && (at + 1 == text.size() || is_one_of(text[at + 1], kSpace))) return at;
  }
  return at;
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// models--org--name/snapshots/<revision>/<file> and what lies around it; else the last name.
std::string name_of_path(std::string_view path) {
  const std::vector<std::string_view> parts = parts_of(path);
  if (parts.empty()) return "/";
  for (size_t i = parts.size(); i-- > 0;) {
    const auto repo = hub::repo_of_folder(parts[i]);
    if (!repo) continue;
    if (i + 3 >= parts.size() || parts[i + 1] != "snapshots") return *repo;
    return std::string(path.substr(static_cast<size_t>(parts[i + 3].data() - path.data())));
  }
  return std::string(parts.back());
}

// The folders as they stand in sentences, the longest first.
std::vector<std::string> spelled(std::span<const std::filesystem::path> folders) {
  std::vector<std::string> known;
  for (const std::filesystem::path& folder : folders)
    if (folder.is_absolute() && folder.has_relative_path()) known.push_back(folder.string());
  std::ranges::sort(known, std::greater(), &std::string::size);
  return known;
}

// Bytes of the longest known folder that the text begins with; 0: of none.
size_t known_folder(std::string_view text, const std::vector<std::string>& known) {
  const auto found = std::ranges::find_if(known, [&](const std::string& folder) { return text.starts_with(folder); });
  return found == known.end() ? 0 : found->size();
}

bool begins_path(std::string_view sentence, size_t at) {
  const std::string_view rest = sentence.substr(at);
  const bool is_absolute = rest[0] == '/' && rest.size() > 1 && rest[1] != '/' && !is_one_of(rest[1], kSpace);
  const bool is_path = is_absolute || rest.starts_with("~/") || rest.starts_with("./") || rest.starts_with("../");
  return is_path && begins_word(sentence, at);
}

// Of a path whose folder is not known. It may hold any of the characters that end one: where a slash follows that
// begins no other path, in the same part of the sentence, it goes on.
size_t end_of_unknown(std::string_view sentence, size_t at) {
  size_t end = end_of_path(sentence, at);
  for (size_t next = end; next < sentence.size(); ++next) {
    const bool is_last = next + 1 == sentence.size() || is_one_of(sentence[next + 1], kSpace);
    if (is_one_of(sentence[next], ":;,") && is_last) break;
    if (begins_path(sentence, next)) break;
    if (sentence[next] == '/') next = end = end_of_path(sentence, next);
  }
  return end;
}

}  // namespace

std::vector<std::filesystem::path> with_parents(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> folders;
  if (!path.is_absolute()) return folders;
  // One name alone is nothing that is this machine's: /tmp, /home.
  for (std::filesystem::path one = path; one.parent_path().has_relative_path(); one = one.parent_path())
    folders.push_back(one);
  return folders;
}

std::string without_folders(std::string_view sentence, std::span<const std::filesystem::path> folders) {
  const std::vector<std::string> known = spelled(folders);
  std::string told;
  for (size_t at = 0; at < sentence.size();) {
    const size_t folder = sentence[at] == '/' ? known_folder(sentence.substr(at), known) : 0;
    if (folder == 0) {
      told += sentence[at++];
      continue;
    }
    const size_t end = end_of_path(sentence, at + folder);
    told += name_of_path(sentence.substr(at, end - at));
    at = end;
  }
  return told;
}

std::string client_sentence(std::string_view sentence, std::span<const std::filesystem::path> folders) {
  const std::string known = without_folders(sentence, folders);
  std::string told;
  for (size_t at = 0; at < known.size();) {
    if (!begins_path(known, at)) {
      told += known[at++];
      continue;
    }
    const size_t end = end_of_unknown(known, at);
    told += name_of_path(std::string_view(known).substr(at, end - at));
    at = end;
  }
  return told;
}

}  // namespace hearth::server

// No sentence takes a folder of this machine to a client.
#include "server/client_sentence.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/http/problem.h"
#include "server/refusal.h"

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

const std::string kRepo = "/home/me/.cache/huggingface/hub/models--org--name";

TEST(ClientSentence, a_path_is_told_by_what_it_leads_to) {
  const std::pair<std::string, std::string> cases[] = {
      {kRepo + "/snapshots/0123/sub/x.gguf: tensor a is cut", "sub/x.gguf: tensor a is cut"},
      {kRepo + "/snapshots/0123 is incomplete: b.gguf is absent", "org/name is incomplete: b.gguf is absent"},
      {"cannot read " + kRepo + "/snapshots: Permission denied", "cannot read org/name: Permission denied"},
      {"the blob '" + kRepo + "/blobs/00ff' is gone", "the blob 'org/name' is gone"},
      {"/etc/hearth/models.toml:3: alias: expected", "models.toml:3: alias: expected"},
      {"the alias a of /etc/hearth/models.toml means x, which is not here",
       "the alias a of models.toml means x, which is not here"},
      {"(/var/lib/a), </var/lib/b>; `/var/lib/c`=/var/lib/d", "(a), <b>; `c`=d"},
      {"cannot read /models", "cannot read models"},
      {"x is a link to /srv/y/, which is not there", "x is a link to y, which is not there"},
      {"nothing below /", "nothing below /"},
  };
  for (const auto& [inner, told] : cases) EXPECT_EQ(client_sentence(inner), told);
}

TEST(ClientSentence, what_is_no_path_stays) {
  for (const char* sentence : {"there is no model org/name; there is a/b", "8 MB/s and 3 / 4", "see http://host/path/x",
                               "// a comment", "ask with ?model=org/name", ""})
    EXPECT_EQ(client_sentence(sentence), sentence);
}

TEST(ClientSentence, a_known_folder_may_have_any_name) {
  const fs::path folders[] = {"/srv/my models, all", "/srv/my models, all/of it", "/"};
  EXPECT_EQ(client_sentence("/srv/my models, all/of it/x.gguf: cut", folders), "x.gguf: cut");
  EXPECT_EQ(client_sentence("cannot read /srv/my models, all: denied", folders), "cannot read my models, all: denied");
}

TEST(ClientSentence, a_folder_that_is_not_known_may_have_many_names) {
  const std::pair<std::string, std::string> cases[] = {
      {"cannot read /srv/my models/it's here/x.gguf: denied", "cannot read x.gguf: denied"},
      {"the file '/srv/it's/a (b) c/x.gguf' is cut", "the file 'x.gguf' is cut"},
      {"/srv/a b/c.gguf, of /srv/d e/f.gguf: cut", "c.gguf, of f.gguf: cut"},
      {"/srv/a b and /srv/c d/e", "a b and e"},
      {"~/my models/x is gone; ask /y", "x is gone; ask y"},
  };
  for (const auto& [inner, told] : cases) EXPECT_EQ(client_sentence(inner), told);
}

// Where a sentence may quote the request, slashes and all.
TEST(ClientSentence, known_folders_alone_can_be_taken_out) {
  const std::vector<fs::path> folders = with_parents("/srv/my models/it's (all): mine/x.gguf");
  EXPECT_EQ(folders.size(), 3u) << "not the one below the root";
  for (const auto& [inner, told] : {
           std::pair("the pattern /a b/ of (/srv/my models/it's (all): mine/x.gguf)", "the pattern /a b/ of (x.gguf)"),
           std::pair("x=/srv/my models/it's (all): mine/y/z.json.", "x=z.json."),
           std::pair("/srv/my models/other/z", "z"),
           std::pair("/srv/mine", "/srv/mine"),
       })
    EXPECT_EQ(without_folders(inner, folders), told);
  EXPECT_TRUE(with_parents("a/b/c").empty());
}

TEST(ClientSentence, errors_events_and_refusals_go_through_it) {
  const std::string inner = "cannot read " + kRepo + "/snapshots/0123/a.json: Permission denied";
  const std::string told = "cannot read a.json: Permission denied";
  EXPECT_EQ(problem_of(Error(ErrorKind::io, inner)).message, told);
  Event event{.kind = Event::Kind::error};
  event.text = inner;
  event.reason = name_of(ErrorKind::io);
  EXPECT_EQ(problem_of(event).message, told);
  EXPECT_EQ(refusal_of(event, "/srv/x").message, told);
  EXPECT_EQ(refusal_of(Error(ErrorKind::io, inner)).message, told);
}

TEST(ClientSentence, what_was_written_for_clients_stays) {
  const std::string sentence = "there is no model /a/b; there is c";
  EXPECT_EQ(problem_of(ClientError(ErrorKind::not_found, sentence)).message, sentence);
  EXPECT_EQ(refusal_of(ClientError(ErrorKind::not_found, sentence)).message, sentence);
  EXPECT_EQ(problem_of(RequestError("model", sentence)).message, sentence);
}

}  // namespace
}  // namespace hearth::server

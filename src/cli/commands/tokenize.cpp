#include "base/error.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/input.h"
#include "cli/open_model.h"
#include "cli/text_width.h"
#include "model/model_text.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "MODEL", .help = "a .gguf file, a model folder, or a name in the store"},
    {.name = "TEXT", .help = "the text; - reads standard input", .required = false},
};
constexpr Flag kFlags[] = {
    {.name = "chat",
     .kind = ValueKind::file,
     .value = "FILE",
     .help = "a JSON conversation, rendered by the model's chat template: [{role, content}, ...] or {messages, tools}"},
    {.name = "special", .help = "names of special tokens in TEXT become those tokens", .aliases = "--parse-special"},
    {.name = "no-bos", .help = "nothing is put around the text"},
    {.name = "text", .help = "prints the rendered conversation instead of its ids"},
};

text::Rendered render_file(const Context& context, const model::ModelText& text, const std::string& file) {
  constexpr size_t kBytesMax = size_t{32} << 20;
  const std::string name = file == "-" ? "standard input" : file;
  const std::string source =
      file == "-" ? read_stdin(kBytesMax) : io::real_fs().read_file(hub::expand_home(file, context.env()), kBytesMax);
  return text.render(json::parse(source, name));
}

int run(Context& context) {
  const std::optional<std::string> chat = context.args().text("chat");
  const std::optional<std::string> plain = context.args().positional("TEXT");
  if (chat.has_value() == plain.has_value())
    fail(ErrorKind::invalid_argument, "tokenize takes {}", chat ? "--chat or TEXT, not both" : "TEXT or --chat FILE");
  if (context.args().on("text") && !chat) fail(ErrorKind::invalid_argument, "--text goes with --chat");

  const hub::FoundModel found = find_model(context);
  const std::unique_ptr<model::Model> model = model::Model::open(found.path);
  const model::ModelText text(*model);
  text::Rendered rendered;
  if (chat) rendered = render_file(context, text, *chat);
  const std::string source = chat ? rendered.text : text_or_stdin(*plain);
  if (!chat) require_utf8(source, "the text");
  if (context.args().on("text") && !context.json()) {
    context.write_out(source);
    return 0;
  }
  const bool around = !context.args().on("no-bos");
  const std::vector<int32_t> ids =
      chat ? text.encode_rendered(rendered, around)
           : text.tokenizer().encode(source, {.parse_special = context.args().on("special"), .add_special = around});

  if (context.json()) {
    json::Object document;
    document["model"] = found.name;
    if (chat) document["text"] = source;
    json::Array numbers, pieces;
    bool first = true;
    for (const int32_t id : ids) {
      numbers.emplace_back(id);
      pieces.emplace_back(repaired(text.tokenizer().piece_bytes(id, first)));
      first = false;
    }
    document["ids"] = std::move(numbers);
    document["pieces"] = std::move(pieces);
    context.print_json(std::move(document));
    return 0;
  }
  bool first = true;
  for (const int32_t id : ids) {
    const json::Value piece(repaired(text.tokenizer().piece_bytes(id, first)));
    context.print("{:>7}  {}\n", id, json::dump(piece));
    first = false;
  }
  context.note("{} token{}", ids.size(), ids.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace

const Command kTokenize = {
    .name = "tokenize",
    .aliases = "",
    .summary = "token ids and pieces of a text or conversation",
    .details = "",
    .positionals = kPositionals,
    .flags = kFlags,
    .run = run,
};

}  // namespace hearth::cli

# Writes OUT, a source that holds files of FOLDER as bytes behind one function:
#   cmake -DFOLDER=... -DFILES=a.html,b.js -DFUNCTION=hearth::server::page_file -DHEADER=... -DOUT=... -P Embed.cmake
string(REPLACE "," ";" files "${FILES}")
set(tables "")
set(cases "")
foreach(name ${files})
  file(READ ${FOLDER}/${name} hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(MAKE_C_IDENTIFIER ${name} id)
  string(APPEND tables "constexpr char k_${id}[] = {${bytes}};\n")
  string(APPEND cases "  if (name == \"${name}\") return {k_${id}, sizeof k_${id}};\n")
endforeach()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
#include "@HEADER@"
namespace {
@tables@}  // namespace
std::string_view @FUNCTION@(std::string_view name) {
@cases@  return {};
}
]] @ONLY)

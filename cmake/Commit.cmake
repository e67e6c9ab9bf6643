# Writes OUT, a source that holds the commit of SOURCE_DIR, when it is not the one already there:
#   cmake -DSOURCE_DIR=... -DOUT=... -P Commit.cmake
# "12 digits", with "+" behind them where tracked files differ from it; "unknown" outside of a git checkout.
find_program(GIT git)
set(commit unknown)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} describe --always --abbrev=12 --dirty=+ --exclude=*
                  OUTPUT_VARIABLE described RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
#include "cli/version.h"
std::string_view hearth::cli::commit() { return "@commit@"; }
]] @ONLY)

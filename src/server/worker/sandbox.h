// What a worker may do (reliability.md R-06): it parses files of strangers, so it has no network, starts no program and
// sees no file but its model's. Two steps, neither of which can be taken back:
//
//   enter_loading    before the model's first byte is read, while the process has one thread. Landlock: the named paths
//                    alone. seccomp: no sockets, programs, processes, signals to others, tracing.
//   enter_serving    behind the load, for every thread there is: files are closed to it altogether, by seccomp.
//
// A refused system call answers EPERM, a refused file EACCES. Sockets and files that are open stay in use.
#pragma once
#include <filesystem>
#include <vector>

namespace hearth::server::sandbox {

struct Paths {
  std::vector<std::filesystem::path> read;   // files, or folders with all in them; links count where they lead
  std::vector<std::filesystem::path> write;  // folders in which files may be made, replaced and removed too
};

// The files that a model at `path` is made of: its folder with what the links in it lead to; for a file, the files of
// its kind beside it.
std::vector<std::filesystem::path> model_paths(const std::filesystem::path& path);

// A kernel without Landlock (before 5.13, or switched off) is a warning in the log: files are open then until the load
// has ended. Builds with sanitizers keep what the leak checker needs, which is said too. Throws Error{io} when the
// kernel refuses what it has.
void enter_loading(const Paths& paths);
void enter_serving();

}  // namespace hearth::server::sandbox

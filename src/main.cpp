#include "cli/app.h"

int main(int argc, char** argv) { return hearth::cli::run(argc, argv); }

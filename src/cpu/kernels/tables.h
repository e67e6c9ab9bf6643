// The tables by name, for kernel_table.cpp alone.
#pragma once
#include "cpu/kernel_table.h"

namespace hearth::cpu {
namespace generic {
const KernelTable& table();
}
namespace avx2 {
const KernelTable& table();
}
namespace avx512 {
const KernelTable& table();
}
}  // namespace hearth::cpu

#include "cpu/kernel_table.h"

#include "cpu/kernels/tables.h"

namespace hearth::cpu {

const KernelTable& kernel_table(Isa isa) {
  switch (isa) {
    case Isa::generic: break;
    case Isa::avx2: return avx2::table();
    case Isa::avx512:
    case Isa::amx: return avx512::table();
  }
  return generic::table();
}

}  // namespace hearth::cpu

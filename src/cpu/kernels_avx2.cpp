#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "cpu/kernel_table.h"
#include "cpu/kernels/tables.h"
#include "cpu/target.h"

#define HEARTH_ISA avx2
HEARTH_TARGET("avx2,fma,f16c")

#include "cpu/kernels/vec_avx2.inl"
#include "cpu/kernels/all.inl"

HEARTH_TARGET_END

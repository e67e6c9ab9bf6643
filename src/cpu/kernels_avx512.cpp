#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "cpu/kernel_table.h"
#include "cpu/kernels/tables.h"
#include "cpu/target.h"

#define HEARTH_ISA avx512
HEARTH_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")

#include "cpu/kernels/vec_avx512.inl"
#include "cpu/kernels/all.inl"

HEARTH_TARGET_END

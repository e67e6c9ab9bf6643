#include <cstdint>
#include <cstring>

#include "cpu/kernel_table.h"
#include "cpu/kernels/tables.h"
#include "cpu/target.h"

#define HEARTH_ISA generic

#include "cpu/kernels/vec_generic.inl"
#include "cpu/kernels/all.inl"

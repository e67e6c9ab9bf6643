// Opens a region of one instruction set, to the end of the file, after all includes:
//   HEARTH_TARGET("avx2,fma,f16c")
// Functions of headers seen before keep the baseline, so no wide code leaks into shared inline functions.
#pragma once

#define HEARTH_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define HEARTH_TARGET(isa) HEARTH_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define HEARTH_TARGET_END HEARTH_PRAGMA(clang attribute pop)
#else
// GCC 12's own AVX-512 headers start "undefined" vectors with themselves and warn about it where they are inlined.
#define HEARTH_TARGET(isa)                                      \
  HEARTH_PRAGMA(GCC diagnostic ignored "-Wuninitialized")       \
  HEARTH_PRAGMA(GCC diagnostic ignored "-Wmaybe-uninitialized") \
  HEARTH_PRAGMA(GCC push_options) HEARTH_PRAGMA(GCC target(isa))
#define HEARTH_TARGET_END HEARTH_PRAGMA(GCC pop_options)
#endif

#define HEARTH_INLINE inline __attribute__((always_inline))

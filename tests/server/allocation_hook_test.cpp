// The replaced operators of this test program.
#include "support/allocation_hook.inl"

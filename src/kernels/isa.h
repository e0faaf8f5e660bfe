// The instruction sets that have kernels, and which of them may run on this machine.
#pragma once

#include <string_view>

namespace knap {

enum class Isa {
    plain,     // any machine; the reference
    neon,      // with the dot products of ARMv8.2
    avx2,      // with FMA and F16C
    avx_vnni,  // AVX2 with AVX-VNNI
    avx512,    // F, BW, VL and VNNI
    amx,       // AVX-512 with AMX's tiles of bytes
};

std::string_view to_string(Isa isa);  // "plain", "neon", "avx2", "avxvnni", "avx512", "amx"

// True when this machine has the instructions and KNAP_ISA, if set, names this set or a later one
// of the list. AMX has to be named, because its speed was not measured yet. Throws knap::Error when
// KNAP_ISA names no set.
bool may_use(Isa isa);

}  // namespace knap

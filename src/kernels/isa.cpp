#include "kernels/isa.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/error.h"

namespace knap {
namespace {

using namespace std::string_view_literals;

constexpr std::array kNames{
    std::pair{Isa::plain, "plain"sv},   std::pair{Isa::neon, "neon"sv},
    std::pair{Isa::avx2, "avx2"sv},     std::pair{Isa::avx_vnni, "avxvnni"sv},
    std::pair{Isa::avx512, "avx512"sv}, std::pair{Isa::amx, "amx"sv}};

#if defined(__x86_64__)
// CPUID leaf 7.1, EAX bit 4. GCC before 13 has no builtin that tests for AVX-VNNI.
bool has_avx_vnni() {
    unsigned eax = 7;
    unsigned ebx = 0;
    unsigned ecx = 1;
    unsigned edx = 0;
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    constexpr unsigned kAvxVnni = 1U << 4U;
    return (eax & kAvxVnni) != 0;
}

bool has_avx512() {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vnni") != 0;
}

// CPUID leaf 7, EDX bits 24 and 25, and the system's permission: Linux gives a process room for
// tile registers only when it asks.
bool has_amx() {
#if defined(__linux__)
    unsigned eax = 7;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    constexpr unsigned kTiles = 1U << 24U;
    constexpr unsigned kTilesOfBytes = 1U << 25U;
    if ((edx & kTiles) == 0 || (edx & kTilesOfBytes) == 0) {
        return false;
    }
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

bool machine_has(Isa isa) {
    const auto has_avx2 = [] {
        // Every CPU with AVX2 has F16C, which not every compiler can test for.
        return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    };
    switch (isa) {
        case Isa::plain:
            return true;
        case Isa::neon:
            return false;
        case Isa::avx2:
            return has_avx2();
        case Isa::avx_vnni:
            return has_avx2() && has_avx_vnni();
        case Isa::avx512:
            return has_avx512();
        case Isa::amx:
            return has_avx512() && has_amx();
    }
    return false;
}
#elif defined(__aarch64__)
bool has_dot_products() {
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__ARM_FEATURE_DOTPROD)
    return true;
#else
    return false;
#endif
}

bool machine_has(Isa isa) {
    return isa == Isa::plain || (isa == Isa::neon && has_dot_products());
}
#else
bool machine_has(Isa isa) {
    return isa == Isa::plain;
}
#endif

// The last set that the user allows: KNAP_ISA, or every set but AMX when unset.
Isa highest_allowed() {
    const char* wanted = std::getenv("KNAP_ISA");
    if (wanted == nullptr || *wanted == '\0') {
        return Isa::avx512;
    }
    const auto named =
        std::ranges::find_if(kNames, [&](const auto& entry) { return entry.second == wanted; });
    if (named == kNames.end()) {
        fail("KNAP_ISA: expected plain, neon, avx2, avxvnni, avx512 or amx, found ", wanted);
    }
    return named->first;
}

}  // namespace

std::string_view to_string(Isa isa) {
    return std::ranges::find_if(kNames, [&](const auto& entry) { return entry.first == isa; })
        ->second;
}

bool may_use(Isa isa) {
    return isa <= highest_allowed() && machine_has(isa);
}

}  // namespace knap

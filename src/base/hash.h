// Hash functions: FNV-1a over bytes for fingerprints and checksums of our own files, SplitMix64 for
// pseudo-random numbers. Neither is cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/host_device.h"

namespace knap {

// Mixes `word` into `state`. The result is word number `word` of the SplitMix64 stream that starts
// at `state` (Steele, Lea and Flood 2014; constants by Stafford). Every bit of either input affects
// every bit of the result. Chain calls to hash several words.
KNAP_HOST_DEVICE inline std::uint64_t mix_in(std::uint64_t state, std::uint64_t word) {
    std::uint64_t bits = state + (word + 1) * 0x9e3779b97f4a7c15ULL;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
    return bits ^ (bits >> 31);
}

class Fnv1a {
  public:
    void add(std::span<const std::byte> bytes) {
        for (const std::byte b : bytes) {
            state_ = (state_ ^ static_cast<std::uint64_t>(b)) * 0x100000001b3ULL;
        }
    }
    void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
    void add(std::uint64_t value) { add(std::as_bytes(std::span(&value, 1))); }
    std::uint64_t value() const { return state_; }

  private:
    std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace knap

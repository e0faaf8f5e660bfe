#include "serve/answer/identifier.h"

#include <random>

namespace knap {

std::string new_identifier(std::string_view prefix) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::random_device device;
    std::string name(prefix);
    for (int word = 0; word < 3; ++word) {
        std::uint32_t bits = device();
        for (int digit = 0; digit < 8; ++digit) {
            name += kDigits[bits & 15];
            bits >>= 4;
        }
    }
    return name;
}

}  // namespace knap

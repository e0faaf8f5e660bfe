// Numbers as text.
#pragma once

#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>

namespace knap {

// "3.10" with two decimals.
inline std::string format_fixed(double value, int n_decimals) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(n_decimals) << value;
    return out.str();
}

// "3.1 GiB" with one decimal.
inline std::string format_gib(std::uint64_t n_bytes, int n_decimals) {
    constexpr double kGib = 1 << 30;
    return format_fixed(static_cast<double>(n_bytes) / kGib, n_decimals) + " GiB";
}

}  // namespace knap

// Formats numbers as text.
#pragma once

#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>

namespace knap {

// With two decimals: "3.10".
inline std::string format_fixed(double value, int n_decimals) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(n_decimals) << value;
    return out.str();
}

// With one decimal: "3.1 GiB".
inline std::string format_gib(std::uint64_t n_bytes, int n_decimals) {
    constexpr double kGib = 1 << 30;
    return format_fixed(static_cast<double>(n_bytes) / kGib, n_decimals) + " GiB";
}

}  // namespace knap

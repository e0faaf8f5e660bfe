// Numbers as text.
#pragma once

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

}  // namespace knap

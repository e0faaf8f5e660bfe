#include "decode/option_table.h"

#include <charconv>
#include <system_error>

#include "base/error.h"
#include "base/quoted.h"

namespace knap {

namespace {

// Accepts only a number within the range that takes up all of `text`. (std::from_chars accepts
// neither a leading '+' nor spaces.)
template <typename Number>
bool read_whole(std::string_view text, Number min, Number max, Number& value) {
    Number read{};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, read);
    // Written so that NaN fails.
    const bool is_read = error == std::errc() && rest == end && read >= min && read <= max;
    value = is_read ? read : value;
    return is_read;
}

}  // namespace

void refuse_value(const StrategyOptionInfo& info, std::string_view value) {
    fail("`.settings`: expected ", info.key, "=", info.values, ", found ", in_quotes(value));
}

bool read_integer(std::string_view text, int min, int max, int& value) {
    return read_whole(text, min, max, value);
}

bool read_number(std::string_view text, float min, float max, float& value) {
    return read_whole(text, min, max, value);
}

}  // namespace knap
